"""What methods with fixed weights share: rows are importances, and the weights of every step."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor

from paretomtl._support.argument_checks import quote
from paretomtl.methods._scaled_method import ScaledMethod
from paretomtl.methods.base import Reading
from paretomtl.methods.inputs import SafeStep, State


class FixedWeights(ScaledMethod):
    """Rows are importances, scaled to sum to m: the weights of every step. Subclasses say which rows a number means."""

    needs_gramian: ClassVar[bool] = False
    reading: ClassVar[Reading] = "importance"

    def __post_init__(self) -> None:
        self._check_scale()

    def _init(self, preferences: Tensor) -> State:
        return {"weights": importances(preferences)}

    def _weigh(self, step: SafeStep, state: State) -> tuple[Tensor, State]:
        return state["weights"], state


def importances(rows: Tensor, name: str = "preferences") -> Tensor:
    """Check rows of importances ``[K, m]`` and scale them to sum to m; ``name`` is the argument in errors."""
    rows = torch.as_tensor(rows, dtype=torch.float64).detach()
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(f"'{name}' must have shape [K, m]. Got {list(rows.shape)} instead.")
    for k, row in enumerate(rows.tolist()):
        if not all(math.isfinite(value) and value >= 0.0 for value in row) or not any(row):
            raise ValueError(
                f"'{name}' must be finite, non-negative and not all zero. Got {quote(row)} in row {k} instead."
            )
    return rows * (rows.shape[1] / rows.sum(-1, keepdim=True))
