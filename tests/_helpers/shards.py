"""Runs in shards that tests train."""

from __future__ import annotations

from typing import Any

import paretomtl as pm
from _helpers.networks import MLP, classes, fit, problem

VAL = classes(50, seed=1)


def train(**options: Any) -> pm.Front:
    options = {"epochs": 4, "strategy": "sequential", "checkpoint_seconds": 0.0, **options}
    made = options.pop("problem", None) or problem(MLP, val=VAL)
    return fit(made, options.pop("method", "pareto-mtl"), options.pop("preferences", 5), **options)
