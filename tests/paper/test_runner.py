"""A study in several goes: nothing is trained twice, nothing is lost, and what does not belong is named."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from paretomtl.compare import Row, load_rows
from paretomtl.paper.runner import run_study, stored_study
from paretomtl.paper.study import Size, Study


@dataclass(frozen=True)
class Counted:
    """A cell that trains nothing, and writes down that it was asked to."""

    name: str
    log: list[str]
    settings: str = "rate=1; steps=3"
    seeds: int = 2
    stages: tuple[str, ...] = ("final",)
    fails: bool = False

    def run(self, data: Path | None, seeds: Sequence[int]) -> list[Row]:
        self.log.append(self.name)
        if self.fails:
            raise KeyboardInterrupt
        return [
            {"seed": s, "stage": stage, "value": f"{self.name} {s} of {list(seeds)}"}
            for s in seeds
            for stage in self.stages
        ]


def study(*cells: Counted, shares: tuple[str, ...] = ()) -> Study:
    def sized(size: Size) -> list[Counted]:
        return list(cells)

    return Study(sized, {"counted": lambda rows: None}, shares=shares)


def rewrite(path: Path, change: Any) -> None:
    stored = json.loads(path.read_text())
    stored["rows"] = change(stored["rows"])
    path.write_text(json.dumps(stored))


def test_what_is_stored_is_not_trained_again(tmp_path: Path) -> None:
    log: list[str] = []
    both = study(Counted("a", log), Counted("b", log))
    first = run_study("s", both, tmp_path, only="b")
    assert (log, first.missing, first.trained) == (["b"], ["a"], 1)
    second = run_study("s", both, tmp_path)
    assert (log, second.missing, second.trained) == (["b", "a"], [], 1)
    assert [(row["cell"], row["seed"]) for row in second.rows] == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    assert run_study("s", both, tmp_path).rows == second.rows == load_rows(tmp_path / "s.json")
    assert log == ["b", "a"]
    assert all({"date", "hardware", "versions", "settings"} <= row.keys() for row in second.rows)


def test_a_run_that_stops_half_way_keeps_what_was_whole(tmp_path: Path) -> None:
    log: list[str] = []
    with pytest.raises(KeyboardInterrupt) as stop:
        run_study("s", study(Counted("a", log), Counted("b", log, fails=True), Counted("c", log)), tmp_path)
    assert stop.value.__notes__[0].startswith(f"1 of 3 cells is stored in '{tmp_path / 's.json'}'. Run the same again")
    assert [row["cell"] for row in load_rows(tmp_path / "s.json")] == ["a", "a"]
    done = run_study("s", study(Counted("a", log), Counted("b", log), Counted("c", log)), tmp_path)
    assert log == ["a", "b", "b", "c"]
    assert done.missing == []


def test_no_cell_begins_that_would_end_too_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock advances by ten seconds at each look; what is stored tells how long a cell may take."""
    log, said, now = [], [], [0.0]

    def clock() -> float:
        now[0] += 10.0
        return now[0]

    monkeypatch.setattr("paretomtl.paper.runner.time.monotonic", clock)
    four = study(*[Counted(name, log) for name in "abcd"])
    found = run_study("s", four, tmp_path, seconds=15.0, log=said.append)
    assert log == ["a"]
    assert found.missing == ["b", "c", "d"]
    assert said[-1].startswith("Stopping after")
    assert run_study("s", four, tmp_path, seconds=75.0).missing == ["d"]
    rewrite(tmp_path / "s.json", lambda rows: [{**row, "seconds": 80.0} for row in rows])
    assert run_study("s", four, tmp_path, seconds=75.0).missing == ["d"]
    assert run_study("s", four, tmp_path, seconds=95.0).missing == []


def test_what_another_process_stores_meanwhile_is_kept(tmp_path: Path) -> None:
    log: list[str] = []

    class Meanwhile(Counted):
        def run(self, data: Path | None, seeds: Sequence[int]) -> list[Row]:
            run_study("s", study(Counted("a", log), Counted("b", log), Counted("c", log)), tmp_path, only="c")
            return super().run(data, seeds)

    found = run_study("s", study(Meanwhile("a", log), Counted("b", log), Counted("c", log)), tmp_path, only="a")
    assert sorted({row["cell"] for row in found.rows}) == ["a", "c"]
    assert found.missing == ["b"]


def test_a_missing_row_is_named_and_its_cell_trained_again(tmp_path: Path) -> None:
    log: list[str] = []
    both = study(Counted("a", log, stages=("final", "snapshot")), Counted("b", log))
    whole = run_study("s", both, tmp_path).rows
    rewrite(tmp_path / "s.json", lambda rows: [row for row in rows if row["stage"] == "final"])
    assert stored_study("s", both, tmp_path).missing == ["a"]
    again = run_study("s", both, tmp_path)
    assert log == ["a", "b", "a"]
    assert again.missing == []
    assert len(again.rows) == len(whole)


def test_more_seeds_are_added_to_those_that_are_stored(tmp_path: Path) -> None:
    log: list[str] = []
    both = study(Counted("a", log), Counted("b", log, seeds=3))
    usual = run_study("s", both, tmp_path).rows
    more = run_study("s", both, tmp_path, seeds=4)
    assert [row for row in more.rows if row in usual] == usual
    added = [row["value"] for row in more.rows if row not in usual]
    assert added == ["a 2 of [2, 3]", "a 3 of [2, 3]", "b 3 of [3]"]
    assert [row["seed"] for row in more.rows] == [*range(4), *range(4)]
    log.clear()
    for fewer in (None, 1, 4):
        assert run_study("s", both, tmp_path, seeds=fewer).rows == more.rows, "those that are stored belong to it"
        assert stored_study("s", both, tmp_path, seeds=fewer).missing == []
    assert log == []
    assert stored_study("s", both, tmp_path, seeds=5).missing == ["a", "b"]
    with pytest.raises(ValueError, match="'seeds' must be 1 or more"):
        run_study("s", both, tmp_path, seeds=0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: [*rows, rows[0]], "must hold each row once. Got more of a, seed 0"),
        (
            lambda rows: [{**rows[0], "settings": "rate=2; steps=3"}],
            "for a, seed 0; the first differs in rate: stored 2, now 1",
        ),
        (lambda rows: [{**rows[0], "cell": "z"}], "only rows of this study and size. Got z, seed 0"),
        (lambda rows: [{"losses": []}], "Got one without cell, seed, stage, settings, versions"),
    ],
)
def test_rows_that_do_not_belong_are_named(tmp_path: Path, change: Any, message: str) -> None:
    log: list[str] = []
    one = study(Counted("a", log))
    run_study("s", one, tmp_path)
    rewrite(tmp_path / "s.json", change)
    before = (tmp_path / "s.json").read_text()
    for look in (run_study, stored_study):
        with pytest.raises(ValueError, match=message):
            look("s", one, tmp_path)
    assert (tmp_path / "s.json").read_text() == before
    assert log == ["a"]


def test_old_rows_are_trained_anew_when_asked_and_kept_aside(tmp_path: Path) -> None:
    log: list[str] = []
    run_study("s", study(Counted("a", log), Counted("b", log)), tmp_path)
    changed = study(Counted("a", log), Counted("b", log, settings="rate=2; steps=3"))
    found = run_study("s", changed, tmp_path, again=True)
    assert log == ["a", "b", "b"]
    assert {row["settings"] for row in found.rows} == {"rate=1; steps=3", "rate=2; steps=3"}
    aside = load_rows(tmp_path / "s-old.json")
    assert [(row["cell"], row["settings"]) for row in aside] == [("b", "rate=1; steps=3")] * 2
    run_study("s", study(Counted("a", log), Counted("b", log, settings="rate=3")), tmp_path, again=True)
    assert len(load_rows(tmp_path / "s-old.json")) == 4


def test_rows_of_the_same_settings_are_taken_over_from_another_study(tmp_path: Path) -> None:
    log: list[str] = []
    run_study("whole", study(Counted("long name", log, seeds=3)), tmp_path)
    said: list[str] = []
    part = study(
        Counted("a", log), Counted("other", log, settings="rate=2"), Counted("more", log, seeds=4), shares=("whole",)
    )
    rewrite(tmp_path / "whole.json", lambda rows: rows + [{**row, "cell": "same settings"} for row in rows])
    found = run_study("part", part, tmp_path, log=said.append)
    assert log == ["long name", "other", "more"]  # one of other settings, and one with more seeds than are there
    assert [row["value"] for row in found.rows if row["cell"] == "a"] == [
        "long name 0 of [0, 1, 2]",
        "long name 1 of [0, 1, 2]",
    ]
    assert "a: taken over from whole" in said


def test_rows_of_another_version_are_kept_and_named(tmp_path: Path) -> None:
    log: list[str] = []
    one = study(Counted("a", log))
    run_study("s", one, tmp_path)
    rewrite(
        tmp_path / "s.json", lambda rows: [{**r, "versions": {**r["versions"], "paretomtl": "0.0.1"}} for r in rows]
    )
    said: list[str] = []
    run_study("s", one, tmp_path, log=said.append)
    assert said == ["Rows of version 0.0.1 are kept: their settings are the same."]
    assert log == ["a"]


def test_a_study_without_figures_is_refused_before_anything_is_trained(tmp_path: Path) -> None:
    log: list[str] = []
    bare = replace(study(Counted("a", log)), figures={})
    with pytest.raises(ValueError, match="The study 's' must have figures: at least one name with a function"):
        run_study("s", bare, tmp_path)
    assert log == []
    assert not (tmp_path / "s.json").exists()


def test_a_folder_that_cannot_be_written_and_a_damaged_file_are_found_first(tmp_path: Path) -> None:
    log: list[str] = []
    one = study(Counted("a", log))
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="'out' must be a folder that can be written"):
        run_study("s", one, tmp_path / "file")
    (tmp_path / "s.json").write_text('{"rows": [')
    with pytest.raises(ValueError, match="must be a JSON file"):
        run_study("s", one, tmp_path)
    assert log == []


def test_progress_is_of_all_cells(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []
    both = study(Counted("a", log), Counted("b", log))
    run_study("s", both, tmp_path, only="a", progress="plain")
    rewrite(tmp_path / "s.json", lambda rows: [{**rows[0], "seconds": 75.0}, {**rows[1], "hardware": "other"}])
    monkeypatch.setattr("paretomtl.training.progress.study.PLAIN_SECONDS", 0.0)
    run_study("s", both, tmp_path, progress="plain")
    assert capsys.readouterr().err == "cell 2 of 2 (b), 0:00 gone, 1:15 left\n"
    with pytest.raises(ValueError, match="'progress' must be one of"):
        run_study("s", both, tmp_path, progress="loud")  # type: ignore[arg-type]
