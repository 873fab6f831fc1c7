"""The cells of the study: an arm on a problem, for several seeds."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch.optim.lr_scheduler import CosineAnnealingLR

from paretomtl.compare.cost import cost_fields
from paretomtl.compare.row_store import Row
from paretomtl.compare.rows import row_of
from paretomtl.front import Front
from paretomtl.methods import MGDA, Method, ParetoMTL, describe
from paretomtl.paper.evidence.arms import ARMS, LEADING, Arm
from paretomtl.paper.study import Size
from paretomtl.problems import PROBLEMS, LeNet, Problem
from paretomtl.problems.registry import ENTRIES
from paretomtl.training import Strategy
from paretomtl.training.fit_to_end import fit_seeds_to_end, fit_to_end

OPTIMIZERS: Mapping[str, Callable[[Any, float], torch.optim.Optimizer]] = {
    "SGD": lambda parameters, factor: torch.optim.SGD(parameters, lr=0.1 * factor),
    "momentum": lambda parameters, factor: torch.optim.SGD(parameters, lr=0.03 * factor, momentum=0.9),
    "Adam": lambda parameters, factor: torch.optim.Adam(parameters, lr=0.02),
}
"""For the synthetic problem: SGD 0.1, SGD 0.03 with momentum 0.9, and Adam 0.02, each with a cosine decay."""

_FEWER = 4  # models of a smoke run, and steps


@dataclass(frozen=True)
class Setting:
    """A problem, with the number of models and the length of training that all arms have.

    Attributes:
        title: its name in the study.
        problem: its name in the registry.
        models: the number of models of a front.
        seeds: the number of seeds.
        arguments: of the problem.
        epochs: how long to train; None for the problem's recipe.
        optimizer: one of :data:`OPTIMIZERS`; None for the problem's recipe.
        width: the factor of LeNet's width; None for the problem's own network.
        strategy: as in :func:`paretomtl.fit`; rows differ by it only in rounding.
    """

    title: str
    problem: str
    models: int
    seeds: int
    arguments: Mapping[str, Any] = field(default_factory=dict)
    epochs: int | None = None
    optimizer: str | None = None
    width: float | None = None
    strategy: Strategy = "auto"

    def make(self, data: Path | None) -> Problem:
        """The problem."""
        arguments = dict(self.arguments)
        if ENTRIES[self.problem].data_set is not None:
            arguments["folder"] = data
        if self.width is not None:
            arguments["model"] = functools.partial(LeNet, 3, scale=1 / 255, width=self.width)
        return PROBLEMS[self.problem](**arguments)

    def options(self, method: Method, tasks: int) -> dict[str, Any]:
        """The options of training that the setting fixes.

        Weights of Pareto MTL and MGDA sum to at most 1 on the synthetic problem, and those of other methods to m. With
        SGD they get m times the learning rate, so that all take steps of one size.
        """
        if self.optimizer is None:
            return {"epochs": self.epochs}
        make, factor = OPTIMIZERS[self.optimizer], tasks if isinstance(method, ParetoMTL | MGDA) else 1
        return {
            "epochs": self.epochs,
            "optimizer": lambda parameters: make(parameters, factor),
            "scheduler": CosineAnnealingLR,
            "schedule": "step",
        }


SYNTHETIC = [
    Setting(
        f"synthetic {tasks}, {optimizer}",
        "synthetic",
        models,
        20,
        {"tasks": tasks},
        1_000,
        optimizer,
        strategy="batched",
    )
    for tasks, models in ((2, 10), (3, 15), (5, 25))
    for optimizer in OPTIMIZERS
]
WHOLE = [
    *SYNTHETIC,
    Setting("multi-digits", "multi-digits", 5, 10),
    Setting("MultiMNIST", "multi-mnist", 5, 10, {"validation": True}),
    Setting("three digits", "multi-mnist-3", 10, 5, {"validation": True}),
]
"""The settings of all arms."""

PART = [
    Setting("multi-digits, half of the epochs", "multi-digits", 5, 10, epochs=15),
    Setting("MultiMNIST, half of the epochs", "multi-mnist", 5, 10, {"validation": True}, epochs=15),
    Setting("MultiFashionMNIST", "multi-fashion", 5, 5, {"validation": True}),
    Setting("Multi-(Fashion+MNIST)", "multi-fashion-mnist", 5, 5, {"validation": True}),
    Setting("census", "census", 10, 5, {"validation": True}),
    Setting("faces", "utkface", 10, 5, {"validation": True}),
    Setting("income and parity", "census-parity", 5, 5, {"validation": True}),
]
"""The settings of the leading arms alone."""

WIDTHS = [
    Setting(f"three digits, width x{width:g}", "multi-mnist-3", 10, 3, {"validation": True}, width=width)
    for width in (0.25, 1.0, 2.0)
]
"""Widths of LeNet, with two arms."""


@dataclass(frozen=True)
class BeyondCell:
    """One arm on one problem.

    Attributes:
        setting: the problem, the number of models and the length of training.
        arm: the name of the arm.
        seeds: the number of seeds, in one stack where that is possible.
    """

    setting: Setting
    arm: str
    seeds: int

    @property
    def name(self) -> str:
        return f"{self.setting.title} / {self.arm}"

    @property
    def data_set(self) -> str | None:
        """The data set that must be prepared before training; None without one."""
        return self.setting.problem if ENTRIES[self.setting.problem].data_set is not None else None

    @property
    def stages(self) -> tuple[str, ...]:
        return ("final",)

    @property
    def settings(self) -> str:
        arm, setting = ARMS[self.arm], self.setting
        fields = {
            "problem": setting.problem,
            "arguments": dict(setting.arguments),
            "width": setting.width,
            "method": describe(arm.method),
            "rows": arm.rows.__name__.lstrip("_"),
            "gaps": arm.gaps,
            "options": dict(arm.options),
            "models": setting.models,
            "epochs": setting.epochs or "of the recipe",
            "optimizer": setting.optimizer or "of the recipe",
            **({"order": "own for each seed"} if arm.own_order else {}),
        }
        return "; ".join(f"{name}={value}" for name, value in fields.items())

    def run(self, data: Path | None, seeds: Sequence[int]) -> list[Row]:
        problem, arm = self.setting.make(data), ARMS[self.arm]
        method = arm.configured(problem.recipe.methods)
        tasks = len(problem.tasks)
        options = {**self.setting.options(method, tasks), **arm.options, "strategy": self.setting.strategy}
        count = tasks if method.separate else self.setting.models
        if arm.gaps or arm.own_order:
            fronts = [_with_gaps_filled(problem, method, arm, count, seed, options) for seed in seeds]
        else:
            fronts = fit_seeds_to_end(problem, method, arm.rows(count, tasks), seeds=seeds, **options)
        return [self._row(problem, front, method) for front in fronts]

    def _row(self, problem: Problem, front: Front, method: Method) -> Row:
        shared = ARMS[self.arm].options.get("branch", 0.0)
        cost = cost_fields(front, method)
        distances = {}
        if problem.truth is not None:  # its history of a thousand steps would be most of the stored file
            del cost["history"]
            away = problem.truth.distance(front.losses["train"].double())
            distances = {"distance": float(f"{float(away.max()):.3g}"), "reference": [1.0] * len(front.tasks)}
        return {
            **row_of(front),
            **cost,
            **distances,
            "setting": self.setting.title,
            "method": self.arm,
            "trained_by": front.method,
            "stage": "final",
            "scale": None if front.scale is None else [round(value, 6) for value in front.scale[0].tolist()],
            "passes": round(cost["step_cost"] * (1.0 - shared + shared / len(front)), 4),
        }


def _with_gaps_filled(
    problem: Problem, method: Method, arm: Arm, count: int, seed: int, options: Mapping[str, Any]
) -> Front:
    """A front of fewer models, and the rest in its largest gaps: as many passes as the front of all models."""
    first = fit_to_end(problem, method, count - arm.gaps, seed=seed, **options)
    if not arm.gaps or not len(gaps := first.gaps(arm.gaps)):
        return first
    more = {"only": gaps.subproblems, "start": gaps.start}
    return first.joined(fit_to_end(problem, method, gaps.preferences, seed=seed, **more, **options))


def cells(size: Size = "full") -> list[BeyondCell]:
    """The whole study; without data sets; or seconds of it."""
    made = [
        BeyondCell(setting, arm, setting.seeds)
        for setting in WHOLE
        for arm, each in ARMS.items()
        if not (each.gaps or each.own_order)
        or setting.problem != "synthetic"  # no data, and weights fill no gaps there
    ]
    made += [BeyondCell(setting, arm, setting.seeds) for setting in PART for arm in (*LEADING, "single-task")]
    made += [BeyondCell(s, arm, s.seeds) for s in WIDTHS for arm in ("linear, interior", "pareto-mtl")]
    if size == "full":
        return made
    without = [cell for cell in made if cell.data_set is None]
    if size == "quick":
        return [replace(cell, seeds=min(cell.seeds, 3)) for cell in without]
    chosen = [cell for cell in without if cell.setting.title == "synthetic 2, SGD"]
    short = [replace(cell.setting, epochs=_FEWER, models=_FEWER, strategy="sequential") for cell in chosen]
    return [replace(cell, seeds=2, setting=setting) for cell, setting in zip(chosen, short, strict=True)]
