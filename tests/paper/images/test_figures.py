"""Figures of all image studies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from _helpers.study_figures import (
    check_drawn_reproducibly,
    check_not_finite_left_out,
    check_nothing_drawn_of_nothing,
    check_parts_drawn,
)
from _helpers.study_rows import plane_row, without_solutions
from paretomtl.compare import Row
from paretomtl.paper import STUDIES
from paretomtl.paper.images.cells import LONG, STRONG
from paretomtl.paper.panels import layer
from paretomtl.paper.runner import run_study
from paretomtl.report.figures.layers import TEST_ACCURACY, TEST_LOSS, panel_limits
from paretomtl.report.figures.scatter2d import draw_scatter2d

pyplot = pytest.importorskip(
    "matplotlib.pyplot", reason="matplotlib is not installed: pip install 'paretomtl[figures]'"
)

NAMES = ("images-lenet", "images-resnet", "ablation-init", "ablation-release", "preferences", "weights", "acceptance")


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Row]]:
    """Of each study; where a smoke run is slow, rows of others with the fields changed."""
    folder = tmp_path_factory.mktemp("rows")
    trained = {
        name: run_study(name, STUDIES[name], folder, size="smoke", only=only).rows
        for name, only in {
            "images-lenet": "multi-mnist / paper's settings / ",  # which the others take over
            "ablation-init": None,
            "ablation-release": None,
            "preferences": "even",
            "weights": None,
            "acceptance": None,
        }.items()
    }
    lenet = trained["images-lenet"]
    strong = [{**row, "problem": "multi-fashion", "part": STRONG, "recipe": "strong"} for row in lenet]
    long = [{**row, "part": LONG, "epochs": 100} for row in lenet if row["seed"] == 0]
    resnet = [
        {**row, "problem": problem, "part": "to the end", "network": "ResNet-18"}
        for problem in ("multi-mnist", "multi-fashion")
        for row in lenet
        if row["method"] in ("pareto-mtl", "linear", "single-task")
    ]
    return {**trained, "images-lenet": lenet + strong + long, "images-resnet": resnet}


@pytest.mark.parametrize("name", NAMES)
def test_figures_are_drawn_from_rows_alone_and_reproducibly(
    smoke: dict[str, list[Row]], tmp_path: Path, name: str
) -> None:
    shown = [row for row in smoke[name] if row["part"] != STRONG]  # fewer panels: the same code, in less time
    check_drawn_reproducibly(name, shown, tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_drawn_of_nothing(tmp_path: Path, name: str) -> None:
    check_nothing_drawn_of_nothing(name, tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_what_there_is_is_drawn(
    smoke: dict[str, list[Row]], unsaved: dict[str, Any], tmp_path: Path, name: str
) -> None:
    check_parts_drawn(name, smoke[name], unsaved, tmp_path, step=3)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_finite_is_left_out(
    smoke: dict[str, list[Row]], unsaved: dict[str, Any], tmp_path: Path, name: str
) -> None:
    check_not_finite_left_out(name, smoke[name], unsaved, tmp_path, without_solutions)


def test_panels_have_room_for_pareto_mtl_and_say_what_they_leave_out() -> None:
    front = [[0.6, 0.3], [0.4, 0.32], [0.28, 0.5]]
    mine = layer("pareto-mtl", [plane_row("pareto-mtl", front)], joined=True)
    theirs = layer("linear", [plane_row("linear", [[0.27, 9.0], [0.3, 0.35], [8.0, 0.3]])])
    limits = panel_limits(TEST_LOSS, [mine, theirs])
    assert limits[0] == pytest.approx((0.0, 1.08 * 0.6))
    assert limits[1] == pytest.approx((0.0, 1.08 * 0.5))
    figure, axis = pyplot.subplots()
    assert draw_scatter2d(axis, TEST_LOSS, [mine, theirs]) == "outside: 2 of Linear scalarization"
    pyplot.close(figure)
    (low, high), _ = panel_limits(TEST_ACCURACY, [mine, theirs])
    assert 0.3 < low < 0.4 < 0.73 < high < 0.8, "of accuracies from 0.4 to 0.72, 0.73 for grid search aside"
    single = plane_row("single-task", [[0.2, 9.0], [9.0, 0.9]])
    assert panel_limits(TEST_LOSS, [mine, theirs], [single])[1][1] > 0.9, "with room for the lines of separate networks"
