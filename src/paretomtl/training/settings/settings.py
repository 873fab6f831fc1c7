"""Settings of a run: its options, checked and complete, and comparable with those of a stored run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from paretomtl._support.factories import make_scheduler
from paretomtl._support.imports.optional_packages import version_of
from paretomtl._support.random_state import model_seed
from paretomtl.engine.batches.base import Batches
from paretomtl.engine.batches.partition import BatchPartition
from paretomtl.engine.device import find_device
from paretomtl.engine.model_group import Group
from paretomtl.engine.models.modules import named_tensors
from paretomtl.engine.processes import check_processes, join_process_group
from paretomtl.methods import Method, describe, resolve_method
from paretomtl.problems import OptimizerFactory, Problem, SchedulerFactory
from paretomtl.runs.process import this_process
from paretomtl.training._warm_start import Start, make_start
from paretomtl.training.options import TrainingOptions
from paretomtl.training.settings.fingerprint import describe_problem, describe_schedule
from paretomtl.training.settings.option_checks import (
    check_branch,
    check_combinations,
    check_options,
    check_problem,
    check_seeds,
    check_shares,
    compiler_arguments,
)
from paretomtl.training.settings.preference_rows import chosen_subproblems, preference_rows, with_reachable
from paretomtl.training.settings.time_budget import TimeBudget

_PRECISIONS = {
    "float32": (torch.float32, None),
    "tf32": (torch.float32, None),
    "float64": (torch.float64, None),
    "bfloat16": (torch.float32, torch.bfloat16),
}


@dataclass(frozen=True)
class Settings:
    """The settings of a run, checked and complete."""

    problem: Problem
    method: Method
    vectors: list[Tensor]
    subproblems: list[int]
    seeds: list[int]
    epochs: int
    batch_size: int
    optimizer: OptimizerFactory | None
    scheduler: SchedulerFactory | None
    schedule: str
    strategy: str
    device: torch.device
    precision: str
    dtype: torch.dtype
    autocast: torch.dtype | None
    clip_norm: float | None
    compiler: Mapping[str, Any] | None
    keep: str
    weigh_every: int
    workers: int | None
    shares: BatchPartition
    patience: int | None = None
    start: Start | None = None
    branch: float | None = None
    average: float | None = None
    budget: TimeBudget | None = None
    first_epochs: int | None = None  # of a stored run that is extended

    @property
    def plan(self) -> int:
        """The epochs that the run began with, by which methods plan their phases."""
        return self.first_epochs or self.epochs

    @property
    def sources(self) -> dict[str, Any]:
        """What may hold random generators of the user, whose states belong to a run."""
        return {name: getattr(self.problem, name) for name in ("train", "val", "test", "losses", "metrics", "counts")}

    @property
    def model_seeds(self) -> list[int]:
        """The random state that each model of all seeds is made from; models that branch are copies of one."""
        if self.start is not None:
            return [self.start.seeds[k] for k in self.subproblems]
        return [model_seed(seed, k if self.branch is None else 0) for seed in self.seeds for k in self.subproblems]

    def scheduler_for(self, steps: int) -> SchedulerFactory | None:
        """The scheduler factory for a run of this many steps, bound to how often a scheduler will step."""
        make, total = self.scheduler, steps if self.schedule == "step" else self.epochs
        if make is None:
            return None
        return lambda optimizer: _checked_scheduler(make_scheduler(make, optimizer, total), total)

    def asked(self) -> dict[str, Any]:
        """The part of the configuration that is known before data and models are made, as JSON."""
        return {
            "version": version_of("paretomtl"),
            "problem": self.problem.name,
            "tasks": list(self.problem.tasks),
            "method": describe(self.method),
            "preferences": self.vectors[0].tolist(),
            "subproblems": self.subproblems,
            "seed": self.seeds[0],
            "epochs": self.epochs,
            "batch_size": self.batch_size,
            "schedule": self.schedule,
            "strategy": self.strategy,
            "device": self.device.type,
            "precision": self.precision,
            "clip_norm": self.clip_norm,
            "compile": self.compiler is not None,
            "keep": self.keep,
            "patience": self.patience,
            "warm_start": None if self.start is None else self.start.in_words(self.subproblems),
            "branch": self.branch,
            "average": self.average,
            "weigh_every": self.weigh_every,
            "accumulate": None if self.shares.accumulate == 1 else self.shares.accumulate,
        }

    def config(self, module: nn.Module, group: Group, splits: Mapping[str, Batches], steps: int) -> dict[str, Any]:
        """The configuration, as JSON: what must be the same for a run to be resumed.

        Args:
            module: the first model, untrained.
            group: the group that it belongs to.
            splits: the data.
            steps: how many are planned; 0 if unknown.
        """
        shapes = {name: list(tensor.shape) for name, tensor in named_tensors(module).items()}
        options = [
            {key: value for key, value in part.items() if key not in ("params", "param_names", "lr", "initial_lr")}
            for part in group.optimizer.param_groups
        ]
        rates = [part.get("initial_lr", part["lr"]) for part in group.optimizer.param_groups]
        return {
            **self.asked(),
            "samples": splits["train"].samples,
            "parameters": hashlib.sha256(json.dumps(shapes).encode()).hexdigest()[:16],
            "optimizer": f"{type(group.optimizer).__name__} {options!r}, learning rates {[float(r) for r in rates]}",
            "scheduler": describe_schedule(
                self.scheduler_for(steps), self.optimizer, module, steps if self.schedule == "step" else self.epochs
            ),
            **describe_problem(self.problem, module, splits),
        }

    def legend(self) -> dict[str, Any]:
        """The first line of a log, as JSON: the process that writes it, and the meaning of its rows."""
        return {
            "process": this_process(),
            "method": self.method.name,
            "reading": self.method.reading,
            "ideal": None if self.method.ideal is None else list(self.method.ideal),
            "better": {name: metric.better for name, metric in self.problem.metrics.items()},
        }


def make_settings(problem: Problem, options: TrainingOptions, seeds: Sequence[int] | None = None) -> Settings:
    """The settings of a run, checked; the problem's recipe fills in the options that are left out.

    Args:
        problem: what is trained.
        options: as the user gave them.
        seeds: those of several runs at once; None for the one seed of the options.
    """
    check_problem(problem)
    recipe, method = problem.recipe, options.method
    if isinstance(method, str) and method in recipe.methods:
        method = recipe.methods[method]
    method, preferences = with_reachable(resolve_method(method), options.preferences)
    epochs = recipe.epochs if options.epochs is None else options.epochs
    if epochs is None:
        raise ValueError(
            "'epochs' must be given: this problem has no recipe that says it. Got None instead: write epochs=30 "
            "(--epochs 30), or give the problem recipe=Recipe(epochs=30)."
        )
    batch_size = recipe.batch_size if options.batch_size is None else options.batch_size
    clip_norm = recipe.clip_norm if options.clip_norm is None else options.clip_norm
    options = check_options(replace(options, epochs=epochs, batch_size=batch_size, clip_norm=clip_norm))
    assert options.epochs is not None
    assert options.batch_size is not None
    seeds = check_seeds([options.seed] if seeds is None else seeds)
    check_combinations(options, problem)
    check_processes(options.distributed)
    shares = BatchPartition(join_process_group(options.distributed), options.accumulate)
    check_shares(shares, options.batch_size, options)
    check_branch(options, method)
    vectors = preference_rows(method, preferences, len(problem.tasks), seeds)
    subproblems = chosen_subproblems(options.only, len(vectors[0]))
    if len(subproblems) < len(vectors[0]):
        method = method.for_part()
    if method.needs_whole_front and len(subproblems) < len(vectors[0]):
        raise ValueError(
            f"'only' must be None for the method '{method.name}', which needs all rows of a front together. Got "
            f"{subproblems} of {len(vectors[0])} rows instead."
        )
    dtype, autocast = _PRECISIONS[options.precision]
    return Settings(
        problem=problem,
        method=method,
        vectors=vectors,
        subproblems=subproblems,
        seeds=seeds,
        epochs=options.epochs,
        batch_size=options.batch_size,
        optimizer=options.optimizer or recipe.optimizer,
        scheduler=recipe.scheduler if options.scheduler is None else options.scheduler,
        schedule=recipe.schedule if options.scheduler is None else options.schedule,
        strategy=options.strategy,
        device=find_device(options.device, shares.processes),
        precision=options.precision,
        dtype=dtype,
        autocast=autocast,
        clip_norm=options.clip_norm,
        compiler=compiler_arguments(options.compile),
        keep=options.keep,
        weigh_every=options.weigh_every,
        workers=options.workers,
        shares=shares,
        patience=options.patience,
        branch=options.branch,
        average=options.average,
        start=make_start(options.start, problem, method, vectors[0], subproblems),
    )


def _checked_scheduler(made: Any, total: int) -> Any:
    """Refuse a scheduler that cannot schedule the whole run, because a run that breaks off in the middle is lost."""
    if not hasattr(made, "step") or not hasattr(made, "state_dict"):
        kind = type(made).__name__
        raise TypeError(f"'scheduler' must make a learning rate scheduler of torch.optim. Got {kind} instead.")
    most = made.total_steps if isinstance(made, torch.optim.lr_scheduler.OneCycleLR) else total
    if most < total:
        raise ValueError(
            f"'scheduler' must have room for the {total} times that it is going to step. Got OneCycleLR with "
            f"total_steps={most} instead: write lambda optimizer, total: OneCycleLR(optimizer, MAX_LR, total)."
        )
    return made
