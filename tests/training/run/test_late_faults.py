"""What fails late: whatever the stage, the models that were trained are returned, on disk, or on the error."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import paretomtl as pm
from _helpers.faults import Fault, Watch
from _helpers.fronts import assert_equal
from _helpers.networks import classes, problem
from _helpers.short_runs import fit, left
from paretomtl.problems import cross_entropies

MARK = 50.0


def marked(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Samples of which the last one, in a late batch, has a mark."""
    x, y = classes(count, seed=seed)
    return torch.cat([x[:-1], x[-1:] * 0 + MARK]), y


DONE = [0]
"""How many epochs are done."""


def raising(error: BaseException, after: int = 0) -> Callable[..., Tensor]:
    """Losses that raise on marked samples without gradients, once ``after`` epochs are done."""

    def losses(model: Any, batch: Any) -> Tensor:
        if not torch.is_grad_enabled() and bool((batch[0] == MARK).any()) and DONE[0] >= after:
            raise type(error)(*error.args)
        return sound(model, batch)

    return losses


def sound(model: Any, batch: Any) -> Tensor:
    return cross_entropies(model(batch[0]), batch[1])


def of(**parts: Any) -> pm.Problem:
    return problem(**{"train": classes(24), "val": classes(16, seed=3), "losses": sound, **parts})


class Holding(torch.optim.SGD):
    """With a state of its own, which it makes in its first step, and must find as it was in the next ones."""

    def __init__(self, parameters: Any, make: Callable[[], Any], key: str | None = None) -> None:
        super().__init__(parameters, lr=1.0)
        self.make, self.key = make, key

    def step(self, closure: Any = None) -> None:
        parameters = [p for group in self.param_groups for p in group["params"]]
        states: Any = [self.state[p] for p in parameters] if self.key is None else [self.state[self.key]]
        for state in states:
            held = state.setdefault("held", self.make())
            assert (type(held), repr(held)) == (type(self.make()), repr(self.make()))
        super().step(closure)


class Scheduling(torch.optim.lr_scheduler.LRScheduler):
    """With attributes that are no numbers."""

    def __init__(self, optimizer: Any, **kept: Any) -> None:
        vars(self).update(kept)
        super().__init__(optimizer)

    def get_lr(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]


class Moody(pm.Linear):
    """A method whose words fail."""

    def status(self, state: Any, losses: Any = None) -> list[str]:
        raise RuntimeError("no words")


class Broken:
    """A callback that breaks something after the last epoch, or raises there or while it is closed."""

    def __init__(self, how: Callable[[Path], Any] | None = None, closing: BaseException | None = None) -> None:
        self.how, self.closing = how, closing
        self.folder = Path()

    def __call__(self, report: Any) -> None:
        DONE[0] = report.epoch
        if report.epoch == 4 and self.how is not None:
            self.how(self.folder)

    def close(self) -> None:
        for watch in FULL:
            watch.__exit__()
        FULL.clear()
        if self.closing is not None:
            raise self.closing


def fail(folder: Path) -> None:
    raise OOPS


def fill(folder: Path) -> None:
    FULL.append(Watch(folder, Fault("ENOSPC", 0, lasting=True)).__enter__())


def block(name: str) -> Callable[[Path], None]:
    """Put a file in the place of a folder, or a folder in that of a file."""

    def how(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).mkdir() if "." in name else (folder / name).write_text("")

    return how


FULL: list[Watch] = []
OOPS = ValueError("oops")
LATE: dict[str, Any] = {"test": marked(16, 5), "losses": raising(OOPS)}
BAD_TEST = "losses on 'test' could not be measured, and are NaN: ValueError: oops. This came from batch 2 of 'test'"
HELD = (
    "no checkpoint could be stored: '.*held' must be made of numbers, .*. Got ABCMeta. Training goes on, and the front"
)


@pytest.mark.parametrize("out", [False, True])
@pytest.mark.parametrize(
    ("parts", "options", "says"),
    [
        (LATE, {}, BAD_TEST),
        (LATE, {"method": pm.ParetoMTL(release_steps=3)}, BAD_TEST),
        ({"train": marked(24, 0), "losses": raising(OOPS)}, {}, "losses on 'train' could not be measured, and are NaN"),
        ({"val": marked(16, 5), "losses": raising(OOPS, 2)}, {}, OOPS),
        ({"val": marked(16, 5), "losses": raising(OOPS, 3)}, {"branch": 0.9}, OOPS),
        ({"val": marked(16, 5), "losses": raising(OOPS, 4)}, {}, "losses on 'val' could not be measured, and are NaN"),
        ({**LATE, "losses": raising(KeyboardInterrupt())}, {}, KeyboardInterrupt()),
        ({"metrics": {"m": pm.Metric(lambda model, batches: 1 / 0)}}, {}, "metric 'm' raised ZeroDivisionError"),
        ({}, {"method": Moody()}, RuntimeError("no words")),
        ({}, {"optimizer": lambda p: Holding(p, lambda: Moody)}, HELD),
        ({}, {"scheduler": lambda o: Scheduling(o, held=Moody)}, HELD),
        ({}, {"how": block("checkpoint.safetensors")}, "no checkpoint could be stored: .* It is a folder"),
        ({}, {"how": fill}, "the front cannot be stored in .*No space left .* It is in '(.*)' instead"),
        ({}, {"how": block("front")}, "the front cannot be stored in .* It is in '(.*)' instead"),
        ({}, {"how": block("log.jsonl")}, "the log in '.*' cannot be written: .* Training goes on"),
        ({}, {"how": block("manifest.json")}, "the manifest in '.*' cannot be written: .* Training goes on"),
        ({}, {"how": fail}, OOPS),
        ({}, {"closing": OOPS}, OOPS),
        ({}, {"closing": KeyboardInterrupt()}, KeyboardInterrupt()),
    ],
    ids=lambda value: None,
)
def test_models_outlive_what_fails_late(
    parts: dict[str, Any], options: dict[str, Any], says: Any, out: bool, tmp_path: Path
) -> None:
    options, DONE[0] = dict(options), 0
    broken = Broken(options.pop("how", None), options.pop("closing", None))
    broken.folder = folder = tmp_path / "run"
    if not out and (says == HELD or broken.how not in (None, fail)):
        pytest.skip("nothing is stored")
    error = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            front = fit(of(**parts), out=folder if out else None, callbacks=[broken], **options)
        except BaseException as raised:
            error, front = raised, raised.front  # type: ignore[attr-defined]
    said = [str(warning.message) for warning in caught]
    if isinstance(says, str):
        assert error is None
        matching = [text for text in said if re.match(says, text)]
        assert len(matching) == 1 or (matching and says[:3] in ("met", "the")), said
    else:
        assert type(error) is type(says)
        assert str(error) == str(says)
        assert "this error has it as its attribute 'front'" in " ".join(error.__notes__)
    done = len(front.history["losses"])
    usual = {**options, "method": "linear" if isinstance(options.get("method"), Moody) else options.get("method")}
    whole = fit(
        of(**{**parts, "losses": sound, "metrics": {}}), **{k: v for k, v in usual.items() if v}, callbacks=[stop(done)]
    )
    assert_same_models(front, whole)
    assert front.losses["val"].shape == whole.losses["val"].shape
    if out:
        elsewhere = re.search(r"It is in '(.*)' instead", " ".join(said))
        assert_same_models(pm.Front.load(folder if elsewhere is None else Path(elsewhere[1])), front)


def stop(done: int) -> Callable[[Any], bool]:
    return lambda report: report.epoch == done


def assert_same_models(one: pm.Front, other: pm.Front) -> None:
    left_, right = one.models.stacked(), other.models.stacked()
    assert all(torch.equal(left_[name], right[name]) for name in {**left_, **right})


KEPT: dict[str, Callable[[], Any]] = {
    "set": lambda: {1, 2},
    "frozenset": lambda: frozenset({(1, 2.5)}),
    "array": lambda: np.arange(6.0).reshape(2, 3)[:, ::2],
    "empty array": lambda: np.zeros((0, 3), np.int16),
    "dates": lambda: np.array(["2020-01-01"], "datetime64[D]"),
    "scalar": lambda: np.float32(0.1),
    "nested": lambda: {"means": [np.ones(2), 1j], np.int64(3): "text"},
    "complex": lambda: 1 + 2j,
    "complex tensor": lambda: torch.tensor([1 + 2j, 3j]).conj(),
    "text": lambda: "text",
    "alike": lambda: {1: torch.zeros(1), "1": torch.ones(1)},
}


@pytest.mark.parametrize("pause", [0.0, 100.0])
def test_a_warning_that_is_an_error_leaves_the_models_on_it(pause: float, tmp_path: Path) -> None:
    with pytest.raises(UserWarning, match=HELD) as caught:
        fit(optimizer=lambda p: Holding(p, lambda: Moody), out=tmp_path, checkpoint_seconds=pause)
    assert_same_models(pm.Front.load(tmp_path), caught.value.front)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("key", [None, "all"])
def test_state_of_optimizers_and_schedulers_is_resumed_as_it_was(name: str, key: str | None, tmp_path: Path) -> None:
    make = KEPT[name]
    options: dict[str, Any] = {
        "optimizer": lambda p: Holding(p, make, key),
        "scheduler": lambda o: Scheduling(o, kept=make()),
    }
    left(2, **options, out=tmp_path)
    assert_equal(fit(**options, out=tmp_path, resume=True), fit(**options))


def test_a_run_goes_on_after_what_no_checkpoint_holds(tmp_path: Path) -> None:
    """Resumed, it begins anew: there is no checkpoint but the first."""
    options: dict[str, Any] = {"optimizer": lambda p: Holding(p, lambda: Moody)}
    with pytest.warns(UserWarning, match="no checkpoint could be stored") as said:
        left(2, **options, out=tmp_path, checkpoint_seconds=0.0)
    assert len(said) == 1
    with pytest.warns(UserWarning, match="no checkpoint could be stored"):
        assert_equal(fit(**options, out=tmp_path, resume=True), fit(**options))


@pytest.mark.parametrize(
    ("split", "error", "ended"),
    [
        ("val", OOPS, "error on validation, after 3 of 4 epochs"),
        ("test", KeyboardInterrupt(), "after 4 epochs"),
    ],
)
def test_what_failed_is_repeated_by_resume(split: str, error: BaseException, ended: str, tmp_path: Path) -> None:
    DONE[0], parts, options = 0, {split: marked(16, 5)}, {"keep": "best"}
    with pytest.raises(type(error)) as caught:
        fit(of(**parts, losses=raising(error, 2)), out=tmp_path, callbacks=[Broken()], **options)
    assert (caught.value.front.ended, caught.value.front.complete) == (ended, False)  # type: ignore[attr-defined]
    assert_equal(fit(of(**parts), out=tmp_path, resume=True, **options), fit(of(**parts), **options))
