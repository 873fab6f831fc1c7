from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
import torch
from matplotlib import pyplot

import paretomtl as pm
from _helpers.fronts import front_of
from compare.test_rows import rows_of
from paretomtl.compare import Comparison, Row
from paretomtl.compare.rows import row_of
from paretomtl.methods.registry import colour_of
from paretomtl.report import draw_comparison
from paretomtl.report.figures.comparison import balanced_models

mpl.use("Agg")


@pytest.fixture(autouse=True)
def closed() -> Any:
    """No figure outlives its test."""
    yield
    pyplot.close("all")


def row(losses: list[list[float]], method: str, seed: int = 0, **options: Any) -> Row:
    made = dataclasses.replace(
        front_of(losses, **options), history={"losses": torch.zeros(1, len(losses), len(losses[0]))}
    )
    return json.loads(json.dumps({**row_of(made), "method": method, "seed": seed}))


def comparison(tasks: int) -> Comparison:
    """Two methods with two seeds each, and separate networks; the second method is worse by a tenth."""
    reference = (3.0,) * tasks
    rows = []
    for seed in range(2):
        losses = (torch.eye(tasks) + 0.2 + 0.01 * seed).tolist()
        worse = [[1.1 * value for value in point] for point in losses]
        rows += [row(losses, "pareto-mtl", seed, reference=reference), row(worse, "linear", seed, reference=reference)]
        rows += [row(losses, "single-task", seed, reference=reference)]
    return Comparison(rows, {})


@pytest.mark.parametrize("splits", [("val", "test"), ("test",), ("val",)])
def test_models_on_the_split_that_ranks_and_hypervolumes_of_all(splits: tuple[str, ...]) -> None:
    models, volumes = Comparison(rows_of(*splits), {}).plot().axes
    ranking = "validation" if "val" in splits else "training"
    assert models.get_title(loc="left") == f"Models on {ranking}, seed 0"
    assert (models.get_xlabel(), models.get_ylabel()) == ("a loss", "b loss")
    hollow = ", hollow: test" if "test" in splits else ""
    assert volumes.get_title(loc="left") == f"Hypervolume on {ranking}{hollow}"


@pytest.mark.parametrize(("tasks", "panels"), [(2, 2), (3, 4), (5, 2)])
def test_methods_have_their_colours_and_the_best_is_on_top(tasks: int, panels: int) -> None:
    figure = comparison(tasks).plot()
    axes = figure.axes if tasks == 2 else [axis for part in figure.subfigs for axis in part.axes]
    assert len(axes) == panels
    volumes = next(axis for axis in axes if axis.get_title(loc="left").startswith("Hypervolume"))
    names = [label.get_text() for label in volumes.get_yticklabels()]
    assert names.index("Pareto MTL") > names.index("Linear scalarization"), "later ticks are higher"
    models = next(axis for axis in axes if axis is not volumes)
    shown = [mpl.colors.to_hex(each.get_facecolor()[0]) for each in models.collections]
    shown += [mpl.colors.to_hex(line.get_color()) for line in models.lines]
    assert {colour_of("pareto-mtl"), colour_of("linear")} <= set(shown)


def test_the_caption_is_the_verdict_with_the_labels_of_methods() -> None:
    found = comparison(2)
    title, caption = (text.get_text().replace("\n", " ") for text in found.plot().texts)
    assert title == "made up: 3 methods, same recipe"
    assert caption.startswith("Pareto MTL ")
    assert found.verdict().startswith("pareto-mtl ")
    assert "pareto-mtl" not in caption


def test_a_line_for_the_balanced_model_of_each_method() -> None:
    rows = [row([[0.0, 1.0, 1.0, 1.0], [0.4, 0.4, 0.4, 0.4]], "pareto-mtl"), row([[1.0, 0.2, 0.3, 0.1]], "linear")]
    found = balanced_models(rows, "train")
    assert {method: point.tolist() for method, point in found.items()} == {
        "pareto-mtl": [0.4] * 4,
        "linear": [1.0, 0.2, 0.3, 0.1],
    }
    broken = row([[float("nan")] * 4], "mgda")
    assert list(balanced_models([broken], "train")) == []


def test_files_for_light_and_dark_pages(tmp_path: Path) -> None:
    rows = comparison(2).rows
    paths = draw_comparison(rows, tmp_path)
    assert [path.name for path in paths] == ["compare.png", "compare-dark.png", "compare.svg"]
    again = draw_comparison(rows, tmp_path / "again")
    assert [path.read_bytes() for path in paths] == [path.read_bytes() for path in again]
    comparison(2).plot(tmp_path / "one.pdf", dark=True)
    assert not pyplot.get_fignums()
    with pytest.raises(ValueError, match=r"'rows' must have a run to draw. Got none"):
        Comparison([], {}).plot()


def test_a_model_beyond_the_reference_is_counted() -> None:
    rows = [row([[0.2, 0.9], [0.5, 0.4], [0.3, 40.0]], "linear", reference=(1.0, 1.0))]
    models, _ = Comparison(rows, {}).plot().axes
    assert models.get_xlabel() == "a loss\n(1 model lies beyond the reference)"
    assert models.get_ylim()[1] < 1.1


def test_a_comparison_shows_itself() -> None:
    found = pm.compare.compare(
        pm.problems.synthetic(), ["linear", "p-norm"], 2, preferences=3, epochs=20, device="cpu", progress="quiet"
    )
    rows, fronts = found
    assert (len(rows), list(fronts)) == (4, ["linear", "p-norm"])
    assert found.verdict() in found._repr_html_().replace("&#x27;", "'")
    assert "p-norm" in found._repr_html_()


def test_separate_networks_are_last_and_marked() -> None:
    figure = comparison(2).plot()
    volumes = figure.axes[1]
    names = [label.get_text() for label in volumes.get_yticklabels()]
    assert names[0] == "Single task*", "the lowest line"
    assert "no front" in volumes.get_xlabel()
    assert figure.texts[1].get_text().replace("\n", " ").endswith("Dashed: the preferences. Dotted: separate networks.")


def test_negative_losses_do_not_turn_the_axes() -> None:
    rows = [row([[-0.5, -0.1], [-0.3, -0.2]], "linear", reference=(1.0, 1.0))]
    models, _ = Comparison(rows, {}).plot().axes
    assert models.get_xlim()[0] < -0.5 < models.get_xlim()[1]
    assert models.get_ylim()[0] < -0.2 < models.get_ylim()[1]


@pytest.mark.parametrize("names", [["2019", "2020", "2021", "2022"], [f"{'long ' * 20}{i}" for i in range(4)]])
def test_screens_keep_tasks_apart(names: list[str]) -> None:
    rows = comparison(4).rows
    shown = Comparison([{**each, "tasks": names} for each in rows], {}).figure()
    assert list(shown.layout.xaxis.tickvals) == [0, 1, 2, 3]
    assert shown.layout.yaxis2.type == "category"
