"""Whether a stack can stand in for the models alone: one step of both is compared."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from paretomtl._random import seed_everything
from paretomtl.methods import State, slice_state
from paretomtl.training._gradients import task_gradients
from paretomtl.training._models import NoDropout, Stack
from paretomtl.training._step import Group
from paretomtl.training._trials import first_line

if TYPE_CHECKING:
    from paretomtl.training._strategies import Plan

COMPARED = 4
"""How many models of a stack are compared with models trained alone."""

_TOLERANCE = {(torch.float64, "cpu"): 1e-9, (torch.float64, "cuda"): 1e-9, (torch.float32, "cpu"): 2e-3}
_COARSE = 5e-2  # float32 on a GPU may mean ten bits of mantissa


def disagreement(plan: Plan, modules: Sequence[nn.Module], state: State, batch: Any) -> str | None:
    """Why a stack cannot stand in for the models alone; None if one step of both agrees, dropout aside."""
    rows = sorted({round(i * (len(modules) - 1) / (COMPARED - 1)) for i in range(COMPARED)})
    try:
        (stacked,) = plan.batched(copies(modules), state)
        stack = stacked.models
        assert isinstance(stack, Stack)
        stack.randomness = "same"
        together = _one_step(stacked, batch)
        stack.randomness = "different"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            stack.losses(batch)  # some random functions know only one of the two
    except Exception as error:
        return first_line(error)
    for k in rows:
        (alone,) = plan.sequential(copies([modules[k]]), slice_state(state, slice(k, k + 1)))
        if _groups_of(alone) != _groups_of(stacked):
            return "the optimizer's factory treats stacked parameters differently: it must not go by their shapes"
        found = _one_step(alone, batch, follow=(together, k))
        sample = next(iter(alone.models.trained.values()))
        usual = _TOLERANCE.get((sample.dtype, sample.device.type), _COARSE)
        for what, mine in found.items():
            tolerance = 1e-3 * usual if what.startswith("parameters") else usual
            least = 1e-3 * float(found["scale"]) if what.startswith("gradients") else 0.0
            theirs = together[what][k] if what in together else torch.zeros_like(mine)
            if not _agree(mine, theirs, tolerance, least):
                return f"{what} of a stacked model differ from those of the model alone"
    return None


def _one_step(group: Group, batch: Any, follow: tuple[dict[str, Tensor], int] | None = None) -> dict[str, Tensor]:
    """Losses, gradients and buffers of one step, and the parameters that the optimizer makes of it.

    Without dropout, and in the precision of the parameters: what vmap gets wrong does not depend on either.

    Args:
        group: the models; they are left where the step took them.
        batch: the batch.
        follow: what a stack found, and a row of it: its gradients go to the optimizer in place of those found here, so
            that rounding does not hide what the optimizer does.
    """
    seed_everything(0)
    models = group.models
    stacked = isinstance(models, Stack)
    before = set(dict(models.module.named_parameters()))
    with warnings.catch_warnings(), NoDropout():
        warnings.simplefilter("ignore")
        losses = models.losses(batch)
        with torch.no_grad(), models.evaluating():
            evaluated = models.forward(batch)[0]
    found: dict[str, Tensor] = {"losses": losses.detach(), "losses in eval mode": evaluated}
    rows = task_gradients(losses, list(models.trained.values()))
    shape = (models.count,) if stacked else ()
    squares = losses.new_zeros(shape, dtype=torch.float64)
    for name, parts in zip(models.trained, zip(*rows, strict=True), strict=True):
        total = torch.zeros_like(models.trained[name])
        for i, part in enumerate(parts):
            if part is not None:
                found[f"gradients of task {i} for {name}"] = part
                squares = squares + part.double().reshape(*shape, -1).square().sum(-1)
                total = total + torch.where(part.isfinite(), part, 0.0)
        models.trained[name].grad = total if follow is None else follow[0][f"update of {name}"][follow[1]]
        found[f"update of {name}"] = models.trained[name].grad  # type: ignore[assignment]
    found["scale"] = squares.sqrt()
    group.optimizer.step()
    for name, tensor in models.tensors().items():
        kind = "parameters" if name in before else "buffers"
        found[f"{kind} {name}"] = (tensor if stacked else tensor[0]).to(torch.float64, copy=True)
    return found


def copies(modules: Sequence[nn.Module]) -> list[nn.Module]:
    """The same models elsewhere, for trials."""
    return [copy.deepcopy(module) for module in modules]


def _groups_of(group: Group) -> dict[str, Any]:
    """The options under which the optimizer trains each parameter, by name."""
    names = {id(tensor): name for name, tensor in group.models.trained.items()}
    return {
        names.get(id(tensor), "?"): {key: value for key, value in part.items() if key not in ("params", "param_names")}
        for part in group.optimizer.param_groups
        for tensor in part["params"]
    }


def _agree(mine: Tensor, theirs: Tensor, tolerance: float, least: float) -> bool:
    """Whether two tensors differ by a small part of their norm, or of ``least`` if that is more; NaN equals NaN."""
    mine, theirs = mine.double(), theirs.double()
    finite = mine.isfinite()
    if not torch.equal(finite, theirs.isfinite()):
        return False
    distance = torch.where(finite, mine - theirs, 0.0).norm()
    return float(distance) <= tolerance * max(float(torch.where(finite, mine, 0.0).norm()), least) + 1e-12
