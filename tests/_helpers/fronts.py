"""Fronts that tests make up, and how two are compared."""

from __future__ import annotations

from typing import Any

import torch

import paretomtl as pm
from paretomtl.front.models import StackedModels


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
        models=StackedModels({"x": torch.zeros(count, 1)}),
        history={},
        seed=0,
        seconds=0.0,
        **fields,
    )


def assert_equal(one: pm.Front, other: pm.Front) -> None:
    """Compare two fronts bit by bit."""
    assert one.complete
    assert other.complete
    for name, tensor in one.models.stacked().items():
        assert torch.equal(tensor, other.models.stacked()[name]), name
    for name, tensor in one.history.items():
        assert torch.equal(tensor, other.history[name]), name
    for split, losses in one.losses.items():
        assert torch.equal(losses, other.losses[split]), split
    assert (one.status, one.since, one.epochs) == (other.status, other.since, other.epochs)
    assert (one.snapshot is None) == (other.snapshot is None)
    if one.snapshot is not None and other.snapshot is not None:
        assert torch.equal(one.snapshot.losses["train"], other.snapshot.losses["train"])


def assert_same(one: pm.Front, other: pm.Front) -> None:
    """Compare two fronts bit by bit, including how their numbers are read."""
    assert_equal(one, other)
    assert (one.reference, one.ideal, one.subproblems) == (other.reference, other.ideal, other.subproblems)
    assert torch.equal(one.preferences, other.preferences)
    assert (one.scale is None) == (other.scale is None)
    if one.scale is not None and other.scale is not None:
        assert torch.equal(one.scale, other.scale)
    for name, tensor in one.measured.items():
        assert torch.equal(tensor, other.measured[name])
