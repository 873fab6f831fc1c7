"""Losses of different units: one early warning, and ``scale="auto"``, which is the same in every form of a run."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import paretomtl as pm
from paretomtl.training import SerialExecutor
from paretomtl.training.preflight.loss_units import UNITS_WARNING

UNIT = 4_000.0


def problem(unit: float = 1.0, late: int = 0) -> pm.Problem:
    """Two regressions of one layer; the second loss in another unit, and without labels in the first samples."""
    g = torch.Generator().manual_seed(0)
    x, y = torch.randn(24, 3, generator=g), torch.randn(24, 2, generator=g)
    y[:late, 1] = torch.nan

    def losses(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        there = ~targets.isnan()
        errors = (outputs - targets.nan_to_num()).square() * there
        means = [errors[:, i].sum() / there[:, i].sum() for i in range(2)]
        return torch.stack([means[0], unit * means[1]])

    return pm.Problem(lambda: nn.Linear(3, 2), losses, train=(x, y), tasks=("a", "b"), name="units")


def fit(unit: float = 1.0, method: Any = "pareto-mtl", late: int = 0, **options: Any) -> pm.Front:
    settings = {"preferences": 2, "epochs": 2, "batch_size": 8, "device": "cpu", "progress": "quiet", **options}
    settings.setdefault("optimizer", lambda p: torch.optim.SGD(p, lr=0.05))
    return pm.fit(problem(unit, late), method, **settings)


def told(action: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        action()
    return [str(each.message) for each in said if str(each.message).startswith(UNITS_WARNING)]


@pytest.mark.parametrize("method", ["pareto-mtl", "linear", "mgda", "gradnorm", "uncertainty"])
def test_different_units_are_told_once_with_the_remedy(method: str) -> None:
    (said,) = told(lambda: fit(UNIT, method, epochs=1))
    name = type(pm.methods.resolve_method(method)).__name__
    assert f'{name}(scale="auto"), or --set scale=auto.' in said
    assert "(b " in said
    assert not told(lambda: fit(UNIT, pm.methods.METHODS[method](scale="auto"), epochs=1))  # type: ignore[call-arg]
    assert not told(lambda: fit(1.0, method, epochs=1))


def test_the_warning_comes_before_training() -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", UNITS_WARNING)
        with pytest.raises(UserWarning, match="factor of"):
            fit(UNIT, callbacks=[lambda report: pytest.fail("it was trained")])


def test_separate_networks_and_diagnoses_mind_no_units() -> None:
    assert not told(lambda: fit(UNIT, "single-task", epochs=1))


def test_seeds_and_shards_warn_once(tmp_path: Path) -> None:
    options: dict[str, Any] = {"epochs": 1, "batch_size": 8, "device": "cpu"}
    assert len(told(lambda: pm.fit_seeds(problem(UNIT), "pareto-mtl", 2, seeds=range(3), **options))) == 1
    assert not told(lambda: pm.fit_seeds(problem(UNIT), preferences=2, seeds=range(3), **options)), "auto scales"
    cut = {"out": tmp_path / "run", "executor": SerialExecutor(shard_size=1), "strategy": "sequential"}
    assert len(told(lambda: fit(UNIT, epochs=1, **cut))) == 1


def test_automatic_factors_are_those_of_the_first_losses_where_they_differ() -> None:
    scaled, plain = (fit(unit, pm.ParetoMTL(scale="auto")) for unit in (UNIT, 1.0))
    assert scaled.scale is not None
    assert plain.scale is not None
    assert torch.equal(scaled.scale[0], scaled.scale[1]), "directions mean the same in all models"
    torch.testing.assert_close(scaled.scale[0, 0] / scaled.scale[0, 1] / UNIT, plain.scale[0, 0], rtol=3, atol=0)
    assert (plain.scale == 1).all()
    assert torch.equal(plain.losses["train"], fit().losses["train"]), "factors of 1 change nothing"
    assert "Losses were divided by (" in repr(scaled)
    assert "factors of their scale are 1" in plain.scaling()


def test_a_scale_of_none_is_no_oversight_where_scaling_is_usual() -> None:
    assert not told(lambda: fit(UNIT, pm.Auto(scale=None), epochs=1))
    assert told(lambda: fit(UNIT, pm.methods.Linear(scale=None), epochs=1)), "which is the default"


@pytest.mark.parametrize("method", [pm.ParetoMTL, pm.methods.Linear, pm.methods.MGDA])
def test_automatic_scales_do_not_mind_units(method: Any) -> None:
    """Both units are far from that of the first loss: the same steps, hence the same losses, each in its unit."""
    one, other = (fit(unit, method(scale="auto"), precision="float64") for unit in (UNIT, 100 * UNIT))
    torch.testing.assert_close(one.losses["train"][:, 0], other.losses["train"][:, 0])
    torch.testing.assert_close(100 * one.losses["train"][:, 1], other.losses["train"][:, 1])


def test_shards_parts_seeds_and_micro_batches_have_the_same_factors(tmp_path: Path) -> None:
    method = pm.ParetoMTL(scale="auto")
    whole = fit(UNIT, method, seed=1)
    assert whole.scale is not None
    shards = fit(
        UNIT, method, seed=1, executor=SerialExecutor(shard_size=1), out=tmp_path / "run", strategy="sequential"
    )
    part = fit(UNIT, method, seed=1, only=[1])
    options: dict[str, Any] = {"epochs": 2, "batch_size": 8, "device": "cpu", "preferences": 2}
    seeds = pm.fit_seeds(problem(UNIT), method, seeds=[1, 0], **options)
    cut = fit(UNIT, method, seed=1, accumulate=2)
    assert shards.scale is not None
    assert part.scale is not None
    assert cut.scale is not None
    assert torch.equal(shards.scale, whole.scale)
    assert torch.equal(part.scale, whole.scale[1:])
    for other in (cut.scale, seeds[0].scale):
        torch.testing.assert_close(other, whole.scale, rtol=1e-6, atol=0)
    events = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    (said,) = [event["scaling"] for event in events if event.get("event") == "start"]
    assert said.startswith("losses were divided by their first values (")


def test_a_warm_start_has_the_factors_of_untrained_models() -> None:
    auto = pm.ParetoMTL(scale="auto")
    first = fit(1000.0, auto)
    assert first.scale is not None
    for options in ({}, {"preferences": first.preferences[1:2]}, {"only": [1]}):
        again = fit(1000.0, auto, start=first, **options)
        assert again.scale is not None
        assert torch.equal(again.scale, first.scale[: len(again)]), "directions mean what they meant"


def test_a_run_is_resumed_with_its_factors(tmp_path: Path) -> None:
    method = pm.ParetoMTL(scale="auto")
    expected = fit(UNIT, method, epochs=4)

    def stop(report: Any) -> None:
        if report.epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(UNIT, method, epochs=4, out=tmp_path, checkpoint_seconds=0.0, callbacks=[stop])
    found = fit(UNIT, method, epochs=4, out=tmp_path, resume=True)
    assert found.scale is not None
    assert expected.scale is not None
    assert torch.equal(found.scale, expected.scale)
    assert torch.equal(found.losses["train"], expected.losses["train"])


def test_a_task_without_labels_in_the_first_batch_is_found_in_a_later_one() -> None:
    (said,) = told(lambda: fit(UNIT, late=20, batch_size=2, epochs=1))
    assert "(b " in said
    found = fit(UNIT, pm.ParetoMTL(scale="auto"), late=20, batch_size=2, epochs=1)
    assert found.scale is not None
    assert found.scale[0, 1] < 0.01
