"""Faces: its figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from _helpers.study_figures import draw_study
from _helpers.study_rows import fill_cells
from paretomtl.compare import Row
from paretomtl.paper import STUDIES
from paretomtl.paper.real_data.cells import SCALES
from paretomtl.paper.runner import run_study


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    folder, only = tmp_path_factory.mktemp("rows"), "scaled by gradnorm"
    return fill_cells("faces", run_study("faces", STUDIES["faces"], folder, size="smoke", only=only).rows)


def test_faces_are_named_by_what_a_vector_favours_and_up_is_better(
    smoke: list[Row], unsaved: dict[str, Any], tmp_path: Path
) -> None:
    draw_study("faces", smoke, tmp_path)
    panels = unsaved["faces-parallel"].axes
    assert len(panels) == 6, "one for each way to scale the losses"
    lines = {line.get_label(): list(line.get_ydata()) for line in panels[0].lines[3:]}
    ours = [f"Pareto MTL, {word}" for word in ("balanced", "favours gender", "favours race", "favours age")]
    assert list(lines) == ["Fixed weights", "MOO-MTL", "GradNorm", "Uncertainty", "Single task", *ours]
    mine = [row for row in smoke if row["method"] == "pareto-mtl" and row["note"] == ""]
    for metric, place, sign in (("race accuracy", 1, 1), ("age error", 2, -1)):
        means = [sum(row["metrics"][metric][k] for row in mine) / len(mine) for k in range(4)]
        drawn = [lines[label][place] for label in ours]
        assert sorted(range(4), key=drawn.__getitem__) == sorted(range(4), key=lambda k: sign * means[k])
    separate = [row for row in smoke if row["method"] == "single-task"]
    changed = [_task_metrics(row, 7) if row in separate else row for row in smoke]
    draw_study("faces", changed, tmp_path)
    (drawn,) = [line for line in unsaved["faces-parallel"].axes[0].lines if line.get_label() == "Single task"]
    assert list(drawn.get_ydata()) == lines["Single task"], "each in its own task alone"


def test_faces_in_pairs_are_mean_errors(smoke: list[Row], unsaved: dict[str, Any], tmp_path: Path) -> None:
    draw_study("faces", smoke, tmp_path)
    mine = [row for row in smoke if row["method"] == "mgda"]
    gender, age = (
        sum(row["metrics"][metric][0] for row in mine) / len(mine) for metric in ("gender accuracy", "age error")
    )
    panel = unsaved["faces-projections"].axes[1]
    below = unsaved["faces-projections"].axes[4]
    assert (below.get_xlabel(), panel.get_ylabel()) == ("gender error", "age error")
    points = [tuple(point) for each in panel.collections for point in each.get_offsets().tolist()]
    assert any(point == pytest.approx((1 - gender, age)) for point in points)
    labels = [axis.get_legend_handles_labels()[1] for axis in (panel, below)]
    assert labels[0] == ["Fixed weights", "MOO-MTL", "GradNorm", "Uncertainty", "Single task", "Pareto MTL"]
    assert labels[1] == [*(f"Pareto MTL, scaled by {way}" for way in (*SCALES, "points")), "Pareto MTL"]


def _task_metrics(row: Row, value: float) -> Row:
    """With another value in all tasks that a separate network was not trained on."""
    metrics = {
        name: [old if k == task else value for k, old in enumerate(values)]
        for task, (name, values) in enumerate(row["metrics"].items())
    }
    return {**row, "metrics": metrics}
