"""Several processes train what one would; two_processes.py has what they do."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from typer.testing import CliRunner

import paretomtl as pm
from _helpers.networks import MLP, fit, problem
from _helpers.places import HELPERS, TESTS
from _helpers.two_processes import CHECKS
from paretomtl.cli._app import app
from paretomtl.engine.batches.partition import BatchPartition
from paretomtl.engine.processes import ProcessGroup, _decode, _encode

CLOSE = 1e-12
EXPECTED: dict[str, Any] = {
    "all processes have the same bits": 0.0,
    "dropout differs between processes, models do not": [True, True],
    "batch normalisation keeps the first process's buffers": 0.0,
    "NaN in one process freezes in all": ["trained", "non-finite", "trained"],
    "runs are stored, taken up by two and by one": 0.0,
    "loaders of different lengths end with the shortest": 1,
    "backward with a broken loss in one process": [True] * 10,
    "error: loaders without a share": r"'train' must give each of the 2 processes its own samples",
    "error: other settings in the other process": r"'seed' must be the same in all processes: 0 in the first. Got 1",
    "error: more processes than samples in a batch": r"'batch_size' must be at least the number of processes \(2\)",
    "error: workers": r"'workers' must be 1 where several processes share a run. Got 2",
    "error: captured steps": r"'strategy' must not be \"graphed\" for batches that are cut into parts",
    "error: a wrapped model": r"TypeError: 'model' must make a plain module.* Got a DistributedDataParallel",
    "error: a folder that holds a run": r"'out' must be a new folder",
    "error: a callback that fails in the first process": r"RuntimeError: no more",
    "error: backward of processes that are not connected": r"'distributed' must be False, or come after .* Got True",
    "error: backward that was not told": r"'distributed' must be given where torch.distributed runs",
    "error: backward of sharded parameters": r"TypeError: 'parameters' must be whole tensors.* Got a DTensor",
}

needs_gloo = pytest.mark.skipif(not dist.is_available() or not dist.is_gloo_available(), reason="torch without gloo")


def torchrun(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(TESTS)}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=cwd)


@pytest.mark.system
@needs_gloo
def test_two_processes_are_one(tmp_path: Path) -> None:
    """Over twenty steps in float64, by every method, in `fit` and in a loop of one's own; and all around it."""
    done = torchrun(str(HELPERS / "two_processes.py"), str(tmp_path))
    assert done.returncode == 0, done.stderr
    wrong = []
    for rank in (0, 1):
        found = json.loads((tmp_path / f"{rank}.json").read_text())
        for name in CHECKS:
            value, wanted = found.get(name, "was not reached"), EXPECTED.get(name)
            fits = value == wanted
            if isinstance(wanted, str):
                fits = isinstance(value, str) and re.search(wanted, value) is not None
            elif wanted is None:
                fits = isinstance(value, float) and value < CLOSE
            if not fits:
                wrong.append(f"{name}, process {rank}: {value}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.system
@needs_gloo
def test_the_command_under_torchrun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One table, one run folder, and the losses of one process."""
    words = ("run", "multi-digits", "--preferences", "2", "--epochs", "1", "--method", "linear", "--json", "--device")
    done = torchrun("-m", "paretomtl", *words, "cpu", "--out", "two", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["complete"]

    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, [*words, "cpu", "--out", "one"]).exit_code == 0
    one, two = (pm.Front.load(tmp_path / name / "front") for name in ("one", "two"))
    for split in one.losses:
        torch.testing.assert_close(one.losses[split], two.losses[split], rtol=1e-4, atol=1e-4)


def test_other_commands_are_for_one_process() -> None:
    done = CliRunner().invoke(app, ["list"], env={"RANK": "0", "WORLD_SIZE": "2"})
    assert done.exit_code == 2
    assert "'list' must be started without torchrun" in done.stderr


class _Rank(ProcessGroup):
    def __init__(self, rank: int, size: int) -> None:
        super().__init__()
        self.rank, self.size = rank, size
        self.is_main, self.is_distributed = rank == 0, size > 1


@given(st.integers(1, 40), st.integers(1, 8), st.integers(1, 5), st.integers(1, 40))
def test_shares_are_the_whole_batch(count: int, size: int, accumulate: int, batch_size: int) -> None:
    """Every sample is counted once, in order; those who do not count have something to see all the same."""
    batch_size = max(count, batch_size, size)
    numbers = torch.randperm(count, generator=torch.Generator().manual_seed(0))
    seen, least = [], max(1, min(2, batch_size // size))
    for rank in range(size):
        parts, counts = BatchPartition(_Rank(rank, size), accumulate).split(numbers, batch_size)
        assert 1 <= len(parts) <= accumulate
        assert all(len(part) >= min(least, count) for part in parts)
        if counts:
            seen += parts
    assert torch.equal(torch.cat(seen), numbers)


_leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**60), 2**60),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    st.builds(
        lambda shape, kind: torch.arange(torch.Size(shape).numel()).reshape(shape).to(kind),
        st.lists(st.integers(0, 3), max_size=3),
        st.sampled_from([torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool, torch.uint8]),
    ),
)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and one.shape == other.shape and torch.equal(one, other)
    if isinstance(one, dict):
        return list(one) == list(other) and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and one == other


@given(st.dictionaries(st.text(max_size=3), st.lists(_leaves | st.tuples(_leaves, _leaves), max_size=3), max_size=3))
def test_what_processes_tell_each_other_arrives(value: Any) -> None:
    assert _same(_decode(_encode(value)), value)


@pytest.mark.parametrize("strategy", ["sequential", "batched"])
@pytest.mark.parametrize("method", ["pareto-mtl", "linear", "gradnorm"])
def test_micro_batches_are_the_batch(method: str, strategy: Any) -> None:
    options: dict[str, Any] = {"precision": "float64", "strategy": strategy}
    whole, parts = (fit(method=method, accumulate=n, **options) for n in (1, 3))
    for name, tensor in whole.models.stacked().items():
        torch.testing.assert_close(parts.models.stacked()[name], tensor, rtol=0, atol=CLOSE)


def test_a_model_that_breaks_in_one_micro_batch_is_frozen() -> None:
    class Breaking(MLP):
        made = 0

        def __init__(self) -> None:
            super().__init__()
            self.number = Breaking.made
            self.register_buffer("passes", torch.zeros(()))
            Breaking.made += 1

        def forward(self, x: torch.Tensor) -> Any:
            self.passes += self.training
            bad = self.number == 1 and self.passes == 8 and self.training
            return tuple(out * (torch.nan if bad else 1.0) for out in super().forward(x))

    with pytest.warns(UserWarning, match=r"models \[1\] were not finite"):
        front = fit(problem(Breaking), "mgda", accumulate=2, strategy="sequential")
    assert front.status[1] == "non-finite"
    assert all(tensor.isfinite().all() for tensor in front.models.stacked().values())


def test_bad_input_is_named() -> None:
    for options, words in (
        ({"accumulate": 0}, "'accumulate' must be a whole number of at least 1. Got 0"),
        ({"accumulate": 2, "strategy": "graphed"}, "'strategy' must not be \"graphed\""),
        ({"of": problem(representation="trunk"), "accumulate": 2}, "'accumulate' must be 1 for a problem with a"),
        ({"distributed": "gloo"}, "'distributed' must be True, False or a process group. Got 'gloo'"),
        ({"of": problem(counts=lambda batch: torch.ones(3))}, r"'counts' must return shape \[2\]"),
    ):
        with pytest.raises((ValueError, TypeError), match=words):
            fit(**options)
    with pytest.raises(TypeError, match=r"'counts' must be a function of a batch. Got int instead."):
        problem(counts=3)
    model, weigher = nn.Linear(2, 2), pm.MGDA().bind(torch.ones(1, 2), 0)
    for samples, words in (
        (-1, r"'samples' must not be negative. Got -1.0"),
        (torch.ones(3), r"'samples' must be a number, or have shape \[2\]. Got shape \[3\]"),
    ):
        with pytest.raises(ValueError, match=words):
            pm.backward(model(torch.ones(4, 2)).square().mean(0), weigher, model.parameters(), samples=samples)
    pm.backward(model(torch.ones(4, 2)).square().mean(0), weigher, model.parameters(), samples=4, last=False)
    with pytest.raises(ValueError, match="'samples' must be given in all calls of one step or in none"):
        pm.backward(model(torch.ones(4, 2)).square().mean(0), weigher, model.parameters())


def test_counted_labels_make_evaluation_exact() -> None:
    """Batches of one and of three labels: their mean is that of four labels, not of two batches."""
    x, y = torch.arange(8.0)[:, None], torch.full((8, 2), torch.nan)
    y[:, 0] = 0.0
    y[[0, 4, 5, 6], 1] = torch.tensor([1.0, 2.0, 3.0, 4.0])

    def losses(outputs: Any, targets: torch.Tensor) -> torch.Tensor:
        known = ~targets.isnan()
        errors = torch.where(known, (0.0 * outputs + targets.nan_to_num(0.0)), 0.0)
        return torch.stack([errors[:, i].sum() / known[:, i].sum() for i in (0, 1)])

    of = pm.Problem(
        lambda: nn.Linear(1, 2), losses, ["a", "b"], train=(x, y), counts=lambda batch: (~batch[1].isnan()).sum(0)
    )
    front = fit(of, "linear", 2, batch_size=4, epochs=1)
    torch.testing.assert_close(front.losses["train"][:, 1], torch.full((2,), 2.5))
