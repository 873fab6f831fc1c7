"""Three tasks and more as lists of cells: census income, faces, localization, three digits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from paretomtl import preferences
from paretomtl.paper.real_data.cells import TaskCell
from paretomtl.paper.study import Size

SHARED, EXPERTS = "shared trunk", "mixture of experts"
EVEN = "25 even"
"""The note of the cells of census and three digits with as many vectors as a grid has weights."""
SCALES = ("first", "running", "gradnorm", "uncertainty")
KNOWING_NOTHING = {
    "census": (0.23, 0.5, 0.68),
    "utkface": (0.69, 1.45, 15.0),
    "localization": (0.55, 0.19),
}
"""About what a constant answer costs on training data, in each task: the worst point of a scale that is given."""
DIGIT_COUNTS = (5, 15, 25, 50)
"""Of the even vectors for three digits."""
_CENSUS_RELEASED, _DIGITS_RELEASED = 650, 1560  # steps: a third of a run
_KINDS = {
    "utkface": ("classification", "classification", "regression"),
    "localization": ("regression", "regression"),
}


def census(size: Size) -> list[TaskCell]:
    """5 and 25 random vectors, 25 even ones, random search; constraints released; both networks; losses scaled."""
    study = []
    for part, network in ((SHARED, "MLP"), (EXPERTS, "mixture of experts")):
        common: dict[str, Any] = {"part": part, "problem": "census", "network": network, "precision": "tf32"}
        even = TaskCell(method="pareto-mtl", preferences=25, note=EVEN, **common)
        many = TaskCell(method="pareto-mtl", preferences=25, random=True, note="25 random", **common)
        study += [
            replace(many, preferences=5, note="5 random"),
            many,
            replace(many, changes={"release_steps": _CENSUS_RELEASED}, note="25 random, released"),
            even,
            TaskCell(method="random-search", preferences=25, **common),
            TaskCell(method="linear", preferences=25, **common),
            *(TaskCell(method=name, preferences=5, **common) for name in ("mgda", "gradnorm", "uncertainty")),
            TaskCell(method="single-task", preferences=None, **common),
            *_scaled(even),
        ]
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
    study = [pareto, *_baselines(common, ((1.0, 1.0, 1.0),)), *_scaled(pareto)]
    return _sized(study, size, samples=96, epochs=1)


def localization(size: Size) -> list[TaskCell]:
    """The paper's three vectors, its grid, and all methods of its table; losses scaled or not."""
    common: dict[str, Any] = {"part": SHARED, "problem": "localization", "network": "PoseNet", "precision": "bfloat16"}
    three = _rows(preferences.even(3, 2).tolist())
    pareto = TaskCell(method="pareto-mtl", preferences=three, **common)
    grid = ((0.25, 0.75), (0.5, 0.5), (0.75, 0.25))
    study = [pareto, *_baselines(common, grid), *_scaled(pareto)]
    return _sized(study, size, samples=96, epochs=1)


def three_digits(size: Size) -> list[TaskCell]:
    """Three images on a canvas: 5 to 50 vectors beside weights; a third of the recipe's epochs."""
    common: dict[str, Any] = {"part": SHARED, "problem": "multi-mnist-3", "network": "LeNet", "seeds": 3, "epochs": 10}
    study = [TaskCell(method="pareto-mtl", preferences=count, note=f"{count} even", **common) for count in DIGIT_COUNTS]
    released = {"release_steps": _DIGITS_RELEASED}
    study += [
        TaskCell(method="pareto-mtl", preferences=25, changes=released, note=f"{EVEN}, released", **common),
        TaskCell(method="linear", preferences=25, **common),
        TaskCell(method="mgda", preferences=5, **common),
        TaskCell(method="single-task", preferences=None, **common),
    ]
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


def _scaled(cell: TaskCell) -> list[TaskCell]:
    """Pareto MTL with losses scaled: in every way that needs no knowledge, and by given points."""
    worst = KNOWING_NOTHING[cell.problem]
    ways: dict[str, Any] = {**{name: name for name in SCALES}, "points": ((0.0,) * len(worst), worst)}
    return [
        replace(
            cell,
            changes={"scale": scale},
            seeds=3,
            note=", ".join(filter(None, (cell.note, f"scaled by {name}"))),
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
        small = replace(cell, samples=0, seeds=min(cell.seeds, 2), preferences=few, **common)
        released = "release_steps" in cell.changes  # an epoch is one step, and not all may be released
        found.append(replace(small, epochs=epochs + 1) if released else small)
    return found
