"""The dual as one CUDA kernel; the code around it launches nothing else for contiguous float32 and float64."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from torch import Tensor

from paretomtl._support.cuda import kernel

SOLVER = Path(__file__).with_name("min_norm_solver.cu")  # the part that kernels share
_SOURCES = (SOLVER, Path(__file__).with_name("min_norm.cu"))
_MOST_TASKS = 16
_MOST_SHARED = 40 << 10  # bytes that every device grants without opting in


def solve_by_kernel(
    gramian: Tensor, rows: Tensor | None, allowed: Tensor | None, batch: torch.Size, zero_tolerance: float
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor] | None:
    """The fields of ``MinNorm`` for checked arguments, or None if the kernel cannot be used.

    Args:
        gramian: ``[..., m, m]``.
        rows: ``[..., N, m]``; None for the identity.
        allowed: ``[..., N]``; None for all.
        batch: the broadcast shape of the leading dimensions.
        zero_tolerance: a squared norm below this share of its squared terms is zero.
    """
    tasks = gramian.shape[-1]
    count = tasks if rows is None else rows.shape[-2]
    size = math.prod(batch)
    shared = shared_memory(tasks, count)
    here = all(tensor is None or tensor.device == gramian.device for tensor in (rows, allowed))
    if shared is None or not here:
        return None
    c = readable(gramian)
    a = c if rows is None else readable(rows)
    constants = {
        "TASKS": tasks,
        "DOUBLE_GRAMIAN": int(c.dtype == torch.float64),
        "DOUBLE_ROWS": int(a.dtype == torch.float64),
    }
    launch = kernel(_SOURCES, "min_norm", constants, gramian.device)
    if launch is None:
        return None
    c, c_stride = _flat(c, batch, 2)
    a, a_stride = (c, -1) if rows is None else _flat(a, batch, 2)
    mask, mask_stride = (c, -1) if allowed is None else _flat(allowed, batch, 1)
    weights = c.new_empty(*batch, count)
    combination = c.new_empty(*batch, tasks)
    squared_norm = c.new_empty(batch)
    gap = c.new_empty(batch)
    status = torch.empty(batch, dtype=torch.long, device=c.device)
    if size > 0:
        outputs = [weights, combination, squared_norm, gap, status]
        numbers = [count, c_stride, a_stride, mask_stride, zero_tolerance]
        launch((size, 1, 1), 32, [c, a, mask, *outputs, *numbers], shared)
    dtype = gramian.dtype
    return weights.to(dtype), combination.to(dtype), squared_norm.to(dtype), gap.to(dtype), status


def shared_memory(tasks: int, count: int, more: int = 0) -> int | None:
    """Bytes of shared memory to solve for ``count`` points, plus ``more`` numbers; None if that exceeds the limit."""
    numbers = tasks * tasks + tasks + 3 * count + tasks * count + max((tasks + 1) * count, tasks * tasks) + more
    return None if tasks > _MOST_TASKS or 8 * numbers > _MOST_SHARED else 8 * numbers


def readable(tensor: Tensor) -> Tensor:
    """Convert a tensor to float32 or float64, which kernels read."""
    tensor = tensor.detach()
    return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.double()


def _flat(tensor: Tensor, batch: torch.Size, own: int) -> tuple[Tensor, int]:
    """The contiguous tensor, and its stride between problems: 0 if all share the same entries."""
    entries = math.prod(tensor.shape[-own:])
    if tensor.numel() == entries:
        return tensor.contiguous(), 0
    return tensor.expand(*batch, *tensor.shape[-own:]).contiguous(), entries
