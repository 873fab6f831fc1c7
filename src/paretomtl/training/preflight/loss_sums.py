"""Losses that are sums over samples, and not means."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from paretomtl.engine.batches.structure import map_samples
from paretomtl.engine.models.modules import copy_module
from paretomtl.problems import Problem
from paretomtl.training.preflight.hidden_state import try_pass

_FEW = 8  # samples that are enough to tell sums from means


def find_sums(problem: Problem, module: nn.Module, batch: Any) -> list[str]:
    """The tasks whose losses double if every sample comes twice: sums over samples, not means."""

    def cut(times: int) -> Any:
        return map_samples(lambda tensor: torch.cat([tensor[:_FEW]] * times), batch)

    once, twice = (try_pass(problem, copy_module(module), cut(times), training=False) for times in (1, 2))
    if once is None or twice is None:
        return []
    doubled = once.isfinite() & (once != 0) & ((twice - 2.0 * once).abs() <= 1e-4 * twice.abs())
    return [task for task, is_sum in zip(problem.tasks, doubled.tolist(), strict=True) if is_sum]
