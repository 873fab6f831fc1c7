"""Names of methods in the paper's tables and figures, where they differ from those of the library.

In the paper, linear scalarization is a grid search. Tables and sentences write names that are no proper names in lower
case.
"""

from __future__ import annotations

from paretomtl.methods.registry import REGISTRY

LABELS = {
    **{name: entry.label for name, entry in REGISTRY.items()},
    "linear": "grid search",
    "random-search": "random search",
    "single-task": "single task",
}


def label_of(method: str) -> str:
    """What a legend calls a method: as the tables do, but with a capital."""
    name = LABELS.get(method, method)
    return name[:1].upper() + name[1:]
