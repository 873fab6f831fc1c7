"""Units: whether losses and gradients of the tasks compare, and what to do if they do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paretomtl.diagnosis._measurements import Measurements
from paretomtl.diagnosis._preferences import even_factors
from paretomtl.methods.loss_scaling import UNITS_DIFFER, format_ratio, largest_ratio

LARGE_LOSS = 100.0
"""A loss that is larger at the start and at the end is probably the squared error of targets in large units."""
RAISED = 5.0
"""A small loss begins at its best if joint training raises it to more than this many times its first value.

A small loss that another one dominates rises, too, though by less: 2.4 times was measured on the quadratic problem."""

RESCALE = 'scale="auto", or --set scale=auto'
"""How to diagnose with scaled losses."""


@dataclass(frozen=True)
class Units:
    """How losses and gradients compare.

    Attributes:
        pair: the tasks with the larger and the smaller loss, by number, if losses do not compare; else None.
        ratio: how many times the smaller loss the larger one is, at the start and at the end.
        best: the task whose loss is small at the start because it begins at its best, so that losses are better not
            scaled; None if there is none, or if others need a scale.
        lopsided: a note if losses compare and gradients do not; else empty.
    """

    pair: tuple[int, int] | None
    ratio: float
    best: int | None
    lopsided: str

    @property
    def scale(self) -> str | None:
        """The scale to use; None for no scaling."""
        return None if self.pair is None or self.best is not None else "first"

    @property
    def compare(self) -> bool:
        """Whether equal weights train all tasks about equally."""
        return self.pair is None and not self.lopsided

    def named(self, measured: Measurements) -> str:
        """Losses that do not compare, as in "losses of kind are 18 times those of position"."""
        large, small = self.pair or (0, 0)
        return (
            f"losses of {measured.tasks[large]} are {format_ratio(self.ratio)} times those of {measured.tasks[small]}"
        )


def compare_units(measured: Measurements) -> Units:
    """Compare losses and gradients of all tasks.

    A small loss that begins at its best, such as a fairness gap of untrained models, asks for no scale.
    """
    every = range(len(measured.tasks))
    raised = [i for i in _small_at_start(measured) if _raised(measured, i)]
    found = _unlike(measured, every)
    others = _unlike(measured, [i for i in every if i not in raised])
    best = raised[0] if raised and others is None else None
    if found is None:
        return Units(None, 1.0, best, _lopsided(measured))
    large, small, ratio = others or found
    return Units((large, small), ratio, best, "")


def unit_notes(measured: Measurements, units: Units, factors: Sequence[float] | None) -> list[str]:
    """Remarks on units, a sentence or more each.

    Args:
        measured: the measurements.
        units: how they compare.
        factors: the factors of the losses that proposed directions refer to, if there are any.
    """
    if units.best is not None:
        was, became = (f"{float(losses[units.best]):.3g}" for losses in (measured.first, measured.last))
        return [
            f"Joint training raised the loss of {measured.tasks[units.best]} from {was} to {became}: it begins at its "
            "best, as a fairness gap does. Do not scale it by its small first value: the default method scales by "
            "itself, unless it gets scale=None (--set scale=None) or factors of your own."
        ]
    if units.pair is None:
        known = [] if measured.factors is None else [written(measured.factors)]
        notes = [f"Gradients, weights and directions are those of losses times {text}." for text in known]
        return [*notes, *([units.lopsided] if units.lopsided else [])]
    large, small = units.pair
    by = "" if measured.factors is None else f" by other factors than {written(measured.factors)}"
    raw = min(float(measured.first[large]), float(measured.last[large])) > LARGE_LOSS
    advice = (
        f" If the targets of {measured.tasks[large]} are in large units, standardise them first (subtract their "
        "mean, divide by their deviation): factors change weights, but not how far outputs must go."
    )
    return [
        f"Scale the losses{by}: that of {measured.tasks[large]} is {format_ratio(units.ratio)} times that of "
        f"{measured.tasks[small]}, at the start and at the end.{advice if raw else ''} {_how_to_scale(factors)} "
        "A loss that begins at its best, such as a fairness gap, is better left as it is."
    ]


def weight_factors(measured: Measurements) -> tuple[float, ...]:
    """Factors of the losses with which weights near the ends of the front mean the same for all tasks.

    If only gradients differ, a factor is one over their norm. If losses need scaling, it is one over the geometric mean
    of two sizes: the loss after joint training, and the loss that a separate network removes. The first is too large if
    another task dominated training, the second if the loss starts far off.
    """
    units = compare_units(measured)
    if units.lopsided:
        return even_factors(measured.norms.tolist())
    if units.scale is None:
        return (1.0,) * len(measured.tasks) if measured.factors is None else measured.factors
    return even_factors((measured.last.abs() * measured.learnt * measured.first.abs()).sqrt().tolist())


def written(factors: Sequence[float]) -> str:
    """Factors as ``--set scale=`` takes them."""
    return ",".join(f"{factor:g}" for factor in factors)


def _unlike(measured: Measurements, tasks: Sequence[int]) -> tuple[int, int, float] | None:
    """The two of these tasks whose losses differ most, at the start and at the end; None if all compare."""
    if len(tasks) < 2:
        return None
    rows = [(measured.units * losses.abs())[list(tasks)].tolist() for losses in (measured.first, measured.last)]
    large, small, ratio = largest_ratio(rows)
    return (tasks[large], tasks[small], ratio) if ratio > UNITS_DIFFER else None


def _small_at_start(measured: Measurements) -> list[int]:
    """The tasks whose first loss is far smaller than the largest one, the smallest first."""
    first = (measured.units * measured.first.abs()).nan_to_num(0.0).tolist()
    small = [i for i, loss in enumerate(first) if 0.0 < UNITS_DIFFER * loss < max(first)]
    return sorted(small, key=lambda i: first[i])


def _raised(measured: Measurements, task: int) -> bool:
    """Whether joint training has raised a loss by far."""
    return 0.0 < RAISED * float(measured.first[task]) < float(measured.last[task])


def _lopsided(measured: Measurements) -> str:
    """A note on gradients of different lengths; else empty."""
    large, small, ratio = largest_ratio([(measured.units * measured.norms).tolist()])
    if ratio <= UNITS_DIFFER:
        return ""
    return (
        f"Gradients of {measured.tasks[large]} are {format_ratio(ratio)} times as long as those of "
        f"{measured.tasks[small]}: equal weights train mostly the former. Pareto MTL needs no scale for that, because "
        "its step gives short gradients more weight."
    )


def _how_to_scale(factors: Sequence[float] | None) -> str:
    if factors is None:
        return 'The default method scales by itself; others take scale="first" (--set scale=first).'
    text = written(factors)
    return f"Preferences are for losses times {text}: use ParetoMTL(scale=({text})), or --set scale={text}."
