"""Parts of the settings of a cell: methods as in the paper, optimizers as text, and rounded preference vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import nn

from paretomtl._support.factories import make_scheduler
from paretomtl.methods import Linear, Method, ParetoMTL, resolve_method
from paretomtl.problems import Recipe

GRID_SEARCH = Linear(layout="corners")
"""The paper's grid search (section 3.2): evenly spaced weights, also those that leave a task out."""

PAPER_FORM = ParetoMTL(return_share=None)
"""Pareto MTL as in the paper (algorithm 1): phases only move forward."""

_SHAPE = 200  # steps that are enough to show the shape of a schedule


def study_method(method: str | Method, configured: Mapping[str, Method] | None = None) -> Method:
    """The method of a cell: as a recipe configures it, or else as in the paper.

    Args:
        method: a name, or a configured method, which is returned unchanged.
        configured: the methods of the recipe by name.
    """
    known = {"linear": GRID_SEARCH, "pareto-mtl": PAPER_FORM, **(configured or {})}
    return resolve_method(known.get(method, method) if isinstance(method, str) else method)


def describe_optimizer(recipe: Recipe, epochs: int) -> str:
    """The name and options of an optimizer, and its learning rates over the epochs."""
    weight = nn.Parameter(torch.zeros(1))
    assert recipe.optimizer is not None
    optimizer = recipe.optimizer([("weight", weight)])
    options = {name: optimizer.defaults.get(name) for name in ("momentum", "betas", "weight_decay", "nesterov")}
    words = [type(optimizer).__name__, *(f"{name} {value}" for name, value in options.items() if value)]
    total = epochs if recipe.schedule == "epoch" else _SHAPE
    rates = []
    scheduler = None if recipe.scheduler is None else make_scheduler(recipe.scheduler, optimizer, total)
    for _ in range(total):
        rates.append(optimizer.param_groups[0]["lr"])
        if scheduler is not None:
            optimizer.step()
            scheduler.step()
    some = [rates[round(share * (total - 1))] for share in (0.0, 0.05, 0.25, 0.5, 0.75, 1.0)]
    return f"{', '.join(words)}, rates by {recipe.schedule} {' '.join(f'{rate:.3g}' for rate in some)}"


def round_vectors(vectors: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], ...]:
    """Preference vectors in the form of a cell: tuples of numbers with six digits."""
    return tuple(tuple(round(value, 6) for value in vector) for vector in vectors)
