"""Many tasks: the study and its figure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from _helpers.study_figures import (
    check_drawn_reproducibly,
    check_not_finite_left_out,
    check_nothing_drawn_of_nothing,
    check_parts_drawn,
    draw_study,
)
from _helpers.study_rows import fill_cells, without_solutions
from paretomtl.compare import Row
from paretomtl.paper import STUDIES
from paretomtl.paper.runner import run_study


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    return run_study("many-tasks", STUDIES["many-tasks"], tmp_path_factory.mktemp("smoke"), size="smoke").rows


@pytest.fixture(scope="module")
def filled(smoke: list[Row]) -> list[Row]:
    """Rows of all cells for two seeds, with made-up numbers."""
    return fill_cells("many-tasks", [row for row in smoke if row["cell"] == "2 objectives / 5 vectors"])


def test_a_smoke_run_is_whole_and_says_what_was_run(smoke: list[Row]) -> None:
    study = STUDIES["many-tasks"]
    assert len(smoke) == sum(cell.seeds * len(cell.stages) for cell in study.cells("smoke"))
    json.dumps(smoke, allow_nan=False)
    for row in smoke:
        assert row.keys() >= {"problem", "method", "recipe", "preferences", "epochs", "seed", "losses", "status"}
        assert row.keys() >= {"seconds", "date", "hardware", "versions", "settings", "in_region"}
    assert study.claims(smoke) == []
    assert study.facts(smoke)


@pytest.mark.parametrize("size", ["full", "quick", "smoke"])
def test_cells_are_told_apart_by_name_and_by_settings(size: Any) -> None:
    cells = STUDIES["many-tasks"].cells(size)
    assert len({cell.name for cell in cells}) == len({cell.settings for cell in cells}) == len(cells)


def test_figures_are_drawn_from_rows_alone_and_reproducibly(filled: list[Row], tmp_path: Path) -> None:
    check_drawn_reproducibly("many-tasks", filled, tmp_path)
    check_nothing_drawn_of_nothing("many-tasks", tmp_path)


def test_what_there_is_is_drawn(filled: list[Row], unsaved: dict[str, Any], tmp_path: Path) -> None:
    check_parts_drawn("many-tasks", filled, unsaved, tmp_path, step=2)
    check_not_finite_left_out("many-tasks", filled, unsaved, tmp_path, without_solutions)


def test_many_tasks_are_means_over_seeds(unsaved: dict[str, Any], tmp_path: Path) -> None:
    stored = [_many("final", count, seed, (1 + 2 * seed) / count, 1) for count in (50, 10) for seed in (0, 1)]
    stored += [_many("snapshot", 10, 0, 0.4, 4), _many("snapshot", 10, 1, 0.6, 6)]
    draw_study("many-tasks", stored, tmp_path)
    gaps, regions = unsaved["many-tasks"].axes
    assert [line.get_xydata().tolist() for line in gaps.lines] == [[[10, 0.2], [50, 0.04]], [[10, 0.2], [10, 0.5]]]
    assert gaps.collections[0].get_offsets().tolist() == [[10, 0.5]], "before the release"
    assert [text.get_text() for text in regions.texts if "|" in text.get_text()][:2] == ["50 | 50", "50 | ?"]


def test_gathered_vectors_have_panels_of_their_own(unsaved: dict[str, Any], tmp_path: Path) -> None:
    even = [_many("final", 10, 0, 0.2, 1), _many("final", 10, 0, 0.1, 1) | {"tasks": 2}]
    draw_study("many-tasks", [*even, _many("final", 10, 0, 0.9, 1) | {"gathered": 0.5}], tmp_path)
    panels = unsaved["many-tasks"].axes
    assert len(panels) == 4
    drawn = [{line.get_ydata()[0]: line.get_color() for line in axis.lines if len(line.get_ydata())} for axis in panels]
    assert 0.9 not in drawn[0]
    assert drawn[1][0.9] == drawn[0][0.2] != drawn[0][0.1], "the same colour for as many tasks"
    assert panels[0].get_ylim() == panels[1].get_ylim()


def test_the_title_says_by_how_much_the_gap_falls(unsaved: dict[str, Any], tmp_path: Path) -> None:
    gaps = {(2, 5): 0.2, (2, 50): 0.05, (3, 5): 0.4, (3, 50): 0.3}
    stored = [_many("final", count, 0, gap, 1) | {"tasks": tasks} for (tasks, count), gap in gaps.items()]
    draw_study("many-tasks", stored, tmp_path)
    said = [text.get_text() for text in unsaved["many-tasks"].texts]
    assert "From 5 to 50 models, the gap falls by 75 % with 2 tasks, by 25 % with 3 tasks" in said


def _many(stage: str, count: int, seed: int, value: float, hits: int) -> Row:
    fields = {"igd_plus": value, "igd_plus_on_rays": 0.05, "regions_met": count // 2, "in_region": hits}
    return {"stage": stage, "tasks": 3, "preferences": count, "seed": seed, **fields}
