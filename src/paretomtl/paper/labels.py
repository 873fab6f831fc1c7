"""What the paper's tables and figures call the methods: there, linear scalarization is a grid search."""

from __future__ import annotations

LABELS = {
    "pareto-mtl": "Pareto MTL",
    "linear": "grid search",
    "mgda": "MOO-MTL",
    "random-search": "random search",
    "gradnorm": "GradNorm",
    "uncertainty": "Uncertainty",
    "single-task": "single task",
}


def label_of(method: str) -> str:
    """What a legend calls a method: as the tables do, but with a capital."""
    name = LABELS.get(method, method)
    return name[:1].upper() + name[1:]
