"""Capture: whether a step can be captured in a CUDA graph, and how long a replay takes.

Before the capture, one step runs under CUDA's sync debug mode. A capture that fails leaves torch's random generator
unusable, and an empty capture is needed to repair it.
"""

from __future__ import annotations

import itertools
import operator
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from paretomtl._support.random_state import host_random_state, seed_everything
from paretomtl.engine.autotune.trial import Trial, describe_error, quiet, release_memory
from paretomtl.engine.batches.base import Batches, OneBatch
from paretomtl.engine.batches.indexed import ResidentBatches
from paretomtl.engine.history import EpochHistory
from paretomtl.engine.model_group import Group
from paretomtl.engine.models.single import Single
from paretomtl.engine.optimizers import CAPTURABLE, RATE_ON_DEVICE
from paretomtl.engine.runners.cuda_graph import GraphRunner
from paretomtl.engine.runners.eager import EagerRunner
from paretomtl.engine.step import StepInput

_STEPS = 5  # of a trial: some launched, one captured, some replayed
_TIMED = 3  # how many replays are timed
_TOLERANCE = {torch.float64: 1e-7}
_COARSE = 2e-2  # sums in another order, over some steps


def find_obstacle(train: Batches) -> str | None:
    """Why no step on these batches can be captured, as far as that is known without a step."""
    if isinstance(train, OneBatch):
        return "the problem has no data"
    if not isinstance(train, ResidentBatches):
        return "the training data are not tensors that lie on the device as a whole"
    if train.in_micro_batches:
        return "batches are cut into parts"
    return None if train.order.device.type == "cuda" else "there is no CUDA device"


def try_capture(
    groups: Callable[[], list[Group]], train: Batches, total: int, *, schedule: str, workers: int = 1
) -> Trial:
    """Try on copies whether the step can be captured, and time its replays.

    Args:
        groups: makes the same models at each call, in new memory.
        train: the batches of the run.
        total: how many steps are planned.
        schedule: whether learning rates change each "epoch" or each "step".
        workers: how many groups step side by side.
    """
    why = find_obstacle(train)
    if why is not None:
        return Trial(why)
    assert isinstance(train, ResidentBatches)
    device = train.order.device
    try:
        with quiet():
            made = groups()
            why = _find_optimizer_obstacle(made[0], groups, schedule)
            if why is not None:
                return Trial(why)
            shape = (sum(group.models.count for group in made), len(made[0].models.problem.tasks))
            _check_no_sync(EagerRunner(groups(), train, EpochHistory(*shape, device), total))
            launched_groups = groups()
            numbers = _python_numbers(launched_groups)
            tensors = _kept_tensors(launched_groups)
            launched = _mean_losses(EagerRunner(launched_groups, train, EpochHistory(*shape, device), total)).double()
            if _python_numbers(launched_groups) != numbers:
                return Trial("the model keeps numbers in Python that change from step to step")
            now = _kept_tensors(launched_groups)
            if len(now) != len(tensors) or not all(map(operator.is_, now, tensors)):
                return Trial("the model replaces tensors that it keeps from step to step")
            runner = GraphRunner(made, train, EpochHistory(*shape, device), total, workers=workers)
            replayed = _mean_losses(runner).double()
            seconds = _time_replay(runner)
    except Exception as error:
        _reset_after_failed_capture()
        return Trial(describe_error(error))
    precision = next(iter(made[0].models.trained.values())).dtype
    if not torch.allclose(launched, replayed, rtol=_TOLERANCE.get(precision, _COARSE), atol=1e-12, equal_nan=True):
        return Trial("replays of the captured step give other losses than steps that are launched")
    return Trial(seconds=seconds)


def _find_optimizer_obstacle(group: Group, groups: Callable[[], list[Group]], schedule: str) -> str | None:
    """Why an optimizer or its scheduler cannot be captured."""
    kind = type(group.optimizer)
    if kind not in CAPTURABLE:
        return f"{kind.__name__} cannot be captured"
    stepped = group.scheduler is not None and schedule == "step"
    if stepped and kind not in RATE_ON_DEVICE:
        return f"{kind.__name__} would have to be captured again at each step, as its learning rate changes"
    if stepped and _changes_more_than_rates(groups()[0]):
        return "the scheduler changes more than learning rates at each step, which would be captured again"
    return None


def _mean_losses(runner: EagerRunner) -> torch.Tensor:
    """The mean losses of a few steps, enough for batches of the usual size to be replayed.

    Losses rather than parameters: a bias before a normalisation has no effect, and follows rounding alone.
    """
    assert isinstance(runner.train, ResidentBatches)
    seed_everything(0)
    sizes = runner.train.sizes()
    epoch = number = usual = 0
    while usual < _STEPS:
        for size, item in zip(sizes, runner.epoch(0, epoch, 0, number), strict=False):
            if usual < _STEPS:
                runner.step(item, number)
                runner.history.count()
                number += 1
                usual += size == sizes[0]
        epoch += 1
    runner.history.end_epoch()
    return runner.history.last("losses")


def _time_replay(runner: GraphRunner) -> float:
    """The shortest time of a few replays of a batch of the usual size."""
    times = []
    for number in range(_TIMED):
        item = next(runner.epoch(0, number, 0, number))
        torch.cuda.synchronize()
        began = time.perf_counter()
        runner.step(item, number)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return min(times)


def _changes_more_than_rates(group: Group) -> bool:
    """Whether a scheduler changes options that a capture freezes, such as momentum."""
    assert group.scheduler is not None

    def fixed() -> list[dict[str, Any]]:
        left_out = ("params", "param_names", "lr", "initial_lr")
        return [{k: v for k, v in part.items() if k not in left_out} for part in group.optimizer.param_groups]

    before = fixed()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no step came before
        group.scheduler.step()
    return fixed() != before


def _python_numbers(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """The plain numbers that models and their classes keep, which a replay would not change."""
    return [
        {
            f"{name}.{kind.__name__}.{key}": value
            for name, module in group.models.module.named_modules()
            for kind, kept in _namespaces(module)
            for key, value in kept.items()
            if isinstance(value, (int, float))
        }
        for group in groups
    ]


def _namespaces(module: nn.Module) -> Iterator[tuple[type, Mapping[str, Any]]]:
    """The attributes of a module, and those of its classes, up to torch's own."""
    yield object, vars(module)
    for kind in itertools.takewhile(lambda kind: kind is not nn.Module, type(module).__mro__):
        yield kind, vars(kind)


def _kept_tensors(groups: Sequence[Group]) -> list[torch.Tensor]:
    """The tensors that ordinary modules keep in addition to their parameters, which a replay would not replace."""
    return [
        value
        for group in groups
        if isinstance(group.models, Single)
        for module in group.models.module.modules()
        for value in (*module.buffers(recurse=False), *vars(module).values())
        if isinstance(value, torch.Tensor)
    ]


def _check_no_sync(runner: EagerRunner) -> None:
    """Raise if a step waits for the device, or draws on the host; a capture that fails would leave more to repair."""
    assert isinstance(runner.train, ResidentBatches)
    given = StepInput(next(runner.epoch(0, 0, 0, 0)), 0, runner.total, labelled=runner.train.labelled())
    before = host_random_state()
    runner.launch(given)
    if host_random_state() != before:
        raise RuntimeError("a step draws random numbers on the host, which replays would not draw again")
    mode = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        runner.launch(given)
    finally:
        torch.cuda.set_sync_debug_mode(mode)


def _reset_after_failed_capture() -> None:
    """Capture an empty graph: after a failed capture, torch's random generator acts as if it were still capturing."""
    release_memory()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            torch.zeros((), device="cuda")
