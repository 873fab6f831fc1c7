"""Losses before training, which show whether anything was learnt."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from paretomtl._support.random_state import model_seed
from paretomtl.engine.device import find_device
from paretomtl.engine.models.models import make_modules
from paretomtl.engine.processes import ProcessGroup
from paretomtl.front import Front
from paretomtl.problems import Problem


def untrained_losses(
    problem: Problem, seeds: Sequence[int], batch_size: int | None, device: torch.device | str | None
) -> Tensor | None:
    """Mean losses ``[m]`` of the untrained models on the whole training split.

    The loss of the first batch is no measure for those of a split: a few samples with large targets decide it.

    Returns:
        None for data that are not tensors: reading a Dataset or a DataLoader once more may have side effects.
    """
    parts = problem.train if isinstance(problem.train, (tuple, list)) else [problem.train]
    if not all(isinstance(part, Tensor) for part in parts):
        return None
    bare = replace(problem, val=None, test=None, metrics={})
    place = find_device(device, ProcessGroup())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # training says the same
            models = make_modules(bare, [model_seed(seed, 0) for seed in seeds], place, torch.float32)
            return Front.from_models(models, bare, batch_size=batch_size, device=place).losses["train"].double().mean(0)
    except Exception:  # the first batch stands in
        return None
