"""From K models to losses, task gradients and Gramians. The only place that knows vmap."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge
from torch.func import functional_call, stack_module_state, vmap

TaskGradients: TypeAlias = list[tuple[Tensor | None, ...]]
"""One tuple per task: its gradient for each parameter ``[K, ...]``, or None where the task does not use it."""


def isolated_randomness() -> AbstractContextManager[None]:
    """Random draws and seeds within leave the global random state as it was, on every device."""
    return torch.random.fork_rng(devices=list(range(torch.cuda.device_count())))


class Stack:
    """K models of one architecture as stacked parameters and buffers ``[K, ...]``.

    Args:
        model: the factory.
        seeds: one random state per model.
        device: where the stack lives.
        dtype: the precision of floating-point parameters and buffers.
    """

    def __init__(
        self, model: Callable[[], nn.Module], seeds: Iterable[int], device: torch.device | str, dtype: torch.dtype
    ) -> None:
        models = []
        with isolated_randomness():
            for seed in seeds:
                torch.manual_seed(seed)
                models.append(model().to(device=device, dtype=dtype))
        self.template = models[0]
        self.parameters: dict[str, Tensor]
        self.parameters, self.buffers = stack_module_state(models)
        wanted = {name for name, parameter in self.template.named_parameters() if parameter.requires_grad}
        self.trained = {name: tensor for name, tensor in self.parameters.items() if name in wanted}
        if not self.trained:
            raise ValueError("'model' must have parameters to train. Got none.")

    def losses(self, losses: Callable[[Any], Tensor]) -> Tensor:
        """The losses of all models, ``[K, m]``, attached to the graph."""

        def one(parameters: dict[str, Tensor], buffers: dict[str, Any]) -> Tensor:
            found = losses(functional_call(self.template, (parameters, buffers), ()))
            if not isinstance(found, Tensor):
                raise TypeError(f"'losses' must return a tensor. Got {type(found).__name__} instead.")
            return found

        found: Tensor = vmap(one, randomness="different")(self.parameters, self.buffers)
        return found

    def copy(self) -> dict[str, Tensor]:
        """The values of all parameters and buffers, by name."""
        return {name: tensor.detach().clone() for name, tensor in (self.parameters | self.buffers).items()}

    @torch.no_grad()
    def restore(self, rows: Tensor, values: dict[str, Tensor]) -> None:
        """Put the models in ``rows [K]`` bool back to earlier values."""
        for name, tensor in (self.parameters | self.buffers).items():
            tensor.copy_(torch.where(rows.reshape(-1, *[1] * (tensor.ndim - 1)), values[name], tensor))


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
            weight = weight.reshape(*weight.shape, *[1] * (part.ndim - weight.ndim))
            term = torch.where(weight == 0, 0.0, weight * part)
            total = term if total is None else total + term
        combined.append(total)
    return combined
