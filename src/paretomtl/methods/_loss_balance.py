"""Balancing of tasks with different units before they are spread (paper, supplement, sections 3 and 4)."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from paretomtl.methods._gradnorm import GradNorm
from paretomtl.methods._uncertainty import Uncertainty
from paretomtl.methods.base import Method
from paretomtl.methods.inputs import SafeStep, State
from paretomtl.methods.loss_scaling import first_factors

_BALANCERS: dict[str, Method] = {"gradnorm": GradNorm(), "uncertainty": Uncertainty()}
_PREFIX = "balance."
_DECAY = 0.95  # of the running mean


def init_balance(kind: str, preferences: Tensor) -> State:
    """The state that :func:`balance` needs, under prefixed names."""
    unknown = torch.zeros(preferences.shape, dtype=torch.float64)
    if kind == "running":
        return {f"{_PREFIX}mean": unknown}
    own = {"unit": unknown, **_BALANCERS[kind].init(preferences)}
    return {_PREFIX + name: tensor for name, tensor in own.items()}


def balance(kind: str, step: SafeStep, state: State) -> tuple[Tensor, State]:
    """The factors of the losses after a balancing step, zero where unknown; and the changed part of the state.

    Tasks are trained together with these factors from the first step on. Equal weights of unscaled losses would leave
    gradients in the units of the losses in Adam's moments, and these would stall tasks that are scaled later.

    "running" divides each loss by its running mean. The others are methods that see losses relative to their first
    values, because their weights move too slowly to make up for units. Their weights give the factors.
    """
    own = {name.removeprefix(_PREFIX): tensor for name, tensor in state.items() if name.startswith(_PREFIX)}
    if kind == "running":
        before, now = own["mean"], step.losses.abs()
        mean = torch.where(before > 0, _DECAY * before + (1 - _DECAY) * now, now)
        mean = torch.where(step.present, mean, before)
        return torch.where(mean > 0, 1.0 / mean.clamp_min(1e-300), 0.0), {f"{_PREFIX}mean": mean}
    unit = first_factors(own.pop("unit"), step.losses, step.present)
    c = torch.where(unit > 0, unit, 1.0)
    scaled = replace(step, losses=c * step.losses, gramian=c[..., :, None] * step.gramian * c[..., None, :])
    weights, after = _BALANCERS[kind]._weigh(scaled, own)
    return unit * weights, {_PREFIX + name: tensor for name, tensor in {"unit": unit, **after}.items()}
