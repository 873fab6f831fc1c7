"""Cells of the studies on real data: a problem, a network and a method, for several seeds."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from paretomtl.compare.row_store import Row
from paretomtl.core import preferences as vector_sets
from paretomtl.front import Front
from paretomtl.methods import Method, ParetoMTL, describe
from paretomtl.paper.cell_settings import describe_optimizer, paper_form
from paretomtl.paper.rows import solution_fields
from paretomtl.paper.study import Size
from paretomtl.problems import MLP, PROBLEMS, LeNet, MixtureOfExperts, PoseNet, Problem, ResNet18
from paretomtl.problems.registry import find_data_set
from paretomtl.training import Strategy
from paretomtl.training.fit_to_end import fit_seeds_to_end

SHARED, EXPERTS = "shared trunk", "mixture of experts"
EVEN = "25 even"
"""The note of the cells of census and three digits with as many vectors as a grid has weights."""
SCALES = ("first", "running", "gradnorm", "uncertainty")
RECIPE_VERSION = 1
"""The version of the recipes of these problems; rows of another version do not belong to these cells."""

_MADE_UP = 24  # samples of a smoke run


@dataclass(frozen=True)
class Network:
    """A network for a problem, and a small one for a smoke run."""

    full: Callable[[], nn.Module] | None
    small: Callable[[], nn.Module]


_ON_NOISE: dict[str, dict[str, Any]] = {"localization": {"reference": [2.0, 2.0]}}
"""Arguments of problems on made-up data that the real data would determine."""

NETWORKS: dict[tuple[str, str], Network] = {
    ("census", "MLP"): Network(None, lambda: MLP(482, 3, hidden=(8, 4))),
    ("census", "mixture of experts"): Network(
        lambda: MixtureOfExperts(482, 3), lambda: MixtureOfExperts(482, 3, experts=2, hidden=(4,), tower=(3,))
    ),
    ("utkface", "ResNet-18"): Network(None, lambda: ResNet18((2, 5, 1), channels=3, scale=1 / 255, width=4)),
    ("localization", "PoseNet"): Network(None, lambda: PoseNet(width=4)),
    ("multi-mnist-3", "LeNet"): Network(None, lambda: LeNet(3, scale=1 / 255)),
}
"""The networks by problem and name; None is the problem's own network."""


@dataclass(frozen=True)
class TaskCell:
    """One method on one problem, with the problem's recipe.

    Attributes:
        part: the part of the study; tables and figures pick rows by it.
        problem: the name of the problem.
        network: one of :data:`NETWORKS`.
        method: the name of the method, configured by the recipe.
        preferences: the number of vectors, or the vectors; None for the method's usual number.
        random: whether the preference vectors are drawn at random, different ones for each seed.
        changes: options of the method that replace the recipe's.
        seeds: the number of seeds.
        precision: as in :func:`paretomtl.fit`.
        strategy: as in :func:`paretomtl.fit`; it is not a setting, because rows differ only in rounding.
        samples: the number of samples of each split; None for all. With 0, a few made-up ones and a small network.
        epochs: the number of epochs; None for the recipe's.
        note: distinguishes cells whose names are otherwise the same.
    """

    part: str
    problem: str
    network: str
    method: str
    preferences: int | tuple[tuple[float, ...], ...] | None
    random: bool = False
    changes: Mapping[str, Any] = field(default_factory=dict)
    seeds: int = 5
    precision: str = "float32"
    strategy: Strategy = "auto"
    samples: int | None = None
    epochs: int | None = None
    note: str = ""

    @property
    def name(self) -> str:
        return " / ".join(filter(None, (self.problem, self.part, self.method, self.note)))

    @property
    def data_set(self) -> str | None:
        """The data set that must be prepared before training; None for made-up samples."""
        return None if self.samples == 0 else self.problem

    @property
    def stages(self) -> tuple[str, ...]:
        return ("final",)

    @property
    def settings(self) -> str:
        fields = {
            "problem": f"{self.problem}, recipe {RECIPE_VERSION}",
            "samples": {None: "all", 0: "made up"}.get(self.samples, self.samples),
            "network": self.network,
            "method": describe(paper_form(self.method)),
            "changes": ", ".join(f"{name}={value!r}" for name, value in sorted(self.changes.items())) or "none",
            "preferences": f"{self.preferences} random, other ones for each seed" if self.random else self.preferences,
            "epochs": self.epochs or "of the recipe",
            "precision": self.precision,
        }
        return "; ".join(f"{name}={value}" for name, value in fields.items())

    def run(self, data: Path | None, seeds: Sequence[int]) -> list[Row]:
        problem = self._problem(data)
        method = self._method(problem)
        fronts = fit_seeds_to_end(
            problem,
            method,
            self._vectors(len(problem.tasks), seeds),
            seeds=seeds,
            epochs=self.epochs,
            precision=self.precision,
            strategy=self.strategy,
        )
        return [self._row(front, problem, method, len(seeds)) for front in fronts]

    def _problem(self, data: Path | None) -> Problem:
        network = NETWORKS[self.problem, self.network]
        if self.samples == 0:
            problem = made_up(self.problem, network.small)
        else:
            problem = _loaded(self.problem, data)
            if network.full is not None:
                problem = replace(problem, model=network.full)
        if self.samples:
            most = self.samples
            splits = {name: tuple(part[:most] for part in getattr(problem, name)) for name in ("train", "test")}
            problem = replace(problem, **splits)  # type: ignore[arg-type]
        return problem

    def _method(self, problem: Problem) -> Method:
        method = problem.recipe.methods.get(self.method) or paper_form(self.method)
        if self.changes:
            method = replace(method, **self.changes)  # type: ignore[type-var]
        if self.samples is not None and isinstance(method, ParetoMTL):  # steps are counted for all samples
            method = replace(method, initial_steps=1, release_steps=min(method.release_steps, 1))
        return method

    def _vectors(self, tasks: int, seeds: Sequence[int]) -> int | Tensor | None:
        rows = self.preferences
        if self.random:
            assert isinstance(rows, int)
            return torch.stack([vector_sets.random(rows, tasks, seed=seed) for seed in seeds])
        if isinstance(rows, int) and rows > 1 and tasks > 2 and self.method in ("pareto-mtl", "linear"):
            spread = vector_sets.lattice_or_energy_rows(rows, tasks)  # stored rows were trained with these
            if self.method == "pareto-mtl":
                return spread
            directions = vector_sets.lattice_or_energy(rows, tasks)
            return directions / directions.sum(-1, keepdim=True)
        return torch.tensor(rows, dtype=torch.float64) if isinstance(rows, tuple) else rows

    def _row(self, front: Front, problem: Problem, method: Method, at_once: int) -> Row:
        assert problem.reference is not None
        epochs = len(front.history["losses"])
        return {
            "part": self.part,
            "stage": "final",
            "problem": front.problem,
            "network": self.network,
            "method": front.method,
            "note": self.note,
            "recipe": f"{describe(method)}; {describe_optimizer(problem.recipe, epochs)}",
            "epochs": epochs,
            **solution_fields(front, problem.reference),
            "better": dict(front.better),
            "seeds_at_once": at_once,
        }


@functools.lru_cache(maxsize=1)
def _loaded(name: str, data: Path | None) -> Problem:
    """A problem, cached for consecutive cells that use it."""
    return PROBLEMS[name](folder=data)


def made_up(name: str, model: Callable[[], nn.Module]) -> Problem:
    """A problem on a few samples of noise with the right shapes, for smoke runs."""
    generator = torch.Generator().manual_seed(len(name))
    splits = {split: _noise(name, generator) for split in ("train", "test")}
    return find_data_set(name).from_splits(splits, model, **_ON_NOISE.get(name, {}))


def _noise(name: str, generator: torch.Generator) -> tuple[Tensor, ...]:
    def whole(high: int, *shape: int, kind: torch.dtype = torch.long) -> Tensor:
        return torch.randint(high, shape, generator=generator, dtype=kind)

    count = _MADE_UP
    if name == "census":
        return torch.randn(count, 482, generator=generator), whole(2, count, 3).float()
    if name == "utkface":
        labels = torch.stack([whole(2, count), whole(5, count), whole(80, count)], -1)
        return whole(256, count, 3, 16, 16, kind=torch.uint8), labels
    if name == "localization":
        turns = torch.nn.functional.normalize(torch.randn(count, 4, generator=generator), dim=-1)
        return whole(256, count, 3, 16, 16, kind=torch.uint8), torch.randn(count, 3, generator=generator), turns
    return whole(256, count, 1, 36, 36, kind=torch.uint8), whole(10, count, 3)


def baseline_cells(
    common: dict[str, Any], grid: tuple[tuple[float, ...], ...], kinds: tuple[str, ...]
) -> list[TaskCell]:
    """The methods of the paper's tables except Pareto MTL; those without trade-offs train one model per seed.

    Args:
        common: arguments of every cell.
        grid: the weights of linear scalarization.
        kinds: "classification" or "regression" for each task, for Uncertainty.
    """
    return [
        TaskCell(method="linear", preferences=grid, **common),
        TaskCell(method="mgda", preferences=1, **common),
        TaskCell(method="gradnorm", preferences=1, **common),
        TaskCell(method="uncertainty", preferences=1, changes={"kinds": kinds}, **common),
        TaskCell(method="single-task", preferences=None, **common),
    ]


def scaled_cells(cell: TaskCell, worst: tuple[float, ...]) -> list[TaskCell]:
    """Pareto MTL with scaled losses: in every way that needs no prior knowledge, and by the points 0 and ``worst``."""
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


def resize(study: list[TaskCell], size: Size, *, samples: int, epochs: int) -> list[TaskCell]:
    """The cells of a size: unchanged; on few samples; or on made-up ones, with small networks and few vectors."""
    if size == "full":
        return study
    common: dict[str, Any] = {"strategy": "sequential", "precision": "float32", "epochs": epochs}
    if size == "quick":
        return [replace(cell, samples=samples, seeds=1, **common) for cell in study]
    results = []
    for cell in study:
        rows = cell.preferences
        few = rows if rows is None else min(rows, 3 + rows // 10) if isinstance(rows, int) else rows[:6]
        small = replace(cell, samples=0, seeds=min(cell.seeds, 2), preferences=few, **common)
        released = "release_steps" in cell.changes  # an epoch is one step, and at least one must not be released
        results.append(replace(small, epochs=epochs + 1) if released else small)
    return results
