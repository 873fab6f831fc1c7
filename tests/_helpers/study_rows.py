"""Invented rows of studies."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch

import paretomtl as pm
from paretomtl.compare import Row
from paretomtl.paper import STUDIES
from paretomtl.paper.claims import Claim
from paretomtl.paper.images.cells import METHODS, PAPER, SETS, STRONG
from paretomtl.paper.real_data.cells import SHARED

GOOD = ([[0.3, 0.1], [0.2, 0.2], [0.1, 0.3]], [[0.90, 0.95], [0.92, 0.92], [0.95, 0.90]])
BAD = ([[0.5, 0.5], [0.6, 0.6]], [[0.80, 0.80], [0.81, 0.79]])
ALONE = ([[0.2, 9.0], [9.0, 0.2]], [[0.94, 0.1], [0.1, 0.94]])


def image_row(method: str, losses: Any, accuracies: Any, seed: int = 0, **fields: Any) -> Row:
    """A row of an image study."""
    count = len(losses)
    directed = method == "pareto-mtl"
    vectors = pm.preferences.even(count, 2).tolist() if directed else [[0.5, 0.5]] * count
    if method == "single-task":
        vectors = torch.eye(2).tolist()
    return {
        "part": PAPER,
        "stage": "final",
        "note": "",
        "problem": SETS[0],
        "method": method,
        "seed": seed,
        "tasks": ["a", "b"],
        "reading": "direction" if directed else "importance",
        "preferences": count,
        "vectors": vectors,
        "losses": losses,
        "train_losses": losses,
        "metrics": {"a accuracy": [p[0] for p in accuracies], "b accuracy": [p[1] for p in accuracies]},
        "train_metrics": {"a accuracy": [p[0] for p in accuracies], "b accuracy": [p[1] for p in accuracies]},
        "hypervolume": 3.0 - sum(losses[0]) - 0.001 * seed,
        "error_hypervolume": 0.8,
        "spread": 0.5 if directed else 0.1,
        "in_region": count if directed else None,
        "in_region_test": count - 1 if directed else None,
        "seconds": 10.0,
        "weights": [[[0.5, 0.5]] * count],
        **fields,
    }


def image_rows(pareto: Any, other: Any, alone: Any) -> list[Row]:
    """Rows of all methods, sets and recipes: losses and accuracies of Pareto MTL, of others, of separate networks."""
    rows = []
    for problem in SETS:
        for part in (PAPER, STRONG):
            for method in METHODS:
                chosen = pareto if method == "pareto-mtl" else alone if method == "single-task" else other
                rows += [image_row(method, *chosen, seed, problem=problem, part=part) for seed in range(3)]
    return rows


def verdicts(claims: list[Claim]) -> list[str]:
    return [claim.verdict for claim in claims]


def fill_cells(name: str, trained: list[Row]) -> list[Row]:
    """Rows of all cells of a study with made-up numbers, with the fields of some trained rows."""
    numbers = random.Random(name)
    if name == "many-tasks":
        return [
            {**row, "cell": cell.name, "tasks": cell.tasks, "preferences": cell.count, "seed": seed,
             "igd_plus": numbers.uniform(0.01, 0.2), "in_region": numbers.randrange(cell.count)}
            for cell in STUDIES[name].cells("smoke")
            for row in trained
            for seed in range(2)
        ]  # fmt: skip
    return [
        _invent({**row, "seed": seed}, cell, numbers)
        for cell in STUDIES[name].cells("smoke")
        for row in trained[:1]
        for seed in range(2)
    ]


def _invent(row: Row, cell: Any, numbers: random.Random) -> Row:
    tasks = len(row["tasks"])
    count = len(cell.preferences) if isinstance(cell.preferences, tuple) else cell.preferences or tasks

    def some(width: int) -> list[list[float]]:
        return [[numbers.uniform(0.2, 0.6) for _ in range(width)] for _ in range(count)]

    directed = cell.method == "pareto-mtl"
    return {
        **row,
        "cell": cell.name,
        "part": cell.part,
        "method": cell.method,
        "note": cell.note,
        "preferences": count,
        "reading": "direction" if directed else "importance",
        "hypervolume": numbers.uniform(0.1, 0.2),
        "vectors": [list(v) for v in cell.preferences] if isinstance(cell.preferences, tuple) else some(tasks),
        "losses": some(tasks),
        "metrics": {metric: [line[0] for line in some(1)] for metric in row["metrics"]},
    }


def task_row(method: str, losses: list[list[float]], vectors: list[list[float]] | None = None) -> Row:
    """A row of three tasks."""
    return {
        "part": SHARED,
        "stage": "final",
        "problem": "census",
        "method": method,
        "note": "",
        "preferences": len(losses),
        "seed": 0,
        "tasks": ["income", "education", "marital"],
        "reading": "direction" if method == "pareto-mtl" else "importance",
        "hypervolume": 0.1,
        "reference": [0.7, 0.7, 0.7],
        "vectors": vectors or [[1.0, 0.0, 0.0]] * len(losses),
        "losses": losses,
        "metrics": {},
    }


def without_solutions(row: Row, gone: Callable[[int], bool]) -> Row:
    """A row without the solutions that are gone, and without indicators."""
    if "metrics" not in row:
        return {**row, "igd_plus": None} if gone(0) else row

    def blank(points: list[Any]) -> list[Any]:
        return [[None] * len(point) if gone(k) else point for k, point in enumerate(points)]

    broken = {**row, "hypervolume": None, "losses": blank(row["losses"])}
    for field in ("metrics", "train_metrics"):
        metrics = row.get(field, {})
        broken[field] = {
            name: [None if gone(k) else value for k, value in enumerate(values)] for name, values in metrics.items()
        }
    return {
        **broken,
        "train_losses": blank(row.get("train_losses", [])),
        "weights": [blank(epoch) for epoch in row.get("weights", [])],
    }


def plane_row(method: str, losses: list[list[float]], vectors: list[list[float]] | None = None) -> Row:
    """A row with accuracies of one minus the losses."""
    columns = [[max(0.1, 1 - point[task]) for point in losses] for task in range(2)]
    return {
        "part": "paper's settings",
        "stage": "final",
        "problem": "multi-mnist",
        "method": method,
        "note": "",
        "preferences": len(losses),
        "seed": 0,
        "tasks": ["top-left", "bottom-right"],
        "reading": "direction" if method == "pareto-mtl" else "importance",
        "reference": [2.0, 2.0],
        "vectors": vectors or [[1.0, 0.0], [0.7, 0.7], [0.0, 1.0]],
        "losses": losses,
        "metrics": {"top-left accuracy": columns[0], "bottom-right accuracy": columns[1]},
    }


def scaled_loss_rows(note: str, volume: float, hits: int) -> list[Row]:
    """Two vectors and two tasks; both losses lie in the region of the first vector."""
    losses = [[0.9, 0.1], [0.8, 0.2]]
    fields = {"part": SHARED, "stage": "final", "method": "pareto-mtl", "note": note, "problem": "localization"}
    more = {
        "tasks": ["translation", "rotation"],
        "reading": "direction",
        "spread": 0.1,
        "in_region": hits,
        "in_region_test": 1,
    }
    metrics = {"translation error": [0.3, 0.2], "rotation error": [4.0, None]}
    points = {"preferences": 2, "vectors": [[1.0, 0.0], [0.0, 1.0]], "losses": losses, "train_losses": losses}
    row = {**fields, **more, **points, "metrics": metrics, "better": dict.fromkeys(metrics, "lower")}
    return [{**row, "seed": seed, "hypervolume": volume + 0.001 * seed} for seed in range(3)]
