from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from paretomtl.compare import Row
from paretomtl.paper import STUDIES, run_study
from paretomtl.paper import panels as _panels
from paretomtl.paper.drawings import DRAWINGS
from paretomtl.paper.images import more_figures as _more_images
from paretomtl.paper.images.more_claims import PUBLISHED
from paretomtl.paper.images.studies import LONG, STRONG
from paretomtl.paper.panels import layer
from paretomtl.report.figures.layers import TEST_ACCURACY, TEST_LOSS, panel_limits
from paretomtl.report.figures.scatter2d import draw_scatter2d

pyplot = pytest.importorskip(
    "matplotlib.pyplot", reason="matplotlib is not installed: pip install 'paretomtl[figures]'"
)

FIGURES = {
    "images-lenet": ["accuracy", "losses", "hypervolume", "100-epochs"],
    "images-resnet": [""],
    "ablation-init": [""],
    "ablation-release": [""],
    "preferences": [""],
    "weights": [""],
    "acceptance": [""],
}


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


@pytest.fixture
def unsaved(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The figures that were made, by name; nothing is written, which takes most of the time."""
    made: dict[str, Any] = {}

    def keep(figure: Any, folder: Path, name: str) -> list[Path]:
        made[name] = figure
        return [folder / name]

    monkeypatch.setattr(_panels, "save_figure", keep)
    return made


def test_every_study_has_its_figures() -> None:
    assert DRAWINGS.keys() == STUDIES.keys()


@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_drawn_from_rows_alone_and_reproducibly(
    smoke: dict[str, list[Row]], tmp_path: Path, name: str
) -> None:
    shown = [row for row in smoke[name] if row["part"] != STRONG]  # fewer panels: the same code, in less time
    first, second = (DRAWINGS[name](shown, tmp_path / folder) for folder in ("one", "two"))
    stems = [f"{name}-{figure}".rstrip("-") for figure in FIGURES[name]]
    assert [path.name for path in first] == [f"{stem}.{kind}" for stem in stems for kind in ("png", "svg")]
    for one, two in zip(first, second, strict=True):
        assert one.stat().st_size > 5000
        assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_is_drawn_of_nothing(tmp_path: Path, name: str) -> None:
    assert DRAWINGS[name]([], tmp_path / "new") == []
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", FIGURES)
def test_what_there_is_is_drawn(
    smoke: dict[str, list[Row]], unsaved: dict[str, Any], tmp_path: Path, name: str
) -> None:
    """The rows of any one cell, of all but one, of one seed, of one stage; rows in another order."""
    cells = sorted({(row["problem"], row["part"], row["method"], row["note"]) for row in smoke[name]})

    def cell(row: Row) -> tuple[str, ...]:
        return row["problem"], row["part"], row["method"], row["note"]

    parts = [[row for row in smoke[name] if cell(row) == each] for each in cells[::3]]
    parts += [[row for row in smoke[name] if cell(row) != each] for each in cells[:1]]
    parts += [[row for row in smoke[name] if row["seed"] == seed] for seed in (0, 1)]
    parts += [[row for row in smoke[name] if row["stage"] == "snapshot"]]
    parts += [random.Random(0).sample(smoke[name], len(smoke[name]))]
    for part in parts:
        drawn = DRAWINGS[name](part, tmp_path)
        assert bool(drawn) == bool(part)
        for figure in unsaved.values():
            assert all(axis.has_data() for axis in figure.axes), "no panel without rows"


@pytest.mark.parametrize("name", FIGURES)
def test_what_is_not_finite_is_left_out(
    smoke: dict[str, list[Row]], unsaved: dict[str, Any], tmp_path: Path, name: str
) -> None:
    broken = [_broken(row, model=row["seed"]) for row in smoke[name]]
    assert DRAWINGS[name](broken, tmp_path)
    assert "images-lenet-hypervolume" not in unsaved, "None where moocore was not at hand"
    for figure in unsaved.values():
        figure.canvas.draw()
    everything = [_broken(_broken(_broken(row, model=0), model=1), model=2) for row in smoke[name]]
    DRAWINGS[name](everything, tmp_path)


def test_panels_have_room_for_pareto_mtl_and_say_what_they_leave_out() -> None:
    front = [[0.6, 0.3], [0.4, 0.32], [0.28, 0.5]]
    mine = layer("pareto-mtl", [_row("pareto-mtl", front)], joined=True)
    theirs = layer("linear", [_row("linear", [[0.27, 9.0], [0.3, 0.35], [8.0, 0.3]])])
    limits = panel_limits(TEST_LOSS, [mine, theirs])
    assert limits[0] == pytest.approx((0.0, 1.08 * 0.6))
    assert limits[1] == pytest.approx((0.0, 1.08 * 0.5))
    figure, axis = pyplot.subplots()
    assert draw_scatter2d(axis, TEST_LOSS, [mine, theirs]) == "outside: 2 of Grid search"
    pyplot.close(figure)
    (low, high), _ = panel_limits(TEST_ACCURACY, [mine, theirs])
    assert 0.3 < low < 0.4 < 0.73 < high < 0.8, "of accuracies from 0.4 to 0.72, 0.73 for grid search aside"
    single = _row("single-task", [[0.2, 9.0], [9.0, 0.9]])
    assert panel_limits(TEST_LOSS, [mine, theirs], [single])[1][1] > 0.9, "with room for the lines of separate networks"


def test_solutions_and_rays_have_the_same_numbers(unsaved: dict[str, Any], tmp_path: Path) -> None:
    """Random vectors are in no order: the figure turns them."""
    row = _row("pareto-mtl", [[0.5, 0.5], [0.8, 0.2], [0.2, 0.8]], [[0.7, 0.7], [1.0, 0.0], [0.0, 1.0]])
    DRAWINGS["preferences"]([{**row, "note": "3 random"}], tmp_path)
    texts = unsaved["preferences"].axes[0].texts
    at = {text.get_text(): text.get_position() for text in texts if text.get_position() in map(tuple, row["losses"])}
    assert at == {"1": (0.8, 0.2), "2": (0.5, 0.5), "3": (0.2, 0.8)}
    rays = {text.get_text(): text.xy for text in texts if text.get_text() in at and hasattr(text, "xy")}
    assert rays["1"][1] == rays["3"][0] == 0
    assert rays["2"][0] == pytest.approx(rays["2"][1])


def test_rays_that_end_near_each_other_share_a_label(unsaved: dict[str, Any], tmp_path: Path) -> None:
    row = _row("pareto-mtl", [[0.5, 0.2], [0.5, 0.2], [0.2, 0.5]], [[1.0, 0.1], [1.0, 0.11], [0.1, 1.0]])
    DRAWINGS["preferences"]([row], tmp_path)
    texts = [text.get_text() for text in unsaved["preferences"].axes[0].texts if hasattr(text, "xy")]
    assert texts == ["1–2", "3", "(a) 3 even"]


def test_weights_are_those_of_the_vector_in_the_caption(
    smoke: dict[str, list[Row]], unsaved: dict[str, Any], tmp_path: Path
) -> None:
    DRAWINGS["weights"](smoke["weights"], tmp_path)
    first = next(row for row in smoke["weights"] if row["method"] == "pareto-mtl" and row["seed"] == 0)
    assert first["vectors"][0] == [1.0, 0.0]
    for axis, model in zip(unsaved["weights"].axes[:3], (0, 1, 2), strict=True):
        for line, task in zip(axis.lines[:2], (0, 1), strict=True):
            assert list(line.get_ydata()) == [epoch[model][task] for epoch in first["weights"]]
    assert len(unsaved["weights"].axes) == 6


def test_acceptance_says_how_far_both_are_apart(unsaved: dict[str, Any], tmp_path: Path) -> None:
    there = PUBLISHED["multi-mnist"]
    seeds = [
        {
            **_row("single-task", [[0.3, 9.0], [9.0, 0.4]]),
            "seed": seed,
            "metrics": {
                "top-left accuracy": [there[0] + 0.01 + seed * 0.002, 0.1],
                "bottom-right accuracy": [0.1, there[1] - 0.02],
            },
        }
        for seed in range(2)
    ]
    DRAWINGS["acceptance"](seeds, tmp_path)
    texts = [text.get_text() for text in unsaved["acceptance"].axes[0].texts]
    assert texts[:2] == ["+0.0110", "−0.0200"]


def test_arrows_join_what_belongs_together(
    smoke: dict[str, list[Row]], unsaved: dict[str, Any], tmp_path: Path
) -> None:
    before, after = (_by_seed(smoke["ablation-release"], stage) for stage in ("snapshot", "final"))
    assert [(one["seed"], two["seed"]) for one, two in _more_images._by_seed(before, after)] == [(0, 0), (1, 1)]
    assert [one["seed"] for one, _ in _more_images._by_seed(before, after[1:])] == [1]
    DRAWINGS["ablation-release"](smoke["ablation-release"], tmp_path)
    arrows = [text for text in unsaved["ablation-release"].axes[1].texts if text.get_text() == ""]
    ends = [(tuple(one), tuple(two)) for i in range(2) for one, two in zip(
        before[i]["losses"], after[i]["losses"], strict=True)]  # fmt: skip
    assert [(tuple(text.xyann), tuple(text.xy)) for text in arrows] == ends


def _by_seed(rows: list[Row], stage: str) -> list[Row]:
    return [row for row in rows if row["note"] == "released" and row["stage"] == stage]


def _row(method: str, losses: list[list[float]], vectors: list[list[float]] | None = None) -> Row:
    """A row with accuracies of one minus the losses."""
    columns = [[max(0.1, 1 - point[task]) for point in losses] for task in range(2)]
    return {
        "part": "paper's settings",
        "stage": "final",
        "problem": "multi-mnist",
        "method": method,
        "note": "",
        "preferences": len(losses),
        "seed": 0,
        "tasks": ["top-left", "bottom-right"],
        "reading": "direction" if method == "pareto-mtl" else "importance",
        "reference": [2.0, 2.0],
        "vectors": vectors or [[1.0, 0.0], [0.7, 0.7], [0.0, 1.0]],
        "losses": losses,
        "metrics": {"top-left accuracy": columns[0], "bottom-right accuracy": columns[1]},
    }


def _broken(row: Row, model: int) -> Row:
    """With one model that is not finite, and without indicators."""

    def without(values: list[Any]) -> list[Any]:
        return [[None, None] if k == model else value for k, value in enumerate(values)]

    metrics = {
        field: {name: [None if k == model else v for k, v in enumerate(values)] for name, values in row[field].items()}
        for field in ("metrics", "train_metrics")
    }
    return {
        **row,
        **metrics,
        "hypervolume": None,
        "losses": without(row["losses"]),
        "train_losses": without(row["train_losses"]),
        "weights": [without(epoch) for epoch in row["weights"]],
    }
