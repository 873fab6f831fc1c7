from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from paretomtl.core._shapes import check_floating
from paretomtl.methods import Weigher
from paretomtl.training._gradients import (
    TaskGradients,
    before_stack,
    gramian,
    one_backward,
    task_gradients,
    weigh_rows,
)


def backward(
    losses: Tensor,
    weigher: Weigher,
    parameters: Iterable[Tensor],
    *,
    shared: Iterable[Tensor] | None = None,
    last: bool = True,
    scaler: torch.amp.GradScaler | None = None,
) -> Tensor:
    r"""``loss.backward()`` for several losses: adds :math:`\sum_i \alpha_i \nabla L_i` to ``.grad`` (equation 18).

    The weights come from the weigher, that is from a method bound to one subproblem. One forward pass and m backward
    passes; one backward pass for methods that need no Gramian, unless gradients are accumulated or a task is absent.

    A loss that is NaN while others are not belongs to a task without labels in this batch, which gets weight zero.
    ``torch.stack`` must then be the last operation that made ``losses``: the graphs before it are kept apart, NaN and
    all. If all losses are NaN, or one is infinite, or a gradient is not finite, then ``.grad`` gets NaN, as
    ``loss.backward()`` would leave it: a gradient scaler then skips the step. The weigher stays where it was.

    Args:
        losses: ``[m]``, attached to the graph. The graph is freed.
        weigher: from :meth:`paretomtl.methods.Method.bind`.
        parameters: those to train. Ones that no loss reaches keep their ``.grad``, be it None.
        shared: take the Gramian over these alone, and weigh only their gradients; every other parameter belongs to a
            head and gets :math:`\sum_i \nabla L_i`, each task's own gradient with weight 1.
        last: False adds losses and gradients up for a later call, which weighs the sums once. Divide the losses by the
            number of calls, as for ``loss.backward()``; a task without labels in some calls is averaged over the
            others. ``weigher.pending = None`` drops what was added up.
        scaler: a gradient scaler; the losses are passed unscaled. ``.grad`` then holds scaled gradients, and the
            weights are those of the unscaled problem.

    Returns:
        The weights ``[m]`` that were used; zeros when ``last`` is False.

    Example:
        >>> import torch, paretomtl as pm
        >>> model = torch.nn.Linear(3, 2)
        >>> weigher = pm.ParetoMTL(initial_steps=10).bind(pm.preferences.even(5, tasks=2), index=2)
        >>> losses = model(torch.ones(8, 3)).square().mean(0)
        >>> weights = pm.backward(losses, weigher, model.parameters())
        >>> model.weight.grad.shape
        torch.Size([2, 3])
    """
    _check_losses(losses, weigher)
    trained = _trained("parameters", parameters)
    in_trunk = _in_trunk(trained, shared)
    scale = torch.ones((), device=losses.device)
    if scaler is not None:
        scale = scaler.scale(scale)
    values, present = losses.detach(), ~losses.detach().isnan()

    if last and weigher.pending is None and not weigher.method.needs_gramian and bool(present.all()):
        weights, state = weigher.peek(values, None)
        updates = one_backward(losses, weights, trained, in_trunk, scale)
        if all(update is None for update in updates):
            raise ValueError("'losses' must depend on the parameters. Got losses that reach none of them.")
        usable = values.isfinite().all()
    else:
        apart = _kept_apart(losses, present)
        gradients = task_gradients(losses, trained, scale)
        _check_attached(present, gradients)
        summed = _Sums(values, present.long(), 1, present.any() & apart, gradients)
        if not last or weigher.pending is not None:
            summed = summed.cleaned()
        if weigher.pending is not None:
            summed = weigher.pending.plus(summed)
        if not last:
            weigher.pending = summed
            return torch.zeros_like(values)
        weigher.pending = None
        if summed.calls > 1:
            summed = summed.over_labelled_calls()
        present = summed.labelled > 0
        trunk = [tuple(g for g, inside in zip(row, in_trunk, strict=True) if inside) for row in summed.gradients]
        c = gramian(trunk, 1)[0] / scale.double().square()
        weights, state = weigher.peek(summed.losses, c if weigher.method.needs_gramian else None, present)
        updates = weigh_rows(weights, present, summed.gradients, in_trunk)
        seen = torch.where(present[:, None] & present, c, 0.0)
        usable = summed.whole & ~summed.losses.isinf().any() & seen.isfinite().all()

    usable = usable & torch.stack([update.isfinite().all() for update in updates if update is not None]).all()
    weigher.advance(state, usable)
    for parameter, update in zip(trained, updates, strict=True):
        if update is not None:
            update = torch.where(usable, update, torch.nan).to(parameter.dtype)
            parameter.grad = update if parameter.grad is None else parameter.grad.add_(update)
    return torch.where(usable, weights, torch.nan)


@dataclass(frozen=True)
class _Sums:
    """Losses and task gradients of one or more calls.

    Attributes:
        losses: ``[m]``, added up.
        labelled: ``[m]``, in how many calls each task had labels.
        calls: how many there were.
        whole: whether every call had a task with labels, bool without dimensions.
        gradients: added up.
    """

    losses: Tensor
    labelled: Tensor
    calls: int
    whole: Tensor
    gradients: TaskGradients

    def cleaned(self) -> _Sums:
        """Zeros in place of what absent tasks left behind, which may be NaN."""
        here = self.labelled > 0
        rows: TaskGradients = [
            tuple(None if g is None else torch.where(present, g, 0.0) for g in row)
            for present, row in zip(here, self.gradients, strict=True)
        ]
        return replace(self, losses=torch.where(here, self.losses, 0.0), gradients=rows)

    def plus(self, other: _Sums) -> _Sums:
        """The sums of both."""
        if len(self.gradients[0]) != len(other.gradients[0]):
            raise ValueError(
                f"'parameters' must be the same in all calls of one step. Got {len(other.gradients[0])} tensors after "
                f"{len(self.gradients[0])}; weigher.pending = None drops what was added up."
            )
        rows: TaskGradients = [
            tuple(a if b is None else b if a is None else a + b for a, b in zip(mine, theirs, strict=True))
            for mine, theirs in zip(self.gradients, other.gradients, strict=True)
        ]
        return _Sums(
            self.losses + other.losses,
            self.labelled + other.labelled,
            self.calls + other.calls,
            self.whole & other.whole,
            rows,
        )

    def over_labelled_calls(self) -> _Sums:
        """A task without labels in some calls is averaged over the others."""
        factor = self.calls / self.labelled.clamp_min(1).to(self.losses.dtype)
        rows: TaskGradients = [
            tuple(None if g is None else g * f.to(g.dtype) for g in row)
            for f, row in zip(factor, self.gradients, strict=True)
        ]
        return replace(self, losses=self.losses * factor, gradients=rows)


def _trained(name: str, parameters: Iterable[Tensor]) -> list[Tensor]:
    """Those that require a gradient, each once."""
    if isinstance(parameters, torch.nn.Module):
        raise TypeError(f"'{name}' must be tensors: write model.parameters(). Got {type(parameters).__name__} instead.")
    found: dict[int, Tensor] = {}
    for parameter in parameters:
        if not isinstance(parameter, Tensor):
            raise TypeError(
                f"'{name}' must be tensors: write model.parameters(). Got {type(parameter).__name__} instead."
            )
        if parameter.requires_grad:
            check_floating(name, parameter)
            found[id(parameter)] = parameter
    if not found:
        raise ValueError(f"'{name}' must hold at least one tensor that requires a gradient. Got none.")
    return list(found.values())


def _in_trunk(trained: list[Tensor], shared: Iterable[Tensor] | None) -> list[bool]:
    if shared is None:
        return [True] * len(trained)
    trunk = {id(parameter) for parameter in _trained("shared", shared)}
    strangers = trunk - {id(parameter) for parameter in trained}
    if strangers:
        raise ValueError(
            f"'shared' must be some of 'parameters'. Got {len(trunk)} tensors, {len(strangers)} of them strangers."
        )
    return [id(parameter) in trunk for parameter in trained]


def _check_attached(present: Tensor, gradients: TaskGradients) -> None:
    """Find a task that cannot be trained although it has labels."""
    for i, row in enumerate(gradients):
        if all(part is None for part in row) and bool(present[i]):
            raise ValueError(
                f"'losses' must depend on the parameters, each of them. Got a loss {i} that reaches none; "
                "a task without labels is NaN."
            )


def _kept_apart(losses: Tensor, present: Tensor) -> bool:
    """Whether the NaN of a task without labels stays out of the gradients of the others."""
    if before_stack(losses) is not None or not bool(present.any() & ~present.all()):
        return True
    warnings.warn(
        "a loss is NaN, and torch.stack was not the last operation that made 'losses': its NaN is in every gradient. "
        "If that task has no labels in this batch, divide or scale before stacking.",
        stacklevel=3,
    )
    return False


def _check_losses(losses: Tensor, weigher: Weigher) -> None:
    if not isinstance(weigher, Weigher):
        raise TypeError(f"'weigher' must be a method bound to a subproblem: see bind(). Got {weigher!r} instead.")
    if not isinstance(losses, Tensor):
        raise TypeError(
            f"'losses' must be a tensor of one loss per task: see torch.stack. Got {type(losses).__name__} instead."
        )
    check_floating("losses", losses)
    if losses.shape != (weigher.tasks,):
        raise ValueError(f"'losses' must have shape [{weigher.tasks}], one per task. Got {list(losses.shape)} instead.")
    if not losses.requires_grad:
        raise ValueError("'losses' must be attached to the graph. Got a tensor that requires no gradient.")
