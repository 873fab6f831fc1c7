"""Cells of the paper's image experiments: a set of canvases, a network, a recipe and a method, for several seeds."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from torch.optim.lr_scheduler import MultiStepLR

from paretomtl.compare.row_store import Row
from paretomtl.front import Front
from paretomtl.methods import Method, ParetoMTL, describe
from paretomtl.paper.cell_settings import describe_optimizer, study_method
from paretomtl.paper.rows import solution_fields
from paretomtl.paper.study import Size
from paretomtl.problems import PROBLEMS, LeNet, Problem, Recipe, ResNet18
from paretomtl.problems.recipes import IMAGE_RECIPES, ImageRecipe, configured
from paretomtl.problems.registry import find_data_set
from paretomtl.training import Strategy
from paretomtl.training.fit_to_end import fit_seeds_to_end

SETS = ("multi-mnist", "multi-fashion", "multi-fashion-mnist")
SET_TITLES = {
    "multi-mnist": "MultiMNIST",
    "multi-fashion": "MultiFashionMNIST",
    "multi-fashion-mnist": "Multi-(Fashion+MNIST)",
}
METHODS = ("pareto-mtl", "linear", "mgda", "random-search", "gradnorm", "uncertainty", "single-task")
PAPER, STRONG, LONG = "paper's settings", "strong recipe", "paper's settings, 100 epochs"
"""Parts of studies: the recipe of their cells."""
STEPS = 469
"""The steps of an epoch over all canvases."""

Network = Literal["LeNet", "ResNet-18"]
_NETWORKS: dict[str, Any] = {"LeNet": LeNet, "ResNet-18": ResNet18}
_MADE_UP = 48  # canvases of a smoke run
_BATCH = 256


def _acceptance(samples: int) -> Recipe:
    return Recipe(optimizer=lambda parameters: torch.optim.SGD(parameters, lr=1e-3), methods=configured(samples))


def _resnet(samples: int) -> Recipe:
    return Recipe(
        optimizer=lambda parameters: torch.optim.Adam(parameters, lr=1e-3),
        scheduler=lambda optimizer, epochs: MultiStepLR(optimizer, [6], gamma=0.1),
        methods=configured(samples),
    )


RECIPES = {**IMAGE_RECIPES, "acceptance": ImageRecipe(1.0, _acceptance), "resnet": ImageRecipe(1.0, _resnet)}
"""The recipes of the problems, the one of the published accuracies, and one for 12 epochs of ResNet-18."""


@dataclass(frozen=True)
class ImageCell:
    """One method on one set of canvases.

    Attributes:
        part: the part of the study; tables and figures pick rows by it.
        problem: the name of the set.
        method: a name, to be configured by the recipe, or a configured method.
        preferences: the number of vectors, or the vectors; None for the method's usual number.
        recipe: the name of one of the recipes for images.
        epochs: the number of epochs.
        seeds: the number of seeds, all in one stack if possible.
        network: the network.
        keep: "last", or "best" on the validation split.
        precision: as in :func:`paretomtl.fit`.
        strategy: as in :func:`paretomtl.fit`; it is not a setting, because rows differ only in rounding.
        samples: the number of training canvases, and a third as many for test; None for all. With 0, a few made-up
            ones and a narrow ResNet-18.
        note: distinguishes cells whose names are otherwise the same.
    """

    part: str
    problem: str
    method: str | Method
    preferences: int | tuple[tuple[float, ...], ...] | None = 5
    recipe: str = "paper"
    epochs: int = 30
    seeds: int = 5
    network: Network = "LeNet"
    keep: str = "last"
    precision: str = "float32"
    strategy: Strategy = "auto"
    samples: int | None = None
    note: str = ""

    @property
    def method_name(self) -> str:
        """The name of the method in stored rows."""
        return self.method if isinstance(self.method, str) else self.method.name

    @property
    def name(self) -> str:
        return " / ".join(filter(None, (self.problem, self.part, self.method_name, self.note)))

    @property
    def data_set(self) -> str | None:
        """The data set that must be prepared before training; None for made-up samples."""
        return None if self.samples == 0 else self.problem

    @property
    def stages(self) -> tuple[str, ...]:
        released = isinstance(self.method, ParetoMTL) and self.method.release_steps > 0
        return ("final", "snapshot") if released else ("final",)

    @functools.cached_property  # it steps through a schedule
    def settings(self) -> str:
        whole = 100_000 if self.keep == "best" else 120_000
        recipe = RECIPES[self.recipe].make(_MADE_UP if self.samples == 0 else self.samples or whole)
        fields = {
            "canvases": f"{self.problem} {(find_data_set(self.problem).published or '')[:12]}",
            "samples": {None: "all", 0: "made up"}.get(self.samples, self.samples),
            "network": self.network,
            "inputs": f"0 to {255 * RECIPES[self.recipe].scale:g}",
            "method": describe(study_method(self.method, recipe.methods)),
            "preferences": self.preferences,
            "epochs": self.epochs,
            "batch": recipe.batch_size,
            "optimizer": describe_optimizer(recipe, self.epochs),
            "keep": self.keep,
            "precision": self.precision,
        }
        return "; ".join(f"{name}={value}" for name, value in fields.items())

    def run(self, data: Path | None, seeds: Sequence[int]) -> list[Row]:
        problem = self._problem(data)
        fronts = fit_seeds_to_end(
            problem,
            study_method(self.method, problem.recipe.methods),
            self._vectors(),
            seeds=seeds,
            epochs=self.epochs,
            keep=self.keep,
            precision=self.precision,
            strategy=self.strategy,
        )
        stages = [(front, "final") for front in fronts]
        stages += [(front.snapshot, "snapshot") for front in fronts if front.snapshot is not None]
        return [self._row(front, stage, len(seeds)) for front, stage in stages]

    def _vectors(self) -> int | Tensor | None:
        rows = self.preferences
        return torch.tensor(rows, dtype=torch.float64) if isinstance(rows, tuple) else rows

    def _problem(self, data: Path | None) -> Problem:
        splits = _made_up(self.problem) if self.samples == 0 else _loaded(self.problem, self.keep == "best", data)
        if self.samples:
            most = {"train": self.samples, "val": self.samples // 3, "test": self.samples // 3}
            splits = {split: (x[: most[split]], y[: most[split]]) for split, (x, y) in splits.items()}
        if self.keep != "best":
            splits = {split: part for split, part in splits.items() if split != "val"}
        recipe, make, tasks = RECIPES[self.recipe], _NETWORKS[self.network], splits["train"][1].shape[1]
        narrow = {"width": 4} if self.samples == 0 and self.network == "ResNet-18" else {}
        from_splits = find_data_set(self.problem).from_splits
        return from_splits(splits, lambda: make(tasks=tasks, scale=recipe.scale, **narrow), recipe)

    def _row(self, front: Front, stage: str, at_once: int) -> Row:
        return {
            "part": self.part,
            "stage": stage,
            "problem": front.problem,
            "network": self.network,
            "method": front.method,
            "note": self.note,
            "recipe": self.recipe,
            "epochs": self.epochs,
            "error_hypervolume": None,
            **solution_fields(front, [2.0] * len(front.tasks)),
            "seeds_at_once": at_once,
        }


def resize(study: list[ImageCell], size: Size) -> list[ImageCell]:
    """The cells of a size: unchanged; with few canvases and epochs; or with made-up canvases.

    Small cells have a fixed strategy, because trials of strategies would take longer than training.
    """
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
        longer = epochs + (cell.epochs > 30)  # so that the cell differs from the short one
        changes = {"epochs": longer, "seeds": min(seeds, cell.seeds), "samples": samples, "strategy": "sequential"}
        shortened.append(replace(cell, method=method, preferences=few, **changes))  # type: ignore[arg-type]
    return shortened


@functools.lru_cache(maxsize=1)
def _loaded(name: str, validation: bool, data: Path | None) -> dict[str, tuple[Tensor, Tensor]]:
    """A set of canvases, cached for consecutive cells that use it."""
    problem = PROBLEMS[name](validation, data)
    splits: dict[str, Any] = {"train": problem.train, "val": problem.val, "test": problem.test}
    return {split: part for split, part in splits.items() if part is not None}


def _made_up(name: str) -> dict[str, tuple[Tensor, Tensor]]:
    """Canvases of noise with bright rows that encode the classes, for smoke runs."""
    generator = torch.Generator().manual_seed(len(name))
    splits = {}
    for split, count in (("train", _MADE_UP), ("val", _MADE_UP // 2), ("test", _MADE_UP // 2)):
        labels = torch.randint(10, (count, 2), generator=generator)
        images = torch.randint(60, (count, 1, 36, 36), generator=generator, dtype=torch.uint8)
        for task in range(2):
            images[torch.arange(count), 0, 3 * labels[:, task] + task] = 255
        splits[split] = (images, labels)
    return splits
