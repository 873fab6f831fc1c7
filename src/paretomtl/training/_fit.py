from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor

from paretomtl.core import _preferences as vector_sets
from paretomtl.core._shapes import check_count, check_not_negative
from paretomtl.front import Front
from paretomtl.methods import Method, resolve_method, slice_state
from paretomtl.problems import Problem
from paretomtl.training._gradients import Stack, isolated_randomness
from paretomtl.training._step import Training, train_step

OptimizerFactory: TypeAlias = Callable[[Iterable[tuple[str, Tensor]]], torch.optim.Optimizer]

ELEMENTWISE = (
    torch.optim.SGD,
    torch.optim.Adam,
    torch.optim.AdamW,
    torch.optim.Adamax,
    torch.optim.NAdam,
    torch.optim.RAdam,
    torch.optim.RMSprop,
    torch.optim.Adagrad,
    torch.optim.Adadelta,
    torch.optim.Rprop,
)
"""Optimizers of torch.optim that treat each number on its own: a stack of models trains as the models would alone."""

_PRECISIONS = {"float32": torch.float32, "float64": torch.float64}


def fit(
    problem: Problem,
    method: str | Method = "pareto-mtl",
    preferences: int | Tensor | Sequence[Sequence[float]] | None = None,
    *,
    epochs: int,
    seed: int = 0,
    optimizer: OptimizerFactory | None = None,
    device: torch.device | str | None = None,
    precision: str = "float32",
    only: Sequence[int] | None = None,
) -> Front:
    """Train one model per preference, all at once (paper, algorithm 1).

    Args:
        problem: the model factory and its losses; for a problem without data an epoch is one step. All models run at
            once under ``torch.vmap``, cast to ``precision``; what the losses refer to is not cast.
        method: a name such as "pareto-mtl", or a configured :class:`~paretomtl.methods.Method`.
        preferences: how many, spread as the method does by default (5, or one per task for "single-task"); or the rows
            ``[K, m]`` themselves: directions of the loss vector for Pareto MTL, importances for linear scalarization.
        epochs: how long to train.
        seed: model k starts from (seed, k); dropout draws from it too.
        optimizer: makes an optimizer from named parameters; Adam with its defaults when left out.
        device: where to train; the GPU if there is one.
        precision: "float32" or "float64".
        only: train some of the subproblems, against the regions of all.

    Example:
        >>> import torch, paretomtl as pm
        >>> sgd = lambda parameters: torch.optim.SGD(parameters, lr=1.0)
        >>> front = pm.fit(pm.problems.synthetic(), preferences=3, epochs=100, optimizer=sgd)
        >>> front.in_region()
        tensor([True, True, True])
    """
    return fit_seeds(
        problem,
        method,
        preferences,
        epochs=epochs,
        seeds=[seed],
        optimizer=optimizer,
        device=device,
        precision=precision,
        only=only,
    )[0]


def fit_seeds(
    problem: Problem,
    method: str | Method = "pareto-mtl",
    preferences: int | Tensor | Sequence[Sequence[float]] | None = None,
    *,
    epochs: int,
    seeds: Sequence[int],
    optimizer: OptimizerFactory | None = None,
    device: torch.device | str | None = None,
    precision: str = "float32",
    only: Sequence[int] | None = None,
) -> list[Front]:
    """:func:`fit` for several seeds in one stack: the same fronts, dropout draws aside, in not much more time."""
    method = resolve_method(method)
    check_count("epochs", epochs)
    if not seeds:
        raise ValueError("'seeds' must be one or more numbers. Got none.")
    for seed in seeds:
        check_not_negative("seed", seed)
        if seed >= 2**40:
            raise ValueError(f"'seed' must be under 2**40. Got {seed} instead.")
    if precision not in _PRECISIONS:
        raise ValueError(f"'precision' must be one of {sorted(_PRECISIONS)}. Got {precision!r} instead.")
    device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))

    vectors = [_rows(method, preferences, len(problem.tasks), seed) for seed in seeds]
    chosen = _chosen(only, len(vectors[0]))
    states = [slice_state(method.init(rows), chosen) for rows in vectors]
    state = {name: torch.cat([part[name] for part in states]).to(device) for name in states[0]}
    stack = Stack(problem.model, [_start(seed, k) for seed in seeds for k in chosen], device, _PRECISIONS[precision])
    alive = torch.ones(len(seeds) * len(chosen), dtype=torch.bool, device=device)
    training = Training(problem, method, stack, _optimizer(optimizer, stack), state, alive, stack.copy())
    _check_losses(training)

    began = time.perf_counter()
    kept = method.snapshots(epochs)
    stages = []
    trace = []
    with isolated_randomness():
        torch.manual_seed(seeds[0])
        for number in range(epochs):
            if number in kept:
                stages.append(_stage(training))
            trace.append(train_step(training, number=number, total=epochs))
    stages.append(_stage(training))
    seconds = time.perf_counter() - began
    history = [torch.stack(part).cpu() for part in zip(*trace, strict=True)]

    fronts = []
    for i, seed in enumerate(seeds):
        part = slice(i * len(chosen), (i + 1) * len(chosen))
        common: dict[str, Any] = {
            "problem": problem.name,
            "tasks": tuple(problem.tasks),
            "method": method.name,
            "reading": method.reading,
            "preferences": vectors[i],
            "subproblems": tuple(chosen),
            "history": {"losses": history[0][:, part], "weights": history[1][:, part]},
            "seed": seed,
            "seconds": seconds,
            "model_factory": problem.model,
        }
        front = stages[0].front(part, snapshot=None, **common)
        for stage in stages[1:]:
            front = stage.front(part, snapshot=front, **common)
        fronts.append(front)
    return fronts


@dataclass(frozen=True)
class _Stage:
    """The stack at one moment: final, or right before the constraints are dropped."""

    losses: Tensor
    status: list[str]
    since: list[int] | None
    scale: Tensor | None
    parameters: dict[str, Tensor]

    def front(self, part: slice, **common: Any) -> Front:
        """The front of some rows of the stack at this moment."""
        return Front(
            losses={"train": self.losses[part]},
            status=self.status[part],
            since=None if self.since is None else self.since[part],
            scale=None if self.scale is None else self.scale[part],
            parameters={name: tensor[part] for name, tensor in self.parameters.items()},
            **common,
        )


@torch.no_grad()
def _stage(training: Training) -> _Stage:
    """Evaluate all models, in eval mode; one whose losses are no longer finite goes back to its last step."""
    stack, method, state = training.stack, training.method, training.state
    modes = {module: module.training for module in stack.template.modules()}
    stack.template.eval()
    losses = stack.losses(training.problem.losses)
    training.alive = training.alive & losses.isfinite().all(-1)
    stack.restore(~training.alive, training.previous)
    losses = stack.losses(training.problem.losses)
    for module, mode in modes.items():
        module.training = mode
    words = method.status(state, losses)
    status = [word if alive else "non-finite" for word, alive in zip(words, training.alive.tolist(), strict=True)]
    scale = method.scale_of(state)
    parameters = {name: tensor.cpu() for name, tensor in stack.copy().items()}
    return _Stage(losses.cpu(), status, method.since(state), None if scale is None else scale.cpu(), parameters)


def _rows(
    method: Method, preferences: int | Tensor | Sequence[Sequence[float]] | None, tasks: int, seed: int
) -> Tensor:
    """The rows ``[K, m]`` that the user gave or asked for."""
    if preferences is None:
        preferences = method.usual_count(tasks)
    if isinstance(preferences, int):
        check_count("preferences", preferences)
        return method.spread(preferences, tasks, seed=seed)
    rows = torch.as_tensor(preferences).detach().double().cpu()
    if rows.ndim != 2 or rows.shape[1] != tasks:
        raise ValueError(f"'preferences' must be a number or have shape [K, {tasks}]. Got {list(rows.shape)} instead.")
    return vector_sets.validate(rows) if method.reading == "direction" else rows


def _chosen(only: Sequence[int] | None, count: int) -> list[int]:
    chosen = list(range(count)) if only is None else list(only)
    if not chosen or len(set(chosen)) < len(chosen) or not all(0 <= k < count for k in chosen):
        raise ValueError(f"'only' must be distinct subproblems from 0 to {count - 1}. Got {chosen} instead.")
    return chosen


def _optimizer(factory: OptimizerFactory | None, stack: Stack) -> torch.optim.Optimizer:
    optimizer = (factory or torch.optim.Adam)(list(stack.trained.items()))
    if type(optimizer) not in ELEMENTWISE:
        names = ", ".join(kind.__name__ for kind in ELEMENTWISE)
        raise ValueError(
            f"'optimizer' must treat each number on its own to train stacked models: one of {names}. "
            f"Got {type(optimizer).__name__} instead."
        )
    return optimizer


def _start(seed: int, k: int) -> int:
    """The random state from which model k of a seed is made."""
    return seed * 2**20 + k


def _check_losses(training: Training) -> None:
    """Find a wrong model or wrong ``losses`` before anything is trained; leave the models as they were."""
    stack, tasks = training.stack, len(training.problem.tasks)
    try:
        with isolated_randomness():
            found = stack.losses(training.problem.losses)
    except Exception as error:
        error.add_note(
            "paretomtl.fit calls model() without arguments, for all models at once under torch.vmap. A model that "
            "takes batches, or that vmap cannot run, trains through paretomtl.backward."
        )
        raise
    stack.restore(torch.ones_like(training.alive), training.previous)
    if found.shape[1:] != (tasks,):
        raise ValueError(f"'losses' must return shape [{tasks}], one per task. Got {list(found.shape[1:])} instead.")
    if not found.is_floating_point():
        raise TypeError(f"'losses' must return a floating-point tensor. Got {found.dtype} instead.")
    if not found.requires_grad:
        raise ValueError("'losses' must depend on the model's parameters. Got losses attached to none of them.")
    if training.method.reading == "direction" and bool((found < 0).any()):
        warnings.warn(
            f"losses are negative at the start ({found.min().item():.3g}): preferences are directions of non-negative "
            "losses. Add a constant, or subtract each loss's lower bound.",
            stacklevel=4,
        )
