"""Hypervolume against cost: what the models of a run are worth at each epoch, and what they have cost until then.

The cost is in seconds, and in *network passes*: an epoch of one model with one forward and one backward pass a step is
one network pass. A backward pass costs twice a forward pass, so a method that takes m backward passes over one forward
pass, for its Gramian, costs (1 + 2m)/3 network passes an epoch and model. Seconds depend on the machine and on how
models share it; network passes do not.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from paretomtl._support.tensor_json import to_numbers
from paretomtl.compare._verdict import common_reference
from paretomtl.compare.row_indicators import points_hypervolume, tight_point, within
from paretomtl.compare.row_store import Row
from paretomtl.compare.rows import finite_points, is_ideal, read_row
from paretomtl.front import Front
from paretomtl.front.indicators import takes_long
from paretomtl.methods import Method, resolve_method
from paretomtl.methods.registry import is_known

_NUMBERS = 6000  # of a stored history; longer ones are thinned
_POINTS = 10, 60  # the least and the most epochs of a stored history


def step_cost(needs_gramian: bool, tasks: int, weigh_every: int = 1) -> float:
    """The network passes of one step of one model: 1 with one backward pass, (1 + 2m)/3 with m.

    Args:
        needs_gramian: whether the method takes m backward passes; see :class:`~paretomtl.methods.Method`.
        tasks: m.
        weigh_every: the steps from one with m backward passes to the next; those between take one.

    Example:
        >>> step_cost(False, 3), round(step_cost(True, 3), 3), round(step_cost(True, 3, weigh_every=4), 3)
        (1.0, 2.333, 1.333)
    """
    return 1.0 + (2.0 * (tasks - 1) / 3.0 / weigh_every if needs_gramian else 0.0)


def cost_fields(front: Front, method: Method | None = None, weigh_every: int = 1) -> Row:
    """The fields of a row that cost curves are drawn from.

    Args:
        front: a front with a history.
        method: the method that trained it; by default the built-in one of that name, with its default options.
        weigh_every: as in :func:`paretomtl.fit`.

    Returns:
        "step_cost", None for an unknown method, and "history": the split, the epochs, and the losses ``[T, K, m]``
        there. They are those on validation, or else means of the training losses over each epoch, and thinned if long.
    """
    if method is None and is_known(front.method):
        method = resolve_method(front.method)
    split = "val" if len(front.history.get("val", ())) else "train"
    losses = front.history["val" if split == "val" else "losses"]
    least, most = _POINTS
    room = max(least, min(most, _NUMBERS // max(1, len(front) * len(front.tasks))))
    last = len(losses) - 1
    kept = sorted({round(i * last / (room - 1)) for i in range(room)}) if last >= room else list(range(last + 1))
    return {
        "step_cost": None if method is None else step_cost(method.needs_gramian, len(front.tasks), weigh_every),
        "history": {"split": split, "epochs": [t + 1 for t in kept], "losses": to_numbers(losses[kept])},
    }


@dataclass(frozen=True)
class CostCurve:
    """The hypervolume of the models of one run at some of its epochs, and what they have cost until then.

    Attributes:
        method: the name of the method.
        seed: its seed.
        epochs: ``[T]``, from 1 on.
        seconds: ``[T]``; the time of the whole run is shared evenly among its epochs.
        passes: network passes of all models together, ``[T]``; None if the cost of a step is unknown.
        hypervolumes: ``[T]``.
    """

    method: str
    seed: int
    epochs: list[int]
    seconds: list[float]
    passes: list[float] | None
    hypervolumes: list[float]


@dataclass(frozen=True)
class CostComparison:
    """Cost curves that share a split and a reference point.

    Attributes:
        split: "val", or "train" if no run has a history on validation.
        reference: just beyond the best final models of all runs there.
        curves: one for each run.
        left_out: why each other run has none.
    """

    split: str
    reference: list[float]
    curves: list[CostCurve]
    left_out: list[str]

    def mean(self, method: str) -> CostCurve | None:
        """The mean curve over the seeds of a method; None if their epochs differ."""
        own = [curve for curve in self.curves if curve.method == method]
        if not own or any(curve.epochs != own[0].epochs for curve in own):
            return None
        passes = [curve.passes for curve in own if curve.passes is not None]
        return CostCurve(
            method,
            own[0].seed,
            own[0].epochs,
            _means([curve.seconds for curve in own]),
            _means(passes) if len(passes) == len(own) else None,
            _means([curve.hypervolumes for curve in own]),
        )


def cost_curves(rows: Sequence[Row]) -> CostComparison | None:
    """The cost curves of runs, from their rows alone; None if no row has a history, as those of earlier versions.

    Separate networks have no curve, since they are not a front.
    """
    rows = [row for row in map(read_row, rows) if not is_ideal(row)]
    known = [row for row in rows if row.get("history")]
    if not known:
        return None
    split = "val" if any(row["history"]["split"] == "val" for row in known) else "train"
    reference = tight_point([row for row in rows if split in row["losses"]], split, common_reference(rows))
    if reference is None:
        return None
    curves, left_out = [], []
    for row in rows:
        run = f"{row['method']} with seed {row['seed']}"
        history = row.get("history")
        if not history:
            left_out.append(f"{run}: its row has no history")
        elif history["split"] != split:
            left_out.append(f"{run}: it has no history on validation")
        elif any(takes_long(_tensor(table, len(reference))) for table in history["losses"]):
            left_out.append(f"{run}: hypervolumes of so many models and tasks take long")
        else:
            curves.append(_curve(row, reference))
    return CostComparison(split, reference, curves, left_out)


def _curve(row: Row, reference: Sequence[float]) -> CostCurve:
    epochs, tables = row["history"]["epochs"], row["history"]["losses"]
    each = row["seconds"] / max(1, row["epochs"])
    cost = row.get("step_cost")
    return CostCurve(
        row["method"],
        row["seed"],
        epochs,
        [epoch * each for epoch in epochs],
        None if cost is None else [epoch * row["preferences"] * cost for epoch in epochs],
        [points_hypervolume(within(finite_points(table), reference), reference, ideal=False) for table in tables],
    )


def _tensor(table: Sequence[list[float]], tasks: int) -> torch.Tensor:
    return torch.tensor(finite_points(table), dtype=torch.float64).reshape(-1, tasks)


def _means(columns: Sequence[Sequence[float]]) -> list[float]:
    return [statistics.fmean(values) for values in zip(*columns, strict=True)]
