"""Rows of a comparison: losses and metrics by split, and the ranking split."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from paretomtl._support.splits import ranking_split
from paretomtl._support.tensor_json import to_numbers
from paretomtl.compare.row_store import Row, numbers
from paretomtl.core import nondominated
from paretomtl.front import Front
from paretomtl.front.indicators import spread
from paretomtl.methods.registry import is_separate

_NAMED = 3  # rows that an error names


def row_of(front: Front) -> Row:
    """The row of a front; "split" is the ranking split, and regions are those of training."""
    return {
        "problem": front.problem,
        "method": front.method,
        "preferences": len(front),
        "tasks": list(front.tasks),
        "reading": front.reading,
        "epochs": len(front.history["losses"]),
        "seed": front.seed,
        "split": front.ranking_split,
        "reference": None if front.reference is None else list(front.reference),
        "spread": {split: front.spread(split) for split in front.losses},
        "nondominated": {split: int(front.nondominated(split).sum()) for split in front.losses},
        "in_region": front.region_hits("train") if front.reading == "direction" else None,
        "angles": numbers(front.angle("train"), 3) if front.reading == "direction" else None,
        "vectors": numbers(front.preferences),
        "losses": {split: to_numbers(losses) for split, losses in front.losses.items()},
        "metrics": {
            split: {name: to_numbers(values) for name, values in metrics.items()}
            for split, metrics in front.metrics.items()
        },
        "status": list(front.status),
        "strategy": front.strategy,
        "seconds": round(front.seconds, 3),
    }


def read_row(row: Row) -> Row:
    """Convert a stored row to one by split; rows of earlier versions have one split, and maybe training losses."""
    if isinstance(row["losses"], dict):
        return row
    split = row.get("split", "train")
    losses = {split: row["losses"], **({"train": row["train_losses"]} if "train_losses" in row else {})}
    made = {**row, "split": ranking_split(losses), "losses": losses, "metrics": {split: row.get("metrics", {})}}
    made.pop("train_losses", None)
    points = {name: points_tensor(made, name) for name in losses}
    return {
        **made,
        "spread": {name: spread(part) for name, part in points.items()},
        "nondominated": {name: int(nondominated(part).sum()) for name, part in points.items()},
    }


def unique_rows(rows: Sequence[Row]) -> list[Row]:
    """The rows by split, the first of each method and seed: processes that share a folder may train the same run."""
    found: dict[tuple[str, int], Row] = {}
    for row in rows:
        found.setdefault((row["method"], row["seed"]), row)
    return [read_row(row) for row in found.values()]


def is_finite(point: Sequence[float | None]) -> bool:
    """Whether all losses of a stored model are finite."""
    return all(value is not None and math.isfinite(value) for value in point)


def finite_points(losses: Sequence[list[float]]) -> list[list[float]]:
    """The stored losses of the models whose losses are all finite."""
    return [point for point in losses if is_finite(point)]


def is_ideal(row: Row) -> bool:
    """Whether a row holds separate networks, one for each task, which are not a front."""
    return is_separate(row["method"])


def points_tensor(row: Row, split: str) -> Tensor:
    """The finite points of a row on a split, in float64, ``[n, m]``."""
    return torch.tensor(finite_points(row["losses"][split]), dtype=torch.float64).reshape(
        -1, len(row["losses"][split][0])
    )


def accuracies(row: Row, split: str = "metrics") -> list[list[float]]:
    """The accuracy of each model in each task."""
    columns = [row[split][f"{task} accuracy"] for task in row["tasks"]]
    return [[math.nan if value is None else value for value in point] for point in zip(*columns, strict=True)]


def best_losses(row: Row, split: str) -> list[float]:
    """For each task, the loss on a split of the model that is best on the ranking split; else empty."""
    pairs = list(zip(row["losses"][row["split"]], row["losses"][split], strict=True))
    known = [pair for pair in pairs if is_finite(pair[0]) and is_finite(pair[1])]
    return [min(known, key=lambda pair: pair[0][i])[1][i] for i in range(len(row["losses"][split][0]))] if known else []


def rows_split(rows: Sequence[Row]) -> str:
    """The ranking split of these rows: validation if they have it, else training. All must have the same one."""
    without = [row for row in rows if row["split"] != "val"]
    if 0 < len(without) < len(rows):
        raise ValueError(
            f"'rows' must all be ranked by the same split. These rows have no validation losses: {_named(without)}. "
            "The others have: train these again."
        )
    return "train" if without else "val"


def check_ranked(rows: Sequence[Row], ranking: str, place: str) -> None:
    """Reject stored rows whose ranking split is not that of new rows."""
    others = [row for row in rows if row["split"] != ranking]
    if not others:
        return
    lack = "have no validation losses" if ranking == "val" else "are ranked on validation, which this problem lacks"
    raise ValueError(
        f"'out' must hold rows that are ranked by losses on '{ranking}'. {place}: these rows {lack}: {_named(others)}. "
        "Rows of earlier versions have test and training losses alone. Delete that file, or take another folder, and "
        "compare again."
    )


def _named(rows: Sequence[Row]) -> str:
    names = [f"{row['method']} with seed {row['seed']}" for row in rows]
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if names[_NAMED:] else "")
