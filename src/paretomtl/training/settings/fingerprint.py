"""Fingerprints of a run: its data, its model, its schedule, and the losses that it starts from.

A stored run is resumed, and a stored row is reused, only if these are the same.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from paretomtl._support.factories import make_scheduler
from paretomtl._support.random_state import isolated_randomness, model_seed, own_states_kept
from paretomtl._support.splits import SPLITS
from paretomtl._support.tensor_json import to_numbers
from paretomtl.engine.batches.base import Batches
from paretomtl.engine.batches.indexed import ResidentBatches
from paretomtl.engine.batches.make import make_batches
from paretomtl.engine.batches.task_batches import TaskBatches
from paretomtl.engine.models.modules import make_modules
from paretomtl.engine.parameters import name_parameters
from paretomtl.methods import describe
from paretomtl.problems import OptimizerFactory, Problem, Recipe, SchedulerFactory
from paretomtl.problems.metrics import measure

_LONGEST = 20_000  # characters of the longest description that is stored; longer ones become a checksum
_RATES = 1_000  # steps over which the learning rates of a schedule are compared
_TOLERANCE = {"float64": 1e-7, "float32": 1e-4, "bfloat16": 1e-4, "tf32": 2e-2}
"""By precision, because another processor sums in another order; under bfloat16, parameters are float32."""

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def identify_problem(
    problem: Problem,
    optimizer: OptimizerFactory | None = None,
    scheduler: SchedulerFactory | None = None,
    device: torch.device | str | None = None,
) -> dict[str, Any]:
    """The identity of a problem, as JSON: the same for the same problem, in any process and on any machine.

    Args:
        problem: what is trained.
        optimizer: in place of that of the problem's recipe.
        scheduler: the same.
        device: where the first losses are computed; the GPU if there is one.

    Example:
        >>> from paretomtl.problems import quadratic
        >>> sorted(identify_problem(quadratic()))
        ['data', 'metrics', 'model', 'recipe', 'shared', 'start', 'tasks']
    """
    here = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    with isolated_randomness():
        (module,) = make_modules(problem, [model_seed(0, 0)], here, torch.float32)
        splits = {
            name: make_batches(name, data, batch_size=256, device=here, dtype=torch.float32)
            for name in ("train", "val", "test")
            if (data := getattr(problem, name)) is not None or name == "train"
        }
        described = describe_problem(problem, module, splits)
        start = measure_start(problem, module, splits["train"], described)
        recipe = _describe_recipe(problem.recipe, module, optimizer, scheduler)
    identity = {"tasks": list(problem.tasks), **described, "model": checksum(described["model"])}
    return {**identity, "recipe": checksum(recipe), "start": start}


def describe_problem(problem: Problem, module: nn.Module, splits: Mapping[str, Batches]) -> dict[str, Any]:
    """Data, model, shared parameters and metrics of a problem, as JSON."""
    apart = problem.shared is not None or problem.representation is not None
    trained = [name for name, _ in _trained(module)]
    return {
        "data": {name: fingerprint(batches) for name, batches in splits.items()},
        "model": _shortened(_ADDRESS.sub("", repr(module))),
        "shared": _shortened(json.dumps([name for name in trained if problem.is_shared(name)])) if apart else None,
        "metrics": {name: metric.better for name, metric in problem.metrics.items()},
    }


def _describe_recipe(
    recipe: Recipe, module: nn.Module, optimizer: OptimizerFactory | None, scheduler: SchedulerFactory | None
) -> list[Any]:
    """How a problem is trained by default; factories are described by what they make."""
    make = optimizer or recipe.optimizer
    planned = recipe.scheduler if scheduler is None else scheduler
    if planned is not None:
        scheduler = lambda made: make_scheduler(planned, made, _RATES)  # noqa: E731
    methods = {name: describe(method) for name, method in recipe.methods.items()}
    made = None if make is None else _ADDRESS.sub("", repr(make(_trained(copy.deepcopy(module)))))
    schedule = describe_schedule(scheduler, make, module, _RATES)
    return [recipe.epochs, recipe.batch_size, made, schedule, recipe.schedule, methods]


def _trained(module: nn.Module) -> list[tuple[str, Tensor]]:
    return name_parameters({name: each for name, each in module.named_parameters() if each.requires_grad})


def describe_schedule(
    scheduler: SchedulerFactory | None, optimizer: OptimizerFactory | None, module: nn.Module, steps: int
) -> dict[str, Any] | None:
    """The settings of a scheduler, and a checksum of its first learning rates, because lambdas show nothing else.

    Args:
        scheduler: makes it.
        optimizer: makes what it schedules; None for Adam.
        module: a model, which is not changed.
        steps: how many times it will step; 0 if unknown.
    """
    if scheduler is None:
        return None
    made = (optimizer or torch.optim.Adam)(_trained(copy.deepcopy(module)))
    schedule = scheduler(made)
    settings = _ADDRESS.sub("", repr(schedule.state_dict()))
    rates = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no optimizer steps here
        for _ in range(min(steps, _RATES) or _RATES):
            rates.append([float(group["lr"]) for group in made.param_groups])
            schedule.step()
    return {"kind": type(schedule).__name__, "settings": _shortened(settings), "rates": checksum(rates)}


def fingerprint(batches: Batches) -> str | None:
    """A checksum of the data of a split: of whole tensors, and of some samples of other data.

    None if samples differ from one draw to the next, or belong to one process of several.
    """
    if isinstance(batches, ResidentBatches):
        return digest(batches.whole())
    if isinstance(batches, TaskBatches):
        parts = {task: fingerprint(part) for task, part in batches.parts.items()}
        return None if None in parts.values() else digest([parts, batches.mode])
    draws = [_draw(batches) for _ in range(2)]
    if draws[0] is None or draws[1] is None:
        return None
    one, other = (digest((draw, batches.samples)) for draw in draws)
    return one if one == other else None


def identify_data(problem: Problem) -> dict[str, tuple[str, Any]]:
    """By split, a checksum of its data and a few of its samples, on the CPU; without splits whose samples are random.

    It is the same for every batch size, precision and device.
    """
    sources = [getattr(problem, name) for name in SPLITS]
    found = {}
    with own_states_kept(sources):
        for name, data in zip(SPLITS, sources, strict=True):
            if data is None and name != "train":
                continue
            with suppress(Exception):  # unreadable data must not cost trained models
                batches = make_batches(name, data, batch_size=256, device=torch.device("cpu"), dtype=torch.float32)
                known = "none" if data is None else fingerprint(batches)
                if known is not None:
                    found[name] = known, _draw(batches)
    return found


def measure_start(
    problem: Problem, module: nn.Module, train: Batches, described: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Losses and metrics of an untrained model in eval mode on some samples; None for data without a fingerprint.

    A metric that has no value on few samples is left out. ``described`` is what :func:`describe_problem` returned.
    """
    if problem.train is not None and described["data"]["train"] is None:
        return None
    model, batch = copy.deepcopy(module).eval(), _draw(train)
    with isolated_randomness(0):
        losses, outputs = problem.run(model, batch)
        seen = (model, [batch])
        if problem.metrics and not problem.takes_model:
            seen = (outputs, problem.split_batch(batch)[1])
        metrics = {}
        for name, metric in problem.metrics.items():
            try:
                with warnings.catch_warnings(), torch.no_grad():
                    warnings.simplefilter("ignore")
                    value = float(measure(problem, metric, *seen))
            except Exception:  # such as a class that is missing in a small sample
                continue
            metrics[name] = value
    return {"losses": to_numbers(losses.detach()), "metrics": to_numbers(metrics)}


def differing_start(stored: Any, measured: Any, precision: str = "float32") -> str | None:
    """The difference between two measurements of a start, in words; None if they agree or one is unknown."""
    if not isinstance(stored, dict) or not isinstance(measured, dict):
        return None
    tolerance = _TOLERANCE[precision]
    if not _close(stored.get("losses"), measured["losses"], tolerance):
        return (
            f"the losses of the untrained first model on some samples were {stored.get('losses')}, and are "
            f"{measured['losses']}: the model, 'losses' or the data have changed"
        )
    old = stored.get("metrics") or {}
    for name, value in measured["metrics"].items():
        if name in old and not _close(old[name], value, tolerance):
            return f"the metric {name!r} of the untrained first model was {old[name]}, and is {value}"
    return None


def checksum(value: Any) -> str:
    """A checksum of sixteen characters of a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _draw(batches: Batches) -> Any:
    with isolated_randomness(0):
        return batches.probe()


def digest(value: Any) -> str:
    """A checksum of sixteen characters of a batch or a part of one."""
    made = hashlib.sha256()
    _feed(made, value)
    return made.hexdigest()[:16]


def _feed(digest: Any, value: Any) -> None:
    """Add a value of a batch to a checksum: its type, its shape and its bytes."""
    if isinstance(value, Tensor):
        there = value.detach().cpu().contiguous()
        digest.update(f"{there.dtype} {list(there.shape)}".encode())
        digest.update(memoryview(there.reshape(-1).view(torch.uint8).numpy()))  # type: ignore[arg-type]
    elif isinstance(value, np.ndarray):
        digest.update(f"{value.dtype} {value.shape}".encode() + value.tobytes())
    elif isinstance(value, Mapping):
        for name, part in value.items():
            digest.update(f"{name!r}:".encode())
            _feed(digest, part)
    elif isinstance(value, (tuple, list)):
        digest.update(f"{len(value)}".encode())
        for part in value:
            _feed(digest, part)
    else:
        digest.update(_ADDRESS.sub("", repr(value)).encode(errors="backslashreplace"))


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else checksum(text)


def _close(one: Any, other: Any, tolerance: float) -> bool:
    if isinstance(one, Sequence) and isinstance(other, Sequence):
        return len(one) == len(other) and all(_close(a, b, tolerance) for a, b in zip(one, other, strict=True))
    if not isinstance(one, (int, float)) or not isinstance(other, (int, float)):
        return one is None and other is None
    return math.isclose(one, other, rel_tol=tolerance, abs_tol=1e-2 * tolerance)
