from __future__ import annotations

import json
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import torch

import paretomtl as pm
from _helpers.runs import training, wait_for
from paretomtl.methods import Reachable
from paretomtl.report.page import view_of
from paretomtl.report.page._live import LiveRun, check_folder

SGD = lambda parameters: torch.optim.SGD(parameters, lr=0.1)  # noqa: E731


def fit(folder: Path, **options: Any) -> pm.Front:
    options = {"method": "pareto-mtl", "preferences": 3, "epochs": 4, "strategy": "sequential", **options}
    x = torch.randn(24, 3, generator=torch.Generator().manual_seed(0))
    problem = pm.Problem(
        lambda: torch.nn.Linear(3, 2),
        lambda outputs, targets: (outputs - targets).square().mean(0),
        ["a", "b"],
        train=(x[:16], x[:16, :2]),
        val=(x[16:], x[16:, :2]),
        metrics={"worst": pm.Metric(lambda o, t: (o - t).abs().max(), "lower")},
        name="small",
    )
    return pm.fit(problem, out=folder, optimizer=SGD, device="cpu", progress="quiet", **options)


def looked_at(folder: Path) -> LiveRun:
    run = LiveRun(folder, "run")
    run.poll()
    return run


def cut(folder: Path, events: int) -> list[str]:
    """Make a finished run look as it did after so many lines of its log; return all lines."""
    shutil.rmtree(folder / "front")
    lines = (folder / "log.jsonl").read_text().splitlines(keepends=True)
    (folder / "log.jsonl").write_text("".join(lines[:events]))
    return lines


# A run's folder at every stage.


def test_every_stage_of_a_run(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run = LiveRun(folder, "run")
    assert run.poll()
    assert (run.news.state, run.front) == ("waiting", None)
    front = fit(folder, epochs=6)
    lines = cut(folder, 0)
    (folder / "log.jsonl").write_text(lines[0])
    assert run.poll()
    assert (run.news.state, run.view()["values"], run.view()["epoch"]) == ("training", {}, 0)
    assert run.view()["preferences"] == view_of(front, "", "")["preferences"]
    for done in range(1, 7):
        (folder / "log.jsonl").write_text("".join(lines[: done + 1]))
        assert run.poll()
        assert not run.poll()
        event = json.loads(lines[done])
        assert run.view()["epoch"] == done
        assert run.view()["values"]["val"]["loss:a"] == pytest.approx([row[0] for row in event["val_losses"]], rel=1e-5)
        assert run.view()["values"]["val"]["worst"] == pytest.approx(event["val_metrics"]["worst"], rel=1e-5)
        assert run.view()["history"]["epochs"] == list(range(1, done + 1))
    assert run.view()["state"] == "training"
    assert run.news.process == "running"
    front.save(folder / "front")
    assert not run.poll(), "the front of a run that says that it trains is not looked at"
    (folder / "log.jsonl").write_text("".join(lines))
    assert run.poll()
    assert run.news.state == "finished"
    assert run.view() == {**view_of(front, "run", str(folder)), "epochs": 6}


def test_the_live_view_of_the_last_epoch_is_that_of_the_front(tmp_path: Path) -> None:
    front = fit(tmp_path, epochs=5, method=pm.ParetoMTL(scale=(1.0, 4.0)))
    cut(tmp_path, 6)
    live, final = looked_at(tmp_path).view(), view_of(front, "run", str(tmp_path))
    assert final["scale"] is not None
    same = ("tasks", "reading", "preferences", "scale", "ideal", "reference", "history", "better", "method", "seed")
    assert {name: live[name] for name in same} == {name: final[name] for name in same}
    for name in ("values", "nondominated", "hypervolume"):
        assert live[name]["val"] == final[name]["val"]
    assert len(live["angles"]) == len(live["in_region"]) == len(front)


def test_the_time_left_goes_by_the_pace_of_the_epochs(tmp_path: Path) -> None:
    """The first epoch after a start, or a resume, is slower than the others."""
    fit(tmp_path, epochs=10)
    lines = [json.loads(line) for line in cut(tmp_path, 0)]
    start, first = lines[0], lines[1]

    def left(*events: dict[str, Any]) -> float | None:
        (tmp_path / "log.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
        return looked_at(tmp_path).news.left

    def epoch(number: int, at: float) -> dict[str, Any]:
        return {**first, "epoch": number, "time": start["time"] + at}

    assert left(start) is None
    assert left(start, epoch(1, 100.0)) is None
    assert left(start, epoch(1, 100.0), epoch(2, 102.0)) == pytest.approx(16.0)
    assert left(start, epoch(1, 100.0), epoch(2, 102.0), epoch(5, 111.0)) == pytest.approx(5 * 11 / 4, abs=0.1)
    again = {**start, "event": "resume", "epoch": 5, "time": start["time"] + 500.0}
    assert left(start, epoch(1, 100.0), epoch(5, 111.0), again, epoch(6, 600.0)) is None
    assert left(start, epoch(1, 1.0), epoch(10, 10.0)) == 0.0


def test_a_live_view_has_directions_once_a_probe_has_found_them(tmp_path: Path) -> None:
    front = fit(tmp_path, method=Reachable(), epochs=8)
    assert front.reading == "direction"
    lines = cut(tmp_path, 0)
    at = next(i for i, line in enumerate(lines) if json.loads(line)["event"] == "settled")
    final = view_of(front, "run", str(tmp_path))
    assert 1 < at < 8
    for count in range(1, len(lines)):
        (tmp_path / "log.jsonl").write_text("".join(lines[:count]))
        view = looked_at(tmp_path).view()
        assert view["reading"] == ("direction" if count > at else "importance")
        assert (view["preferences"] == final["preferences"]) == (count > at)
        assert (view["in_region"] is None) == (count <= at)
    assert view["values"]["val"] == final["values"]["val"]
    assert len(view["in_region"]) == len(final["in_region"])


def test_runs_of_earlier_versions_are_shown_without_regions(tmp_path: Path) -> None:
    fit(tmp_path)
    lines = [json.loads(line) for line in cut(tmp_path, 5)]
    for name in ("process", "method", "reading", "ideal", "better"):
        del lines[0][name]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines[:4]))
    run = looked_at(tmp_path)
    assert (run.view()["reading"], run.view()["in_region"], run.view()["method"]) == ("start", None, "ParetoMTL")
    assert (run.news.state, run.news.process) == ("training", "unknown")
    assert run.view()["values"]["val"]


def test_a_damaged_folder_is_named(tmp_path: Path) -> None:
    fit(tmp_path)
    (tmp_path / "front" / "front.json").write_text("{")
    run = looked_at(tmp_path)
    assert run.news.state == "finished"
    assert "front cannot be read" in run.news.text
    assert run.view()["values"], "the log is still there"
    (tmp_path / "config.json").write_text("[]")
    assert "config.json cannot be read" in looked_at(tmp_path).news.text


@pytest.mark.parametrize(
    "change",
    [
        {"losses": [[1.0, 2.0]]}, {"losses": None}, {"weights": [[1.0], [1.0], [1.0]]}, {"epoch": "x"},
        {"losses": [["x", 1.0]] * 3}, {"time": None},
    ],
)  # fmt: skip
def test_reports_of_another_shape_are_left_out(tmp_path: Path, change: dict[str, Any]) -> None:
    fit(tmp_path)
    lines = cut(tmp_path, 3)
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write(json.dumps({**json.loads(lines[3]), **change}) + "\n")
    view = looked_at(tmp_path).view()
    assert view["epoch"] == 2


def test_a_configuration_without_a_log_may_change(tmp_path: Path) -> None:
    fit(tmp_path / "run")
    cut(tmp_path / "run", 2)
    run = looked_at(tmp_path / "run")
    (tmp_path / "run" / "log.jsonl").unlink()
    run.poll()
    shutil.rmtree(tmp_path / "run")
    assert run.poll()
    assert run.front is None
    fit(tmp_path / "run", preferences=5)
    run.poll()
    assert run.front is not None
    assert len(run.front) == 5


@pytest.mark.parametrize("change", [{"time": float("nan")}, {"seconds": "long"}])
def test_numbers_that_are_none_do_no_harm(tmp_path: Path, change: dict[str, Any]) -> None:
    fit(tmp_path / "run")
    lines = cut(tmp_path / "run", 2)
    with (tmp_path / "run" / "log.jsonl").open("a") as file:
        file.write(json.dumps({**json.loads(lines[2]), **change}) + "\n")
    run = looked_at(tmp_path / "run")
    json.dumps([run.view(), vars(run.news)], allow_nan=False)


def test_losses_that_are_not_finite_are_shown_as_unknown(tmp_path: Path) -> None:
    fit(tmp_path)
    lines = cut(tmp_path, 2)
    event = json.loads(lines[1])
    event["val_losses"][1] = [None, None]
    event["frozen"] = [1]
    (tmp_path / "log.jsonl").write_text(lines[0] + json.dumps(event) + "\n")
    view = looked_at(tmp_path).view()
    assert view["values"]["val"]["loss:a"][1] is None
    assert view["status"] == ["training", "non-finite", "training"]
    assert view["nondominated"]["val"][1] is False


def test_a_long_log_has_short_curves(tmp_path: Path) -> None:
    fit(tmp_path)
    lines = cut(tmp_path, 1)
    event = json.loads(lines[1])
    with (tmp_path / "log.jsonl").open("a") as file:
        for epoch in range(1, 10_001):
            file.write(json.dumps({**event, "epoch": epoch}) + "\n")
    view = looked_at(tmp_path).view()
    assert len(view["history"]["epochs"]) <= 200
    assert view["history"]["epochs"][-1] == view["epoch"] == 10_000
    assert len(json.dumps(view)) < 100_000


def test_a_stored_front_is_shown_too(tmp_path: Path) -> None:
    front = fit(tmp_path / "run")
    front.save(tmp_path / "alone")
    run = looked_at(tmp_path / "alone")
    assert (run.news.state, run.view()) == ("finished", view_of(front, "run", str(tmp_path / "alone")))


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    check_folder(tmp_path / "not" / "yet")
    check_folder(tmp_path)
    (tmp_path / "letter.txt").write_text("")
    with pytest.raises(ValueError, match=r"'RUN' must be the folder of a run, .* such as 'letter.txt'"):
        check_folder(tmp_path)
    with pytest.raises(ValueError, match="'RUN' must be a folder"):
        check_folder(tmp_path / "letter.txt")


# Processes.


@pytest.mark.system
def test_a_run_is_followed_through_its_death_and_resurrection(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run = LiveRun(folder, "run")

    def seen(state: str, epoch: int = 0) -> bool:
        run.poll()
        return run.news.state == state and run.front is not None and run.view()["epoch"] >= epoch

    with training(folder) as process:
        wait_for(lambda: seen("training", 5))
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_for(lambda: seen("broken", 5))
    assert run.news.process == "gone"
    assert run.news.time is not None
    assert run.news.time <= time.time()
    reached = run.view()["epoch"]
    with training(folder) as process:
        wait_for(lambda: seen("training", reached + 3))
        epochs = run.view()["history"]["epochs"]
        assert epochs == sorted(set(epochs)), "what was trained twice is shown once"
        process.send_signal(signal.SIGINT)
        process.wait()
        wait_for(lambda: seen("stopped", reached + 3))
    front = pm.Front.load(folder)
    assert run.view() == {**view_of(front, "run", str(folder)), "epochs": 100_000}
