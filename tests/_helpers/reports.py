"""A report that tests make up."""

from __future__ import annotations

import math
from typing import Any

import torch

from paretomtl.training import Report


def report(**fields: Any) -> Report:
    values: dict[str, Any] = {
        "epoch": 3,
        "epochs": 10,
        "step": 90,
        "seconds": 6.0,
        "tasks": ["a", "b"],
        "subproblems": [0, 1],
        "losses": torch.tensor([[1.0, 2.0], [3.0, math.nan]]),
        "weights": torch.ones(2, 2),
        "val_losses": None,
        "val_metrics": {},
        "hypervolume": 1.25,
        "reference": [4.0, 4.0],
        "frozen": [1],
    }
    return Report(**{**values, **fields})
