"""A contact sheet: some canvases of a set with their labels, to be looked at before anything is trained on them."""

from __future__ import annotations

from pathlib import Path

from paretomtl._extras import require
from paretomtl._files import whole_file
from paretomtl.problems import Canvases
from paretomtl.problems._canvases import MIXES
from paretomtl.problems._idx import SOURCES
from paretomtl.report._style import paper_style

_ROWS, _COLUMNS = 4, 6


def draw_sheet(canvases: Canvases, path: Path) -> None:
    """Write training canvases from all over the set as PNG, each with its labels in the order of the tasks."""
    kind = require("matplotlib.figure", "figures").Figure
    classes = [SOURCES[key].classes for key in MIXES[canvases.name]]
    places = " · ".join(position.name.replace("-", " ") for position in canvases.positions)
    count = _ROWS * _COLUMNS
    with paper_style():
        figure = kind(figsize=(1.25 * _COLUMNS, 1.5 * _ROWS), layout="constrained")
        axes = figure.subplots(_ROWS, _COLUMNS)
        for i, axis in enumerate(axes.flat):
            number = i * (len(canvases.train_labels) - 1) // (count - 1)
            axis.imshow(canvases.train_images[number], cmap="gray_r", vmin=0, vmax=255, interpolation="nearest")
            words = [names[label] for names, label in zip(classes, canvases.train_labels[number], strict=True)]
            axis.set_xlabel(" · ".join(words), fontsize=9, labelpad=3)
            axis.set(xticks=[], yticks=[])
            for spine in axis.spines.values():
                spine.set(visible=True, color="0.75", linewidth=0.6)
        figure.suptitle(f"{canvases.name}, {canvases.origin}, seed {canvases.seed}: {places}", fontsize=11)
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            figure.savefig(file, format="png", dpi=160, metadata={"Software": None})
