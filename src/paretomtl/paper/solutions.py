"""The solutions of a trained front as fields of a row."""

from __future__ import annotations

from collections.abc import Sequence

from paretomtl.compare.indicators import spread_within
from paretomtl.compare.row_store import Row, numbers
from paretomtl.front import Front


def solutions(front: Front, reference: Sequence[float]) -> Row:
    """Points, metrics, regions and weights of a front with a test split, and how it was trained.

    Hypervolumes are left to :func:`fill_indicators`: moocore need not be there where models are trained.
    """
    directed = front.reading == "direction"
    return {
        "preferences": len(front),
        "seed": front.seed,
        "tasks": list(front.tasks),
        "reading": front.reading,
        "hypervolume": None,
        "reference": list(reference),
        "spread": round(spread_within(front.losses["test"].tolist(), reference), 5),
        "nondominated": int(front.nondominated("test").sum()),
        "in_region": front.region_hits("train") if directed else None,
        "in_region_test": front.region_hits("test") if directed else None,
        "vectors": numbers(front.preferences),
        "losses": numbers(front.losses["test"]),
        "train_losses": numbers(front.losses["train"]),
        "metrics": {name: numbers(values) for name, values in front.metrics["test"].items()},
        "train_metrics": {name: numbers(values) for name, values in front.metrics["train"].items()},
        "weights": numbers(front.history["weights"], 4),
        "kept_epochs": list(front.epochs),
        "status": list(front.status),
        "strategy": front.strategy,
        "seconds": round(front.seconds, 2),
    }
