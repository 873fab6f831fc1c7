"""Cells of the paper's image experiments: a set of canvases, a network, a recipe and a method, for several seeds."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import MultiStepLR

from paretomtl._support.factories import make_scheduler
from paretomtl.compare.row_store import Row
from paretomtl.front import Front
from paretomtl.methods import Method, ParetoMTL, describe, resolve_method
from paretomtl.paper.solutions import solutions
from paretomtl.problems import LeNet, Problem, Recipe, ResNet18
from paretomtl.problems._multi_mnist.files import PUBLISHED
from paretomtl.problems._multi_mnist.problem import load_problem, problem_of
from paretomtl.problems.recipes import IMAGE_RECIPES, ImageRecipe, configured
from paretomtl.training import Strategy
from paretomtl.training._fit import fit_seeds_whole

Network = Literal["LeNet", "ResNet-18"]
_NETWORKS: dict[str, Any] = {"LeNet": LeNet, "ResNet-18": ResNet18}
_MADE_UP = 48  # canvases of a smoke run
_SHAPE = 200  # steps that show the shape of a schedule


def _acceptance(samples: int) -> Recipe:
    return Recipe(optimizer=lambda parameters: torch.optim.SGD(parameters, lr=1e-3), methods=configured(samples))


def _resnet(samples: int) -> Recipe:
    return Recipe(
        optimizer=lambda parameters: torch.optim.Adam(parameters, lr=1e-3),
        scheduler=lambda optimizer, epochs: MultiStepLR(optimizer, [6], gamma=0.1),
        methods=configured(samples),
    )


RECIPES = {**IMAGE_RECIPES, "acceptance": ImageRecipe(1.0, _acceptance), "resnet": ImageRecipe(1.0, _resnet)}
"""Those of the problems, that by which the lost files were judged, and one for 12 epochs of ResNet-18."""


@dataclass(frozen=True)
class ImageCell:
    """One method on one set of canvases.

    Attributes:
        part: what the cell is for; tables and figures pick rows by it.
        problem: the name of the set.
        method: its name, as the recipe configures it, or configured.
        preferences: how many, or the rows; None for the usual number of the method.
        recipe: the name of one of the recipes for images.
        epochs: how long.
        seeds: how many, all in one stack where that is possible.
        network: which one.
        keep: "last", or "best" on the validation split.
        precision: as in :func:`paretomtl.fit`.
        strategy: as in :func:`paretomtl.fit`; rows of any are the same but for rounding, and count as such.
        samples: how many training canvases, and a third as many for the test; None for all. 0: a few made-up ones, and
            a narrow ResNet-18.
        note: tells cells apart that differ in nothing else that their names show.
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
        """What stored rows call the method."""
        return self.method if isinstance(self.method, str) else self.method.name

    @property
    def name(self) -> str:
        return " / ".join(filter(None, (self.problem, self.part, self.method_name, self.note)))

    @property
    def data_set(self) -> str | None:
        """What must be prepared before it is trained; None for made-up samples."""
        return None if self.samples == 0 else self.problem

    @property
    def stages(self) -> tuple[str, ...]:
        released = isinstance(self.method, ParetoMTL) and self.method.release_steps > 0
        return ("final", "snapshot") if released else ("final",)

    @functools.cached_property  # a schedule is gone through
    def settings(self) -> str:
        whole = 100_000 if self.keep == "best" else 120_000
        recipe = RECIPES[self.recipe].make(_MADE_UP if self.samples == 0 else self.samples or whole)
        named = recipe.methods.get(self.method, self.method) if isinstance(self.method, str) else self.method
        said = {
            "canvases": f"{self.problem} {PUBLISHED[self.problem][:12]}",
            "samples": {None: "all", 0: "made up"}.get(self.samples, self.samples),
            "network": self.network,
            "inputs": f"0 to {255 * RECIPES[self.recipe].scale:g}",
            "method": describe(resolve_method(named)),
            "preferences": self.preferences,
            "epochs": self.epochs,
            "batch": recipe.batch_size,
            "optimizer": describe_optimizer(recipe, self.epochs),
            "keep": self.keep,
            "precision": self.precision,
        }
        return "; ".join(f"{name}={value}" for name, value in said.items())

    def run(self, data: Path | None, seeds: Sequence[int]) -> list[Row]:
        problem = self._problem(data)
        fronts = fit_seeds_whole(
            problem,
            self.method,
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
        return problem_of(self.problem, splits, recipe, lambda: make(tasks=tasks, scale=recipe.scale, **narrow))

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
            **solutions(front, [2.0] * len(front.tasks)),
            "seeds_at_once": at_once,
        }


def describe_optimizer(recipe: Recipe, epochs: int) -> str:
    """An optimizer and its schedule in words: what it is, and its learning rates over the epochs."""
    weight = nn.Parameter(torch.zeros(1))
    assert recipe.optimizer is not None
    optimizer = recipe.optimizer([("weight", weight)])
    options = {name: optimizer.defaults.get(name) for name in ("momentum", "betas", "weight_decay", "nesterov")}
    said = [type(optimizer).__name__, *(f"{name} {value}" for name, value in options.items() if value)]
    total = epochs if recipe.schedule == "epoch" else _SHAPE
    rates = []
    scheduler = None if recipe.scheduler is None else make_scheduler(recipe.scheduler, optimizer, total)
    for _ in range(total):
        rates.append(optimizer.param_groups[0]["lr"])
        if scheduler is not None:
            optimizer.step()
            scheduler.step()
    some = [rates[round(share * (total - 1))] for share in (0.0, 0.05, 0.25, 0.5, 0.75, 1.0)]
    return f"{', '.join(said)}, rates by {recipe.schedule} {' '.join(f'{rate:.3g}' for rate in some)}"


@functools.lru_cache(maxsize=1)
def _loaded(name: str, validation: bool, data: Path | None) -> dict[str, tuple[Tensor, Tensor]]:
    """A set of canvases, read once for all cells in a row that want it."""
    problem = load_problem(name, validation, data)
    splits: dict[str, Any] = {"train": problem.train, "val": problem.val, "test": problem.test}
    return {split: part for split, part in splits.items() if part is not None}


def _made_up(name: str) -> dict[str, tuple[Tensor, Tensor]]:
    """Canvases of noise with bright rows that tell the classes: enough to show that everything works."""
    generator = torch.Generator().manual_seed(len(name))
    splits = {}
    for split, count in (("train", _MADE_UP), ("val", _MADE_UP // 2), ("test", _MADE_UP // 2)):
        labels = torch.randint(10, (count, 2), generator=generator)
        images = torch.randint(60, (count, 1, 36, 36), generator=generator, dtype=torch.uint8)
        for task in range(2):
            images[torch.arange(count), 0, 3 * labels[:, task] + task] = 255
        splits[split] = (images, labels)
    return splits
