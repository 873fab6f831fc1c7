"""A study: cells that make rows, claims that the rows judge, and figures of the rows."""

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
"""How much of a study to run: all of it, minutes on two cores, or a smoke test of seconds."""

Draw: TypeAlias = "Callable[[Sequence[Row]], Figure | None]"
"""Draws a figure from rows; returns None if there is nothing to draw."""


class Cell(Protocol):
    """A unit of work: one configuration, trained for several seeds at once.

    Its name identifies a cell. Its settings contain everything that determines its rows, so that stored rows with other
    settings are recognised.
    """

    @property
    def name(self) -> str:
        """The name, unique in the study."""

    @property
    def settings(self) -> str:
        """Everything that determines its rows, as text."""

    @property
    def seeds(self) -> int:
        """The number of seeds, from 0 on. Each makes a row for each of the ``stages``."""

    @property
    def stages(self) -> tuple[str, ...]:
        """The rows of a seed: "final", and "snapshot" if the method drops its constraints."""

    def run(self, data: Path | None, seeds: Sequence[int]) -> list[Row]:
        """Train these seeds at once; return the rows in any order, with ``seed`` and ``stage``.

        ``data`` is the folder of data sets.
        """


def no_claims(rows: Sequence[Row]) -> list[Claim]:
    """No claims, for a study about which the paper claims nothing that could be judged."""
    return []


def no_facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """No facts, for a study whose claims say everything."""
    return []


@dataclass(frozen=True)
class Study:
    """A study: its cells, and the figures, claims and facts from their rows.

    Attributes:
        cells: the cells, by size.
        figures: for each figure the name of its file, without a suffix, and the function that draws it. A study has
            at least one.
        claims: the paper's claims, judged by the rows.
        facts: other measurements, as pairs of a description and its numbers.
        shares: other studies that have some of the same cells; their stored rows are reused.
        asks: the title of its claims.
    """

    cells: Callable[[Size], Sequence[Any]]
    figures: Mapping[str, Draw]
    claims: Callable[[Sequence[Row]], list[Claim]] = no_claims
    facts: Callable[[Sequence[Row]], list[tuple[str, str]]] = no_facts
    shares: tuple[str, ...] = ()
    asks: str = "What the paper claims, and what was measured"


def check_figures(name: str, study: Study) -> None:
    """Raise an error if a study has no figures, before anything is trained."""
    broken = [figure for figure, draw in study.figures.items() if not callable(draw)]
    if broken or not study.figures:
        got = f"no function for {', '.join(broken)}" if broken else "none"
        raise ValueError(
            f"The study {name!r} must have figures: at least one name with a function that draws rows. Got {got}. "
            "Add them to the 'figures' of its STUDY."
        )


def describe_divergence(rows: Sequence[Row]) -> str | None:
    """A remark on models that stopped at a loss that was not finite, if any. They count in all numbers."""
    statuses = [status for row in rows for status in row.get("status", [])]
    count = statuses.count("non-finite")
    return f"{count} of {len(statuses)} models stopped at a loss that was not finite." if count else None
