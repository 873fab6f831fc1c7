"""A contact sheet: some canvases of a set with their labels, for a look at the data before training."""

from __future__ import annotations

import textwrap
from pathlib import Path

from paretomtl._support.files.atomic_files import whole_file
from paretomtl._support.imports.optional_packages import require
from paretomtl.problems import Canvases
from paretomtl.report.figures.style import figure_style

_ROWS, _COLUMNS = 4, 6
_LETTERS, _LINE = 20, 0.2  # letters in a line under a canvas, and inches per further line


def draw_sheet(canvases: Canvases, path: Path) -> None:
    """Write evenly sampled training canvases as PNG, each with its labels in the order of the tasks."""
    kind = require("matplotlib.figure", "figures").Figure
    places = " · ".join(position.name.replace("-", " ") for position in canvases.positions)
    count = _ROWS * _COLUMNS
    numbers = [i * (len(canvases.train_labels) - 1) // (count - 1) for i in range(count)]
    words = [
        _words([names[label] for names, label in zip(canvases.classes, canvases.train_labels[n], strict=True)])
        for n in numbers
    ]
    height = 1.5 + _LINE * max(text.count("\n") for text in words)
    with figure_style():
        figure = kind(figsize=(1.25 * _COLUMNS, height * _ROWS), layout="constrained")
        axes = figure.subplots(_ROWS, _COLUMNS)
        for axis, number, text in zip(axes.flat, numbers, words, strict=True):
            axis.imshow(canvases.train_images[number], cmap="gray_r", vmin=0, vmax=255, interpolation="nearest")
            axis.set_xlabel(text, fontsize=9, labelpad=3)
            axis.set(xticks=[], yticks=[])
            for spine in axis.spines.values():
                spine.set(visible=True, color="0.75", linewidth=0.6)
        figure.suptitle(f"{canvases.name}, {canvases.origin}, seed {canvases.seed}: {places}", fontsize=11)
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            figure.savefig(file, format="png", dpi=160, metadata={"Software": None})


def _words(classes: list[str]) -> str:
    """Join the classes on a canvas and wrap them; a dot begins a line rather than ends one."""
    joined = " ·\N{NO-BREAK SPACE}".join(classes)
    return textwrap.fill(joined, _LETTERS, break_on_hyphens=False).replace("\N{NO-BREAK SPACE}", " ")
