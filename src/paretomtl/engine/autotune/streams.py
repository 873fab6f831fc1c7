"""Streams: whether ordinary modules can be captured side by side in one graph, and how fast a step is.

A wide convolution fills the GPU alone. vmap would turn it into a grouped one, which is slower, and under autocast it
cannot stack batch normalisation at all. Replays of both ways are timed if a convolution has more channels than the
kernels for stacks support. Otherwise a stack is used without a comparison, because it has fewer launches. There are at
most eight streams, because each holds the activations of a model, and fewer if these do not fit.

Convolutions are channels-last if one step gives the same losses that way, which a ``view`` of the images prevents.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from paretomtl.engine.autotune.capture import find_obstacle, try_capture
from paretomtl.engine.autotune.trial import Trial, quiet
from paretomtl.engine.batches.base import Batches
from paretomtl.engine.kernels.stacked_layers import CHANNELS
from paretomtl.engine.models.module_checks import has_hooks
from paretomtl.engine.models.modules import copy_modules, own_tensors
from paretomtl.engine.step import StepInput, measure
from paretomtl.engine.strategy import Plan
from paretomtl.methods import State, slice_state

_MAX_STREAMS = 8  # with more, activations take memory and hardly any time is saved
_COPIES = 5  # of a model's values: themselves, of one and two steps ago, and two that an optimizer may keep
_TOLERANCE = 2e-2  # of losses; another layout is another order of sums


def try_streams(
    plan: Plan, modules: Sequence[nn.Module], state: State, train: Batches, batch: Any, total: int
) -> Trial:
    """Try on copies of some ordinary modules whether they can be captured, and estimate the time of a step of all.

    Each stream holds its own activations. If they do not fit into memory, there are fewer streams.
    """
    why = find_obstacle(train)
    if why is None and any(has_hooks(module) for module in modules):
        why = "gradients go through hooks, which may do something else at each step"
    if why is not None:
        return Trial(why)
    workers = min(_MAX_STREAMS, len(modules))
    count = plan.rows_of_trial(workers, len(modules))
    channels_last = _suits_channels_last(plan, modules[0], state, batch, total)
    some = slice_state(state, slice(0, count))
    device = next(iter(state.values())).device
    while True:
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        trial = try_capture(
            lambda: plan.on_streams(copy_modules(modules[:count]), some, channels_last=channels_last),
            train,
            total,
            schedule=plan.schedule,
            workers=workers,
        )
        if trial.why_not is None or workers == 1 or "out of memory" not in trial.why_not.lower():
            break
        workers //= 2
    why = trial.why_not
    if why is None and count < len(modules):
        why = _describe_shortage(modules, count, torch.cuda.max_memory_allocated(device) - before, device)
    seconds = trial.seconds * len(modules) / count
    return Trial(why, seconds, workers=workers, channels_last=channels_last)


def has_wide_convolutions(module: nn.Module) -> bool:
    """Whether a convolution has more channels than the kernels for stacks support."""
    return any(p.ndim == 4 and max(p.shape[:2]) > CHANNELS for p in module.parameters())


def _suits_channels_last(plan: Plan, module: nn.Module, state: State, batch: Any, total: int) -> bool:
    """Whether convolutions can be channels-last and gain from it: the model must give the same losses."""
    if not any(p.ndim == 4 for p in module.parameters()):
        return False
    losses = []
    try:
        with quiet():
            for last in (False, True):
                (group,) = plan.on_streams([copy.deepcopy(module)], slice_state(state, slice(0, 1)), channels_last=last)
                measured = measure(group, StepInput(batch, 0, total))
                losses.append(measured.losses)
                measured.combine(torch.ones_like(measured.losses))  # the backward pass must run as well
    except Exception:  # such as a view of a tensor that is no longer contiguous
        return False
    return torch.allclose(losses[0], losses[1], rtol=_TOLERANCE, atol=1e-12, equal_nan=True)


def _describe_shortage(modules: Sequence[nn.Module], count: int, peak: int, device: torch.device) -> str | None:
    """Why not all models fit, if ``count`` of them take ``peak`` bytes; None if all fit."""
    each = _COPIES * sum(tensor.nbytes for tensor in own_tensors(modules[0]).values())
    need = peak + (len(modules) - count) * each
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    room = torch.cuda.mem_get_info(device)[0] + unused
    if need <= room:
        return None
    return f"all models would need about {need / 2**30:.1f} GiB, and {room / 2**30:.1f} GiB are free"
