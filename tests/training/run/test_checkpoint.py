from __future__ import annotations

import errno
import functools
import os
import random
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, TensorDataset, WeightedRandomSampler

import paretomtl as pm
from _helpers.crashes import LOOKED_AT, Crash, Samples, crash
from _helpers.fronts import assert_equal
from _helpers.networks import MLP, Dropped, Normed, classes, fit, problem
from _helpers.places import HELPERS, TESTS
from paretomtl._support.files import tensor_files as _tensors
from paretomtl.methods import METHODS
from paretomtl.runs import read_log

X, Y = classes()
CROSS = torch.nn.functional.cross_entropy
BY_TASK = {"a": CROSS, "b": lambda output, y: CROSS(output, y[:, 1])}


def crash_and_resume(folder: Path, method: Any, model: Any = Dropped, at: int = 265, **options: Any) -> None:
    """A run that crashes inside its third epoch goes on to the front of one that does not crash."""
    options = {"epochs": 5, "out": folder, "checkpoint_seconds": 0.0, "strategy": "sequential", **options}
    count = 2 if method == "single-task" else 3
    whole = fit(problem(model, train=Samples(), val=(X, Y)), method, count, **{**options, "out": None})
    with pytest.raises(Crash):
        fit(problem(model, train=Samples(at, crash), val=(X, Y)), method, count, **options)
    resumed = fit(problem(model, train=Samples(), val=(X, Y)), method, count, resume=True, **options)
    assert_equal(resumed, whole)
    log = read_log(folder)
    assert [event["event"] for event in log if event["event"] not in ("epoch", "settled")] == ["start", "resume", "end"]
    start = next(event["step"] for event in log if event["event"] == "resume")
    assert 0 < start < 15
    assert start % 3 != 0, "inside an epoch"


SCALED = [
    pm.ParetoMTL(scale="first"),
    pm.ParetoMTL(scale="running", scale_steps=10),
    pm.ParetoMTL(scale="gradnorm", scale_steps=10),
]
"""Two of them are resumed while tasks are trained together."""


@pytest.mark.parametrize("method", [*METHODS, "torchjd:PCGrad", *SCALED])
def test_every_method_resumes_inside_an_epoch(method: Any, tmp_path: Path) -> None:
    crash_and_resume(tmp_path / "run", method)


def test_a_snapshot_outlives_a_crash(tmp_path: Path) -> None:
    """It is taken before step 6, and its evaluation asks for every sample once."""
    crash_and_resume(tmp_path / "run", pm.ParetoMTL(release_steps=9), at=265 + 96)


@pytest.mark.parametrize(
    "options",
    [
        {"strategy": "batched"},
        {"strategy": "batched", "model": Normed, "optimizer": lambda p: torch.optim.AdamW(p, lr=0.01, amsgrad=True)},
        {"keep": "best"},
        {"optimizer": lambda p: torch.optim.NAdam(p, lr=0.01)},
        {"scheduler": lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [1, 3])},
        {"scheduler": lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=15), "schedule": "step"},
        {
            "scheduler": lambda o: torch.optim.lr_scheduler.SequentialLR(
                o,
                [torch.optim.lr_scheduler.LinearLR(o), torch.optim.lr_scheduler.CosineAnnealingLR(o, 3)],
                milestones=[2],
            )
        },
        {"only": [2, 0]},
        {"precision": "float64", "clip_norm": 0.1, "optimizer": lambda p: torch.optim.NAdam(p, lr=0.01)},
        {"precision": "bfloat16"},
    ],
    ids=range(10),
)
def test_every_option_resumes(options: dict[str, Any], tmp_path: Path) -> None:
    crash_and_resume(tmp_path / "run", "pareto-mtl", **options)


def test_a_loader_resumes_at_epochs(tmp_path: Path) -> None:
    def loader(n: int = -1) -> Any:
        return DataLoader(Samples(n, crash), batch_size=32, shuffle=True)

    options: dict[str, Any] = {"epochs": 5, "strategy": "sequential"}
    whole = fit(problem(train=loader()), **options)
    # Before training, the first batch of 32 samples is looked at, and three more times to recognise the data.
    with pytest.raises(Crash):
        fit(problem(train=loader(96 * 3 + 40 + LOOKED_AT)), out=tmp_path, **options)
    resumed = fit(problem(train=loader()), out=tmp_path, resume=True, **options)
    assert_equal(resumed, whole)
    step = next(event["step"] for event in read_log(tmp_path) if event["event"] == "resume")
    assert step > 0
    assert step % 3 == 0


def test_a_problem_without_data_resumes(tmp_path: Path) -> None:
    def stop_at(report: Any) -> None:
        if report.epoch >= 30:
            raise Crash

    synthetic = pm.problems.synthetic()
    options: dict[str, Any] = {
        "epochs": 300,
        "optimizer": lambda p: torch.optim.SGD(p, lr=0.05),
        "strategy": "batched",
    }
    whole = fit(synthetic, **options)
    with pytest.raises(Crash):
        fit(synthetic, out=tmp_path, callbacks=[stop_at], checkpoint_seconds=100.0, **options)
    resumed = fit(synthetic, out=tmp_path, resume=True, **options)
    assert_equal(resumed, whole)


@pytest.mark.system
@pytest.mark.parametrize("kills", [20])
def test_killed_again_and_again(kills: int, tmp_path: Path) -> None:
    """SIGKILL at 20 random moments, each time taken up again: the same front to the bit, and no file is unreadable."""
    script = HELPERS / "killed_run.py"
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}

    def run(name: str, count: int) -> list[str]:
        arguments = [sys.executable, str(script), str(tmp_path / name), str(count), "1"]
        found = subprocess.run(arguments, capture_output=True, text=True, env=environment)
        assert found.returncode == 0, found.stderr
        return found.stdout.split()

    whole, killed = run("whole", 0), run("killed", kills)
    assert whole[0] == "0"
    assert int(killed[0]) == kills
    assert killed[1] == whole[1]
    names = {path.name for path in (tmp_path / "killed").rglob("*")}
    assert not [name for name in names if "unfinished" in name]
    assert names == {path.name for path in (tmp_path / "whole").rglob("*")}


def test_ctrl_c_stops_cleanly(tmp_path: Path) -> None:
    """The current step ends; there is a checkpoint, and a front of what there is; a later run goes on from there."""
    interrupt = Samples(265, lambda: os.kill(os.getpid(), signal.SIGINT))
    options: dict[str, Any] = {"epochs": 5, "strategy": "sequential", "out": tmp_path}
    handler = signal.getsignal(signal.SIGINT)
    with pytest.warns(UserWarning, match="training was stopped after 2 of 5 epochs"):
        front = fit(problem(train=interrupt), **options)
    assert signal.getsignal(signal.SIGINT) is handler
    assert not front.complete
    assert "stopped early (interrupted, after 2 of 5 epochs);" in repr(front)
    assert front.losses["train"].isfinite().all()
    assert not pm.Front.load(tmp_path).complete
    whole = fit(problem(train=Samples()), **{**options, "out": None})
    assert_equal(fit(problem(train=Samples()), resume=True, **options), whole)


def test_a_second_ctrl_c_stops_at_once(tmp_path: Path) -> None:
    def twice() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        fit(problem(train=Samples(265, twice)), out=tmp_path, epochs=5)


def test_a_finished_run_is_not_trained_again(tmp_path: Path) -> None:
    first = fit(problem(), out=tmp_path)
    reports: list[Any] = []
    again = fit(problem(), out=tmp_path, resume=True, callbacks=[reports.append])
    assert_equal(first, again)
    assert not reports
    assert isinstance(again.model(0), MLP)
    assert again.seconds == first.seconds


def test_a_disk_that_fills_up_costs_no_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints and the front cannot be stored any more: both are said, and the front is still returned."""
    original = _tensors.whole_file
    calls = 0

    def fills_up(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return original(*arguments)

    monkeypatch.setattr("paretomtl._support.files.tensor_files.whole_file", fills_up)
    with pytest.warns(UserWarning, match=r"No space left") as said:
        front = fit(problem(), out=tmp_path, strategy="sequential", checkpoint_seconds=0.0)
    texts = [str(warning.message) for warning in said]
    assert any("no checkpoint could be stored" in text for text in texts)
    assert any("the front cannot be stored" in text for text in texts)
    monkeypatch.undo()
    assert_equal(front, fit(problem(), strategy="sequential"))
    assert_equal(fit(problem(), out=tmp_path, strategy="sequential", resume=True), front)


def test_a_callback_that_raises_loses_nothing(tmp_path: Path) -> None:
    def fail(report: Any) -> None:
        if report.epoch == 3:
            raise Crash

    with pytest.raises(Crash):
        fit(problem(), out=tmp_path, callbacks=[fail], strategy="sequential", checkpoint_seconds=1e9)
    reports: list[Any] = []
    resumed = fit(problem(), out=tmp_path, strategy="sequential", resume=True, callbacks=[reports.append])
    assert [report.epoch for report in reports] == [4]
    assert_equal(resumed, fit(problem(), strategy="sequential"))


def test_an_error_while_the_front_is_made_spoils_no_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With keep="best" the models are by then those of other epochs; a stopped run goes on from its own."""
    options: dict[str, Any] = {"strategy": "sequential", "keep": "best"}
    options |= {"optimizer": lambda p: torch.optim.SGD(p, lr=2.0)}
    options |= {"epochs": 5, "out": tmp_path}
    val = classes(30, seed=5)
    whole = fit(problem(train=Samples(), val=val), **{**options, "out": None})
    assert any(epoch < 3 for epoch in whole.epochs)

    def fail(*arguments: Any) -> Any:
        raise Crash

    monkeypatch.setattr("paretomtl.training.run.training_run.Snapshot.of", fail)
    with pytest.raises(Crash):
        fit(problem(train=Samples(265, lambda: os.kill(os.getpid(), signal.SIGINT)), val=val), **options)
    monkeypatch.undo()
    assert_equal(fit(problem(train=Samples(), val=val), resume=True, **options), whole)


def test_a_batch_sampler_of_ones_own_resumes_at_epochs(tmp_path: Path) -> None:
    def loader(n: int = -1) -> Any:
        data = Samples(n, crash)
        order = RandomSampler(data, generator=torch.Generator())
        return DataLoader(data, batch_sampler=BatchSampler(order, 32, drop_last=False))

    options: dict[str, Any] = {"epochs": 4, "strategy": "sequential"}
    whole = fit(problem(train=loader()), **options)
    with pytest.raises(Crash):
        fit(problem(train=loader(96 * 2 + 40 + LOOKED_AT)), out=tmp_path, **options)
    assert_equal(fit(problem(train=loader()), out=tmp_path, resume=True, **options), whole)


def test_sigterm_is_like_ctrl_c(tmp_path: Path) -> None:
    stop = Samples(265, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.warns(UserWarning, match="training was stopped"):
        assert not fit(problem(train=stop), epochs=5, out=tmp_path).complete


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"epochs": 1}, r"'epochs' must be that of the run in .*, or more, to resume it: 2\. Got 1"),
        ({"batch_size": 7}, "'batch_size' must be that of the run"),
        ({"preferences": 2}, "'preferences' must be that of the run"),
        ({"method": "linear"}, "'method' must be that of the run"),
    ],
)
def test_other_settings_are_refused_before_a_model_is_made(changed: Any, named: str, tmp_path: Path) -> None:
    made: list[None] = []

    def model() -> MLP:
        made.append(None)
        return MLP()

    options: dict[str, Any] = {"epochs": 2, "out": tmp_path}
    fit(problem(model), **options)
    made.clear()
    with pytest.raises(ValueError, match=named):
        fit(problem(model), resume=True, **{**options, **changed})
    assert made == []


class Noisy(Dataset[Any]):
    """Draws noise from a generator of its own; of its class, if none is given."""

    rng: Any = np.random.default_rng(0)

    def __init__(self, rng: Any = None) -> None:
        if rng is not None:
            self.rng = rng

    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, i: int) -> Any:
        draw = self.rng.random if hasattr(self.rng, "random") else self.rng.random_sample
        return X[i] + draw(), Y[i]


class Shuffled:
    """A batch sampler that shuffles by a generator of NumPy."""

    def __init__(self, keep: int = 96) -> None:
        self.rng, self.keep = np.random.Generator(np.random.MT19937(3)), keep

    def __iter__(self) -> Any:
        return iter(self.rng.permutation(96)[: self.keep].reshape(-1, 24).tolist())

    def __len__(self) -> int:
        return self.keep // 24


def noisy_batch(samples: Any, rng: Any) -> Any:
    x, y = torch.utils.data.default_collate(samples)
    return x + torch.randn(x.shape, generator=rng), y


def loader(rng: Any = None, **options: Any) -> Any:
    return DataLoader(TensorDataset(X, Y) if rng is None else Noisy(rng), **options)


_GLOBAL = random.Random(7)


def noisy_by_global(samples: Any) -> Any:
    x, y = torch.utils.data.default_collate(samples)
    return x + _GLOBAL.random(), y


def weighted() -> Any:
    return WeightedRandomSampler([1.0] * 96, 48, generator=torch.Generator().manual_seed(4))


@pytest.mark.parametrize(
    "data",
    [
        lambda: {"train": loader(batch_sampler=Shuffled())},
        lambda: {"train": Noisy(np.random.default_rng(1))},
        lambda: {"train": Noisy(np.random.RandomState(1))},
        lambda: {"train": Noisy()},
        lambda: {"train": loader(random.Random(1), batch_size=24, shuffle=True)},
        lambda: {"train": loader(np.random.Generator(np.random.Philox(2)), batch_size=24, num_workers=1)},
        lambda: {"train": loader(batch_size=24, collate_fn=functools.partial(noisy_batch, rng=torch.Generator()))},
        lambda: {"train": loader(batch_size=24, collate_fn=noisy_by_global)},
        lambda: {"train": (X, Y), "val": loader(batch_size=24, sampler=weighted())},
        lambda: {"train": (X, Y), "val": loader(batch_sampler=Shuffled(48))},
        lambda: {"train": pm.problems.PerTask({"a": (X, Y[:, 0]), "b": Noisy(random.Random(2))}), "losses": BY_TASK},
    ],
    ids=range(11),
)
def test_generators_of_the_data_are_stored(data: Any, tmp_path: Path) -> None:
    def stop(report: Any) -> None:
        if report.epoch == 2:
            raise Crash

    def train(**options: Any) -> pm.Front:
        Noisy.rng = np.random.default_rng(0)  # as in a new process
        _GLOBAL.seed(7)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "'val' takes other")
            return fit(problem(**data()), "linear", 2, epochs=4, strategy="sequential", keep="last", **options)

    with pytest.raises(Crash):
        train(out=tmp_path, callbacks=[stop], checkpoint_seconds=0.0)
    resumed, whole = train(out=tmp_path, resume=True), train()
    assert_equal(resumed, whole)


def test_random_workers_that_outlive_an_epoch_are_refused(tmp_path: Path) -> None:
    made = problem(train=DataLoader(Samples(), batch_size=32, num_workers=1, persistent_workers=True))
    with pytest.raises(ValueError, match="'train' must be a DataLoader with persistent_workers=False"):
        fit(made, out=tmp_path)
    same = loader(batch_size=48, num_workers=1, persistent_workers=True)
    assert fit(problem(train=same), epochs=1, out=tmp_path / "same").complete
