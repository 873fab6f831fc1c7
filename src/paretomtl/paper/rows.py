"""Stored rows: the fields of a trained front, and the selection of rows by their fields."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from paretomtl._support.significance import rank_correlation
from paretomtl.compare.row_indicators import spread_within
from paretomtl.compare.row_store import Row, numbers
from paretomtl.front import Front


def solution_fields(front: Front, reference: Sequence[float]) -> Row:
    """Points, metrics, regions and weights of a front with a test split, and how it was trained.

    Hypervolumes are left to :func:`fill_indicators`: machines that train models need not have moocore.
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


def pick(rows: Sequence[Row], **fields: Any) -> list[Row]:
    """The rows with these fields, by default final rows without a note; no rows are an error."""
    wanted = {"stage": "final", "note": "", **fields}
    picked = [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]
    if not picked:
        description = ", ".join(f"{name} {value!r}" for name, value in fields.items())
        raise ValueError(f"'rows' must hold some of {description}. Got none.")
    return picked


def pick_by_seed(rows: Sequence[Row], **fields: Any) -> list[Row]:
    """Like :func:`pick`, sorted by seed; an empty list if there are no such rows."""
    try:
        return sorted(pick(rows, **fields), key=lambda row: int(row["seed"]))
    except ValueError:
        return []


def has(rows: Sequence[Row], **fields: Any) -> bool:
    """Whether there are rows with these fields."""
    return any(all(row.get(name) == value for name, value in fields.items()) for row in rows)


def column(rows: Sequence[Row], value: str | Callable[[Row], float]) -> list[float]:
    """One number from each row."""
    return [float(row[value] if isinstance(value, str) else value(row)) for row in rows]


def favouring(row: Row, task: int) -> int:
    """The solution whose preference favours a task most."""
    sign = 1.0 if row["reading"] == "direction" else -1.0  # a small direction or a large importance favours the task
    return min(range(len(row["vectors"])), key=lambda k: sign * row["vectors"][k][task])


def direction_rank_correlation(row: Row, losses: str = "losses") -> float:
    """The rank correlation of the directions of preference vectors and loss vectors, for two tasks."""
    pairs = [
        (math.atan2(u[1], u[0]), math.atan2(point[1], point[0]))
        for u, point in zip(row["vectors"], row[losses], strict=True)
        if None not in point
    ]
    return rank_correlation(*zip(*pairs, strict=True)) if len(pairs) > 1 else math.nan
