"""From losses to task gradients, Gramians and updates. Everything works for one model, and for K stacked ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge

TaskGradients: TypeAlias = list[tuple[Tensor | None, ...]]
"""One tuple per task: its gradient for each parameter ``[K, ...]``, or None where the task does not use it."""


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
            rows.append(torch.autograd.grad(output, parameters, seed, retain_graph=again, allow_unused=True))
    return rows


def before_stack(losses: Tensor) -> list[GradientEdge | None] | None:
    """The tasks as they were before ``torch.stack`` made the loss vector of them; None if something else made it.

    Through the stack, each task would send zeros into the graphs of all others: work for nothing, and NaN where the
    other loss is 0/0 for want of labels. A task that is attached to nothing is None.
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
    the products, so that what reads it knows how far to trust it.
    """
    tasks = len(gradients)
    total: Tensor | None = None
    precision = torch.float64
    for parts in zip(*gradients, strict=True):
        known = next((part for part in parts if part is not None), None)
        if known is None:
            continue
        wide = known.dtype if known.dtype.itemsize >= 4 else torch.float32
        rows = [torch.zeros_like(known) if part is None else part for part in parts]
        j = torch.stack([row.reshape(count, -1).to(wide) for row in rows], 1)
        with torch.autocast(j.device.type, enabled=False):
            c = torch.bmm(j, j.mT).double()
        total = c if total is None else total + c
        precision = min(precision, wide, key=lambda dtype: dtype.itemsize)
    if total is None:
        raise ValueError("'losses' must depend on the parameters. Got losses that reach none of them.")
    assert total.shape == (count, tasks, tasks)
    return total.to(precision)


def combine(weights: Tensor, gradients: TaskGradients) -> list[Tensor | None]:
    """``Σ_i α_i ∇L_i`` for each parameter; a weight of zero leaves its task out, NaN and all.

    Args:
        weights: ``[K, m]``, or ``[m]`` for parameters without a leading K.
        gradients: from :func:`task_gradients`.
    """
    combined: list[Tensor | None] = []
    for parts in zip(*gradients, strict=True):
        total: Tensor | None = None
        for i, part in enumerate(parts):
            if part is None:
                continue
            weight = weights[..., i].to(part.dtype)
            weight = weight.reshape([*weight.shape, *[1] * (part.ndim - weight.ndim)])
            term = torch.where(weight == 0, 0.0, weight * part)
            total = term if total is None else total + term
        combined.append(total)
    return combined


def weigh_rows(
    weights: Tensor, present: Tensor, gradients: TaskGradients, in_trunk: Sequence[bool]
) -> list[Tensor | None]:
    """The trunk's gradients by the weights, the heads' gradients by one."""
    ones = present.to(weights.dtype)
    updates: list[Tensor | None] = []
    for parts, inside in zip(zip(*gradients, strict=True), in_trunk, strict=True):
        updates += combine(weights if inside else ones, [(part,) for part in parts])
    return updates


def one_backward(
    losses: Tensor, weights: Tensor, parameters: Sequence[Tensor], in_trunk: Sequence[bool], scale: Tensor | None = None
) -> list[Tensor | None]:
    """For weights that are known before any gradient is: one backward pass, and one more for the heads alone."""
    ones = torch.ones_like(losses) if scale is None else scale.to(losses.dtype).expand_as(losses)
    if all(in_trunk):
        return list(torch.autograd.grad(losses, parameters, weights * ones, allow_unused=True))
    heads = [p for p, inside in zip(parameters, in_trunk, strict=True) if not inside]
    trunk = [p for p, inside in zip(parameters, in_trunk, strict=True) if inside]
    plain = iter(torch.autograd.grad(losses, heads, ones, retain_graph=True, allow_unused=True))
    weighted = iter(torch.autograd.grad(losses, trunk, weights * ones, allow_unused=True))
    return [next(weighted) if inside else next(plain) for inside in in_trunk]
