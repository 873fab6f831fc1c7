"""Gradients: from losses to task gradients, Gramians and updates, for one model and for K stacked ones."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge

TaskGradients: TypeAlias = list[tuple[Tensor | None, ...]]
"""One tuple per task: its gradient for each parameter ``[K, ...]``, or None where the task does not use it."""


_FEW = 3  # tasks; their pairs of rows are fewer than the operations that gather them
_ONE_THREAD, _ONE_GRAIN = 1 << 13, 1 << 15  # numbers; BLAS uses threads above the first, torch above the second
_CHUNK = 1 << 20  # numbers that are gathered at most: one large product is faster than many small ones
_TOGETHER = 1 << 26  # numbers of all task gradients that may be gathered at once, where launches cost more than copies
_PAIRS = 1 << 24  # numbers of all products of two rows that may be made at once


def launches_cost(tensor: Tensor) -> bool:
    """Whether launching an operation takes longer than copying what it works on, as it does on a GPU."""
    return tensor.device.type != "cpu"


@functools.cache
def zero(device: torch.device) -> Tensor:
    """A cached zero on a device for ``torch.where``, which would launch an operation to make a tensor of 0.0."""
    return torch.zeros((), device=device)


def task_gradients(losses: Tensor, parameters: Sequence[Tensor], scale: Tensor | None = None) -> TaskGradients:
    """The gradient of each task for each parameter: m backward passes through one graph, which is freed.

    Args:
        losses: ``[K, m]`` or ``[m]``, attached to the graph.
        parameters: with a leading K where the losses have one.
        scale: a factor for all gradients.
    """
    seed = torch.ones_like(losses[..., 0]) if scale is None else scale.to(losses.dtype).expand(losses.shape[:-1])
    outputs: Sequence[Tensor | GradientEdge | None] = before_stack(losses) or losses.unbind(-1)
    rows: TaskGradients = []
    for i, output in enumerate(outputs):
        if output is None:
            rows.append((None,) * len(parameters))
        else:
            again = any(later is not None for later in outputs[i + 1 :])
            row = torch.autograd.grad(output, parameters, seed, retain_graph=again, allow_unused=True)
            if any(part is not None and part.is_sparse for part in row):
                raise TypeError(
                    "'model' must have dense gradients. Got a sparse one: make embeddings with sparse=False."
                )
            rows.append(row)
    return rows


def before_stack(losses: Tensor) -> list[GradientEdge | None] | None:
    """The tasks as they were before ``torch.stack`` made the loss vector of them; None if something else made it.

    Through the stack, each task would send zeros into the graphs of all others: wasted work, and NaN where the
    other loss is 0/0 because its labels are missing. A task without a graph is None.
    """
    node = losses.grad_fn
    if node is None or type(node).__name__ != "StackBackward0":
        return None
    last = node._saved_dim in (losses.ndim - 1, 2**64 - 1)  # type: ignore[attr-defined]  # −1, stored as unsigned
    if not last or any(type(before).__name__ == "AccumulateGrad" for before, _ in node.next_functions):
        return None
    return [None if before is None else GradientEdge(before, number) for before, number in node.next_functions]


def gramian(gradients: TaskGradients, count: int) -> Tensor:
    """``C [K, m, m]``, added up over parameter tensors; no flat copy of all gradients is ever made.

    Products are in float32 or better, also inside autocast, and their sums in float64. The result has the precision of
    the products, so that callers know how exact it is.
    """
    reached = [part for row in gradients for part in row if part is not None]
    if not reached:
        raise ValueError("'losses' must depend on the parameters. Got losses that reach none of them.")
    precision = min((_wide(part.dtype) for part in reached), key=lambda dtype: dtype.itemsize)
    with torch.autocast(reached[0].device.type, enabled=False):
        if count == 1 and len(gradients) <= _FEW and reached[0].device.type == "cpu":
            total = _dots(gradients)
        else:
            parts = [_products(chunk, count) for chunk in _chunks(gradients)]
            total = parts[0] if len(parts) == 1 else torch.stack(parts).sum(0)
    return total.to(precision)


@dataclass(frozen=True)
class Gathered:
    """All task gradients of small models in one tensor ``J [K, m, P]``: few launches, each of them larger.

    Attributes:
        rows: J; zeros where a task does not reach a parameter.
        shapes: of each parameter, with a leading K; None where no task reaches it.
        last: the parameters whose channels come last in memory, and in J too, so that nothing is transposed.
    """

    rows: Tensor
    shapes: list[torch.Size | None]
    last: frozenset[int] = frozenset()

    @classmethod
    def of(cls, gradients: TaskGradients, count: int) -> Gathered | None:
        """Gather task gradients; None on a CPU, where copies cost more than calls, and for many or mixed gradients."""
        columns = list(zip(*gradients, strict=True))
        known = [next((part for part in parts if part is not None), None) for parts in columns]
        used = [part for part in known if part is not None]
        size = len(gradients) * sum(part.numel() for part in used)
        kinds = {(part.dtype, part.device.type) for part in used}
        if len(kinds) != 1 or not launches_cost(used[0]) or used[0].dtype.itemsize < 4 or size > _TOGETHER:
            return None
        none = used[0].new_zeros(count, max(part.numel() for part in used) // count)
        last = frozenset(i for i, part in enumerate(known) if part is not None and _channels_last(part))
        flat = [
            none[:, : like.numel() // count]
            if part is None
            else (part.permute(0, 2, 3, 1) if i in last else part).reshape(count, -1)
            for row in gradients
            for i, (part, like) in enumerate(zip(row, known, strict=True))
            if like is not None
        ]
        rows = torch.cat(flat, 1).reshape(count, len(gradients), -1)
        return cls(rows, [None if part is None else part.shape for part in known], last)

    def gramian(self) -> Tensor:
        """``C [K, m, m]``; sums in float64."""
        return _pairwise(self.rows).to(self.rows.dtype)

    def combine(self, weights: Tensor) -> list[Tensor | None]:
        """``Σ_i α_i ∇L_i`` for each parameter, from weights ``[K, m]``; a weight of zero leaves its task out."""
        alpha = weights.to(self.rows.dtype)[..., None]
        total = torch.where(alpha == 0, zero(alpha.device), alpha * self.rows).sum(1)
        sizes = [shape.numel() // len(total) for shape in self.shapes if shape is not None]
        parts = iter(torch.ops.aten.split_with_sizes_copy(total, sizes, 1))
        return [
            None if shape is None else _shaped(next(parts), shape, last=i in self.last)
            for i, shape in enumerate(self.shapes)
        ]


def _channels_last(tensor: Tensor) -> bool:
    usual = tensor.ndim != 4 or tensor.is_contiguous()
    return not usual and tensor.is_contiguous(memory_format=torch.channels_last)


def _shaped(numbers: Tensor, shape: torch.Size, *, last: bool) -> Tensor:
    if not last:
        return numbers.reshape(shape)
    return numbers.reshape(shape[0], shape[2], shape[3], shape[1]).permute(0, 3, 1, 2)


def _pairwise(rows: Tensor) -> Tensor:
    """The products of all rows ``[K, m, P]`` on a GPU, ``[K, m, m]`` in float64.

    This is not a matrix product, because libraries are slow at one with sides as short as m and depth P.
    """
    count, tasks, size = rows.shape
    first, second, pair = _pairs(tasks, rows.device)
    if count * len(first) * size <= _PAIRS:
        products = (rows[:, first] * rows[:, second]).sum(-1, dtype=torch.float64)
    else:
        lines = [(rows[:, i : i + 1] * rows[:, i:]).sum(-1, dtype=torch.float64) for i in range(tasks)]
        products = torch.cat(lines, 1)
    return products[:, pair]


@functools.cache
def _pairs(tasks: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """The unordered pairs of tasks: first and second of each, and the number of each pair ``[m, m]``."""
    first, second = torch.triu_indices(tasks, tasks)
    pair = torch.zeros(tasks, tasks, dtype=torch.long)
    pair[first, second] = pair[second, first] = torch.arange(len(first))
    return first.to(device), second.to(device), pair.to(device)


def _wide(dtype: torch.dtype) -> torch.dtype:
    return dtype if dtype.itemsize >= 4 else torch.float32


def _dots(gradients: TaskGradients) -> Tensor:
    """The Gramian of few tasks of one model on a CPU: one product for each pair of rows, without a copy of either."""
    tasks = len(gradients)
    sums = [[0.0] * tasks for _ in range(tasks)]
    for parts in zip(*gradients, strict=True):
        flat = [None if part is None else part.to(_wide(part.dtype)).reshape(-1) for part in parts]
        for i, one in enumerate(flat):
            for j, other in enumerate(flat[: i + 1]):
                if one is not None and other is not None:
                    sums[i][j] += _dot(one, other)
    whole = [[sums[max(i, j)][min(i, j)] for j in range(tasks)] for i in range(tasks)]
    return torch.tensor([whole], dtype=torch.float64)


def _dot(one: Tensor, other: Tensor) -> float:
    """The dot product of two vectors; medium ones avoid BLAS, which would wake threads for a few microseconds."""
    if _ONE_THREAD < len(one) <= _ONE_GRAIN:
        return float((one * other).sum())
    return float(torch.dot(one, other))


def _products(rows: list[list[Tensor]], count: int) -> Tensor:
    """The products of all tasks' rows in float64, ``[K, m, m]``."""
    wide = _wide(rows[0][0].dtype)
    j = torch.stack([torch.cat([part.reshape(count, -1).to(wide) for part in row], 1) for row in rows], 1)
    return torch.bmm(j, j.mT).double() if j.device.type == "cpu" else _pairwise(j)


def _chunks(gradients: TaskGradients) -> Iterator[list[list[Tensor]]]:
    """Parameter tensors in groups of ``_CHUNK`` numbers at most, or single ones; zeros where a task has no gradient."""
    rows: list[list[Tensor]] = [[] for _ in gradients]
    size = 0
    for parts in zip(*gradients, strict=True):
        known = next((part for part in parts if part is not None), None)
        if known is None:
            continue
        if size and (size + known.numel() > _CHUNK or known.dtype != rows[0][0].dtype):
            yield rows
            rows, size = [[] for _ in gradients], 0
        size += known.numel()
        for row, part in zip(rows, parts, strict=True):
            row.append(torch.zeros_like(known) if part is None else part)
    if size:
        yield rows


def combine(weights: Tensor, gradients: TaskGradients) -> list[Tensor | None]:
    """``Σ_i α_i ∇L_i`` for each parameter; a weight of zero leaves its task out, even if it is NaN.

    Args:
        weights: ``[K, m]``, or ``[m]`` for parameters without a leading K.
        gradients: from :func:`task_gradients`.
    """
    combined: list[Tensor | None] = []
    known: list[float] = weights.tolist() if weights.ndim == 1 and weights.device.type == "cpu" else []
    for parts in zip(*gradients, strict=True):
        total: Tensor | None = None
        for i, part in enumerate(parts):
            if part is None or (known and known[i] == 0.0):
                continue
            if known:
                total = part * known[i] if total is None else total.add_(part, alpha=known[i])
                continue
            weight = weights[..., i].to(part.dtype)
            weight = weight.reshape([*weight.shape, *[1] * (part.ndim - weight.ndim)])
            term = torch.where(weight == 0, 0.0, weight * part)
            total = term if total is None else total + term
        if total is None and any(part is not None for part in parts):
            total = torch.zeros_like(next(part for part in parts if part is not None))
        combined.append(total)
    return combined


def weigh_rows(
    weights: Tensor, present: Tensor, gradients: TaskGradients, in_trunk: Sequence[bool]
) -> list[Tensor | None]:
    """Weigh the gradients of the trunk by the weights, and those of the heads by one."""
    if all(in_trunk):
        return combine(weights, gradients)
    trunk, heads = (
        [tuple(part for part, inside in zip(row, in_trunk, strict=True) if inside == wanted) for row in gradients]
        for wanted in (True, False)
    )
    weighed, plain = iter(combine(weights, trunk)), iter(combine(present.to(weights.dtype), heads))
    return [next(weighed) if inside else next(plain) for inside in in_trunk]


def one_backward(
    losses: Tensor, weights: Tensor, parameters: Sequence[Tensor], in_trunk: Sequence[bool], scale: Tensor | None = None
) -> list[Tensor | None]:
    """Updates by weights that are known before any gradient: one backward pass, and one more for the heads alone."""
    ones = torch.ones_like(losses) if scale is None else scale.to(losses.dtype).expand_as(losses)
    if all(in_trunk):
        return list(torch.autograd.grad(losses, parameters, weights * ones, allow_unused=True))
    heads = [p for p, inside in zip(parameters, in_trunk, strict=True) if not inside]
    trunk = [p for p, inside in zip(parameters, in_trunk, strict=True) if inside]
    plain = iter(torch.autograd.grad(losses, heads, ones, retain_graph=True, allow_unused=True))
    weighted = iter(torch.autograd.grad(losses, trunk, weights * ones, allow_unused=True))
    return [next(weighted) if inside else next(plain) for inside in in_trunk]


def clip(changes: list[Tensor | None], count: int, longest: float) -> list[Tensor | None]:
    """Clip the update of each of ``count`` models to the norm ``longest``."""
    squares = [u.detach().reshape(count, -1).double().square().sum(-1) for u in changes if u is not None]
    factor = (longest / (torch.stack(squares).sum(0).sqrt() + 1e-6)).clamp_max(1.0)
    scaled: list[Tensor | None] = []
    for change in changes:
        if change is None:
            scaled.append(None)
            continue
        own = factor[0] if count == 1 else factor.reshape(-1, *[1] * (change.ndim - 1))
        scaled.append(change * own.to(change.dtype))
    return scaled
