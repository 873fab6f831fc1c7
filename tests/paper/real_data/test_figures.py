"""Figures of the studies with three tasks and more."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paretomtl.compare import Row
from paretomtl.paper import STUDIES, run_study
from paretomtl.paper import panels as _panels
from paretomtl.paper.drawings import DRAWINGS
from paretomtl.paper.panels import layer
from paretomtl.paper.real_data.studies import EXPERTS, SCALES, SHARED
from paretomtl.report.figures.layers import TEST_LOSS, panel_limits
from paretomtl.report.figures.parallel import Polyline, draw_parallel
from paretomtl.report.figures.scatter3d import PROJECTION_3D, draw_scatter3d

pyplot = pytest.importorskip(
    "matplotlib.pyplot", reason="matplotlib is not installed: pip install 'paretomtl[figures]'"
)

FIGURES = {
    "census": ["scatter", "projections", "parallel", "hypervolume"],
    "three-digits": ["scatter", "projections", "parallel", "hypervolume"],
    "faces": ["scatter", "projections", "parallel"],
    "localization": [""],
    "many-tasks": [""],
}
TRAINED = {
    "census": "shared trunk / uncertainty",
    "three-digits": "mgda",
    "faces": "scaled by gradnorm",
    "localization": "/ uncertainty",
    "many-tasks": "2 objectives / 5 vectors",
}
"""Cells that are trained quickly; the rows of the others have the same fields."""


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Row]]:
    """Of each study: those of a cell, and with made-up numbers those of all cells."""
    folder = tmp_path_factory.mktemp("rows")
    trained = {
        name: run_study(name, STUDIES[name], folder, size="smoke", only=only).rows for name, only in TRAINED.items()
    }
    return {name: _filled(name, mine) for name, mine in trained.items()}


@pytest.fixture
def unsaved(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The figures that were made, by name; nothing is written, which takes most of the time."""
    made: dict[str, Any] = {}

    def keep(figure: Any, folder: Path, name: str) -> list[Path]:
        made[name] = figure
        return [folder / name]

    monkeypatch.setattr(_panels, "save_figure", keep)
    return made


@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_drawn_from_rows_alone_and_reproducibly(
    smoke: dict[str, list[Row]], tmp_path: Path, name: str
) -> None:
    shown = [row for row in smoke[name] if row.get("part") != EXPERTS and row.get("note") not in _SCALED]
    first, second = (DRAWINGS[name](shown, tmp_path / folder) for folder in ("one", "two"))
    stems = [f"{name}-{figure}".rstrip("-") for figure in FIGURES[name]]
    assert [path.name for path in first] == [f"{stem}.{kind}" for stem in stems for kind in ("png", "svg")]
    for one, two in zip(first, second, strict=True):
        assert one.stat().st_size > 5000
        assert one.read_bytes() == two.read_bytes()


def test_sets_of_vectors_are_drawn_to_one_scale(
    smoke: dict[str, list[Row]], tmp_path: Path, unsaved: dict[str, Any]
) -> None:
    """Few vectors beside many: a panel with limits of its own would make them look as spread."""
    digits = smoke["three-digits"]
    close = [{**row, "losses": [[0.5] * 3] * row["preferences"]} for row in digits if row["note"] == "5 even"]
    DRAWINGS["three-digits"]([*close, *(row for row in digits if row["note"] != "5 even")], tmp_path)
    limits = [(axis.get_xlim(), axis.get_ylim(), axis.get_zlim()) for axis in unsaved["three-digits-scatter"].axes]
    assert len(limits) == 4
    assert len(set(limits)) == 1


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_is_drawn_of_nothing(tmp_path: Path, name: str) -> None:
    assert DRAWINGS[name]([], tmp_path / "new") == []
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", FIGURES)
def test_what_there_is_is_drawn(
    smoke: dict[str, list[Row]], unsaved: dict[str, Any], tmp_path: Path, name: str
) -> None:
    """The rows of any one cell, of all but one, of one seed, of one stage; rows in another order."""
    cells = list(dict.fromkeys(row["cell"] for row in smoke[name]))
    parts = [[row for row in smoke[name] if row["cell"] == each] for each in cells[::2]]
    parts += [[row for row in smoke[name] if row["cell"] != each] for each in cells[:2]]
    parts += [[row for row in smoke[name] if row["seed"] == seed] for seed in (0, 1)]
    parts += [[row for row in smoke[name] if row["stage"] == "snapshot"]]
    parts += [random.Random(0).sample(smoke[name], len(smoke[name]))]
    for part in parts:
        unsaved.clear()
        drawn = DRAWINGS[name](part, tmp_path)
        assert bool(drawn) == bool(part)
        for figure in unsaved.values():
            assert all(axis.has_data() for axis in figure.axes), "no panel without rows"


@pytest.mark.parametrize("name", FIGURES)
def test_what_is_not_finite_is_left_out(
    smoke: dict[str, list[Row]], unsaved: dict[str, Any], tmp_path: Path, name: str
) -> None:
    broken = [_broken(row, lambda k, seed=row["seed"]: k == seed) for row in smoke[name]]
    assert DRAWINGS[name](broken, tmp_path)
    assert f"{name}-hypervolume" not in unsaved, "None where moocore was not at hand"
    DRAWINGS[name]([_broken(row, lambda _: True) for row in smoke[name]], tmp_path)
    for figure in unsaved.values():
        figure.canvas.draw()


def test_points_in_space_show_how_near_they_are() -> None:
    row = _row("pareto-mtl", [[0.2, 0.2, 0.2], [0.3, 0.3, 0.2], [0.25, 0.2, 0.2], [0.3, 0.3, 9.0]])
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


def test_parallel_coordinates_tell_the_task_that_a_preference_puts_last(
    unsaved: dict[str, Any], tmp_path: Path
) -> None:
    losses = [[0.1, 0.2, 0.3], [0.2, 0.2, 0.1], [0.2, 0.1, 0.3]]
    vectors = [[0.9, 0.3, 0.1], [0.6, 0.6, 0.2], [0.1, 0.2, 0.9]]
    ours = {**_row("pareto-mtl", losses, vectors), "note": "25 even"}
    theirs = _row("random-search", losses, vectors)
    DRAWINGS["census"]([ours, theirs], tmp_path)
    labels = [[line.get_label() for line in axis.lines[3:]] for axis in unsaved["census-parallel"].axes]
    assert labels == [["income last", "no single one", "marital last"], ["marital last", "marital last", "income last"]]


def test_a_line_of_panels_in_space_has_the_same_limits(
    smoke: dict[str, list[Row]], unsaved: dict[str, Any], tmp_path: Path
) -> None:
    DRAWINGS["census"](smoke["census"], tmp_path)
    panels = unsaved["census-scatter"].axes
    assert len(panels) == 4
    for one, two in (panels[:2], panels[2:]):
        assert [one.get_xlim(), one.get_ylim(), one.get_zlim()] == [two.get_xlim(), two.get_ylim(), two.get_zlim()]


def test_faces_are_named_by_what_a_vector_favours_and_up_is_better(
    smoke: dict[str, list[Row]], unsaved: dict[str, Any], tmp_path: Path
) -> None:
    DRAWINGS["faces"](smoke["faces"], tmp_path)
    panels = unsaved["faces-parallel"].axes
    assert len(panels) == 6, "one for each way to scale the losses"
    lines = {line.get_label(): list(line.get_ydata()) for line in panels[0].lines[3:]}
    assert list(lines)[:4] == [
        f"Pareto MTL, {word}" for word in ("balanced", "favours gender", "favours race", "favours age")
    ]
    assert set(list(lines)[4:]) == {"Fixed weights", "MOO-MTL", "GradNorm", "Uncertainty", "Single task"}
    mine = [row for row in smoke["faces"] if row["method"] == "pareto-mtl" and row["note"] == ""]
    for metric, place, sign in (("race accuracy", 1, 1), ("age error", 2, -1)):
        means = [sum(row["metrics"][metric][k] for row in mine) / len(mine) for k in range(4)]
        drawn = [height[place] for height in list(lines.values())[:4]]
        assert sorted(range(4), key=drawn.__getitem__) == sorted(range(4), key=lambda k: sign * means[k])
    separate = [row for row in smoke["faces"] if row["method"] == "single-task"]
    changed = [_task_metrics(row, 7) if row in separate else row for row in smoke["faces"]]
    DRAWINGS["faces"](changed, tmp_path)
    drawn = unsaved["faces-parallel"].axes[0].lines[-1]
    assert list(drawn.get_ydata()) == lines["Single task"], "each in its own task alone"


def test_faces_in_space_and_in_pairs_are_mean_errors(
    smoke: dict[str, list[Row]], unsaved: dict[str, Any], tmp_path: Path
) -> None:
    DRAWINGS["faces"](smoke["faces"], tmp_path)
    mine = [row for row in smoke["faces"] if row["method"] == "mgda"]
    gender, age = (
        sum(row["metrics"][metric][0] for row in mine) / len(mine) for metric in ("gender accuracy", "age error")
    )
    panel = unsaved["faces-projections"].axes[1]
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("gender error", "age error")
    points = [tuple(point) for each in panel.collections for point in each.get_offsets().tolist()]
    assert any(point == pytest.approx((1 - gender, age)) for point in points)
    others, scaled = unsaved["faces-scatter"].axes
    labels = [axis.get_legend_handles_labels()[1] for axis in (others, scaled)]
    assert labels[0] == ["Pareto MTL", "Fixed weights", "MOO-MTL", "GradNorm", "Uncertainty", "Single task"]
    assert labels[1] == ["Pareto MTL", *(f"Pareto MTL, scaled by {way}" for way in (*SCALES, "points"))]


def test_localization_shows_means_and_seeds(unsaved: dict[str, Any], tmp_path: Path) -> None:
    def row(seed: int, metres: list[float], degrees: list[float]) -> Row:
        made = _row("pareto-mtl", [[0.1, 0.1]] * 3, [[1.0, 0.0], [0.7, 0.7], [0.0, 1.0]])
        metrics = {"translation error": metres, "rotation error": degrees}
        tasks = ["translation", "rotation"]
        return {**made, "seed": seed, "problem": "localization", "tasks": tasks, "metrics": metrics}

    DRAWINGS["localization"](
        [row(0, [4.0, 3.0, 2.0], [1.0, 2.0, 3.0]), row(1, [6.0, 3.0, 2.0], [1.0, 2.0, 5.0])], tmp_path
    )
    (axis,) = unsaved["localization"].axes
    places = {text.get_text(): text.get_position() for text in axis.texts if text.get_text().isdigit()}
    assert places == {"1": (5.0, 1.0), "2": (3.0, 2.0), "3": (2.0, 4.0)}
    faint = [tuple(point) for point in axis.collections[0].get_offsets().tolist()]
    assert faint == [(4.0, 1.0), (3.0, 2.0), (2.0, 3.0), (6.0, 1.0), (3.0, 2.0), (2.0, 5.0)]
    assert axis.get_xlabel() == "translation error (m)"


def test_many_tasks_are_means_over_seeds(unsaved: dict[str, Any], tmp_path: Path) -> None:
    stored = [_many("final", count, seed, (1 + 2 * seed) / count, 1) for count in (50, 10) for seed in (0, 1)]
    stored += [_many("snapshot", 10, 0, 0.4, 4), _many("snapshot", 10, 1, 0.6, 6)]
    DRAWINGS["many-tasks"](stored, tmp_path)
    left, right = ([line.get_xydata().tolist() for line in axis.lines] for axis in unsaved["many-tasks"].axes)
    assert left[:3] == [[[10, 0.2], [50, 0.04]], [[10, 0.5]], [[10, 0.05], [50, 0.05]]]
    assert right == [[[10, 0.5], [50, 0.5]], [[10, 0.5]]]


def test_gathered_vectors_have_panels_of_their_own(unsaved: dict[str, Any], tmp_path: Path) -> None:
    even = [_many("final", 10, 0, 0.2, 1), _many("final", 10, 0, 0.1, 1) | {"tasks": 2}]
    DRAWINGS["many-tasks"]([*even, _many("final", 10, 0, 0.9, 1) | {"gathered": 0.5}], tmp_path)
    panels = unsaved["many-tasks"].axes
    assert len(panels) == 4
    drawn = [{line.get_ydata()[0]: line.get_color() for line in axis.lines if len(line.get_ydata())} for axis in panels]
    assert 0.9 not in drawn[0]
    assert drawn[2][0.9] == drawn[0][0.2] != drawn[0][0.1], "the same colour for as many objectives"
    assert panels[0].get_ylim() == panels[2].get_ylim()


_SCALED = ("scaled by running", "scaled by gradnorm", "scaled by uncertainty", "scaled by points")


def _filled(name: str, trained: list[Row]) -> list[Row]:
    numbers = random.Random(name)
    if name == "many-tasks":
        return [
            {**row, "cell": cell.name, "tasks": cell.tasks, "preferences": cell.count, "seed": seed,
             "igd_plus": numbers.uniform(0.01, 0.2), "in_region": numbers.randrange(cell.count)}
            for cell in STUDIES[name].cells("smoke")
            for row in trained
            for seed in range(2)
        ]  # fmt: skip
    return [
        _made_up({**row, "seed": seed}, cell, numbers)
        for cell in STUDIES[name].cells("smoke")
        for row in trained[:1]
        for seed in range(2)
    ]


def _made_up(row: Row, cell: Any, numbers: random.Random) -> Row:
    tasks = len(row["tasks"])
    count = len(cell.preferences) if isinstance(cell.preferences, tuple) else cell.preferences or tasks

    def some(width: int) -> list[list[float]]:
        return [[numbers.uniform(0.2, 0.6) for _ in range(width)] for _ in range(count)]

    directed = cell.method == "pareto-mtl"
    return {
        **row,
        "cell": cell.name,
        "part": cell.part,
        "method": cell.method,
        "note": cell.note,
        "preferences": count,
        "reading": "direction" if directed else "importance",
        "hypervolume": numbers.uniform(0.1, 0.2),
        "vectors": [list(v) for v in cell.preferences] if isinstance(cell.preferences, tuple) else some(tasks),
        "losses": some(tasks),
        "metrics": {metric: [line[0] for line in some(1)] for metric in row["metrics"]},
    }


def _many(stage: str, count: int, seed: int, value: float, hits: int) -> Row:
    fields = {"igd_plus": value, "igd_plus_on_rays": 0.05, "regions_met": count // 2, "in_region": hits}
    return {"stage": stage, "tasks": 3, "preferences": count, "seed": seed, **fields}


def _broken(row: Row, gone: Callable[[int], bool]) -> Row:
    """Without the solutions that are gone, and without indicators."""
    if "metrics" not in row:
        return {**row, "igd_plus": None} if gone(0) else row
    losses = [[None] * len(point) if gone(k) else point for k, point in enumerate(row["losses"])]
    metrics = {
        name: [None if gone(k) else value for k, value in enumerate(values)] for name, values in row["metrics"].items()
    }
    return {**row, "hypervolume": None, "losses": losses, "metrics": metrics}


def _task_metrics(row: Row, value: float) -> Row:
    """With another value in all tasks that a separate network was not trained on."""
    metrics = {
        name: [old if k == task else value for k, old in enumerate(values)]
        for task, (name, values) in enumerate(row["metrics"].items())
    }
    return {**row, "metrics": metrics}


def _row(method: str, losses: list[list[float]], vectors: list[list[float]] | None = None) -> Row:
    return {
        "part": SHARED,
        "stage": "final",
        "problem": "census",
        "method": method,
        "note": "",
        "preferences": len(losses),
        "seed": 0,
        "tasks": ["income", "education", "marital"],
        "reading": "direction" if method == "pareto-mtl" else "importance",
        "hypervolume": 0.1,
        "reference": [0.7, 0.7, 0.7],
        "vectors": vectors or [[1.0, 0.0, 0.0]] * len(losses),
        "losses": losses,
        "metrics": {},
    }
