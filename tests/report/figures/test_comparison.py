from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
import torch

from _helpers.fronts import front_of
from compare.test_rows import rows_of
from paretomtl.compare.rows import row_of
from paretomtl.report import draw_comparison

mpl.use("Agg")


def test_the_figure_has_a_panel_for_each_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr("paretomtl.report.figures.comparison.save_figure", lambda figure, *_: seen.append(figure) or [])
    for splits in (("val", "test"), ("test",), ("val",)):
        draw_comparison(rows_of(*splits), tmp_path)
    labels = [[(axis.get_xlabel(), axis.get_title(loc="left")) for axis in figure.axes] for figure in seen]
    assert labels == [
        [(f"a loss on {split}", f"made up, losses on {split}, seed 0") for split in splits]
        for splits in (("val", "test"), ("train", "test"), ("val",))
    ]


def test_tasks_of_different_units_have_an_axis_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three tasks, the second a thousandth of the others; a solution beyond the reference stretches no axis."""
    seen: list[Any] = []
    monkeypatch.setattr("paretomtl.report.figures.comparison.save_figure", lambda figure, *_: seen.append(figure) or [])
    losses = [[0.2, 0.0005, 0.9], [0.5, 0.0001, 0.4], [0.3, 40.0, 0.1]]
    made = dataclasses.replace(
        front_of(losses, reference=(1.0, 0.01, 1.0)), history={"losses": torch.zeros(1, 3, 3)}, method="linear"
    )
    draw_comparison([json.loads(json.dumps(row_of(made)))], tmp_path)
    (axis,) = seen[0].axes
    heights = [line.get_ydata() for line in axis.get_lines() if len(line.get_xdata()) == 3]
    assert len(heights) == 3
    second = [float(height[1]) for height in heights]
    assert second[0] - second[1] > 0.9, "the whole of its axis"
    assert second[2] > 1, "out of the panel"
    assert axis.get_xlabel() == "(1 solution lies beyond the reference)"
    assert axis.get_ylabel() == "losses on train"
