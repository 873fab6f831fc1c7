"""Labels of methods in the paper's tables and figures, where linear scalarization is a grid search."""

from __future__ import annotations

from paretomtl.methods.registry import REGISTRY

LABELS = {
    **{name: entry.label for name, entry in REGISTRY.items()},
    "linear": "grid search",
    "random-search": "random search",
    "single-task": "single task",
}


def label_of(method: str) -> str:
    """The label of a method in a legend: that of the tables, with a capital."""
    name = LABELS.get(method, method)
    return name[:1].upper() + name[1:]
