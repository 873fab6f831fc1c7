"""The hypervolume where nobody asked for it: in tables and on pages, which must not wait for minutes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from paretomtl.core import nondominated

if TYPE_CHECKING:
    from paretomtl.front import Front

_MOST_WORK = math.log(1e7)  # of a hypervolume that nobody asked for: seconds


def quick_hypervolume(front: Front, reference: Sequence[float] | None = None, split: str | None = None) -> float | None:
    """The hypervolume for a table or a page; None where there is none to be had, or not within seconds.

    The work grows as K to the power of m/2 - 1: ten tasks and a hundred solutions take a minute, twelve take for ever.
    """
    losses = front._finite(split)
    work = math.log(max(1, int(nondominated(losses).sum()))) * (len(front.tasks) / 2 - 1)
    try:
        return None if work > _MOST_WORK else front.hypervolume(reference, split)
    except (ValueError, ModuleNotFoundError):
        return None
