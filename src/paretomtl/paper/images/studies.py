"""The paper's image experiments as lists of cells (section 6.1, supplement 1, 2, 3, 5 and 6)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from paretomtl import preferences
from paretomtl.methods import ParetoMTL
from paretomtl.paper.images.cells import ImageCell
from paretomtl.paper.study import Size

SETS = ("multi-mnist", "multi-fashion", "multi-fashion-mnist")
METHODS = ("pareto-mtl", "linear", "mgda", "random-search", "gradnorm", "uncertainty", "single-task")
PAPER, STRONG, LONG = "paper's settings", "strong recipe", "paper's settings, 100 epochs"
EARLY, END = "early stop", "to the end"
_STEPS = 469  # of an epoch
_BATCH = 256


def images_lenet(size: Size) -> list[ImageCell]:
    """All methods on all sets: the paper's settings, the strong recipe; once with all of the paper's epochs."""
    study = [
        cell for part, recipe in ((PAPER, "paper"), (STRONG, "strong")) for cell in _everything(SETS[:1], part, recipe)
    ]
    study += _everything(SETS[1:], PAPER, "paper") + _everything(SETS[1:], STRONG, "strong")
    study += [
        replace(cell, epochs=100, seeds=1)
        for cell in _everything(SETS[:1], LONG, "paper")
        if cell.method in ("pareto-mtl", "linear", "mgda", "single-task")
    ]
    return _sized(study, size)


def images_resnet(size: Size) -> list[ImageCell]:
    """ResNet-18 on all sets: stopped early on the first, to the end on the others (supplement, section 6).

    The end is after 12 epochs, where the paper's code takes 20; both let the learning rate fall to a tenth halfway.
    Early is after 4, at the full rate, for all methods alike.
    """
    study = [
        ImageCell(
            EARLY if name == SETS[0] else END,
            name,
            method,
            None if method == "single-task" else 5,
            recipe="resnet",
            epochs=4 if name == SETS[0] else 12,
            seeds=2,
            network="ResNet-18",
            precision="bfloat16",
        )
        for name in SETS
        for method in ("pareto-mtl", "linear", "single-task")
    ]
    if size == "full":
        return study
    study = [replace(cell, precision="float32", epochs=1, seeds=1) for cell in study]
    if size == "quick":
        return [replace(cell, samples=256, preferences=cell.preferences and 2) for cell in study]
    return [replace(cell, samples=0, preferences=cell.preferences and 2, strategy="sequential") for cell in study]


def ablation_init(size: Size) -> list[ImageCell]:
    """Pareto MTL with and without the initial phase (supplement, section 1), beside MOO-MTL."""
    study = [
        ImageCell(PAPER, SETS[1], "pareto-mtl"),
        ImageCell(PAPER, SETS[1], ParetoMTL(rescale=True, initial_steps=0), note="no initial phase"),
        ImageCell(PAPER, SETS[1], "mgda"),
    ]
    return _sized(study, size)


def ablation_release(size: Size) -> list[ImageCell]:
    """The constraints dropped for the last third of the epochs (supplement, section 1), beside keeping them."""
    released = ParetoMTL(rescale=True, initial_steps=2 * _STEPS, release_steps=10 * _STEPS)
    study = [ImageCell(PAPER, SETS[1], "pareto-mtl"), ImageCell(PAPER, SETS[1], released, note="released")]
    return _sized(study, size)


def preference_sets(size: Size) -> list[ImageCell]:
    """Sets of preference vectors (supplement, section 5): random, biased, close together, few and many."""
    sets: dict[str, tuple[tuple[float, ...], ...]] = {
        "8 even": _rows(preferences.even(8, 2).tolist()),
        "25 even": _rows(preferences.even(25, 2).tolist()),
        "5 biased": _rows(preferences.biased(5, [1.0, 2.0]).tolist()),
        "5 close": fan(5, 45.0, 2.0),
        "5 narrow": fan(5, 45.0, 10.0),
        **{f"5 random, set {i}": _rows(preferences.random(5, 2, seed=i).tolist()) for i in range(3)},
    }
    study = [ImageCell(PAPER, SETS[0], "pareto-mtl", seeds=2)]
    study += [ImageCell(PAPER, SETS[0], "pareto-mtl", rows, seeds=2, note=name) for name, rows in sets.items()]
    unit = ParetoMTL(rescale=True, initial_steps=2 * _STEPS, unit_rows=True)
    study.append(ImageCell(PAPER, SETS[0], unit, sets["25 even"], note="25 even, unit rows"))
    study = [replace(cell, seeds=1 if "25" in cell.note else 2) for cell in study]
    return _sized(study, size)


def weights(size: Size) -> list[ImageCell]:
    """The weights over training (supplement, section 3)."""
    study = [ImageCell(PAPER, SETS[0], method) for method in ("pareto-mtl", "mgda", "gradnorm", "linear")]
    return _sized(study, size)


def acceptance(size: Size) -> list[ImageCell]:
    """Separate networks, trained as those by which the lost files were judged, to tell how near these come."""
    common = {"recipe": "acceptance", "epochs": 100, "seeds": 3}
    return _sized([ImageCell("constant rate", name, "single-task", None, **common) for name in SETS], size)  # type: ignore[arg-type]


def fan(count: int, middle: float, step: float) -> tuple[tuple[float, ...], ...]:
    """Vectors of the plane that are a few degrees apart."""
    angles = [math.radians(middle + step * (i - (count - 1) / 2)) for i in range(count)]
    return _rows([[math.cos(angle), math.sin(angle)] for angle in angles])


def _everything(sets: Sequence[str], part: str, recipe: str) -> list[ImageCell]:
    return [
        ImageCell(part, name, method, None if method == "single-task" else 5, recipe)
        for name in sets
        for method in METHODS
    ]


def _rows(rows: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(round(value, 6) for value in row) for row in rows)


def _sized(study: list[ImageCell], size: Size) -> list[ImageCell]:
    """The study itself; with few canvases and epochs; or with made-up ones. Trials of strategies would take longer."""
    if size == "full":
        return study
    samples, epochs, seeds = (2048, 3, 1) if size == "quick" else (0, 2, 2)
    steps = -(-samples // _BATCH) or 1
    shortened = []
    for cell in study:
        method = cell.method
        if isinstance(method, ParetoMTL):  # its phases in proportion
            initial = min(method.initial_steps or 0, steps)
            method = replace(method, initial_steps=initial, release_steps=steps if method.release_steps else 0)
        rows = cell.preferences
        few = rows if size == "quick" or rows is None else 3 if isinstance(rows, int) else rows[:6]
        longer = epochs + (cell.epochs > 30)  # so that it is a cell of its own
        changes = {"epochs": longer, "seeds": min(seeds, cell.seeds), "samples": samples, "strategy": "sequential"}
        shortened.append(replace(cell, method=method, preferences=few, **changes))  # type: ignore[arg-type]
    return shortened
