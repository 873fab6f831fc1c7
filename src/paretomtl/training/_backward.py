"""``backward``: one step of one model, for a custom loop.

``fit`` joins other processes by itself, because it compares the arguments of all. ``backward`` must be told, because a
loop may as well train one model in each process. The wrong default would be a silent mistake in either case.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from paretomtl._support.argument_checks import check_floating, may_ask, quote
from paretomtl.engine.accumulate import Sums, all_reduce_rows, scale_rows
from paretomtl.engine.gradients import (
    TaskGradients,
    before_stack,
    gramian,
    one_backward,
    task_gradients,
    weigh_rows,
)
from paretomtl.engine.models.module_checks import check_hooks
from paretomtl.engine.processes import Distributed, check_processes, is_dtensor, require_process_group
from paretomtl.methods import Weigher


def backward(
    losses: Tensor,
    weigher: Weigher,
    parameters: Iterable[Tensor],
    *,
    shared: Iterable[Tensor] | None = None,
    last: bool = True,
    samples: int | Tensor | None = None,
    scaler: torch.amp.GradScaler | None = None,
    distributed: Distributed | None = None,
) -> Tensor:
    r"""``loss.backward()`` for several losses: adds :math:`\sum_i \alpha_i \nabla L_i` to ``.grad`` (equation 18).

    The weights come from the weigher, that is from a method bound to one model. A step takes one forward pass and
    m backward passes. Methods that need no Gramian take one backward pass, unless gradients are accumulated or a task
    is absent.

    A loss that is NaN while others are not belongs to a task without labels in this batch, which gets weight zero.
    ``torch.stack`` must then be the last operation that made ``losses``: the graphs before it are kept separate, so
    that NaN does not spread. If all losses are NaN, or one is infinite, or a gradient is not finite, then ``.grad``
    gets NaN, as from ``loss.backward()``: a gradient scaler then skips the step. The weigher keeps its state.

    Args:
        losses: ``[m]``, attached to the graph. The graph is freed.
        weigher: from :meth:`paretomtl.methods.Method.bind`.
        parameters: those to train. Ones that no loss reaches keep their ``.grad``, even if it is None.
        shared: take the Gramian over these alone, and weigh only their gradients. Every other parameter belongs to a
            head and gets :math:`\sum_i \nabla L_i`, the gradient of each task with weight 1.
        last: False adds losses and gradients up for a later call, which weighs the sums once. Without ``samples``,
            divide the losses by the number of calls, as for ``loss.backward()``; a task without labels in some calls is
            averaged over the others. ``weigher.pending = None`` drops the sums.
        samples: how many samples the losses are means over: one number, or ``[m]`` if labels are missing. Calls of one
            step, and processes, are then weighted by their samples; do not divide the losses. 0 is for a process
            without samples in this step. By default, all count the same.
        scaler: a gradient scaler; the losses are passed unscaled. ``.grad`` then holds scaled gradients, and the
            weights are those of the unscaled problem.
        distributed: average losses and task gradients over processes before the Gramian is taken, so that all have the
            same weights and the same ``.grad``: True for all processes of ``torch.distributed``, or a process group.
            Every process calls with the same weigher on its share of the batch; the model is not wrapped in
            ``DistributedDataParallel``, whose hooks would never run. Required if several processes run, because
            nothing shows whether they share a model.

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
    if distributed is not None:
        check_processes(distributed)
    ranks = require_process_group(distributed)
    scale = torch.ones((), device=losses.device)
    if scaler is not None:
        if not hasattr(scaler, "scale"):
            raise TypeError(f"'scaler' must be a torch.amp.GradScaler. Got {type(scaler).__name__} instead.")
        scale = scaler.scale(scale)
    values, present = losses.detach(), ~losses.detach().isnan()
    given = _samples(samples, values)
    counts = torch.where(present, given, 0.0)
    by_gramian = weigher.method.needs_gramian

    if last and weigher.pending is None and not by_gramian and bool(present.all()):
        sums = Sums.of(values, counts, torch.zeros_like(counts[0]), []).all_reduce(ranks)
        plain = not ranks.is_distributed and samples is None
        seen, present = (values, present) if plain else (sums.means().to(values.dtype), sums.counts > 0)
        weights, state = weigher.peek(seen, None, present)
        share = scale if plain else scale * torch.where(present, counts / sums.counts, 0.0)
        with _graph_at_hand():
            own = one_backward(losses, weights, trained, in_trunk, share)
        updates = ranks.all_reduce(own, trained)
        if all(update is None for update in updates):
            raise ValueError("'losses' must depend on the parameters. Got losses that reach none of them.")
        usable = torch.where(present, seen, 0.0).isfinite().all() & present.any() & (sums.broken == 0)
    else:
        apart = _separate_graphs(losses, present)
        with _graph_at_hand():
            gradients = task_gradients(losses, trained, scale)
        _check_attached(present, gradients)
        broken = ~(present.any() & apart) & (given > 0).any()
        if isinstance(samples, Tensor):  # these counts say which losses have no labels
            broken = broken | (~present & (given > 0)).any()
        if last and weigher.pending is None and samples is None and not ranks.is_distributed:
            seen, rows, usable = values, gradients, ~broken
        else:
            pending = _Pending(Sums.of(values, counts, broken, gradients), 1, samples is not None)
            pending = pending if weigher.pending is None else weigher.pending.plus(pending)
            if not last:
                weigher.pending = pending
                return torch.zeros_like(values)
            weigher.pending = None
            sums = pending.undivided().all_reduce(ranks)
            seen, present, usable = sums.means().to(values.dtype), sums.counts > 0, sums.broken == 0
            rows = all_reduce_rows(ranks, sums.mean_rows(), trained) if by_gramian else sums.mean_rows()
        c = None
        if by_gramian:
            trunk = [tuple(g for g, inside in zip(row, in_trunk, strict=True) if inside) for row in rows]
            c = gramian(trunk, 1)[0] / scale.double().square()
            usable = usable & torch.where(present[:, None] & present, c, 0.0).isfinite().all()
        weights, state = weigher.peek(seen, c, present)
        updates = weigh_rows(weights, present, rows, in_trunk)
        if not by_gramian:
            updates = ranks.all_reduce(updates, trained)
        usable = usable & ~seen.isinf().any()

    usable = usable & torch.stack([update.isfinite().all() for update in updates if update is not None]).all()
    weigher.advance(state, usable)
    for parameter, update in zip(trained, updates, strict=True):
        if update is not None:
            update = torch.where(usable, update, torch.nan).to(parameter.dtype)
            parameter.grad = update if parameter.grad is None else parameter.grad.add_(update)
    return torch.where(usable, weights, torch.nan)


@dataclass(frozen=True)
class _Pending:
    """The sums over several calls of one step.

    Attributes:
        sums: over these calls.
        calls: how many there were.
        counted: whether they gave ``samples``; otherwise their losses were divided by the number of calls.
    """

    sums: Sums
    calls: int
    counted: bool

    def plus(self, other: _Pending) -> _Pending:
        """The sums of both."""
        if len(self.sums.gradients[0]) != len(other.sums.gradients[0]):
            raise ValueError(
                f"'parameters' must be the same in all calls of one step. Got {len(other.sums.gradients[0])} tensors "
                f"after {len(self.sums.gradients[0])}; weigher.pending = None drops the sums."
            )
        if self.counted != other.counted:
            raise ValueError("'samples' must be given in all calls of one step or in none. Got it in some.")
        return _Pending(self.sums.plus(other.sums), self.calls + other.calls, self.counted)

    def undivided(self) -> Sums:
        """The sums, as of losses that were not divided by the number of calls."""
        if self.counted or self.calls == 1:
            return self.sums
        rows = scale_rows(self.sums.gradients, self.sums.counts.new_full(self.sums.counts.shape, self.calls))
        return replace(self.sums, losses=self.sums.losses * self.calls, gradients=rows)


@contextlib.contextmanager
def _graph_at_hand() -> Iterator[None]:
    """Explain torch's error about a freed graph: its own advice, retain_graph, does not apply here."""
    try:
        yield
    except RuntimeError as error:
        if "backward through the graph a second time" not in str(error):
            raise
        raise ValueError(
            "'losses' must come from a new forward pass: each call frees the graph, as loss.backward() does. Got "
            "losses whose graph is gone."
        ) from None


def _samples(samples: int | Tensor | None, like: Tensor) -> Tensor:
    """The number of samples of each loss, ``[m]`` in float64."""
    try:
        given = torch.as_tensor(1 if samples is None else samples, dtype=torch.float64, device=like.device)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"'samples' must be a number, or one for each task. Got {quote(samples)} instead.") from None
    if given.shape not in ((), like.shape):
        raise ValueError(
            f"'samples' must be a number, or have shape {list(like.shape)}. Got shape {list(given.shape)} instead."
        )
    if samples is not None and may_ask(given) and not bool((given >= 0).all() & given.isfinite().all()):
        raise ValueError(f"'samples' must not be negative. Got {quote(given.tolist())} instead.")
    return given.expand_as(like)


def _trained(name: str, parameters: Iterable[Tensor]) -> list[Tensor]:
    """Those that require a gradient, each once."""
    if isinstance(parameters, torch.nn.Module):
        raise TypeError(f"'{name}' must be tensors: write model.parameters(). Got {type(parameters).__name__} instead.")
    trained: dict[int, Tensor] = {}
    for parameter in parameters:
        if not isinstance(parameter, Tensor):
            raise TypeError(
                f"'{name}' must be tensors: write model.parameters(). Got {type(parameter).__name__} instead."
            )
        if is_dtensor(parameter):
            raise TypeError(
                f"'{name}' must be whole tensors: gradients of each task are taken here, which FSDP cannot shard. Got "
                f"a {type(parameter).__name__} instead."
            )
        if parameter.requires_grad:
            check_floating(name, parameter)
            trained[id(parameter)] = parameter
    if not trained:
        raise ValueError(f"'{name}' must hold at least one tensor that requires a gradient. Got none.")
    check_hooks(name, ((f"a tensor of shape {list(p.shape)}", p) for p in trained.values()))
    return list(trained.values())


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


def _separate_graphs(losses: Tensor, present: Tensor) -> bool:
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
        raise TypeError(f"'weigher' must be a method bound to a model: see bind(). Got {quote(weigher)} instead.")
    if not isinstance(losses, Tensor):
        raise TypeError(
            f"'losses' must be a tensor of one loss per task: see torch.stack. Got {type(losses).__name__} instead."
        )
    check_floating("losses", losses)
    if losses.shape != (weigher.tasks,):
        raise ValueError(f"'losses' must have shape [{weigher.tasks}], one per task. Got {list(losses.shape)} instead.")
    if not losses.requires_grad:
        raise ValueError("'losses' must be attached to the graph. Got a tensor that requires no gradient.")
