"""Three tasks at once: points in space, and parallel coordinates."""

from __future__ import annotations

import pytest

from _helpers.study_rows import (
    task_row,
)
from paretomtl.paper.panels import layer
from paretomtl.report.figures.layers import TEST_LOSS, panel_limits
from paretomtl.report.figures.parallel import Polyline, draw_parallel
from paretomtl.report.figures.scatter3d import PROJECTION_3D, draw_scatter3d

pyplot = pytest.importorskip(
    "matplotlib.pyplot", reason="matplotlib is not installed: pip install 'paretomtl[figures]'"
)


def test_points_in_space_show_how_near_they_are() -> None:
    row = task_row("pareto-mtl", [[0.2, 0.2, 0.2], [0.3, 0.3, 0.2], [0.25, 0.2, 0.2], [0.3, 0.3, 9.0]])
    mine = layer("pareto-mtl", [row])
    figure = pyplot.figure()
    axis = figure.add_subplot(**PROJECTION_3D)
    limits = panel_limits(TEST_LOSS, [mine], origin=False)
    assert len(limits) == 3
    assert limits[2][1] < 1, "a solution beyond the reference does not widen the space"
    assert draw_scatter3d(axis, TEST_LOSS, [mine], limits) == "outside: 1 of Pareto MTL"
    points = [each for each in axis.collections if each.get_zorder() >= 2 and len(each.get_offsets())]
    sizes, heights = ([get(each) for each in points] for get in (lambda e: e.get_sizes()[0], lambda e: e.get_zorder()))
    assert sizes[0] < sizes[2] < sizes[1]
    assert heights[0] < heights[2] < heights[1]
    pyplot.close(figure)


def test_parallel_axes_are_scaled_each_by_itself_and_may_be_turned() -> None:
    figure, axis = pyplot.subplots()
    courses = [Polyline([0.5, 10.0]), Polyline([1.0, 20.0]), Polyline([None, 15.0])]
    draw_parallel(axis, ["up", "turned"], ((0.0, 1.0), (20.0, 10.0)), courses)
    assert [list(line.get_ydata()) for line in axis.lines[2:4]] == [[0.5, 1.0], [1.0, 0.0]]
    assert [text.get_text() for text in axis.texts] == ["0.00", "1.00", "20.0", "10.0"]
    pyplot.close(figure)
