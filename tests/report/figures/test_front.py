from __future__ import annotations

import dataclasses
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import paretomtl as pm
from _helpers.fronts import front_of
from _helpers.pages import page_front
from _support.test_splits import TEST, VAL
from _support.test_splits import front as ranked
from paretomtl._support.splits import split_word
from paretomtl.cli._app import app
from paretomtl.front._data import scaled_losses

mpl.use("Agg")
TWO = [[0.1, 1.0], [0.2, 0.5], [0.6, 0.3], [1.0, 0.1], [0.9, 0.9]]


@pytest.fixture(autouse=True)
def closed() -> Any:
    """No figure outlives its test."""
    yield
    mpl.pyplot.close("all")


def hollow(axis: Any) -> list[bool]:
    """Whether each model is white inside."""
    return [bool((each.get_facecolor()[0] == 1.0).all()) for each in axis.collections]


def test_two_tasks_are_a_plane_with_rays_and_regions() -> None:
    found = front_of(TWO)
    (axis,) = found.plot().axes
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("a loss", "b loss")
    assert axis.get_title(loc="left") == "Losses on training"
    points = torch.tensor([each.get_offsets().tolist()[0] for each in axis.collections])
    torch.testing.assert_close(points, torch.tensor(TWO))
    assert hollow(axis) == [False] * 4 + [True], "what is dominated is hollow"
    assert [each.get_text() for each in axis.texts] == [*"01234", "better"]
    rays = axis.lines[:5]
    ends = torch.tensor([[line.get_xdata()[1], line.get_ydata()[1]] for line in rays])
    torch.testing.assert_close(torch.nn.functional.normalize(ends), found.preferences, atol=1e-6, rtol=0)
    assert axis.lines[5].get_xdata().tolist() == [0.1, 0.2, 0.6, 1.0]
    assert len(axis.patches) == 2, "every other one of five regions"


def test_a_solution_is_drawn_in_the_region_that_it_is_in() -> None:
    """Also where losses were scaled and counted from an ideal point: the grey triangles are regions 1 and 3 of 5."""
    scale = torch.tensor([[2.0, 0.5]] * 5, dtype=torch.float64)
    for options in ({}, {"scale": scale, "ideal": (0.05, 0.02)}):
        found = dataclasses.replace(front_of(TWO), **options)
        (axis,) = found.plot().axes
        grey = [patch.get_path() for patch in axis.patches]
        scaled = scaled_losses(found, "train")
        nearest = (scaled @ found.preferences.T).argmax(-1).tolist()
        for point, region in zip(TWO, nearest, strict=True):
            inside = [path.contains_point(point) for path in grey]
            assert inside == [region == 1, region == 3] or inside == [region == 3, region == 1]


def test_importances_have_neither_rays_nor_regions() -> None:
    (axis,) = front_of(TWO, method="linear", reading="importance").plot().axes
    assert len(axis.lines) == 1
    assert not axis.patches


def test_units_that_differ_have_rays_alone() -> None:
    scale = torch.rand(5, 2, dtype=torch.float64) + 0.5
    (axis,) = dataclasses.replace(front_of(TWO), scale=scale).plot().axes
    assert len(axis.lines) == 6
    assert not axis.patches


def test_more_tasks() -> None:
    generator = torch.Generator().manual_seed(0)
    pairs = front_of(torch.rand(6, 3, generator=generator).tolist()).plot().axes
    names = [("a loss", "b loss"), ("a loss", "c loss"), ("b loss", "c loss")]
    assert [(axis.get_xlabel(), axis.get_ylabel()) for axis in pairs] == names
    rows = torch.rand(6, 5, generator=generator)
    (axis,) = front_of(rows.tolist()).plot().axes
    assert [label.get_text() for label in axis.get_xticklabels()] == list("abcde")
    assert len(axis.lines) == 5 + 6, "an upright axis for each task, a line for each model"
    heights = torch.tensor([list(line.get_ydata()) for line in axis.lines[5:]])
    assert bool((heights.argmax(0) == rows.argmin(0)).all()), "the least loss is up"


@pytest.mark.parametrize("ending", ["pdf", "svg", "png"])
def test_a_file_in_the_format_of_its_ending_and_the_same_each_time(ending: str, tmp_path: Path) -> None:
    paths = [tmp_path / "folder" / f"{name}.{ending}" for name in ("one", "two")]
    for path in paths:
        front_of(TWO).plot(path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert paths[0].read_bytes().lstrip().startswith({"pdf": b"%PDF", "svg": b"<?xml", "png": b"\x89PNG"}[ending])
    assert not mpl.pyplot.get_fignums(), "what is written is closed"


@pytest.mark.parametrize("tasks", [2, 3, 4])
def test_names_are_text_and_no_formulas(tasks: int, tmp_path: Path) -> None:
    names = [r"$\frac$", "a$b$c", "long " * 100, "d"][:tasks]
    found = dataclasses.replace(front_of(torch.eye(tasks).add(0.1).tolist()), tasks=tuple(names), problem=r"$\frac$")
    found.plot(tmp_path / "front.png")
    width, height = struct.unpack(">II", (tmp_path / "front.png").read_bytes()[16:24])
    assert max(width, height) < 2000


def test_what_cannot_be_drawn_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'path' must end in one of .*\.pdf, .*\.svg.* Got '.*front.docx'"):
        front_of(TWO).plot(tmp_path / "front.docx")
    assert not mpl.pyplot.get_fignums()
    with pytest.raises(ValueError, match=r"'split' must be one of \['train'\]. Got 'test'"):
        front_of(TWO).plot(split="test")
    with pytest.raises(ValueError, match=r"must have a model with finite losses to draw"):
        front_of([[torch.nan, 1.0]]).plot()
    some = front_of([*TWO, [torch.nan, 1.0]]).plot().axes[0]
    assert "1 not finite" in some.get_title(loc="left")
    front_of([[0.5, 0.5]]).plot()
    front_of([[-0.5, 0.5], [0.2, -0.1]]).plot()


def test_show_draws_a_stored_front(tmp_path: Path) -> None:
    front_of(TWO).save(tmp_path / "front")
    path = tmp_path / "front.svg"
    found = CliRunner().invoke(app, ["show", str(tmp_path / "front"), "--plot", str(path), "--json"])
    assert found.exit_code == 0, found.output
    assert path.stat().st_size > 5000
    bad = CliRunner().invoke(app, ["show", str(tmp_path / "front"), "--plot", str(tmp_path / "front.x")])
    assert bad.exit_code == 2
    assert "'path' must end in one of" in bad.output


def test_matplotlib_is_imported_where_it_is_used() -> None:
    code = "import sys, paretomtl; assert not {'matplotlib', 'paretomtl.report'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    assert pm.Front.plot.__doc__


@pytest.mark.parametrize("name", ["\ud800", "a\0b", "\x1b[31m", "$\\bad{"])
@pytest.mark.parametrize("tasks", [2, 3, 4])
def test_names_that_no_font_has_are_drawn(name: str, tasks: int, tmp_path: Path) -> None:
    losses = torch.rand(4, tasks, generator=torch.Generator().manual_seed(0))
    names = (name, *"bcd"[: tasks - 1])
    front = dataclasses.replace(front_of(losses.tolist()), tasks=names, problem=name, method=name)
    front.plot(tmp_path / "front.svg")
    assert (tmp_path / "front.svg").stat().st_size > 0


@pytest.mark.parametrize("tasks", [2, 3, 4])
def test_test_losses_have_a_panel_of_their_own(tasks: int) -> None:
    found = page_front(7, tasks)
    panels = found.plot().axes
    many = 3 if tasks == 3 else 1
    assert [axis.get_title(loc="left") for axis in panels[::many]] == ["Losses on validation", "Losses on test"]
    assert panels[0].get_xlim() == panels[many].get_xlim()
    alone = found.plot(split="test").axes
    assert len(alone) == many
    assert alone[0].get_title(loc="left") == "Losses on test"


def test_what_is_hollow_is_dominated_on_the_split_that_ranks() -> None:
    first, second = ranked("val", "test").plot().axes
    for axis, split in ((first, "val"), (second, "test")):
        assert axis.get_title(loc="left") == f"Losses on {split_word(split)}"
        assert hollow(axis) == [False, False, False, True]
        points = [each.get_offsets().tolist()[0] for each in axis.collections]
        torch.testing.assert_close(torch.tensor(points), torch.tensor({"val": VAL, "test": TEST}[split]))
    assert [axis.get_title(loc="left") for axis in ranked("test").plot().axes] == [
        "Losses on training",
        "Losses on test",
    ]


@pytest.mark.parametrize("tasks", [2, 3, 4])
def test_solutions_beyond_the_reference_are_left_out_and_counted(tasks: int) -> None:
    """As on the page: a model that was never asked for a task would squeeze all others. Without others, it is drawn."""
    losses = torch.eye(tasks) + 0.1
    losses[0, 1] = 900.0
    made = front_of(losses.tolist(), reference=(2.0,) * tasks)
    axes = made.plot().axes
    assert axes[0].get_title(loc="left") == "Losses on training, 1 beyond the reference"
    limits = [limit for axis in axes for limit in (axis.get_xlim(), axis.get_ylim())]
    assert max(high for _, high in limits) < max(3.0, tasks), "in the units of the others"
    axes = front_of(losses.tolist(), reference=(0.5,) * tasks).plot().axes
    assert axes[0].get_title(loc="left") == "Losses on training"


def test_the_caption_says_what_is_seen() -> None:
    title, caption = (text.get_text().replace("\n", " ") for text in front_of(TWO).plot().texts)
    assert title == "made up: 5 models, Pareto MTL"
    assert caption == (
        "Each point is a model. Lower left is better. From model 0 to 3, a loss rises from 0.1 to 1 and b loss falls "
        "from 1 to 0.1. 1 model is dominated (hollow). Dashed: the preferences; grey: every other region."
    )
    one = front_of([[0.5, 0.2], [0.9, 0.9]], method="linear", reading="importance").plot().texts[1].get_text()
    assert one.replace("\n", " ") == (
        "Each point is a model. Lower left is better. Model 0 is best in a loss and in b loss. 1 model is dominated "
        "(hollow)."
    )
    many = front_of(torch.eye(5).add(0.1).tolist()).plot().texts[1].get_text()
    assert many.startswith("Each line is a model. Up is better on every axis.")


def test_captions_for_screens_describe_what_is_drawn() -> None:
    """No rays and no faint lines there; what is best is best by what the axes show."""
    shown = front_of(TWO).figure().layout.title.subtitle.text
    assert "Dashed" not in shown
    assert "dominated (hollow)" in shown
    four = front_of([[0.1, 0.9, 0.9, 0.9], [0.2, 0.2, 0.2, 0.2], [0.9, 0.9, 0.9, 0.95]]).figure()
    assert "dominated" not in four.layout.title.subtitle.text
    metrics = {
        "train": {"a accuracy": torch.tensor([float("nan"), 0.2, 0.9]), "b accuracy": torch.tensor([0.5, 0.6, 0.1])}
    }
    measured = front_of([[0.1, 0.9], [0.5, 0.5], [0.9, 0.1]], metrics=metrics).figure().layout.title.subtitle.text
    assert "From model 2 to 1, a accuracy falls from 0.9 to 0.2" in measured.replace("<br>", " ")


@pytest.mark.parametrize("tasks", [2, 3, 5])
def test_equal_and_huge_losses_are_drawn(tasks: int, tmp_path: Path) -> None:
    for value in (0.0, 1e18, 1e300):
        found = pm.Front.from_losses([[value] * tasks] * 2, tasks=list("abcde")[:tasks])
        found.plot(tmp_path / "front.png")
        with Image.open(tmp_path / "front.png") as image:
            assert max(image.size) < 3000


def test_a_metric_belongs_to_the_task_with_the_longest_name() -> None:
    metrics = {"val": {"left eye accuracy": torch.tensor([0.1, 0.9])}}
    better: Any = {"better": {"left eye accuracy": "higher"}}
    found = pm.Front.from_losses([[0.1, 0.9], [0.9, 0.1]], tasks=["left", "left eye"], metrics=metrics, **better)
    axis = found.figure().layout
    assert (axis.xaxis.title.text, axis.yaxis.title.text) == ("left loss", "left eye accuracy")


def numbers(axis: Any) -> list[str]:
    return [text for each in axis.texts if (text := each.get_text()) != "better"]


def test_numbers_of_points_that_lie_close_are_one_label() -> None:
    close = [[0.1, 1.0], [0.12, 0.98], [0.6, 0.3], [0.13, 0.96], [1.0, 0.1]]
    assert numbers(front_of(close).plot().axes[0]) == ["2", "0, 1, 3", "4"], "0 and 3 meet by way of 1"
    assert numbers(front_of(TWO).plot().axes[0]) == list("01234")
    named = dataclasses.replace(front_of(close), names=tuple(f"the weight {k}" for k in range(5)))
    assert "the weight 0 and 2 more" in numbers(named.plot().axes[0])
    triples = front_of([[0.1, 0.1, 1.0], [0.12, 0.9, 0.98], [0.9, 0.5, 0.1]])
    assert [numbers(axis) for axis in triples.plot().axes] == [["0", "1", "2"], ["0, 1", "2"], ["0", "1", "2"]]


def test_the_caption_names_the_best_model_of_each_task() -> None:
    def caption(rows: list[list[float]]) -> str:
        return " ".join(" ".join(each.get_text() for each in front_of(rows).plot().texts).split())

    assert "From model 0 to 3, a loss rises from 0.1 to 1 and b loss falls from 1 to 0.1." in caption(TWO)
    assert "Best: model 1 in a loss (0.1), model 0 in b loss (0.2), model 1 in c loss (0.3)." in caption(
        [[0.5, 0.2, 0.6], [0.1, 0.4, 0.3]]
    )
    assert "model 0 in e loss (0.1) ... and 2 more." in caption([[0.1] * 7, [0.2] * 7])
