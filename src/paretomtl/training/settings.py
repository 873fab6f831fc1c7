"""Settings of a run: checked, complete, and comparable with those of a stored run."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from paretomtl._support.argument_checks import as_whole, check_count, check_not_negative, check_positive
from paretomtl._support.factories import check_factories, make_scheduler
from paretomtl._support.optional_packages import version_of
from paretomtl.core import preferences as vector_sets
from paretomtl.engine.batches.base import Batches
from paretomtl.engine.batches.partition import BatchPartition
from paretomtl.engine.device import find_device
from paretomtl.engine.model_group import Group
from paretomtl.engine.models.modules import named_tensors
from paretomtl.engine.processes import Distributed, check_processes, join_process_group
from paretomtl.engine.strategy import STRATEGIES
from paretomtl.front import Front
from paretomtl.front.limits import MAX_SOLUTIONS
from paretomtl.methods import Method, describe, resolve_method
from paretomtl.problems import PROBLEMS, OptimizerFactory, Problem, SchedulerFactory
from paretomtl.runs.process import this_process
from paretomtl.training._warm_start import Start, make_start
from paretomtl.training.fingerprint import describe_problem, describe_schedule

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
    first_epochs: int | None = None  # where a stored run is trained longer

    @property
    def plan(self) -> int:
        """The epochs that the run was begun with, by which methods plan their phases."""
        return self.first_epochs or self.epochs

    def scheduler_for(self, steps: int) -> SchedulerFactory | None:
        """The factory of schedulers for a run of this many steps, which is told how often a scheduler will step."""
        make, total = self.scheduler, steps if self.schedule == "step" else self.epochs
        if make is None:
            return None
        return lambda optimizer: _checked_scheduler(make_scheduler(make, optimizer, total), total)

    def config(self, module: nn.Module, group: Group, splits: Mapping[str, Batches], steps: int) -> dict[str, Any]:
        """The configuration, as JSON: what must be the same for a run to be resumed.

        Args:
            module: the first model, untrained.
            group: the group that it belongs to.
            splits: the data.
            steps: how many are planned; 0 where that is not known.
        """
        shapes = {name: list(tensor.shape) for name, tensor in named_tensors(module).items()}
        options = [
            {key: value for key, value in part.items() if key not in ("params", "param_names", "lr", "initial_lr")}
            for part in group.optimizer.param_groups
        ]
        rates = [part.get("initial_lr", part["lr"]) for part in group.optimizer.param_groups]
        return {
            "version": version_of("paretomtl"),
            "problem": self.problem.name,
            "tasks": list(self.problem.tasks),
            "samples": splits["train"].samples,
            "parameters": hashlib.sha256(json.dumps(shapes).encode()).hexdigest()[:16],
            "method": describe(self.method),
            "preferences": self.vectors[0].tolist(),
            "subproblems": self.subproblems,
            "seed": self.seeds[0],
            "epochs": self.epochs,
            "batch_size": self.batch_size,
            "optimizer": f"{type(group.optimizer).__name__} {options!r}, learning rates {[float(r) for r in rates]}",
            "scheduler": describe_schedule(
                self.scheduler_for(steps), self.optimizer, module, steps if self.schedule == "step" else self.epochs
            ),
            "schedule": self.schedule,
            "strategy": self.strategy,
            "device": self.device.type,
            "precision": self.precision,
            "clip_norm": self.clip_norm,
            "compile": self.compiler is not None,
            "keep": self.keep,
            "patience": self.patience,
            "warm_start": None if self.start is None else self.start.in_words(self.subproblems),
            "weigh_every": self.weigh_every,
            "accumulate": None if self.shares.accumulate == 1 else self.shares.accumulate,
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


def make_settings(
    problem: Problem,
    method: str | Method,
    preferences: int | Tensor | Sequence[Sequence[float]] | None,
    epochs: int | None,
    batch_size: int | None,
    seeds: Sequence[int],
    optimizer: OptimizerFactory | None,
    scheduler: SchedulerFactory | None,
    schedule: str,
    strategy: str,
    device: torch.device | str | None,
    precision: str,
    clip_norm: float | None,
    compile: bool | Mapping[str, Any],
    keep: str,
    only: Sequence[int] | None,
    weigh_every: int,
    workers: int | None,
    accumulate: int,
    distributed: Distributed,
    patience: int | None = None,
    start: Front | None = None,
) -> Settings:
    """The settings that the user asked for, checked; the problem's recipe fills what is left out."""
    check_problem(problem)
    recipe = problem.recipe
    if isinstance(method, str) and method in recipe.methods:
        method = recipe.methods[method]
    method = resolve_method(method)
    epochs = recipe.epochs if epochs is None else epochs
    if epochs is None:
        raise ValueError(
            "'epochs' must be given: this problem has no recipe that says it. Got None instead: write epochs=30 "
            "(--epochs 30), or give the problem recipe=Recipe(epochs=30)."
        )
    epochs = as_whole(epochs)
    check_count("epochs", epochs)
    batch_size = as_whole(recipe.batch_size if batch_size is None else batch_size)
    check_count("batch_size", batch_size)
    if not isinstance(seeds, Iterable):
        raise TypeError(f"'seeds' must be one or more numbers, such as range(3). Got {seeds!r} instead.")
    seeds = [as_whole(seed) for seed in (seeds.tolist() if hasattr(seeds, "tolist") else seeds)]
    if not seeds:
        raise ValueError("'seeds' must be one or more numbers, such as range(3). Got none.")
    for seed in seeds:
        check_not_negative("seed", seed)
        if seed >= 2**38:
            raise ValueError(f"'seed' must be under 2**38. Got {seed} instead.")
    weigh_every, workers, accumulate = as_whole(weigh_every), as_whole(workers), as_whole(accumulate)
    check_count("weigh_every", weigh_every)
    if clip_norm is not None:
        check_positive("clip_norm", clip_norm)
        clip_norm = float(clip_norm)
    if precision == "float16":
        raise ValueError(
            '\'precision\' must not be "float16", whose gradients overflow: take "bfloat16", or a loop of your own '
            "with backward(scaler=...). Got 'float16' instead."
        )
    _check_choice("precision", precision, sorted(_PRECISIONS))
    _check_choice("strategy", strategy, STRATEGIES)
    if workers is not None:
        check_count("workers", workers)
        if workers > 1 and strategy in ("batched", "graphed"):
            raise ValueError(
                f"'workers' must be left out for a stack, which is one group. Got {workers} instead: take "
                'strategy="sequential" for models side by side.'
            )
    check_count("accumulate", accumulate)
    if accumulate > 1 and problem.representation is not None:
        raise ValueError(
            f"'accumulate' must be 1 for a problem with a 'representation', whose graph is needed until the tasks are "
            f"weighed. Got {accumulate} instead."
        )
    check_processes(distributed)
    shares = BatchPartition(join_process_group(distributed), accumulate)
    _check_shares(shares, batch_size, strategy, workers)
    _check_choice("keep", keep, ("last", "best"))
    _check_choice("schedule", schedule, ("epoch", "step"))
    if keep == "best" and problem.val is None:
        raise ValueError(
            "'keep' must be \"last\" for a problem without a validation split. Got 'best' instead: give the problem "
            "'val' to keep the best epoch."
        )
    if compile and problem.representation is not None:
        raise ValueError(
            "'compile' must be off for a problem with a 'representation', which is taken out in mid-pass. "
            f"Got {compile!r} instead."
        )
    compiler = _compiler(compile)
    check_factories(optimizer, scheduler)
    patience = _check_patience(patience, problem)
    vectors = _vectors(method, preferences, len(problem.tasks), seeds)
    subproblems = _chosen(only, len(vectors[0]))
    if method.coupled and len(subproblems) < len(vectors[0]):
        raise ValueError(
            f"'only' must be None for the method '{method.name}', which weighs all rows of a front together. Got "
            f"{subproblems} of {len(vectors[0])} rows instead."
        )
    dtype, autocast = _PRECISIONS[precision]
    return Settings(
        problem=problem,
        method=method,
        vectors=vectors,
        subproblems=subproblems,
        seeds=seeds,
        epochs=epochs,
        batch_size=batch_size,
        optimizer=optimizer or recipe.optimizer,
        scheduler=recipe.scheduler if scheduler is None else scheduler,
        schedule=recipe.schedule if scheduler is None else schedule,
        strategy=strategy,
        device=find_device(device, shares.processes),
        precision=precision,
        dtype=dtype,
        autocast=autocast,
        clip_norm=clip_norm,
        compiler=compiler,
        keep=keep,
        weigh_every=weigh_every,
        workers=workers,
        shares=shares,
        patience=patience,
        start=make_start(start, problem, method, vectors[0], subproblems),
    )


def _check_shares(shares: BatchPartition, batch_size: int, strategy: str, workers: int | None) -> None:
    """Refuse what cannot be shared by several processes, or cut into parts."""
    if batch_size < shares.processes.size:
        raise ValueError(
            f"'batch_size' must be at least the number of processes ({shares.processes.size}), which share a batch. "
            f"Got {batch_size} instead."
        )
    if shares.processes.is_distributed and workers is not None and workers > 1:
        raise ValueError(f"'workers' must be 1 where several processes share a run. Got {workers} instead.")
    if not shares.whole and strategy == "graphed":
        raise ValueError(
            "'strategy' must not be \"graphed\" for batches that are cut into parts. Got 'graphed': take \"batched\" "
            'or "auto".'
        )


def check_problem(problem: Problem) -> None:
    """Refuse what only stands for a problem: its name, or the function that makes it."""
    if not isinstance(problem, Problem):
        name = getattr(problem, "__name__", None)
        given = repr(problem) if name is None else f"the function {name}"
        remedy = f" Call it: {name}()." if name is not None and name != "<lambda>" else ""
        if isinstance(problem, str) and problem in PROBLEMS:
            remedy = f" Write paretomtl.problems.PROBLEMS[{problem!r}]()."
        raise TypeError(
            f"'problem' must be a Problem, such as paretomtl.problems.synthetic(). Got {given} instead.{remedy}"
        )


def _check_patience(patience: int | None, problem: Problem) -> int | None:
    """The epochs without improvement after which a run ends, checked; None for no such end."""
    if patience is None:
        return None
    patience = as_whole(patience)
    check_count("patience", patience)
    if problem.val is None:
        raise ValueError(
            "'patience' must be None for a problem without a validation split, on which models improve. "
            f"Got {patience} instead: give the problem 'val'."
        )
    return patience


def _compiler(compile: bool | Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The arguments of ``torch.compile``; None where models are not compiled."""
    if isinstance(compile, bool):
        return {} if compile else None
    if not isinstance(compile, Mapping):
        raise TypeError(f"'compile' must be True, False or a dictionary. Got {compile!r} instead.")
    known = [name for name in inspect.signature(torch.compile).parameters if name != "model"]
    strangers = [name for name in compile if name not in known]
    if strangers:
        raise ValueError(f"'compile' must be arguments of torch.compile: {known}. Got {strangers[0]!r} instead.")
    return dict(compile)


def _checked_scheduler(made: Any, total: int) -> Any:
    """A scheduler, if it can schedule the whole run: a run that breaks off in the middle is lost."""
    if not hasattr(made, "step") or not hasattr(made, "state_dict"):
        kind = type(made).__name__
        raise TypeError(f"'scheduler' must make a learning rate scheduler of torch.optim. Got {kind} instead.")
    most = made.total_steps if isinstance(made, torch.optim.lr_scheduler.OneCycleLR) else total
    if most < total:
        raise ValueError(
            f"'scheduler' must have room for the {total} times that it is going to step. Got OneCycleLR with "
            f"total_steps={most} instead: write lambda optimizer, total: OneCycleLR(optimizer, 0.1, total)."
        )
    return made


def _vectors(
    method: Method, preferences: int | Tensor | Sequence[Sequence[float]] | None, tasks: int, seeds: Sequence[int]
) -> list[Tensor]:
    """For each seed the rows ``[K, m]`` that the user gave or asked for."""
    if preferences is None:
        preferences = method.usual_count(tasks)
    preferences = as_whole(preferences)
    if isinstance(preferences, (int, float)):
        check_count("preferences", preferences)
        _check_most(preferences)
        return [method.spread(preferences, tasks, seed=seed) for seed in seeds]
    try:
        rows = torch.as_tensor(preferences).detach()
        if rows.is_complex():
            raise TypeError
        rows = rows.double().cpu()
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"'preferences' must be a number or rows of numbers. Got {preferences!r} instead.") from None
    count = len(seeds)
    if rows.shape[-1:] != (tasks,) or rows.ndim not in (2, 3) or (rows.ndim == 3 and len(rows) != count):
        own = f", or [{count}, K, {tasks}], other ones for each seed" if count > 1 else ""
        shape = list(rows.shape)
        raise ValueError(f"'preferences' must be a number or have shape [K, {tasks}]{own}. Got {shape} instead.")
    _check_most(rows.shape[-2])
    each = rows if rows.ndim == 3 else rows.expand(count, -1, -1)
    return [vector_sets.validate(part) if method.reading == "direction" else part for part in each]


def _check_most(count: int) -> None:
    if count > MAX_SOLUTIONS:
        raise ValueError(
            f"'preferences' must be at most {MAX_SOLUTIONS:,}, as a front holds no more. Got {count:,} instead."
        )


def _chosen(only: Sequence[int] | None, count: int) -> list[int]:
    if only is None:
        return list(range(count))
    given = only.tolist() if hasattr(only, "tolist") else only
    chosen = [as_whole(k) for k in given] if isinstance(given, Iterable) else []
    whole = all(isinstance(k, int) and not isinstance(k, bool) for k in chosen)
    if not chosen or not whole or len(set(chosen)) < len(chosen) or not all(0 <= k < count for k in chosen):
        got = list(only) if isinstance(only, Iterable) else only
        raise ValueError(f"'only' must be distinct subproblems from 0 to {count - 1}. Got {got} instead.")
    return chosen


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise ValueError(f"'{name}' must be one of {list(choices)}. Got {value!r} instead.")
