"""Steps that weigh every so often, and devices that fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import paretomtl as pm
from _helpers.normed_regression import fit
from paretomtl.engine.model_group import Group
from paretomtl.methods import Method, Step


class Counting(pm.ParetoMTL):
    """Writes down the steps that it is asked to weigh."""

    def weigh(self, step: Step, state: Any) -> Any:
        asked.append(int(step.number))
        return super().weigh(step, state)


asked: list[int] = []


@pytest.mark.parametrize("strategy", ["sequential", "batched"])
def test_weights_are_made_anew_every_so_many_steps(strategy: str) -> None:
    asked.clear()
    front = fit(method=Counting(initial_steps=0), weigh_every=4, strategy=strategy, preferences=1)
    assert [number for number in asked if number][-3:] == [4, 8, 12]
    assert front.losses["train"].isfinite().all()


def test_between_two_weighings_no_loss_is_raised() -> None:
    class Opposed(pm.ParetoMTL):
        def weigh(self, step: Step, state: Any) -> Any:
            _, after = super().weigh(step, state)
            return torch.tensor([[-0.5, 1.0]]).expand(step.losses.shape), after

    front = fit(method=Opposed(), weigh_every=2, epochs=1, batch_size=20)
    torch.testing.assert_close(front.history["weights"][0], torch.tensor([[-0.25, 1.0]]).expand(3, 2))


def test_a_run_with_old_weights_can_be_taken_up_again(tmp_path: Path) -> None:
    def stop(report: Any) -> None:
        if report.epoch == 1:
            raise InterruptedError

    options: dict[str, Any] = {"weigh_every": 3, "strategy": "batched"}
    whole = fit(**options)
    with pytest.raises(InterruptedError):
        fit(out=tmp_path, callbacks=[stop], **options)
    resumed = fit(out=tmp_path, resume=True, **options)
    for name, tensor in whole.models.stacked().items():
        assert torch.equal(tensor, resumed.models.stacked()[name]), name
    with pytest.raises(ValueError, match="weigh_every"):
        fit(out=tmp_path, resume=True, strategy="batched")


@pytest.mark.parametrize("every", [0, -1, 1.5, "2"])
def test_bad_numbers_of_steps_are_named(every: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="'weigh_every' must be"):
        fit(weigh_every=every)


def test_a_device_that_is_gone_loses_nothing_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_down(report: Any) -> None:
        if report.epoch == 2:
            monkeypatch.setattr(Group, "stored", gone)
            raise RuntimeError("CUDA error: the launch timed out")

    def gone(self: Group) -> None:
        raise RuntimeError("CUDA error: no CUDA-capable device is detected\nmore lines")

    options: dict[str, Any] = {"strategy": "batched", "checkpoint_seconds": 0.0}
    with (
        pytest.warns(
            UserWarning, match="no checkpoint could be stored: CUDA error: no CUDA-capable device is detected"
        ),
        pytest.raises(RuntimeError, match="the launch timed out"),
    ):
        fit(out=tmp_path, callbacks=[break_down], **options)
    monkeypatch.undo()
    resumed = fit(out=tmp_path, resume=True, **options)
    for name, tensor in fit(**options).models.stacked().items():
        assert torch.equal(tensor, resumed.models.stacked()[name]), name


def test_every_method_can_use_old_weights() -> None:
    for name in ("mgda", "linear", "gradnorm", "uncertainty"):
        assert fit(method=name, weigh_every=2).losses["train"].isfinite().all()
    assert issubclass(Counting, Method)
