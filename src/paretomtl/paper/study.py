"""A study: cells of work that make rows, claims that are judged by the rows, and figures of the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from paretomtl.compare.row_store import Row
from paretomtl.paper.claims import Claim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Size: TypeAlias = Literal["full", "quick", "smoke"]
"""How much of a study to run: all of it, minutes on two cores, or seconds that only show that everything works."""

Draw: TypeAlias = "Callable[[Sequence[Row]], Figure | None]"
"""Draws a figure from rows; None where the rows hold nothing to draw."""


class Cell(Protocol):
    """A piece of work: one configuration, trained for several seeds at once.

    A cell is known by its name. Its settings say all that decides its rows, so that stored rows of other settings are
    recognised.
    """

    @property
    def name(self) -> str:
        """Unlike that of every other cell of the study."""

    @property
    def settings(self) -> str:
        """Everything that decides what its rows are, as text."""

    @property
    def seeds(self) -> int:
        """The number of seeds, from 0 on. Each leaves a row for each of the ``stages``."""

    @property
    def stages(self) -> tuple[str, ...]:
        """The rows of a seed: "final", and "snapshot" where the method drops its constraints."""

    def run(self, data: Path | None, seeds: Sequence[int]) -> list[Row]:
        """Train these seeds at once; the rows in any order, with ``seed`` and ``stage``.

        ``data`` is where data sets are kept.
        """


def no_claims(rows: Sequence[Row]) -> list[Claim]:
    """Nothing, for a study of which the paper claims nothing that could be judged."""
    return []


def no_facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Nothing, for a study whose claims say everything."""
    return []


@dataclass(frozen=True)
class Study:
    """A list of cells, and what their rows say.

    Attributes:
        cells: the work, by size.
        figures: for each figure the name of its file, without an ending, and the function that draws it. A study has
            at least one.
        claims: the paper's claims, judged by the rows.
        facts: other measurements, as pairs of a description and its figures.
        shares: other studies that have some of the same cells; their stored rows are taken over.
    """

    cells: Callable[[Size], Sequence[Any]]
    figures: Mapping[str, Draw]
    claims: Callable[[Sequence[Row]], list[Claim]] = no_claims
    facts: Callable[[Sequence[Row]], list[tuple[str, str]]] = no_facts
    shares: tuple[str, ...] = ()


def check_figures(name: str, study: Study) -> None:
    """Raise an error where a study has no figures, so that this is found before anything is trained."""
    broken = [figure for figure, draw in study.figures.items() if not callable(draw)]
    if broken or not study.figures:
        got = f"no function for {', '.join(broken)}" if broken else "none"
        raise ValueError(
            f"The study {name!r} must have figures: at least one name with a function that draws rows. Got {got}. "
            "Add them to the 'figures' of its STUDY."
        )


def describe_divergence(rows: Sequence[Row]) -> str | None:
    """A remark on models that stopped at a loss that was not finite, if there are any. They count in all numbers."""
    statuses = [status for row in rows for status in row.get("status", [])]
    count = statuses.count("non-finite")
    return f"{count} of {len(statuses)} models stopped at a loss that was not finite." if count else None
