"""Losses and metrics of models that were trained elsewhere, measured like those of a run.

The weights of such models are stored only if ``problem.model`` gives their losses with them on the first batch:
parameters of the same shapes may belong to another function, and a stored front would silently hold other models.
"""

from __future__ import annotations

import contextlib
import functools
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from paretomtl._support.argument_checks import check_count
from paretomtl._support.module_tensors import load_tensors
from paretomtl._support.random_state import isolated_randomness, own_states_kept, seed_everything
from paretomtl._support.splits import SPLITS
from paretomtl._support.version import made_by
from paretomtl.engine.batches.base import Batches, OneBatch
from paretomtl.engine.batches.make import make_batches
from paretomtl.engine.batches.partition import first_part
from paretomtl.engine.batches.rereading import warn_if_partial
from paretomtl.engine.batches.structure import moved
from paretomtl.engine.device import find_device
from paretomtl.engine.evaluate import Scores, evaluate
from paretomtl.engine.models.base import Models
from paretomtl.engine.models.modules import copy_module, named_tensors
from paretomtl.engine.models.single import Single
from paretomtl.engine.processes import ProcessGroup, is_dtensor
from paretomtl.front import Front
from paretomtl.front.limits import MAX_SOLUTIONS
from paretomtl.front.models import ModelStore, SeparateModules, StackedModels, stack_rows
from paretomtl.problems import Problem
from paretomtl.training.settings.fingerprint import identify_data
from paretomtl.training.torch_modes import library_modes

_SAME = 1e-3  # relative difference of losses that another processor may cause


@dataclass(frozen=True)
class _Measured:
    """One model to measure, in full precision."""

    models: Models
    active: Tensor

    def precision(self) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext()


def evaluate_models(
    models: Any, problem: Problem, *, batch_size: int | None, device: torch.device | str | None
) -> dict[str, Any]:
    """The fields of a front of these models: what :meth:`paretomtl.Front.from_models` measures and stores."""
    if not isinstance(problem, Problem):
        raise TypeError(f"'problem' must be a Problem. Got {type(problem).__name__} instead.")
    if batch_size is not None:
        batch_size = check_count("batch_size", batch_size)
    size = problem.recipe.batch_size if batch_size is None else batch_size
    place = None if device is None else find_device(device, ProcessGroup())
    bench = _Bench(replace(problem, shared=None, representation=None), size, place)
    given = _as_list(models)
    with isolated_randomness(), library_modes("float32"):
        for split in ("val", "test"):
            warn_if_partial(split, getattr(problem, split))
        copies = [_copied(model, problem, k) for k, model in enumerate(given)]
        scores = [bench.measure(module, k) for k, module in enumerate(copies)]
        weights = bench.weights(copies, problem)
        known = identify_data(problem)
        probes = [bench.probe(module, {split: batch for split, (_, batch) in known.items()}) for module in copies]
    store: ModelStore = SeparateModules([module.cpu().eval() for module in copies])
    if weights is not None:
        store = StackedModels(weights)
    splits = list(scores[0])
    losses = {split: torch.cat([each[split].losses for each in scores]) for split in splits}
    finite = torch.stack([table.isfinite().all(-1) for table in losses.values()]).all(0).tolist()
    return {
        "losses": losses,
        "metrics": {
            split: {name: torch.cat([each[split].metrics[name] for each in scores]) for name in problem.metrics}
            for split in splits
            if problem.metrics
        },
        "better": {name: metric.better for name, metric in problem.metrics.items()},
        "status": ["evaluated" if sound else "non-finite" for sound in finite],
        "made_by": made_by(),
        "models": store,
        "model_factory": None if weights is None else problem.model,
        "data": {split: checksum for split, (checksum, _) in known.items()},
        "probes": {split: torch.cat([each[split] for each in probes]) for split in known},
    }


def model_check(front: Front, problem: Problem) -> Callable[[nn.Module, int], None]:
    """A function that refuses a model of a row that has other losses than the trained one.

    It needs a split whose data are those of the front. A warning names those that are not.
    """
    with isolated_randomness():
        known = identify_data(problem)
    same = {split: batch for split, (checksum, batch) in known.items() if front.data.get(split) == checksum}
    others = [
        split for split in front.data if split in known and split not in same and getattr(problem, split) is not None
    ]
    (split, *_) = [*(split for split in same if split in front.probes), None]
    if others:
        unchecked = ", nor can its models be checked" if split is None else ""
        warnings.warn(
            f"'problem' has other data on {others} than those that the losses of this front were measured on, so these "
            f"are not the losses of its models there{unchecked}. Front.from_models measures them again.",
            stacklevel=6,
        )
    samples = {} if split is None else {split: same[split]}
    return functools.partial(_check_model, problem, samples, front.probes, front.subproblems)


def _check_model(
    problem: Problem,
    samples: Mapping[str, Any],
    known: Mapping[str, Tensor],
    numbers: Sequence[int],
    module: nn.Module,
    row: int,
) -> None:
    """Compare the losses of a model on a few samples of a split with those that it had."""
    bench = _Bench(replace(problem, shared=None, representation=None), 1, torch.device("cpu"))
    for split in samples:
        expected = known[split][row]
        with isolated_randomness(0), library_modes("float32"):
            try:
                (losses,) = bench.probe(copy_module(module), samples)[split]
            except Exception as error:
                reason = " ".join(str(error).split())
                text = f"model {numbers[row]} could not be checked on samples of '{split}': {reason}"
                warnings.warn(text, stacklevel=4)
                return
            noise = torch.zeros_like(losses)
            if not torch.allclose(losses, expected, rtol=_SAME, atol=0.0, equal_nan=True):
                with contextlib.suppress(Exception):  # rounding may be all that is left, or models draw random numbers
                    seed_everything(1)
                    noise = 10 * (bench.probe(copy_module(module).double(), samples)[split][0] - losses).abs()
        near = (losses - expected).abs() <= _SAME * losses.abs() + noise
        if not bool((near | (losses == expected) | (losses.isnan() & expected.isnan())).all()):
            shown = [[float(f"{x:.6g}") for x in values.tolist()] for values in (losses, expected)]
            raise ValueError(
                "'problem' must make the models that were trained, and have their losses. Got a model "
                f"{numbers[row]} with the losses {shown[0]} on some samples of '{split}', where the trained one had "
                f"{shown[1]}: 'model' or 'losses' compute something else."
            )


class _Bench:
    """The splits of a problem, in the dtype and on the device of each model that is measured."""

    def __init__(self, problem: Problem, batch_size: int, device: torch.device | None) -> None:
        self._problem = problem
        self._size = batch_size
        self._device = device
        self._made: dict[Any, dict[str, Batches]] = {}

    def measure(self, module: nn.Module, k: int) -> dict[str, Scores]:
        """Losses and metrics of a model by split."""
        device, dtype = self._place(module)
        scores = {}
        for split, batches in self._batches(device, dtype).items():
            measured = _Measured(
                Single(self._problem, module.to(device)), torch.ones(1, dtype=torch.bool, device=device)
            )
            try:
                with isolated_randomness(0), own_states_kept(getattr(self._problem, split)):  # all see the same samples
                    scores[split] = evaluate(self._problem, [measured], batches, split=repr(split))
            except Exception as error:
                error.add_note(f"This came from models[{k}], a {type(module).__name__}, on {split!r}.")
                raise
        return scores

    def probe(self, module: nn.Module, samples: Mapping[str, Any]) -> dict[str, Tensor]:
        """Losses ``[1, m]`` of a model on a few samples of each split."""
        device, dtype = self._place(module)
        models = Single(self._problem, module.to(device))
        measured = _Measured(models, torch.ones(1, dtype=torch.bool, device=device))
        problem = replace(self._problem, metrics={})
        return {
            split: evaluate(problem, [measured], OneBatch(moved(batch, device, dtype))).losses.double()
            for split, batch in samples.items()
        }

    def weights(self, modules: list[nn.Module], problem: Problem) -> dict[str, Tensor] | None:
        """Parameters and buffers, stacked; None if ``problem.model`` does not make all of these models.

        Its modules must have the same parameters, and the same losses on the first batch: layers without parameters
        may differ.
        """
        named = [named_tensors(module) for module in modules]
        kinds = [{name: (tensor.shape, tensor.dtype) for name, tensor in each.items()} for each in named]
        if any(kind != kinds[0] for kind in kinds):
            return None
        device, dtype = self._place(modules[0])
        made = copy_module(problem.model()).to(device=device, dtype=dtype)
        batch = first_part(next(self._batches(device, dtype)["train"].in_order()))
        for module, own in zip(modules, named, strict=True):
            if load_tensors(made, own) or not self._alike(made, module.to(device), batch):
                return None
        return stack_rows([{name: tensor.detach().cpu() for name, tensor in each.items()} for each in named])

    @torch.no_grad()
    def _alike(self, one: nn.Module, other: nn.Module, batch: Any) -> bool:
        losses = []
        for module in (one, other):
            models = Single(self._problem, module)
            with models.evaluating():
                losses.append(models.forward(batch)[0])
        return torch.allclose(losses[0], losses[1], rtol=1e-4, equal_nan=True)

    def _place(self, module: nn.Module) -> tuple[torch.device, torch.dtype]:
        tensors = list(named_tensors(module).values())
        device = self._device or next((tensor.device for tensor in tensors), torch.device("cpu"))
        return device, next((tensor.dtype for tensor in tensors if tensor.is_floating_point()), torch.float32)

    def _batches(self, device: torch.device, dtype: torch.dtype) -> dict[str, Batches]:
        if (device, dtype) not in self._made:
            self._made[device, dtype] = {
                split: make_batches(
                    split, getattr(self._problem, split), batch_size=self._size, device=device, dtype=dtype
                )
                for split in SPLITS
                if split == "train" or getattr(self._problem, split) is not None
            }
        return self._made[device, dtype]


def _as_list(models: Any) -> list[Any]:
    rule = "'models' must be a list of modules, or of state dictionaries"
    if isinstance(models, (nn.Module, Mapping, str)) or not isinstance(models, Iterable):
        one = isinstance(models, (nn.Module, Mapping, str, os.PathLike))
        remedy = "write [model] for one" if one else "Front.from_losses takes losses that other programs found"
        raise TypeError(f"{rule}. Got {type(models).__name__} instead; {remedy}.")
    listed = list(models)
    if not listed:
        raise ValueError(f"{rule}, not empty. Got none.")
    if len(listed) > MAX_SOLUTIONS:
        raise ValueError(
            f"'models' must be at most {MAX_SOLUTIONS:,}, as a front holds no more. Got {len(listed):,} instead."
        )
    return listed


def _holds_tensors(part: Mapping[Any, Any]) -> bool:
    return all(isinstance(tensor, Tensor) for tensor in part.values())


def _copied(model: Any, problem: Problem, k: int) -> nn.Module:
    """A copy of a module, or one with the weights of a state dictionary."""
    if isinstance(model, nn.Module):
        if isinstance(model, nn.parallel.DistributedDataParallel) or any(map(is_dtensor, model.parameters())):
            kind = type(model).__name__
            raise TypeError(f"'models' must be plain modules. Got a {kind} in models[{k}]: write model.module for DDP.")
        lazy = [name for name, tensor in named_tensors(model).items() if is_lazy(tensor)]
        if lazy:
            raise ValueError(f"'models' must have been called once. Got lazy parameters in models[{k}], {lazy[:5]}.")
        return copy_module(model)
    if not isinstance(model, Mapping) or not _holds_tensors(model):
        kind, remedy = type(model).__name__, ""
        if isinstance(model, (str, os.PathLike)):
            remedy = ": write torch.load(path, weights_only=True), or safetensors.torch.load_file(path)"
        if isinstance(model, Mapping):
            name, other = next((name, each) for name, each in model.items() if not isinstance(each, Tensor))
            kind = f"a dictionary with {type(other).__name__} under {name!r}"
            weights = [
                name for name, part in model.items() if part and isinstance(part, Mapping) and _holds_tensors(part)
            ]
            if weights:
                remedy = f": write checkpoint[{weights[0]!r}], its names without a prefix that 'problem.model' lacks"
        rule = "'models' must be modules, or state dictionaries of tensors"
        raise TypeError(f"{rule}. Got {kind} in models[{k}]{remedy}.")
    made = copy_module(problem.model())  # its parts may be those of other models
    dtype = next((tensor.dtype for tensor in model.values() if tensor.is_floating_point()), None)
    made = made if dtype is None else made.to(dtype)
    try:
        made.load_state_dict(dict(model))
    except RuntimeError as error:
        wrong = load_tensors(made, model)  # Front.state_dict has tied weights once, and all buffers
        if wrong:
            reason = " ".join(str(error).split())
            rule = "'models' must have the weights of 'problem.model'"
            raise ValueError(f"{rule}. Got models[{k}], which differs in {wrong[:5]}: {reason}") from None
    return made
