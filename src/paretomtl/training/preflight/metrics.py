"""Metrics that cannot work: each is tried on the first batch, as losses are."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import torch
from torch import nn

from paretomtl._support.random_state import isolated_randomness
from paretomtl.engine.batches.structure import unchanged
from paretomtl.problems import Problem
from paretomtl.problems.metrics import measure
from paretomtl.problems.per_task import TaskBatch

_MISTAKES = TypeError, AttributeError, NameError


def check_metrics(problem: Problem, split: str, module: nn.Module, batch: Any) -> None:
    """Raise the error of a metric that is a mistake in its code; a metric may fail otherwise on few samples.

    Args:
        problem: with the metrics.
        split: of the batch.
        module: an untrained model, which is not changed.
        batch: the first one.
    """
    if not problem.metrics or isinstance(batch, TaskBatch):
        return
    model = copy.deepcopy(module).eval()
    with isolated_randomness(0), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen: tuple[Any, Any] = (model, [batch])
        if not problem.takes_model:
            seen = problem.run(model, batch)[1], problem.split_batch(batch)[1]
        for name, metric in problem.metrics.items():
            try:
                with unchanged(batch, "metrics"):
                    measure(problem, metric, *seen)
            except _MISTAKES as error:
                form = "(model, batches), as losses(model, batch) do" if problem.takes_model else "(outputs, targets)"
                error.add_note(
                    f"This came from metric '{name}', which is tried on the first batch of '{split}' before training. "
                    f"A metric takes {form}, and returns one number."
                )
                raise
            except Exception:  # such as a class that few samples do not have
                continue
