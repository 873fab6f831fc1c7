"""What a study is: cells of work that make rows, and claims that are judged by the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from paretomtl.compare.row_store import Row

Size: TypeAlias = Literal["full", "quick", "smoke"]
"""How much of a study to run: all of it, minutes on two cores, or seconds that only show that everything works."""


class Cell(Protocol):
    """A piece of work: one configuration, trained for several seeds at once.

    A cell is known by its name, and its settings say all that decides its rows, so that stored rows of other settings
    are found out.
    """

    @property
    def name(self) -> str:
        """Unlike that of every other cell of the study."""

    @property
    def settings(self) -> str:
        """Everything that decides what its rows are, in words."""

    @property
    def seeds(self) -> int:
        """How many, from 0 on: as many rows, for each of the ``stages``."""

    @property
    def stages(self) -> tuple[str, ...]:
        """What each seed leaves: "final", and "snapshot" where the method drops its constraints."""

    def run(self, data: Path | None, seeds: Sequence[int]) -> list[Row]:
        """Train these seeds at once; the rows in any order, with ``seed`` and ``stage``.

        ``data`` is where data sets are kept.
        """


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, what was measured, and the verdict."""

    where: str
    claim: str
    measured: str
    verdict: str


@dataclass(frozen=True)
class Study:
    """A list of cells, and what their rows say.

    Attributes:
        title: one line on what the study is.
        cells: the work, by size.
        claims: the paper's claims, judged by the rows.
        facts: what else was measured, as pairs of words and figures.
        sizes: those that it has.
        shares: other studies that have some of the same cells; their stored rows are taken over.
    """

    title: str
    cells: Callable[[Size], Sequence[Any]]
    claims: Callable[[Sequence[Row]], list[Claim]]
    facts: Callable[[Sequence[Row]], list[tuple[str, str]]]
    sizes: tuple[Size, ...] = ("full", "quick", "smoke")
    shares: tuple[str, ...] = ()


def judge(holds: bool, partly: bool = False) -> str:
    """The verdict on a claim."""
    return "reproduced" if holds else "partly" if partly else "not reproduced"


def measured_claim(
    where: str, claim: str, what: str, said: Sequence[str], verdict: str, *, whole: bool = True
) -> Claim:
    """A claim with what was measured, part by part; without any part it is not judged, and without some only so far."""
    if not said:
        return Claim(where, claim, "no rows are stored for it yet", "not measured")
    return Claim(where, claim, f"{what}: {'; '.join(said)}", verdict if whole else f"so far {verdict}")


def diverged(rows: Sequence[Row]) -> str | None:
    """A remark on models that stopped at a loss that was not finite, if there are any; they are in all numbers."""
    words = [word for row in rows for word in row.get("status", [])]
    count = words.count("non-finite")
    return f"{count} of {len(words)} models stopped at a loss that was not finite." if count else None
