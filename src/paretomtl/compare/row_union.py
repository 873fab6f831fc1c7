"""The union of the fronts of all rows, on one split, and what each row is worth against it: regret, R2, IGD+.

They depend on all rows, which may become more, so they are computed from stored losses whenever a table is made.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from paretomtl.compare.row_store import Row
from paretomtl.compare.rows import is_finite, is_ideal, points_tensor
from paretomtl.front.union_indicators import R2_WEIGHTS, UnionDistance, UnionRegret, r2_weights
from paretomtl.front.utilities import UTILITIES, draw_utilities


class RowUnion:
    """All fronts of a comparison together; separate networks are none.

    Args:
        rows: by split, all ranked by the same one.
        split: the split to measure on.
    """

    def __init__(self, rows: Sequence[Row], split: str) -> None:
        fronts = [row for row in rows if not is_ideal(row)]
        self._split = split
        self._regret: UnionRegret | None = None
        self._distance: UnionDistance | None = None
        known = [row["reference"] for row in fronts if row["reference"] is not None]
        within = torch.tensor(known, dtype=torch.float64).amax(0) if known else None
        pairs = [_pair(row, split) for row in fronts]
        if any(len(measured) for _, measured in pairs):
            self._regret = UnionRegret(pairs, draw_utilities(UTILITIES, pairs[0][0].shape[1]), within)
        tables = [points_tensor(row, split) for row in fronts]
        if any(map(len, tables)):
            self._weights = r2_weights(R2_WEIGHTS, tables[0].shape[1])
            self._distance = UnionDistance(tables, within)

    def regrets(self, rows: Sequence[Row]) -> tuple[float, ...]:
        """The regret of each front: chosen on the ranking split; infinite without finite losses, empty if unknown."""
        return () if self._regret is None else tuple(self._regret.of(*_pair(row, self._split)) for row in rows)

    def r2_values(self, rows: Sequence[Row]) -> tuple[float, ...]:
        """R2 of each front; infinite without finite losses, empty if unknown."""
        if self._distance is None:
            return ()
        return tuple(self._distance.r2(points_tensor(row, self._split), self._weights) for row in rows)

    def igd_plus_values(self, rows: Sequence[Row]) -> tuple[float, ...]:
        """IGD+ of each front in the scale of the union; infinite without finite losses, empty if unknown."""
        if self._distance is None:
            return ()
        return tuple(self._distance.igd_plus(points_tensor(row, self._split)) for row in rows)


def _pair(row: Row, split: str) -> tuple[Tensor, Tensor]:
    """The losses of a row on its ranking split and on this one, of the models that are finite on both."""
    first, second = row["losses"][row["split"]], row["losses"][split]
    known = [(a, b) for a, b in zip(first, second, strict=True) if is_finite(a) and is_finite(b)]
    tables = [torch.tensor([pair[i] for pair in known], dtype=torch.float64) for i in (0, 1)]
    return tables[0].reshape(-1, len(first[0])), tables[1].reshape(-1, len(first[0]))
