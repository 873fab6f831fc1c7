"""A diagnosis as a figure: what joint training costs each task, and which gradients conflict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretomtl._support.files.paths import as_path
from paretomtl._support.imports.optional_packages import require
from paretomtl._support.splits import split_word
from paretomtl._support.text import shorten
from paretomtl.diagnosis import Diagnosis
from paretomtl.diagnosis.evidence import CONFLICT, conflicts, task_gaps
from paretomtl.report.figures.captions import diagnosis_caption
from paretomtl.report.figures.style import QUIET, SMALL, WIDTH, add_caption, figure_style, finish_figure, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PAIRS = 10  # the most pairs of tasks that are drawn: those whose gradients agree least
_COLOURS = {"worse": "#c1272d", "conflict": "#c1272d", "better": "#0b5fa5", "open": "#666666"}
_MARKERS = {"worse": "v", "conflict": "v", "better": "^"}


@dataclass(frozen=True)
class Mark:
    """A value with its interval.

    Attributes:
        name: of the task, or of the pair of tasks.
        value: the mean over seeds.
        half_width: half the width of its 95 % interval; 0 if it is unknown.
        word: the verdict on it.
        margin: values within it do not count.
    """

    name: str
    value: float
    half_width: float
    word: str
    margin: float = 0.0

    @property
    def colour(self) -> str:
        """The colour of the verdict, which stands next to the mark in words, too."""
        return _COLOURS.get(self.word, "#333333")


def task_marks(diagnosis: Diagnosis) -> list[Mark]:
    """For each task, the loss of joint training above that of a separate network, in per cent of the latter."""
    marks = []
    for task, (name, gap) in enumerate(zip(diagnosis.tasks, task_gaps(diagnosis), strict=True)):
        alone = abs(float(diagnosis.alone[:, task].mean()))
        if alone > 0 and math.isfinite(alone) and math.isfinite(gap.value):
            parts = (100 * part / alone for part in (gap.value, _finite(gap.half_width), gap.margin))
            value, far, margin = parts
            marks.append(Mark(name, value, far, gap.word, margin))
    return marks


def pair_marks(diagnosis: Diagnosis) -> list[Mark]:
    """The cosines of the gradients of the pairs of tasks that agree least, in the last third of training."""
    words = {True: "conflict", False: "none", None: "open"}
    return [
        Mark(
            " / ".join(shorten(diagnosis.tasks[task], 14) for task in pull.pair),
            pull.cosine,
            _finite(pull.half_width),
            words[pull.there],
        )
        for pull in conflicts(diagnosis)[:_PAIRS]
    ]


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def draw_diagnosis(diagnosis: Diagnosis, path: str | Path | None = None, *, dark: bool = False) -> Figure:
    """Draw a diagnosis; return the figure.

    The left panel shows for each task how much more, or less, loss joint training has than a separate network, in per
    cent of the latter, with its 95 % interval over seeds; differences within the grey band do not count. The right
    panel shows the cosines of the tasks' gradients for the pairs that agree least, in the last third of training, with
    their intervals; left of the dashed line they conflict. A caption gives the verdict.

    Args:
        diagnosis: what to draw.
        path: the file to write; its suffix, such as ``.pdf``, ``.svg`` or ``.png``, sets the format. The figure is
            closed after it is written.
        dark: whether to draw for a dark background.
    """
    path = None if path is None else as_path("path", path)
    pyplot = require("matplotlib.pyplot", "figures")
    tasks, pairs = task_marks(diagnosis), pair_marks(diagnosis)
    with figure_style():
        figure = pyplot.figure(figsize=(WIDTH, 1.1 + 0.32 * max(2, len(tasks), len(pairs))), layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw_marks(left, tasks, 0.0)
        left.set_title(f"Joint training, loss on {split_word(diagnosis.split)}")
        left.set_xlabel("% more loss than a separate network", color=QUIET)
        _draw_marks(right, pairs, CONFLICT, "--")
        right.set_title("Gradients of pairs of tasks")
        right.set_xlabel("cosine; left of the dashed line they conflict", color=QUIET)
        low, high = right.get_xlim()
        right.set_xlim(max(low, -1.05), min(high, 1.05))
        title = f"{diagnosis.problem}: is a front worth it? Verdict: {diagnosis.verdict.word}"
        add_caption(figure, plain(title, 72), plain(diagnosis_caption(diagnosis), 400))
        finish_figure(figure, path, dark=dark)
    return figure  # type: ignore[no-any-return]


def _draw_marks(axis: Axes, marks: Sequence[Mark], line: float, style: str = "-") -> None:
    """Draw values with their intervals, the word for each above it, and a line at the value that decides."""
    for number, mark in enumerate(reversed(marks)):
        margin = [-mark.margin, mark.margin]
        axis.fill_between(margin, number - 0.4, number + 0.4, color="0.93", linewidth=0, zorder=0)
        shape = _MARKERS.get(mark.word, "o")
        options: dict[str, Any] = {"color": mark.colour, "markersize": 6, "linewidth": 1.4, "zorder": 3}
        axis.errorbar(mark.value, number, xerr=mark.half_width, fmt=shape, **options)
        text: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": SMALL, "color": mark.colour}
        axis.annotate(mark.word, (mark.value, number), (0, 4), textcoords="offset points", **text)
    axis.axvline(line, color="0.6", linewidth=0.9, linestyle=style, zorder=1)
    axis.set_yticks(range(len(marks)), [plain(mark.name, 34) for mark in reversed(marks)])
    axis.set_ylim(-0.6, max(len(marks), 1) - 0.3)
    axis.tick_params(axis="y", length=0)
    axis.margins(x=0.12)
