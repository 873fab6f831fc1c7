"""Cells of the studies on real data: every one runs on made-up samples."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import paretomtl as pm
from _helpers.places import STORED
from paretomtl.compare import Row, load_rows
from paretomtl.paper import STUDIES
from paretomtl.paper.real_data import faces, localization
from paretomtl.paper.real_data.cells import EXPERTS
from paretomtl.paper.real_data.tables import cell_lines, plain_share, vector_lines
from paretomtl.paper.registry import REGISTRY
from paretomtl.paper.runner import run_study

NAMES = [name for name, entry in REGISTRY.items() if entry.module.startswith("real_data.")]


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Row]]:
    folder = tmp_path_factory.mktemp("smoke")
    return {name: run_study(name, STUDIES[name], folder, size="smoke").rows for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_a_smoke_run_is_whole_and_says_what_was_run(smoke: dict[str, list[Row]], name: str) -> None:
    rows, cells = smoke[name], STUDIES[name].cells("smoke")
    assert len(rows) == sum(cell.seeds * len(cell.stages) for cell in cells)
    json.dumps(rows, allow_nan=False)
    for row in rows:
        assert row.keys() >= {"problem", "method", "recipe", "preferences", "epochs", "seed", "losses", "status"}
        assert row.keys() >= {"seconds", "date", "hardware", "versions", "settings", "in_region"}
    assert all(claim.measured and claim.verdict for claim in STUDIES[name].claims(rows))
    assert STUDIES[name].facts(rows)


def test_a_seed_that_is_added_is_what_it_would_have_been_with_the_others(tmp_path: Path) -> None:
    only = "census / shared trunk / uncertainty"
    run_study("census", STUDIES["census"], tmp_path / "apart", size="smoke", only=only, seeds=1)
    apart, at_once = (
        run_study("census", STUDIES["census"], tmp_path / folder, size="smoke", only=only, seeds=2).rows
        for folder in ("apart", "at once")
    )
    assert [row["seeds_at_once"] for row in apart] == [1, 1]
    assert [row["seeds_at_once"] for row in at_once] == [2, 2]
    for one, other in zip(apart, at_once, strict=True):
        assert (one["seed"], one["losses"], one["metrics"]) == (other["seed"], other["losses"], other["metrics"])


@pytest.mark.system
def test_a_study_that_is_killed_goes_on(tmp_path: Path) -> None:
    """By SIGKILL after the first of four cells, whose rows stay as they were."""
    path, only = tmp_path / "census.json", "uncertainty"
    code = f"""
import os, signal
from pathlib import Path
from paretomtl.paper import STUDIES
from paretomtl.paper import runner as _runner
train = _runner.train_cell
def killed(common, work, link):
    if Path({str(path)!r}).exists():
        os.kill(os.getpid(), signal.SIGKILL)
    return train(common, work, link)
_runner.train_cell = killed
_runner.run_study("census", STUDIES["census"], Path({str(tmp_path)!r}), size="smoke", only={only!r})
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    first = load_rows(path)
    assert {row["cell"] for row in first} == {"census / shared trunk / uncertainty"}
    found = run_study("census", STUDIES["census"], tmp_path, size="smoke", only=only)
    assert found.trained == 3
    assert [(row["cell"], row["losses"], row["date"]) for row in found.rows[:2]] == [
        (row["cell"], row["losses"], row["date"]) for row in first
    ]
    assert len(found.rows) == 8


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", ["full", "quick", "smoke"])
def test_cells_are_told_apart_by_name_and_by_settings(name: str, size: Any) -> None:
    cells = STUDIES[name].cells(size)
    assert len({cell.name for cell in cells}) == len(cells)
    assert len({cell.settings for cell in cells}) == len(cells)


def test_the_papers_vectors_are_trained() -> None:
    """Four for faces, the first of them balanced; three for localization; and the grid of its table."""
    pareto = STUDIES["faces"].cells("full")[0]
    third, half = 3**-0.5, 2**-0.5
    expected = torch.tensor([[third] * 3, [0, half, half], [half, 0, half], [half, half, 0]])
    torch.testing.assert_close(torch.tensor(pareto.preferences), expected, rtol=0, atol=1e-5)
    cells = STUDIES["localization"].cells("full")
    (grid,) = [cell for cell in cells if cell.method == "linear"]
    assert grid.preferences == ((0.25, 0.75), (0.5, 0.5), (0.75, 0.25))
    assert len(cells[0].preferences) == 3


def test_random_vectors_are_other_ones_for_each_seed(smoke: dict[str, list[Row]]) -> None:
    for note in ("5 random", "25 random"):
        rows = [row for row in smoke["census"] if row["note"] == note and row["part"] == EXPERTS]
        assert [row["seed"] for row in rows] == [0, 1]
        for row in rows:
            expected = pm.preferences.random(row["preferences"], 3, seed=row["seed"])
            torch.testing.assert_close(torch.tensor(row["vectors"], dtype=torch.float64), expected, rtol=0, atol=1e-4)


def test_the_last_third_of_a_run_is_released(smoke: dict[str, list[Row]]) -> None:
    """The steps that are written down are those of all samples: 199,523 and 120,000 of them; of a few, it is one."""
    for name, samples, batch, epochs in (("census", 199_523, 512, 5), ("three-digits", 120_000, 256, 10)):
        steps = epochs * -(-samples // batch)
        released = [cell.changes["release_steps"] for cell in STUDIES[name].cells("full") if "release" in cell.note]
        assert released
        assert all(count == pytest.approx(steps / 3, rel=0.01) for count in released)
        for row in smoke[name]:
            assert ("release_steps=1" in row["recipe"]) == ("released" in row["note"]), row["recipe"]


@pytest.mark.parametrize(
    ("name", "words", "count"),
    [
        ("localization", "outperforms other MTL approaches", 1),
        ("localization", "best of all methods in each task", 2),
        ("localization", "different trade-offs", 2),
        ("faces", "best of all methods in each task", 2),
        ("faces", "diverse trade-offs", 2),
        ("census", "5 preference vectors also provide", 2),
    ],
)
def test_stored_rows_are_judged(name: str, words: str, count: int) -> None:
    found = [claim for claim in STUDIES[name].claims(load_rows(STORED / f"{name}.json")) if words in claim.claim]
    assert len(found) == count
    assert {claim.verdict for claim in found} <= {"reproduced", "partly", "not reproduced"}


def test_the_names_of_solutions_are_those_of_the_papers_tables(smoke: dict[str, list[Row]]) -> None:
    for name, paper in (("faces", faces.PAPER_TABLE), ("localization", localization.PAPER_TABLE)):
        lines = vector_lines(smoke[name], paper)
        measured = [line for line in lines if "scaled" not in line.name]
        assert sorted(line.name for line in measured) == sorted(paper)
        assert all(line.paper == paper[line.name] for line in measured)
        assert all(any(line.regions) == line.name.startswith("Pareto MTL") for line in lines)
        assert len(lines) == len({line.name for line in lines})


def test_separate_networks_are_judged_in_their_own_task_alone(smoke: dict[str, list[Row]]) -> None:
    def other(row: Row) -> Row:
        own = {"translation": 0, "rotation": 1}
        metrics = {
            name: [value if own[name.split()[-2]] == k else 9e9 for k, value in enumerate(values)]
            for name, values in row["metrics"].items()
        }
        return {**row, "metrics": metrics}

    alone = [row for row in smoke["localization"] if row["method"] == "single-task"]
    assert vector_lines([other(row) for row in alone], {}) == vector_lines(alone, {})
    assert [line.best for line in cell_lines([other(row) for row in alone])] == [cell_lines(alone)[0].best]


@pytest.mark.parametrize("name", NAMES)
def test_regions_by_losses_as_they_are_are_those_of_training_without_a_scale(
    smoke: dict[str, list[Row]], name: str
) -> None:
    plain = [row for row in smoke[name] if row["method"] == "pareto-mtl" and "scaled" not in row["note"]]
    assert plain
    for row in plain:
        assert plain_share(row, "train_losses") == pytest.approx(row["in_region"] / row["preferences"])
        assert plain_share(row, "losses") == pytest.approx(row["in_region_test"] / row["preferences"])
