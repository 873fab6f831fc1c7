"""Checks of options: each by the rule that it declares, then with the problem and with each other."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from paretomtl._support.argument_checks import check_count, check_not_negative, check_positive, check_share, quote
from paretomtl._support.factories import check_factories
from paretomtl.engine.batches.partition import BatchPartition
from paretomtl.methods import Method
from paretomtl.problems import PROBLEMS, Problem
from paretomtl.training.options import DEFAULTS, RULES, TrainingOptions


def check_problem(problem: Problem) -> None:
    """Refuse a problem's name, or the function that makes it, in place of the problem."""
    if not isinstance(problem, Problem):
        name = getattr(problem, "__name__", None)
        given = quote(problem) if name is None else f"the function {name}"
        remedy = f" Call it: {name}()." if name is not None and name != "<lambda>" else ""
        if isinstance(problem, str) and problem in PROBLEMS:
            remedy = f" Write paretomtl.problems.PROBLEMS[{problem!r}]()."
        raise TypeError(
            f"'problem' must be a Problem, such as paretomtl.problems.synthetic(). Got {given} instead.{remedy}"
        )


def check_options(options: TrainingOptions) -> TrainingOptions:
    """Check each option by its rule; numbers of NumPy and torch become Python numbers."""
    if options.precision == "float16":
        raise ValueError(
            '\'precision\' must not be "float16", whose gradients overflow: take "bfloat16", or a loop of your own '
            "with backward(scaler=...). Got 'float16' instead."
        )
    numbers: dict[str, Any] = {}
    for name, rule in RULES.items():
        value = getattr(options, name)
        if rule.choices and value not in rule.choices:
            raise ValueError(f"'{name}' must be one of {list(rule.choices)}. Got {quote(value)} instead.")
        if rule.number is None or (value is None and DEFAULTS[name] is None):
            continue
        if rule.number == "count":
            numbers[name] = check_count(name, value)
        elif rule.number == "share":
            check_share(name, value)
            numbers[name] = float(value)
        else:
            check_positive(name, value)
            numbers[name] = float(value)
    check_factories(options.optimizer, options.scheduler)
    return replace(options, **numbers)


def check_seeds(seeds: Sequence[int]) -> list[int]:
    """Check the seeds, and return them as Python numbers."""
    if not isinstance(seeds, Iterable):
        raise TypeError(f"'seeds' must be one or more numbers, such as range(3). Got {quote(seeds)} instead.")
    checked = [check_not_negative("seed", seed) for seed in (seeds.tolist() if hasattr(seeds, "tolist") else seeds)]
    if not checked:
        raise ValueError("'seeds' must be one or more numbers, such as range(3). Got none.")
    for seed in checked:
        if seed >= 2**38:
            raise ValueError(f"'seed' must be under 2**38. Got {seed} instead.")
    return checked


def check_combinations(options: TrainingOptions, problem: Problem) -> None:
    """Refuse options that cannot be combined with each other, or with this problem."""
    workers, accumulate = options.workers, options.accumulate
    if workers is not None and workers > 1 and options.strategy in ("batched", "graphed"):
        raise ValueError(
            f"'workers' must be left out for a stack, which is one group. Got {workers} instead: take "
            'strategy="sequential" for models side by side.'
        )
    if accumulate > 1 and problem.representation is not None:
        raise ValueError(
            f"'accumulate' must be 1 for a problem with a 'representation', whose graph is needed until the tasks are "
            f"weighed. Got {accumulate} instead."
        )
    if options.keep == "best" and problem.val is None:
        raise ValueError(
            "'keep' must be \"last\" for a problem without a validation split. Got 'best' instead: give the problem "
            "'val' to keep the best epoch."
        )
    if options.compile and problem.representation is not None:
        raise ValueError(
            "'compile' must be off for a problem with a 'representation', which is taken out in mid-pass. "
            f"Got {quote(options.compile)} instead."
        )
    if options.patience is not None and problem.val is None:
        raise ValueError(
            "'patience' must be None for a problem without a validation split, on which models improve. "
            f"Got {options.patience} instead: give the problem 'val'."
        )


def check_branch(options: TrainingOptions, method: Method) -> None:
    """Refuse a shared start for models that would stay the same, or that begin with those of a front."""
    if options.branch is None:
        return
    if options.start is not None:
        raise ValueError(
            f"'branch' must be None with 'start', whose models begin apart. Got {options.branch} instead: leave out "
            "one of them."
        )
    if method.reading == "start" or method.separate:
        why = "trains separate networks" if method.separate else "tells its models apart by their starts alone"
        raise ValueError(
            f"'branch' must be None for the method '{method.name}', which {why}. Got {options.branch} instead."
        )


def check_shares(shares: BatchPartition, batch_size: int, options: TrainingOptions) -> None:
    """Refuse runs that several processes cannot share, or that cannot be cut into parts."""
    if batch_size < shares.processes.size:
        raise ValueError(
            f"'batch_size' must be at least the number of processes ({shares.processes.size}), which share a batch. "
            f"Got {batch_size} instead."
        )
    if shares.processes.is_distributed and options.workers is not None and options.workers > 1:
        raise ValueError(f"'workers' must be 1 where several processes share a run. Got {options.workers} instead.")
    if not shares.whole and options.strategy == "graphed":
        raise ValueError(
            "'strategy' must not be \"graphed\" for batches that are cut into parts. Got 'graphed': take \"batched\" "
            'or "auto".'
        )


def compiler_arguments(compile: bool | Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The arguments of ``torch.compile``; None if models are not compiled."""
    if isinstance(compile, bool):
        return {} if compile else None
    if not isinstance(compile, Mapping):
        raise TypeError(f"'compile' must be True, False or a dictionary. Got {quote(compile)} instead.")
    known = [name for name in inspect.signature(torch.compile).parameters if name != "model"]
    strangers = [name for name in compile if name not in known]
    if strangers:
        raise ValueError(f"'compile' must be arguments of torch.compile: {known}. Got {strangers[0]!r} instead.")
    return dict(compile)
