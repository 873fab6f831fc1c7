r"""The view of a run on the page: plain numbers and text, ready for JSON.

A page shows a *payload*::

    title, made (a date), version
    live        None for a static page, or {"every": milliseconds, "news": one for each run}
    verdict     which run is better, and whether seeds can tell; empty if there is nothing to compare
    runs        views, one for each run
    styles      of each run: label and colour {"light", "dark"} of its method, and the symbol of its seed

A view, with K models and m tasks; None stands for unknown values and for numbers that are not finite::

    name, folder, problem, method, strategy
    seed         None for models that were trained elsewhere
    seconds      of training, or None
    tasks        [m]
    separate     whether the models are separate networks for each task, which are not a front
    reading      what preferences mean: "direction", "importance" or "start"; "none" without any
    state        "finished", "stopped", "training" or "broken"
    note         a sentence about the run to be shown; may be left out
    epoch        how many are done              epochs  how many were planned
    subproblems  [K], the models' numbers       kept    [K], the epoch that each model is from, or None
    names        [K], what the user calls the models, or None
    exports      whether there are weights, which a command can export
    preferences  [K][m], [K][0] without any     others  [...][m], the rows that were not trained
    favours      [K], the places of the tasks that a preference favours, none if all alike; None without preferences
    values       by split and name, [K]; "loss:TASK" is a loss, any other name a metric
    better       by name, "lower" or "higher", also for losses
    nondominated by split, [K]: finite, and no other model dominates it
    in_region    [K], on training; None without regions
    angles       [K], degrees from the preference, on training; None without directions
    status       [K]
    scale        [K][m], factors of the losses before regions were decided, or None
    ideal        [m], the point subtracted from the losses before that, or None
    reference    [m], one for all runs, and hypervolume by split, at it; own_reference is that of the run itself
    union        regret, r2 and igd_plus on split, against all runs of the problem; regret is chosen_on another split;
                 None, or left out, if unknown
    history      epochs [T], losses, weights [T][K][m], val the same or None, hypervolume [T] or None

A view may have no values yet (``values`` is empty): the page then says that nothing is there yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from torch import Tensor

from paretomtl._support.tensor_json import to_significant
from paretomtl.front import Front
from paretomtl.front.favours import model_favours
from paretomtl.front.indicators import finite_nondominated, quick_hypervolume
from paretomtl.methods.registry import is_separate
from paretomtl.report.page.hypervolume_curve import hypervolume_curve
from paretomtl.runs.curves import POINTS

View: TypeAlias = dict[str, Any]
"""The view of a run."""

DIGITS = 6
"""Significant digits of the numbers on a page; curves have two fewer."""


def view_of(
    front: Front,
    name: str,
    folder: str,
    *,
    reference: Sequence[float] | None = None,
    points: int = POINTS,
    runs: int = 1,
) -> View:
    """The view of a front.

    Args:
        front: what to show.
        name: of the run.
        folder: where it is stored, for the command that exports a model.
        reference: of the hypervolume, common to runs that are compared; the front's own by default.
        points: the maximum number of points of a curve.
        runs: how many there are on the page; hypervolumes that would take long for so many are left out.

    Example:
        >>> import paretomtl as pm
        >>> front = pm.fit(pm.problems.quadratic(), preferences=5, epochs=300, progress="quiet", device="cpu")
        >>> view = view_of(front, "first", "runs/first")
        >>> view["nondominated"]["train"]
        [True, True, True, True, True]
    """
    rows, trained = list(front.subproblems), set(front.subproblems)
    directions = front.reading == "direction"
    reference = front.reference if reference is None else reference
    done = len(front.history["losses"]) if "losses" in front.history else 0 if front.seed is not None else None
    losses = [f"loss:{task}" for task in front.tasks]
    times = runs * len(front.losses)
    return {
        "name": name,
        "folder": folder,
        "problem": front.problem,
        "method": front.method,
        "seed": front.seed,
        "strategy": front.strategy,
        "seconds": None if front.seed is None else rounded(front.seconds),
        "tasks": list(front.tasks),
        "separate": is_separate(front.method),
        "reading": front.reading,
        "state": "finished" if front.complete else "stopped",
        "epoch": done,
        "epochs": done if front.complete else None,
        "subproblems": rows,
        "kept": list(front.epochs) or None,
        "names": list(front.names) or None,
        "exports": front.seed is not None or bool(front.models),
        "preferences": rounded(front.preferences[rows]),
        "others": rounded(front.preferences[[k for k in range(len(front.preferences)) if k not in trained]]),
        "favours": model_favours(front),
        "values": {split: _values(front, split) for split in front.losses},
        "better": {**dict.fromkeys(losses, "lower"), **{name: _better(front, name) for name in _metric_names(front)}},
        "nondominated": {split: finite_nondominated(table).tolist() for split, table in front.losses.items()},
        "in_region": front.in_region("train").tolist() if directions and "train" in front.losses else None,
        "angles": rounded(front.angle("train"), 4) if directions and "train" in front.losses else None,
        "status": list(front.status),
        "scale": None if front.scale is None else rounded(front.scale),
        "ideal": None if front.ideal is None else rounded(front.ideal),
        "reference": None if reference is None else rounded(reference),
        "own_reference": None if front.reference is None else rounded(front.reference),
        "hypervolume": {
            split: rounded(quick_hypervolume(front, reference, split, times=times)) for split in front.losses
        },
        "history": history_of(front.history, points, reference=reference, runs=runs),
    }


def history_of(
    history: Mapping[str, Tensor],
    points: int = POINTS,
    epochs: Sequence[int] | None = None,
    reference: Sequence[float] | None = None,
    runs: int = 1,
) -> View:
    """Return curves of at most ``points`` points, first and last included, with the numbers of their epochs.

    Args:
        history: "losses" and "weights", and "val" if there is such a split, ``[T, K, m]``.
        points: the maximum number to keep.
        epochs: the numbers of the T epochs; 1 to T by default.
        reference: of the hypervolume, on validation if it is known; without one there is no such curve.
        runs: how many there are on the page.
    """
    total = len(history["losses"]) if "losses" in history else 0
    kept = thinned(total, points)
    numbers = list(epochs or range(1, total + 1))
    curves: View = {"epochs": [numbers[i] for i in kept]}
    for name in ("losses", "weights"):
        curves[name] = rounded(history[name][kept], DIGITS - 2) if total else []
    has_val = "val" in history and len(history["val"]) == total > 0
    curves["val"] = rounded(history["val"][kept], DIGITS - 2) if has_val else None
    measured = history["val" if has_val else "losses"][kept] if total else None
    curves["hypervolume"] = (
        None if measured is None else rounded(hypervolume_curve(measured, reference, times=runs), DIGITS - 2)
    )
    return curves


def thinned(total: int, points: int) -> list[int]:
    """Return at most ``points`` evenly spaced indices from 0 to total - 1, first and last included.

    Example:
        >>> thinned(10, 4)
        [0, 3, 6, 9]
    """
    if total <= points:
        return list(range(total))
    return sorted({round(i * (total - 1) / (points - 1)) for i in range(points)}) if points > 1 else [total - 1]


def rounded(numbers: Any, digits: int = DIGITS) -> Any:
    """Round numbers to significant digits, as pages show them; None if they are not finite."""
    return to_significant(numbers, digits)


def _values(front: Front, split: str) -> dict[str, Any]:
    table = front.losses[split]
    losses = {f"loss:{task}": rounded(table[:, i]) for i, task in enumerate(front.tasks)}
    return {**losses, **{_metric(front, name): rounded(kept) for name, kept in front.metrics.get(split, {}).items()}}


def _metric_names(front: Front) -> list[str]:
    return [_metric(front, name) for name in {name: 0 for kept in front.metrics.values() for name in kept}]


def _metric(front: Front, name: str) -> str:
    """Return the name of a metric, changed if it could be mistaken for that of a loss."""
    return f"{name} (metric)" if name in {f"loss:{task}" for task in front.tasks} else name


def _better(front: Front, name: str) -> str:
    return front.better.get(name, front.better.get(name.removesuffix(" (metric)"), "higher"))
