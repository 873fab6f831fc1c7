from __future__ import annotations

import functools
import importlib.util
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import paretomtl as pm
from _helpers.fronts import assert_same
from _helpers.networks import classes, fit, problem, sgd
from _helpers.workers import Dying, Failing, slow, unsendable
from paretomtl.problems import NamedProblem
from paretomtl.runs import read_log
from paretomtl.training import Report
from paretomtl.training.shards.job import ShardJob
from paretomtl.training.shards.ray import executor as on_ray

if importlib.util.find_spec("ray") is None:
    pytestmark = pytest.mark.skip("Ray is not installed: pip install 'paretomtl[ray]'")


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """One small Ray for all tests here."""
    import ray  # not for those who only collect these tests

    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "error"}
    ray.init(address="local", num_cpus=2, object_store_memory=80 * 2**20, **quiet)
    yield
    ray.shutdown()


def train(of: pm.Problem, **options: Any) -> pm.Front:
    options = {"epochs": 6, "strategy": "sequential", "checkpoint_seconds": 0.0, **options}
    return fit(of, "pareto-mtl", options.pop("preferences", 4), **options)


def marks_of(front: pm.Front, *subproblems: int) -> list[float]:
    """By what models of these subproblems are known in :class:`~_helpers.workers.Slow`."""
    return [float(front.state_dict(k)["mark"]) for k in subproblems]


def resumed(folder: Path) -> list[int]:
    """The steps at which shards were taken up again."""
    logs = [read_log(shard) for shard in sorted((folder / "shards").iterdir()) if shard.is_dir()]
    return [event["step"] for log in logs for event in log if event["event"] == "resume"]


@pytest.mark.usefixtures("cluster")
def test_a_killed_worker_is_replaced_and_nothing_is_trained_twice(tmp_path: Path) -> None:
    executor = pm.RayExecutor(shard_size=2, retries=1)
    undisturbed = train(slow(counted=tmp_path / "undisturbed"), executor=executor)
    assert_same(undisturbed, train(slow()))
    deadly = marks_of(undisturbed, 0, 2)  # a model in each shard
    front = train(slow(0.0, tmp_path / "killed", deadly), out=tmp_path / "run", executor=executor)
    assert_same(front, undisturbed)
    steps = resumed(tmp_path / "run")
    assert len(steps) == 2
    assert min(steps) > 0  # each from a checkpoint
    started = (
        tmp_path / "undisturbed"
    ).stat().st_size - 4 * 6 * 3  # 4 models, 6 epochs of 3 steps; the rest are checks
    again = (tmp_path / "killed").stat().st_size - (tmp_path / "undisturbed").stat().st_size
    assert again <= len(deadly) * (2 + started)  # both models of the shard in the step that was lost, and the checks
    states = [event["state"] for event in read_log(tmp_path / "run") if event["event"] == "shard"]
    assert (states.count("lost"), states.count("finished")) == (2, 2)


@pytest.mark.usefixtures("cluster")
def test_workers_that_do_not_see_the_folder_send_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "paretomtl.training.shards.run.ShardJob", lambda part, folder, word: ShardJob(part, folder, "another")
    )
    undisturbed = train(slow())
    made = slow(0.05, tmp_path / "counted", marks_of(undisturbed, 2))
    front = train(made, out=tmp_path / "run", executor=pm.RayExecutor(shard_size=2))
    assert_same(front, undisturbed)
    (step,) = resumed(tmp_path / "run")  # from files that were sent back, and fetched
    assert step > 0
    for name in ("000", "001"):
        assert pm.Front.load(tmp_path / "run" / "shards" / name).complete


@pytest.mark.filterwarnings("ignore:worse than untrained")
@pytest.mark.usefixtures("cluster")
def test_a_signal_stops_all_shards_with_a_checkpoint(tmp_path: Path) -> None:
    sent: list[int] = []

    def stop(report: Report) -> None:
        if not sent:
            sent.append(report.epoch)
            os.kill(os.getpid(), signal.SIGTERM)

    options: dict[str, Any] = {"preferences": 6, "out": tmp_path, "executor": pm.RayExecutor(shard_size=2)}
    with pytest.warns(UserWarning, match="stopped after 0 of 3 shards"):
        front = train(slow(0.1), callbacks=[stop], epochs=20, **options)
    assert not front.complete
    assert len(front) >= 4  # two shards had begun
    assert all(epoch < 20 for epoch in front.epochs)
    assert_same(train(slow(), resume=True, epochs=20, **options), train(slow(), preferences=6, epochs=20))


@pytest.mark.usefixtures("cluster")
def test_without_a_folder_and_by_name_with_measured_shards() -> None:
    named = NamedProblem("_helpers.workers:unsendable", {"val": classes(50, seed=1)})
    front = train(unsendable(val=classes(50, seed=1)), strategy="auto", executor=pm.RayExecutor(problem=named))
    assert front.complete
    assert len(front) == 4
    assert front.model(0)(classes()[0])[0].shape == (96, 3)


@pytest.mark.usefixtures("cluster")
def test_what_cannot_be_sent_is_named() -> None:
    with pytest.raises(ValueError, match=r"'losses' must be something that can be sent.*lock.*package"):
        train(unsendable(), executor=pm.RayExecutor(shard_size=2))
    lock = threading.Lock()

    def guarded(parameters: Any) -> Any:
        with lock:
            return sgd(parameters)

    with pytest.raises(ValueError, match="'optimizer' must be something that can be sent"):
        train(problem(), optimizer=guarded, executor=pm.RayExecutor(shard_size=2))


@pytest.mark.usefixtures("cluster")
def test_what_no_worker_has_is_an_error_at_once() -> None:
    with pytest.raises(ValueError, match=r"what one worker has. Got 64 and 0; the workers have 2"):
        train(problem(), executor=pm.RayExecutor(cpus=64, timeout=0.1))
    with pytest.raises(ValueError, match="Got 1 and 1; the workers have 2 CPUs and 0 GPUs"):
        train(problem(), device="cuda", executor=pm.RayExecutor(timeout=0.1))
    with pytest.raises(ValueError, match='\'device\' must be "cpu" or "cuda"'):
        train(problem(), device="cuda:1", executor=pm.RayExecutor())


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("name", ["torch", "python", "paretomtl"])
def test_other_versions_on_a_worker_are_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    other = {**on_ray.versions(), name: "0.0.1"}
    monkeypatch.setattr(on_ray, "versions", lambda: other)
    with pytest.raises(ValueError, match=f"must have the versions of the process that starts the run: {name} 0.0.1"):
        train(problem(), executor=pm.RayExecutor(shard_size=2))


@pytest.mark.usefixtures("cluster")
def test_what_fails_on_a_worker_is_told(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"(?s)shard 00\d failed.*in forward.*a bug of the user's"):
        train(problem(functools.partial(Failing, os.getpid())), executor=pm.RayExecutor(shard_size=2))
    with pytest.raises(ValueError, match=r"Got 'not_there': .*on PYTHONPATH, or in the current folder, wherever it is"):
        train(problem(), executor=pm.RayExecutor(shard_size=2, problem="not_there:problem"))
    with pytest.raises(RuntimeError, match=r"lost its worker 2 times in a row.*resume=True goes on"):
        train(
            problem(functools.partial(Dying, os.getpid())),
            executor=pm.RayExecutor(shard_size=4, retries=1),
            out=tmp_path,
        )


def test_ray_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install ray \(or pip install '\.\[ray\]'"):
        train(problem(), executor=pm.RayExecutor())


@pytest.mark.study
def test_addresses_that_do_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(ValueError, match="where nothing was heard for 3 s"):
            train(problem(), executor=pm.RayExecutor(f"127.0.0.1:{port}", timeout=3))
    with pytest.raises(ValueError, match=f"Got '127.0.0.1:{port}': .*refused.*ray start --head"):
        train(problem(), executor=pm.RayExecutor(f"127.0.0.1:{port}"))
    for address in ("nonsense:port", "http://somewhere:1", ":6379"):
        with pytest.raises(ValueError, match="'address' must be HOST:PORT"):
            train(problem(), executor=pm.RayExecutor(address))


def test_a_cluster_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "RuntimeError: Version mismatch: The cluster was started with:\n    Ray: 1.0.0\n    Python: 3.8.0\nno"
    probe = f"import sys; sys.stderr.write({said!r}); sys.exit(1)"
    monkeypatch.setattr("paretomtl.training.shards.ray.cluster._PROBE", probe)
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    with pytest.raises(ValueError, match=r"with the same Ray and Python. .*Ray: 1.0.0 Python: 3.8.0"):
        train(problem(), executor=pm.RayExecutor("auto"))


def test_bad_numbers() -> None:
    for options, words in (
        ({"cpus": 0}, "'cpus' must be a whole number"),
        ({"gpus": -1}, "'gpus' must not be negative"),
        ({"workers": 0}, "'workers' must be a whole number"),
        ({"shard_size": 1.5}, "'shard_size' must be a whole number"),
        ({"retries": -1}, "'retries' must be a whole number"),
        ({"timeout": 0}, "'timeout' must be positive"),
        ({"problem": "nothing"}, "'problem' must be package.module:attribute"),
    ):
        with pytest.raises(ValueError, match=words):
            pm.RayExecutor(**options)
