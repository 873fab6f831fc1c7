"""Bounds on losses and metrics: the best model within them, or the one that comes nearest."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from paretomtl._support.argument_checks import is_number, quote
from paretomtl._support.tensor_json import from_numbers, to_significant
from paretomtl._support.text import short_number
from paretomtl.front.choosing.candidates import CandidateTable, Choice, capitalized

_DIGITS = 6


@dataclass(frozen=True)
class Bound:
    """A bound on a loss or a metric: at least ``limit``, or at most."""

    name: str
    limit: float
    at_least: bool

    def __str__(self) -> str:
        return f"{self.name} at {'least' if self.at_least else 'most'} {self.limit:g}"

    def misses(self, table: CandidateTable) -> Tensor:
        """How far each row violates the bound, ``[K]``: 0 if it satisfies it, NaN if its value is not known.

        Values count to six digits, as tables and pages show them: an accuracy of 0.7 in float32 is at least 0.7.
        """
        values = from_numbers(to_significant(table.column(self.name)[0], _DIGITS))
        return (self.limit - values if self.at_least else values - self.limit).clamp_min(0.0)


def bounds_of(
    table: CandidateTable,
    bounds: Mapping[str, float] | None,
    at_least: Mapping[str, float] | None,
    at_most: Mapping[str, float] | None,
) -> list[Bound]:
    """Collect all bounds in one list. Those of ``bounds`` are minima where higher is better, and maxima elsewhere."""
    limits = []
    for argument, given in (("bounds", bounds), ("at_least", at_least), ("at_most", at_most)):
        if given is not None and not isinstance(given, Mapping):
            raise TypeError(f"'{argument}' must be a dictionary of numbers by name. Got {quote(given)} instead.")
        for name, limit in (given or {}).items():
            if not is_number(limit):
                raise TypeError(f"'{argument}' must be numbers. Got {quote(limit)} for {quote(name)} instead.")
            if not math.isfinite(limit):
                raise ValueError(f"'{argument}' must be finite numbers. Got {limit} for {quote(name)} instead.")
            higher = table.column(name)[1] if argument == "bounds" else argument == "at_least"
            limits.append(Bound(table.find(name), float(limit), higher))
    for one in limits:
        for other in limits:
            if one.name == other.name and one.at_least and not other.at_least and one.limit > other.limit:
                raise ValueError(f"bounds must leave room between them. Got {one} and {other}.")
    above = {bound.name for bound in limits if not bound.at_least}
    for name in at_least or {}:
        if name in table.tasks and name not in above:
            _warn_of_large_losses(table, name)
    return limits


def _warn_of_large_losses(table: CandidateTable, task: str) -> None:
    """Warn of a task that is asked for losses of some size at least: a metric of it was probably meant."""
    metrics = [repr(name) for name in table.metrics if name.startswith(f"{task} ")]
    if not metrics:
        return
    warnings.warn(
        f"'at_least' bounds the loss of {task!r} from below, where less is better. Its metrics are "
        f"{', '.join(metrics)}; write 'loss:{task}' if the loss is meant.",
        stacklevel=5,
    )


def bounded_table(table: CandidateTable, bounds: Sequence[Bound]) -> CandidateTable | Choice:
    """Keep the rows that satisfy all bounds; if there are none, the choice of none, which names the nearest row."""
    if not bounds:
        return table
    misses = [bound.misses(table) for bound in bounds]
    within = torch.stack([missed == 0 for missed in misses]).all(0)
    if not bool(within.any()):
        return _nearest(table, bounds, misses)
    count = int(within.sum())
    noun = "model" if count == 1 else "models"
    return replace(table, within=within, note=f" Of {count} {noun} with {' and '.join(map(str, bounds))}.")


def within_bounds(table: CandidateTable, bounds: Sequence[Bound], best: str) -> Choice:
    """Choose the best model by one name among those that satisfy all bounds, if there are any."""
    values, higher = table.column(best)
    misses = [bound.misses(table) for bound in bounds]
    fits = torch.ones(len(table.losses), dtype=torch.bool)
    for missed in misses:
        fits = fits & (missed == 0)
    within = f" with {' and '.join(map(str, bounds))}" if bounds else ""
    if not bool(fits.any()):
        return _nearest(table, bounds, misses)
    usable = fits & values.isfinite()
    if not bool(usable.any()):
        return table.choose_none(f"No model on {table.on}{within} has a known {best}.")
    beaten, signed = table.beaten(usable), (-values if higher else values).tolist()
    row = min(_rows(usable), key=lambda row: (signed[row], beaten[row]))
    count = int(fits.sum())
    return table.choose(
        row,
        f"of {count} model{'s' if count != 1 else ''}{within} on {table.on}, it has the best {table.find(best)}, "
        f"{short_number(float(values[row]))}.",
    )


def _nearest(table: CandidateTable, bounds: Sequence[Bound], misses: Sequence[Tensor]) -> Choice:
    """Choose none, and name the nearest model: its largest miss is smallest, in units of the front's range."""
    none = f"No model on {table.on} has {' and '.join(map(str, bounds))}."
    columns = [table.column(bound.name)[0].double() for bound in bounds]
    known = torch.stack([values.isfinite() for values in columns]).all(0)
    if not bool(known.any()):
        unknown = [bound.name for bound, values in zip(bounds, columns, strict=True) if not values.isfinite().any()]
        return table.choose_none(
            f"{none} No model has a known {' and a known '.join(unknown) or 'value for all of them'}."
        )
    usual = known & ~table.beyond()  # one diverged model would stretch the range of its names
    usual = usual if bool(usual.any()) else known
    ranges = [float(values[usual].amax() - values[usual].amin()) or 1.0 for values in columns]
    relative = torch.stack([missed / width for missed, width in zip(misses, ranges, strict=True)], -1)
    beaten = table.beaten(known)
    row = min(_rows(known), key=lambda row: (float(relative[row].amax()), float(relative[row].sum()), beaten[row]))
    missed = [(bound, float(miss[row])) for bound, miss in zip(bounds, misses, strict=True) if miss[row] > 0]
    details = " and ".join(
        f"its {bound.name} is {short_number(float(table.column(bound.name)[0][row]))}, {short_number(miss)} too "
        f"{'low' if bound.at_least else 'high'}"
        for bound, miss in missed
    )
    return table.choose_none(
        f"{none} {capitalized(table.label(row))} comes nearest: {details}.",
        nearest=table.subproblems[row],
        misses={bound.name: miss for bound, miss in missed},
    )


def _rows(chosen: Tensor) -> list[int]:
    return [row for row, wanted in enumerate(chosen.tolist()) if wanted]
