"""Metrics that cannot work: each is tried on the first batch, as losses are."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import torch
from torch import Tensor, nn

from paretomtl._support.random_state import isolated_randomness
from paretomtl.engine.batches.structure import map_tensors
from paretomtl.engine.evaluate import concatenate
from paretomtl.problems import Metric, Problem
from paretomtl.problems.metrics import measure
from paretomtl.problems.per_task import TaskBatch
from paretomtl.problems.task_losses import runs_otherwise, takes_model

_MISTAKES = TypeError, AttributeError, NameError


def check_metrics(problem: Problem, split: str, module: nn.Module, batch: Any) -> None:
    """Raise the error of a metric that is a mistake in its code; a metric may fail otherwise on few samples.

    Args:
        problem: with the metrics.
        split: of the batch.
        module: an untrained model, which is not changed.
        batch: the first one, which is not changed either.
    """
    if not problem.metrics or isinstance(batch, TaskBatch):
        return
    doubtful = dict[str, bool | None]()
    with isolated_randomness(0), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outputs = None
        if not problem.takes_model:
            outputs = map_tensors(Tensor.detach, problem.run(copy.deepcopy(module).eval(), batch)[1])
        for name, metric in problem.metrics.items():
            try:
                if problem.takes_model:
                    seen: tuple[Any, Any] = (copy.deepcopy(module).eval(), [map_tensors(Tensor.clone, batch)])
                else:  # copies, as of a whole split
                    seen = concatenate([outputs]), concatenate([problem.split_batch(batch)[1]])
                measure(problem, metric, *seen)
                if metric.task is not None and not problem.takes_model:
                    doubtful[name] = runs_otherwise(metric.function, *seen, metric.task, list(problem.tasks))
            except UnboundLocalError:  # a branch that few samples do not take
                continue
            except _MISTAKES as error:
                error.add_note(
                    f"This came from metric '{name}', which is tried on the first batch of '{split}' before training. "
                    f"A metric takes {_form(problem, metric)}, and returns one number."
                )
                raise
            except Exception:  # such as a class that few samples do not have
                continue
    for name, doubt in doubtful.items():
        if doubt:
            raise ValueError(
                f"metric '{name}' must leave no doubt which part of outputs and targets it gets. Got a function that "
                "runs on one part for each task as well as on the whole. Set task=None, and take the part in the "
                "function, such as outputs[:, 0]; or let the model return a dictionary by task name."
            )


def _form(problem: Problem, metric: Metric) -> str:
    if not problem.takes_model or (metric.task is not None and not takes_model(metric.function)):
        return "(outputs, targets)"
    return "(model, batches), as losses(model, batch) do"
