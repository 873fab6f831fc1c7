"""Tasks of different units, balanced before they are spread (paper, supplement, sections 3 and 4)."""

from __future__ import annotations

import torch
from torch import Tensor

from paretomtl.methods._gradnorm import GradNorm
from paretomtl.methods._method import Method, Seen, State
from paretomtl.methods._uncertainty import Uncertainty

_BALANCERS: dict[str, Method] = {"gradnorm": GradNorm(), "uncertainty": Uncertainty()}
_PREFIX = "balance."
_DECAY = 0.95  # of the running mean

BALANCING = ("running", *_BALANCERS)
"""What can decide the factors of the losses in the first steps, in which all tasks are trained together."""


def init_balance(kind: str, preferences: Tensor) -> State:
    """The state that :func:`balance` needs, under names of its own."""
    if kind == "running":
        return {f"{_PREFIX}mean": torch.zeros(preferences.shape, dtype=torch.float64)}  # zero: not seen yet
    return {_PREFIX + name: tensor for name, tensor in _BALANCERS[kind].init(preferences).items()}


def balance(kind: str, step: Seen, state: State) -> tuple[Tensor, Tensor, State]:
    """The weights of a step that balances, the factors of the losses that it leads to, and what changed of the state.

    "running" trains with equal weights, and divides each loss by its running mean. The others are methods whose weights
    are the factors: what they balanced is what is spread.
    """
    mine = {name.removeprefix(_PREFIX): tensor for name, tensor in state.items() if name.startswith(_PREFIX)}
    if kind == "running":
        before, now = mine["mean"], step.losses.abs()
        mean = torch.where(before > 0, _DECAY * before + (1 - _DECAY) * now, now)
        mean = torch.where(step.present, mean, before)
        factors = torch.where(mean > 0, 1.0 / mean.clamp_min(1e-300), 1.0)
        return step.present.double(), factors, {f"{_PREFIX}mean": mean}
    weights, after = _BALANCERS[kind]._weigh(step, mine)
    return weights, weights, {_PREFIX + name: tensor for name, tensor in after.items()}
