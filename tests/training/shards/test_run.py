from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import paretomtl as pm
from _helpers.fronts import assert_same
from _helpers.networks import MLP, Normed, classes, problem
from _helpers.shards import VAL, train
from paretomtl.methods import METHODS
from paretomtl.runs import read_log
from paretomtl.runs.doctor import inspect_run, repair_run, worst
from paretomtl.training import JobBatch, Report, SerialExecutor


@pytest.fixture(autouse=True)
def _told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paretomtl.training.shards.job._SEND_SECONDS", 0.0)


@pytest.mark.parametrize("method", METHODS)
def test_shards_make_the_front_of_one_run(method: str) -> None:
    rows: Any = pm.preferences.even(5, 2) + 0.1 if method == "p-norm" else 2 if method == "single-task" else 5
    # A shard does not see the other models, which a probe compares.
    whole = train(method=pm.Linear(scale="auto") if method == "auto" else method, preferences=rows)
    assert_same(train(method=method, preferences=rows, executor=SerialExecutor(2)), whole)


def test_shards_cannot_find_reachable_preferences() -> None:
    with pytest.raises(ValueError, match="'executor' must be None for the method 'p-norm', which needs all rows"):
        train(method="p-norm", preferences=3, executor=SerialExecutor(2))


def test_shards_of_released_and_scaled_runs_with_metrics() -> None:
    method = pm.ParetoMTL(initial_steps=4, release_steps=4, scale="first")
    made = problem(Normed, val=VAL, metrics={"first": pm.Metric(lambda outputs, targets: outputs[0].mean())})
    options = {"method": method, "problem": made, "keep": "best"}
    whole, parts = train(**options), train(executor=SerialExecutor(2), **options)
    assert_same(parts, whole)
    assert parts.snapshot is not None
    assert torch.equal(parts.metrics["val"]["first"], whole.metrics["val"]["first"])


@given(st.lists(st.integers(0, 6), unique=True, min_size=1), st.integers(1, 8))
@settings(max_examples=8)
def test_any_subproblems_in_shards_of_any_size(only: list[int], size: int) -> None:
    options = {"preferences": 7, "only": only, "epochs": 1}
    whole, parts = train(**options), train(executor=SerialExecutor(size), **options)
    assert_same(parts, whole)
    assert parts.strategy.startswith(f"{-(-len(only) // size)} shards; ")


def test_a_stack_in_shards_agrees_in_float64() -> None:
    options = {"strategy": "batched", "precision": "float64", "epochs": 3}
    whole, parts = train(**options), train(executor=SerialExecutor(2), **options)
    for name, tensor in whole.models.stacked().items():
        torch.testing.assert_close(parts.models.stacked()[name], tensor, rtol=1e-6, atol=1e-9)


def test_the_front_grows_as_shards_end(tmp_path: Path) -> None:
    seen: list[int] = []

    class Looking(SerialExecutor):
        def map(self, jobs: JobBatch) -> Any:
            for result in super().map(jobs):
                yield result
                seen.append(len(pm.Front.load(tmp_path)))

    train(out=tmp_path, executor=Looking(2))
    assert seen[:2] == [2, 3]  # as equal as can be: 2, 1 and 2
    assert pm.Front.load(tmp_path).complete
    assert not (tmp_path / "shards" / ".reached").exists()
    for part in sorted((tmp_path / "shards").iterdir()):
        assert pm.Front.load(part).complete  # each an ordinary run


def test_a_killed_run_goes_on_with_the_shards_that_are_missing(tmp_path: Path) -> None:
    whole = train()
    train(out=tmp_path, executor=SerialExecutor(2))
    lost = tmp_path / "shards" / "001"
    shutil.rmtree(lost / "front")
    shutil.rmtree(tmp_path / "front")
    kept = (tmp_path / "shards" / "000" / "log.jsonl").read_bytes()
    assert_same(train(out=tmp_path, executor=SerialExecutor(4), resume=True), whole)
    assert (tmp_path / "shards" / "000" / "log.jsonl").read_bytes() == kept
    assert [event["event"] for event in read_log(lost) if event["event"] != "epoch"][-2:] == ["resume", "end"]


def test_a_run_in_shards_goes_on_without_an_executor(tmp_path: Path) -> None:
    whole = train(out=tmp_path, executor=SerialExecutor(2))
    shutil.rmtree(tmp_path / "shards" / "002" / "front")
    shutil.rmtree(tmp_path / "front")
    assert_same(train(out=tmp_path, resume=True), whole)
    assert_same(train(out=tmp_path, resume=True), whole)  # done: what is stored


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_with_what_there_is(tmp_path: Path, number: int) -> None:
    whole = train(epochs=6)

    def stop(report: Report) -> None:
        if report.epoch == 3:  # as the mean over all: in the second shard
            os.kill(os.getpid(), number)

    with pytest.warns(UserWarning, match="stopped after 1 of 3 shards"):
        front = train(epochs=6, out=tmp_path, executor=SerialExecutor(2), callbacks=[stop])
    assert not front.complete
    assert 0 < len(front) < 5
    assert_same(train(epochs=6, out=tmp_path, executor=SerialExecutor(2), resume=True), whole)


def test_reports_tell_of_all_subproblems() -> None:
    reports: list[Report] = []
    train(executor=SerialExecutor(2), callbacks=[reports.append])
    assert [report.epoch for report in reports] == sorted({report.epoch for report in reports})
    assert reports[-1].epoch == reports[-1].epochs
    assert reports[-1].losses.isfinite().all()
    assert reports[-1].hypervolume is not None
    assert reports[0].losses.isnan().any()
    assert "waiting" in reports[0].note
    assert reports[-1].numbers()["note"].startswith("shards: ")


class Breaking(MLP):
    """Some break in their fifth step, by how they began."""

    def __init__(self) -> None:
        super().__init__()
        self.fragile = bool(self.trunk[0].weight[0, 0] > 0)
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        self.steps += self.training
        factor = torch.inf if self.fragile and self.steps > 4 else 1.0
        return tuple(factor * output for output in super().forward(x))


def test_a_model_that_breaks_is_warned_of_and_the_others_go_on() -> None:
    options = {"problem": problem(Breaking), "epochs": 3}
    with pytest.warns(UserWarning, match="not finite"):
        whole = train(**options)
    with pytest.warns(UserWarning, match="not finite"):
        front = train(executor=SerialExecutor(2), **options)
    assert front.complete
    assert 0 < front.status.count("non-finite") < 5
    sound = [i for i, word in enumerate(whole.status) if word != "non-finite"]
    assert [i for i, word in enumerate(front.status) if word != "non-finite"] == sound
    assert torch.equal(front.losses["train"][sound], whole.losses["train"][sound])


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'shard_size' must be a whole number of at least 1"):
        SerialExecutor(0)
    train(out=tmp_path / "plain", epochs=1)
    with pytest.raises(ValueError, match="'executor' must be left out"):
        train(out=tmp_path / "plain", epochs=1, executor=SerialExecutor(2), resume=True)
    train(out=tmp_path / "parts", epochs=2, executor=SerialExecutor(2))
    with pytest.raises(ValueError, match="holds a run already"):
        train(out=tmp_path / "parts", epochs=2, executor=SerialExecutor(2))
    with pytest.raises(ValueError, match=r"'epochs' must be that of the run in .*, or more, to resume it: 2"):
        train(out=tmp_path / "parts", epochs=1, executor=SerialExecutor(2), resume=True)
    with pytest.raises(ValueError, match="'losses' must return"):
        train(problem=pm.Problem(MLP, lambda outputs, targets: outputs[0].mean(), ["a", "b"], train=classes()),
              executor=SerialExecutor(2))  # fmt: skip
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="'out' must be a folder that can be written"):
        train(out=tmp_path / "file", executor=SerialExecutor(2))


def test_the_doctor_looks_into_every_shard(tmp_path: Path) -> None:
    whole = train(out=tmp_path, executor=SerialExecutor(2))
    assert worst(inspect_run(tmp_path)) == "ok"
    shard = tmp_path / "shards" / "001"
    (shard / "front" / "front.json").write_text("{")
    (shard / "checkpoint.safetensors").write_bytes(b"cut")
    shutil.rmtree(tmp_path / "front")
    found = {finding.file: finding.state for finding in inspect_run(tmp_path)}
    assert found["shards/001/checkpoint.safetensors"] == found["shards/001/front/front.json"] == "repairable"
    assert found["shards/000/checkpoint.safetensors"] == "ok"
    assert any(line.startswith("shards/001/checkpoint.safetensors: replaced") for line in repair_run(tmp_path))
    with pytest.warns(UserWarning, match="the front is rebuilt"):
        assert_same(train(out=tmp_path, executor=SerialExecutor(2), resume=True), whole)
