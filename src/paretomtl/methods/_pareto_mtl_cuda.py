"""A step of Pareto MTL as one CUDA kernel; the code around it launches nothing else for contiguous tensors."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from torch import Tensor

from paretomtl._support.cuda import kernel
from paretomtl.core.min_norm_cuda import SOLVER, readable, shared_memory
from paretomtl.methods.inputs import State, Step

_SOURCES = (SOLVER, Path(__file__).with_name("pareto_mtl.cu"))
_FRACTIONAL = ("rows", "losses", "scale")
_WHOLE = ("phase", "status", "since")
RETURNED = "returned"  # the steps spent on returns; -1: still in the first initial phase


def weigh_by_kernel(
    step: Step,
    state: State,
    *,
    cap: int | None,
    release: int | None,
    return_share: float | None,
    epsilon: float,
    rescale: bool,
    unit_rows: bool,
    scaled: bool,
) -> tuple[Tensor, State] | None:
    """The weights and the next state, or None if the kernel cannot be used. Unchanged tensors are not copied.

    Args:
        step: a checked step with a Gramian.
        state: the state of :class:`~paretomtl.methods.ParetoMTL`.
        cap: the step at which the initial phase ends at the latest; None for never.
        release: the step at which constraints are dropped; None for never.
        return_share: see :class:`~paretomtl.methods.ParetoMTL`; None where no subproblem returns.
        epsilon: see :class:`~paretomtl.methods.ParetoMTL`, also for the arguments below.
        rescale: whether the weights of the later phases sum to m.
        unit_rows: whether the constraint rows have unit length in the dual.
        scaled: whether the losses have factors.
    """
    returns = return_share is not None
    if not _usual(step, state, (*_WHOLE, RETURNED) if returns else _WHOLE):
        return None
    assert step.gramian is not None
    count, tasks = step.losses.shape
    constraints = state["rows"].shape[1]
    shared = shared_memory(tasks, tasks + constraints, more=2 * tasks + constraints * tasks)
    if shared is None:
        return None
    losses, gramian = readable(step.losses).contiguous(), readable(step.gramian).contiguous()
    constants = {
        "TASKS": tasks,
        "DOUBLE_LOSSES": int(losses.dtype == torch.float64),
        "DOUBLE_GRAMIAN": int(gramian.dtype == torch.float64),
    }
    launch = kernel(_SOURCES, "pareto_mtl", constants, losses.device)
    if launch is None:
        return None
    before = {name: state[name].contiguous() for name in ("rows", *_WHOLE, "losses", "scale")}
    before[RETURNED] = state[RETURNED].contiguous() if returns else before["since"]  # which is not read then
    changed = [*_WHOLE, "losses", *(["scale"] if scaled else []), *([RETURNED] if returns else [])]
    after = {name: torch.empty_like(before[name]) for name in changed}
    present, present_stride = (losses, -1) if step.present is None else _mask(step.present)
    number, given = (step.number, -1.0) if isinstance(step.number, Tensor) else (losses, float(step.number))
    weights = torch.empty_like(losses)
    if count > 0:
        written = [weights, *(after.get(name, before[name]) for name in (*_WHOLE, "losses", "scale", RETURNED))]
        flags = [constraints, present_stride, int(scaled), int(rescale), int(unit_rows), int(returns)]
        limits = [math.inf if limit is None else float(limit) for limit in (cap, release)]
        zero_tolerance = 8 * tasks * torch.finfo(step.gramian.dtype).eps  # that of min_norm
        share = 0.0 if return_share is None else float(return_share)
        limits += [share * step.total if step.total else -1.0, share]
        numbers = [*flags, given, *limits, float(epsilon), zero_tolerance]
        launch((count, 1, 1), 32, [losses, gramian, present, number, *before.values(), *written, *numbers], shared)
    return weights.to(step.losses.dtype), {**state, **after}


def _usual(step: Step, state: State, whole: tuple[str, ...]) -> bool:
    """Whether all tensors have the dtypes, shapes and device that the kernel assumes."""
    losses, gramian, present, number = step.losses, step.gramian, step.present, step.number
    count, tasks = losses.shape[-2:]
    shapes = {"rows": (count, -1, tasks), "losses": (count, tasks), "scale": (count, tasks)}
    for name in (*_FRACTIONAL, *whole):
        tensor = state.get(name)
        expected = shapes.get(name, (count,))
        dtype = torch.float64 if name in _FRACTIONAL else torch.int64
        if tensor is None or tensor.dtype != dtype or tensor.device != losses.device or tensor.ndim != len(expected):
            return False
        if any(size not in (-1, actual) for size, actual in zip(expected, tensor.shape, strict=True)):
            return False
    if gramian is None or gramian.device != losses.device or (losses.ndim, gramian.ndim) != (2, 3):
        return False
    if present is not None:
        fits = present.shape in ((tasks,), (1, tasks), (count, tasks))
        if not fits or present.dtype != torch.bool or present.device != losses.device:
            return False
    if isinstance(number, Tensor):
        return number.ndim == 0 and number.dtype == torch.int64 and number.device == losses.device
    return 0 <= number < 2**53


def _mask(present: Tensor) -> tuple[Tensor, int]:
    """The contiguous mask, and its stride between subproblems: 0 if all share the same entries."""
    return present.contiguous(), present.shape[1] if present.ndim == 2 and present.shape[0] > 1 else 0
