"""Finding the solution that somebody likes best by questions, each a comparison of two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from paretomtl._selection import Table


@dataclass(frozen=True)
class Search:
    """What is left to choose from, and so what to ask next: a pure function of the front and the answers so far.

    Two tasks on a convex front, in the order of the first loss: whoever weighs the losses has a liking that rises along
    the front up to the best solution, and falls after it. So the two in the middle are compared, and the half on the
    other side of the preferred one is left out: at most ⌈log₂ K⌉ questions. On any other front, whoever weighs the
    losses may like both ends better than the middle, so that no solution can be left out unseen: the preferred one
    stays and meets the next, K − 1 questions, and whoever answers consistently gets what they like best.

    Attributes:
        rows: of the table, those that are left; with two tasks along the front.
        halving: whether an answer leaves out a half of them, or one.
    """

    rows: tuple[int, ...]
    halving: bool

    @property
    def pair(self) -> tuple[int, int] | None:
        """The two rows to compare next; None when the choice is made, or there is none."""
        if len(self.rows) < 2:
            return None
        first = (len(self.rows) - 1) // 2 if self.halving else 0
        return self.rows[first], self.rows[first + 1]

    @property
    def most(self) -> int:
        """How many questions are left at most."""
        count = len(self.rows)
        return 0 if count < 2 else math.ceil(math.log2(count)) if self.halving else count - 1

    def after(self, *, first: bool) -> Search:
        """What is left when the first of the pair is preferred, or the second."""
        if self.halving:
            cut = (len(self.rows) + 1) // 2
            return Search(self.rows[:cut] if first else self.rows[cut:], True)
        return Search((self.rows[0 if first else 1], *self.rows[2:]), False)


def begin(table: Table) -> Search:
    """All solutions with finite losses that no other one dominates; of those with equal losses, the first."""
    found: dict[tuple[float, ...], int] = {}
    for row in table.candidates():
        found.setdefault(tuple(table.losses[row].tolist()), row)
    points = sorted(found)
    return Search(tuple(found[point] for point in points), len(table.tasks) == 2 and _convex(points))


def _convex(points: Sequence[Sequence[float]]) -> bool:
    """Whether a line through points of a plane, from the left to the right, turns to the left only, or not at all."""
    return all(
        (b[0] - a[0]) * (c[1] - b[1]) - (b[1] - a[1]) * (c[0] - b[0]) >= 0
        for a, b, c in zip(points, points[1:], points[2:], strict=False)
    )


def difference(table: Table, one: int, other: int) -> str:
    """What the row ``other`` gains and gives up against the row ``one``, in words."""
    gains: list[str] = []
    losses: list[str] = []
    for name in (*table.tasks, *table.metrics):
        values, higher = table.column(name)
        change = float(values[other]) - float(values[one])
        if change == 0 or not math.isfinite(change):
            continue
        better = (change > 0) == higher
        (gains if better else losses).append(f"{abs(change):.3g} in {name}{_share(change, values, one)}")
    if not gains and not losses:
        return "makes no difference"
    said = [f"gains {', '.join(gains)}" if gains else "gains nothing", f"gives up {', '.join(losses)}"]
    return "; ".join(said if losses else said[:1])


def _share(change: float, values: Tensor, one: int) -> str:
    """A change in percent of what it is from, where that says anything."""
    before = abs(float(values[one]))
    return f" ({100 * change / before:+.0f} %)" if before > 0 and abs(change) < 10 * before else ""
