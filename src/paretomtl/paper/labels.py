"""Labels of methods in the paper's tables and figures, where linear scalarization is a grid search."""

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
    """The label of a method in a legend: that of the tables, with a capital."""
    name = LABELS.get(method, method)
    return name[:1].upper() + name[1:]
