"""Three tasks and more as lists of cells: census income, faces, localization, three digits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from paretomtl import preferences
from paretomtl.experiments._study import Size
from paretomtl.experiments._tasks import TaskCell

SHARED, EXPERTS = "shared trunk", "mixture of experts"
SCALES = ("first", "running", "gradnorm", "uncertainty")
KNOWING_NOTHING = {
    "census": (0.23, 0.5, 0.68),
    "utkface": (0.69, 1.45, 15.0),
    "localization": (0.55, 0.19),
}
"""About what a constant answer costs on training data, in each task: the worst point of a scale that is given."""
_KINDS = {
    "utkface": ("classification", "classification", "regression"),
    "localization": ("regression", "regression"),
}


def census(size: Size) -> list[TaskCell]:
    """5 and 25 random vectors, 25 even ones, random search; both networks; losses scaled or not."""
    few, many = (_rows(preferences.random(count, 3, seed=0).tolist()) for count in (5, 25))
    study = []
    for part, network in ((SHARED, "MLP"), (EXPERTS, "mixture of experts")):
        common: dict[str, Any] = {"part": part, "problem": "census", "network": network, "precision": "tf32"}
        study += [
            TaskCell(method="pareto-mtl", preferences=few, note="5 random", **common),
            TaskCell(method="pareto-mtl", preferences=many, note="25 random", **common),
            TaskCell(method="pareto-mtl", preferences=25, note="25 even", **common),
            TaskCell(method="random-search", preferences=25, **common),
            TaskCell(method="linear", preferences=25, **common),
            TaskCell(method="mgda", preferences=5, **common),
            TaskCell(method="single-task", preferences=None, **common),
        ]
    shared: dict[str, Any] = {"part": SHARED, "problem": "census", "network": "MLP", "precision": "tf32"}
    study += [TaskCell(method=name, preferences=5, **shared) for name in ("gradnorm", "uncertainty")]
    study += _scaled(TaskCell(method="pareto-mtl", preferences=25, **shared), "25 even")
    return _sized(study, size, samples=4096, epochs=1)


def faces(size: Size) -> list[TaskCell]:
    """The paper's four vectors and all methods of its table; losses scaled or not."""
    common: dict[str, Any] = {
        "part": SHARED,
        "problem": "utkface",
        "network": "ResNet-18",
        "precision": "bfloat16",
        "seeds": 3,
    }
    four = _rows(preferences.extreme(3, balanced=True).tolist())
    pareto = TaskCell(method="pareto-mtl", preferences=four, **common)
    study = [pareto, *_baselines(common, ((1.0, 1.0, 1.0),)), *_scaled(pareto, "", seeds=2)]
    return _sized(study, size, samples=96, epochs=1)


def localization(size: Size) -> list[TaskCell]:
    """The paper's three vectors, its grid, and all methods of its table; losses scaled or not."""
    common: dict[str, Any] = {"part": SHARED, "problem": "localization", "network": "PoseNet", "precision": "bfloat16"}
    three = _rows(preferences.even(3, 2).tolist())
    pareto = TaskCell(method="pareto-mtl", preferences=three, **common)
    grid = ((0.25, 0.75), (0.5, 0.5), (0.75, 0.25))
    study = [pareto, *_baselines(common, grid), *_scaled(pareto, "")]
    return _sized(study, size, samples=96, epochs=1)


def three_digits(size: Size) -> list[TaskCell]:
    """Three images on a canvas: 5, 15 and 25 vectors beside weights; a third of the recipe's epochs."""
    common: dict[str, Any] = {"part": SHARED, "problem": "multi-mnist-3", "network": "LeNet", "seeds": 3, "epochs": 10}
    study = [TaskCell(method="pareto-mtl", preferences=count, note=f"{count} even", **common) for count in (5, 15, 25)]
    study.append(TaskCell(method="linear", preferences=25, **common))
    study.append(TaskCell(method="mgda", preferences=5, **common))
    study.append(TaskCell(method="single-task", preferences=None, **common))
    return _sized(study, size, samples=1024, epochs=1)


def _baselines(common: dict[str, Any], grid: tuple[tuple[float, ...], ...]) -> list[TaskCell]:
    """The methods of the paper's tables besides Pareto MTL; those without trade-offs have one start a seed."""
    return [
        TaskCell(method="linear", preferences=grid, **common),
        TaskCell(method="mgda", preferences=1, **common),
        TaskCell(method="gradnorm", preferences=1, **common),
        TaskCell(method="uncertainty", preferences=1, changes={"kinds": _KINDS[common["problem"]]}, **common),
        TaskCell(method="single-task", preferences=None, **common),
    ]


def _scaled(cell: TaskCell, note: str, seeds: int = 3) -> list[TaskCell]:
    """Pareto MTL with losses scaled: in every way that needs no knowledge, and by given points."""
    worst = KNOWING_NOTHING[cell.problem]
    ways: dict[str, Any] = {**{name: name for name in SCALES}, "points": ((0.0,) * len(worst), worst)}
    return [
        replace(
            cell,
            changes={"scale": scale},
            seeds=seeds,
            note=", ".join(filter(None, (note, f"scaled by {name}"))),
        )
        for name, scale in ways.items()
    ]


def _rows(rows: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(round(value, 6) for value in row) for row in rows)


def _sized(study: list[TaskCell], size: Size, *, samples: int, epochs: int) -> list[TaskCell]:
    """The study itself; on few samples; or on made-up ones, with a small network and few vectors."""
    if size == "full":
        return study
    common: dict[str, Any] = {"strategy": "sequential", "precision": "float32", "epochs": epochs}
    if size == "quick":
        return [replace(cell, samples=samples, seeds=1, **common) for cell in study]
    found = []
    for cell in study:
        rows = cell.preferences
        few = rows if rows is None else min(rows, 3 + rows // 10) if isinstance(rows, int) else rows[:6]
        found.append(replace(cell, samples=0, seeds=min(cell.seeds, 2), preferences=few, **common))
    return found
