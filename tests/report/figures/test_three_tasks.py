"""Fronts in figures: their order, their limits, and parallel coordinates."""

from __future__ import annotations

import pytest

from _helpers.study_rows import plane_row, task_row
from paretomtl.paper.panels import layer
from paretomtl.report.figures.layers import TEST_ACCURACY, TEST_LOSS, outside, panel_limits
from paretomtl.report.figures.parallel import Polyline, draw_parallel
from paretomtl.report.figures.scatter2d import draw_scatter2d, label_outer

pyplot = pytest.importorskip(
    "matplotlib.pyplot", reason="matplotlib is not installed: pip install 'paretomtl[figures]'"
)


def test_a_line_runs_along_the_front_and_leaves_out_dominated_models() -> None:
    losses = [[0.5, 0.2], [0.6, 0.6], [0.2, 0.5], [0.3, 0.3]]
    assert TEST_LOSS.along_front([tuple(point) for point in losses]) == [2, 3, 0]
    assert TEST_ACCURACY.along_front([(0.9, 0.1), (0.1, 0.9), (0.05, 0.5)]) == [1, 0], "more is better"
    assert TEST_LOSS.along_front([]) == []
    figure, axis = pyplot.subplots()
    row = {**plane_row("pareto-mtl", losses, [[1.0, 0.0]] * 5), "losses": [*losses, [None, 0.1]]}
    draw_scatter2d(axis, TEST_LOSS, [layer("pareto-mtl", [row], joined=True)], rays=False)
    assert axis.lines[1].get_xydata().tolist() == [losses[2], losses[3], losses[0]]
    faces = {tuple(each.get_offsets()[0].tolist()): each.get_facecolor()[0].tolist() for each in axis.collections}
    assert faces.pop((0.6, 0.6)) == [1, 1, 1, 1], "a dominated model is hollow"
    assert len(faces) == 3
    assert all(face != [1, 1, 1, 1] for face in faces.values())
    pyplot.close(figure)


def test_outliers_do_not_squeeze_the_others_and_are_counted() -> None:
    row = task_row("pareto-mtl", [[0.2, 0.2, 0.2], [0.3, 0.3, 0.2], [0.25, 0.2, 0.2], [0.3, 0.3, 9.0]])
    mine = layer("pareto-mtl", [row])
    assert panel_limits(TEST_LOSS, [mine], origin=False)[2][1] < 1, "beyond the reference"
    crowd = task_row("pareto-mtl", [[0.1 + 0.001 * k] * 3 for k in range(9)] + [[0.6, 0.1, 0.1]])
    many = layer("pareto-mtl", [crowd])
    assert panel_limits(TEST_LOSS, [many], origin=False)[0][1] > 0.6
    limits = panel_limits(TEST_LOSS, [many], origin=False, outliers=False)
    assert limits[0][1] < 0.12
    assert outside(TEST_LOSS, [many], limits) == "outside: 1 of Pareto MTL"
    long = layer("pareto-mtl", [crowd], label="Pareto MTL with a long description")
    assert outside(TEST_LOSS, [many, long], limits) == "outside: 2 models"


def test_panels_name_an_axis_once() -> None:
    figure, axes = pyplot.subplots(2, 2, layout="constrained")
    for axis in axes.flat:
        axis.set(xlabel="loss", ylabel="loss")
    axes[1, 1].set_xlabel("time")
    label_outer(list(axes.flat))
    assert [axis.get_xlabel() for axis in axes.flat] == ["", "loss", "loss", "time"]
    assert [axis.get_ylabel() for axis in axes.flat] == ["loss", "", "loss", ""]
    pyplot.close(figure)


def test_parallel_axes_are_scaled_each_by_itself_and_may_be_turned() -> None:
    figure, axis = pyplot.subplots()
    courses = [Polyline([0.5, 10.0]), Polyline([1.0, 20.0]), Polyline([None, 15.0])]
    draw_parallel(axis, ["up", "turned"], ((0.0, 1.0), (20.0, 10.0)), courses)
    assert [list(line.get_ydata()) for line in axis.lines[2:4]] == [[0.5, 1.0], [1.0, 0.0]]
    assert [text.get_text() for text in axis.texts] == ["0.00", "1.00", "20.0", "10.0"]
    pyplot.close(figure)
