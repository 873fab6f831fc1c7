"""Hypervolume against cost, in seconds and in network passes, for the runs of a comparison."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretomtl._support.files.atomic_files import write_text
from paretomtl._support.imports.optional_packages import require
from paretomtl._support.tensor_json import to_significant
from paretomtl.compare.cost import CostComparison, CostCurve, cost_curves, cost_fields
from paretomtl.compare.rows import row_of
from paretomtl.front import Front
from paretomtl.methods.registry import colour_of, label_of, marker_of
from paretomtl.report.figures.style import WIDTH, add_caption, figure_style, plain, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME = "compare-cost"
"""The name of the figure and of its numbers, without a suffix."""

_DIGITS = 6


def draw_cost(runs: Sequence[Front | dict[str, Any]], folder: Path) -> list[Path]:
    """Draw the hypervolume of the models at each epoch against what they have cost until then.

    The left panel has seconds, the right one network passes: epochs × models × passes of a step, where a step with one
    backward pass is one, and a step with m backward passes is (1 + 2m)/3. A thick line is the mean of a method over its
    seeds, thin ones are its runs. The reference point is just beyond the best final models of all runs, so a curve
    is 0 until the first model is better than that in every task. Losses are those on validation, or means of the
    training losses over each epoch if no run has any.

    Args:
        runs: fronts with their history, or rows of ``paretomtl.compare.compare``.
        folder: where ``compare-cost.png``, ``.svg`` and ``.json``, the numbers, are written.

    Returns:
        The paths; none if no run has a history.
    """
    found = cost_curves([_row(run) for run in runs])
    if found is None or not found.curves:
        return []
    passes = all(curve.passes is not None for curve in found.curves)
    pyplot = require("matplotlib.pyplot", "figures")
    with figure_style():
        size = (WIDTH if passes else 4.6, 3.3)
        figure, axes = pyplot.subplots(1, 1 + passes, figsize=size, squeeze=False, sharey=True, layout="constrained")
        for axis, field, label in zip(axes[0], ("seconds", "passes"), ("seconds", "network passes"), strict=False):
            _panel(axis, found, field)
            axis.set(xlabel=label, xlim=(0, None), ylim=(0, None))
            axis.set_title(f"Hypervolume by {label}")
        where = "validation" if found.split == "val" else "training, means over epochs"
        point = ", ".join(f"{value:.3g}" for value in found.reference)
        axes[0][0].set_ylabel(f"hypervolume on {where}")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower left", ncols=4)
        title = "What a front costs while it trains"
        thin = "Thick lines are means over seeds, thin ones are seeds. " if _has_seeds(found) else ""
        add_caption(figure, title, f"Upper left is better. {thin}Reference point: ({plain(point, 60)}).")
        paths = save_figure(figure, folder, NAME)
        pyplot.close(figure)
    numbers = folder / f"{NAME}.json"
    write_text(numbers, json.dumps(_numbers(found), ensure_ascii=False, allow_nan=False) + "\n")
    return [*paths, numbers]


def _row(run: Front | dict[str, Any]) -> dict[str, Any]:
    """The row of a front, or the row that was given."""
    if not isinstance(run, Front):
        return run
    if "losses" not in run.history:
        raise ValueError(f"'runs' must have a history: fronts that were trained here do. Got one of {run.method!r}.")
    return {**row_of(run), **cost_fields(run)}


def _has_seeds(found: CostComparison) -> bool:
    """Whether a method has several runs, so that its mean is drawn among them."""
    methods = [curve.method for curve in found.curves]
    return any(methods.count(method) > 1 and found.mean(method) is not None for method in methods)


def _panel(axis: Axes, found: CostComparison, field: str) -> None:
    for method in dict.fromkeys(curve.method for curve in found.curves):
        own = [curve for curve in found.curves if curve.method == method]
        mean, colour, label = found.mean(method), colour_of(method), plain(label_of(method))
        width, alpha = (0.6, 0.4) if mean is not None else (0.9, 1.0)
        for number, curve in enumerate(own if len(own) > 1 or mean is None else []):
            named = label if mean is None and number == 0 else None
            x, y = getattr(curve, field), curve.hypervolumes
            axis.plot(x, y, color=colour, linewidth=width, alpha=alpha, zorder=2, label=named)
        if mean is not None:
            places = sorted({len(mean.hypervolumes) - 1 - step for step in _marked(len(mean.hypervolumes))})
            style: dict[str, Any] = {"color": colour, "label": label, "marker": marker_of(method), "markevery": places}
            axis.plot(getattr(mean, field), mean.hypervolumes, linewidth=1.6, markersize=6, zorder=4, **style)


def _marked(count: int) -> range:
    """Every fifth part of a curve has a marker, so that lines are told apart without colours."""
    return range(0, count, max(1, count // 5))


def _numbers(found: CostComparison) -> dict[str, Any]:
    """The curves in JSON, with the meaning of their numbers."""
    return {
        "split": found.split,
        "losses": "on validation" if found.split == "val" else "means of the training losses over each epoch",
        "reference": to_significant(found.reference, _DIGITS),
        "network_pass": "an epoch of one model with one backward pass a step; with m backward passes, (1 + 2m)/3",
        "curves": [_curve(curve) for curve in found.curves],
        "left_out": found.left_out,
    }


def _curve(curve: CostCurve) -> dict[str, Any]:
    fields = dataclasses.asdict(curve)
    return {
        name: to_significant(value, _DIGITS) if isinstance(value, list) else value for name, value in fields.items()
    }
