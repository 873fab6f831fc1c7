"""Fronts that tests make up."""

from __future__ import annotations

from typing import Any

import torch

import paretomtl as pm


def front_of(losses: Any, **fields: Any) -> pm.Front:
    """A front with these losses, and nothing trained."""
    table = torch.tensor(losses, dtype=torch.float64)
    count, tasks = table.shape
    return pm.Front(
        problem="made up",
        method=fields.pop("method", "pareto-mtl"),
        tasks=tuple("abcdefgh"[:tasks]),
        reading=fields.pop("reading", "direction"),
        preferences=pm.preferences.even(count, tasks) if count > 1 else torch.ones(1, tasks).double() / tasks**0.5,
        subproblems=tuple(range(count)),
        losses={"train": table, **fields.pop("splits", {})},
        scale=None,
        status=["feasible"] * count,
        since=None,
        parameters={"x": torch.zeros(count, 1)},
        history={},
        seed=0,
        seconds=0.0,
        **fields,
    )
