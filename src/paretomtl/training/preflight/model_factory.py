"""Model factories: whether one makes the same model again from the same random state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from paretomtl._support.module_tensors import load_tensors
from paretomtl.engine.models.attributes import attributes_of, changes
from paretomtl.engine.models.modules import copy_module, copy_template
from paretomtl.problems import Problem
from paretomtl.training.preflight.hidden_state import in_words, try_pass


def check_factory(problem: Problem, module: nn.Module, seed: int, make: Callable[[int], nn.Module], batch: Any) -> None:
    """Refuse a factory that makes another model from the same random state, in attributes that no front stores.

    Args:
        problem: whose losses are computed.
        module: a model of the factory.
        seed: of the random state that it was made from.
        make: makes one from a random state.
        batch: the first one.
    """
    again = copy_template(make(seed), frozen=True)
    first, second = attributes_of(module), attributes_of(again)
    differing = changes(first, second) if first.keys() == second.keys() else []
    if not differing:
        return
    load_tensors(again, {**dict(module.named_parameters()), **dict(module.named_buffers())})
    losses = try_pass(problem, again, batch, training=False)
    expected = try_pass(problem, copy_module(module), batch, training=False)
    if losses is None or expected is None or torch.allclose(losses, expected, rtol=1e-4, equal_nan=True):
        return
    raise ValueError(
        f"'model' must make the same model again from the same random state, up to parameters and buffers, as "
        f"Front.model(k) does. Got another {in_words(differing)}: draw it from torch, numpy.random or random, or keep "
        "it in a buffer (register_buffer)."
    )
