"""Pre-flight checks of a problem, on copies of its first model.

Problems are found before training: every split is tried with one batch, every task must have a gradient, and every
path must go through the representation.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import itertools
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from paretomtl._support.argument_checks import describe_value, quote
from paretomtl._support.random_state import isolated_randomness
from paretomtl.engine.batches.base import Batches
from paretomtl.engine.batches.rereading import check_starts_again, warn_if_partial
from paretomtl.engine.batches.structure import count_samples, map_tensors, unchanged
from paretomtl.engine.batches.task_batches import TaskBatches
from paretomtl.engine.error_hints import came_from, find_pairs, hints, how_called
from paretomtl.engine.gradients import before_stack, task_gradients
from paretomtl.engine.models.attributes import differing_from_first
from paretomtl.engine.models.base import change_tensor
from paretomtl.engine.models.module_checks import warn_if_dropout_off
from paretomtl.engine.models.modules import make_modules, separate_frozen
from paretomtl.engine.models.single import Single
from paretomtl.engine.processes import ProcessGroup
from paretomtl.problems import Problem
from paretomtl.problems.task_losses import TaskLosses, runs_otherwise
from paretomtl.training.preflight.hidden_state import check_hidden_state, check_leaves, other_modules_unchanged
from paretomtl.training.preflight.loss_sums import find_sums
from paretomtl.training.preflight.metrics import check_metrics
from paretomtl.training.preflight.missing_values import missing_values
from paretomtl.training.preflight.model_factory import check_factory
from paretomtl.training.preflight.raw_targets import raw_targets
from paretomtl.training.settings.fingerprint import digest
from paretomtl.training.settings.settings import Settings


def check_problem(settings: Settings, modules: Sequence[nn.Module], splits: Mapping[str, Batches], batch: Any) -> bool:
    """Find problems that would spoil training or evaluation.

    Args:
        settings: of the run.
        modules: the models, which are not changed.
        splits: the data.
        batch: the first one of training.

    Returns:
        The result of :func:`check_losses`.
    """
    problem = settings.problem
    for name, split in splits.items():
        check_passes(name, getattr(problem, name), split)
    check_distinct_samples(settings.shares.processes, splits["train"], batch)
    warn_if_dropout_off(modules[0])
    stacked = check_losses(settings, modules, batch)
    for text in [] if batch is None else missing_values(problem, "train", splits["train"], modules[0], batch):
        warnings.warn(text, stacklevel=5)
    pairs = None if batch is None else find_pairs(problem, modules[0], batch)
    if pairs is not None:
        warnings.warn(
            f"'losses' subtracts outputs of shape {pairs[0]} and targets of shape {pairs[1]}, which makes a table of "
            "all pairs: write outputs.squeeze(-1), or targets[:, None].",
            stacklevel=5,
        )
    _check_factory(settings, modules, batch)
    sums = [] if batch is None else find_sums(problem, modules[0], batch)
    if sums:
        warnings.warn(
            f"losses of tasks {sums} are sums over samples, and not means: those of a split are means over its "
            "batches, and would depend on 'batch_size'. Divide them by the number of samples.",
            stacklevel=5,
        )
    check_counted(problem, "train", splits["train"], batch)
    for name in splits.keys() - {"train"}:
        sample = first_batch(name, splits[name].in_order())
        check_outputs(problem, splits[name], sample, check_split(settings, name, modules[0], sample))
        check_counted(problem, name, splits[name], sample)
        check_metrics(problem, name, modules[0], sample)
        for text in missing_values(problem, name, splits[name], modules[0], sample):
            warnings.warn(text, stacklevel=5)
    if problem.metrics and len(splits) == 1:
        check_outputs(problem, splits["train"], batch, check_split(settings, "train", modules[0], batch))
        check_metrics(problem, "train", modules[0], batch)
    return stacked


def check_losses(settings: Settings, modules: Sequence[nn.Module], batch: Any) -> bool:
    """Find losses that cannot be trained; frozen parameters that passes change are no longer held once.

    Returns:
        Whether the tasks have separate graphs, so that NaN of missing labels stays with its own task.
    """
    problem, module = settings.problem, modules[0]
    precision: Any = contextlib.nullcontext()
    if settings.autocast is not None:
        precision = torch.autocast(settings.device.type, dtype=settings.autocast)
    try:
        with other_modules_unchanged():
            with precision, unchanged(batch):
                separate_frozen(modules, check_hidden_state(problem, module, batch))
            with isolated_randomness():
                models = Single(problem, copy.deepcopy(module))
                with precision:
                    losses = models.losses(batch)
    except Exception as error:
        for note in (how_called(problem, batch, error), *hints(error, batch)):
            error.add_note(note)
        raise
    replaced = [key for key, p in models.module.named_parameters() if models.trained.get(key, p) is not p]
    if replaced:
        raise ValueError(
            f"'model' must keep its parameters: the optimizer trains those that it was given. Got {replaced[:3]}, "
            "which a forward pass replaced by new ones: change them in place, under torch.no_grad()."
        )
    with precision:
        check_leaves(problem, models.module, losses, batch)
        _check_parts(problem, module, batch)
    if not losses.requires_grad:
        raise ValueError(
            "'losses' must depend on the model's parameters. Got losses attached to none of them: do not compute them "
            "under torch.no_grad(), nor from .detach(), .data, .item() or .numpy()."
        )
    apart = before_stack(losses) is not None
    raw = raw_targets(problem, batch, losses.tolist())
    if raw is not None:
        warnings.warn(raw, stacklevel=6)
    rows = task_gradients(losses, list(models.trained.values()))
    for task, loss, row in zip(problem.tasks, losses.tolist(), rows, strict=True):
        if loss == loss and all(part is None for part in row):
            raise ValueError(
                f"'losses' must depend on the model's parameters for every task. Got {quote(task)}, attached to none: "
                "its loss uses no output of the model, or one that went through argmax(), a comparison, .detach() or "
                ".item(), which have no gradient. A task without labels in a batch has the loss NaN."
            )
    _warn_of_gradients(problem, losses, rows)
    if settings.method.reading == "direction" and bool((losses < 0).any()):
        warnings.warn(
            f"losses are negative at the start ({losses.min().item():.3g}): preferences are directions of non-negative "
            "losses. Add a constant, or subtract each loss's lower bound.",
            stacklevel=6,
        )
    if problem.shared is not None and not any(problem.is_shared(name) for name in models.trained):
        names = list(models.trained)[:6]
        raise ValueError(
            f"'shared' must fit the names of some parameters, such as {names}. Got {quote(problem.shared)}."
        )
    if problem.representation is not None:
        _check_representation(settings, module, batch)
    return problem.train is None or apart


def _check_parts(problem: Problem, module: nn.Module, batch: Any) -> None:
    """Refuse functions by task that would also run on another part of outputs and targets, with another result."""
    if not isinstance(problem.losses, TaskLosses):
        return
    with isolated_randomness(), torch.no_grad():
        given = problem.with_own_gradients("losses", problem.losses.arguments, copy.deepcopy(module), batch)
        given = map_tensors(lambda tensor: tensor.detach().cpu().clone(), given)  # a wrong class would break a GPU
        functions, tasks = problem.losses.functions, list(problem.tasks)
        found = [runs_otherwise(functions[task], first, last, task, tasks) for task, (first, last) in given.items()]
    if True in found and False not in found:
        outputs, targets = next(iter(given.values()))
        raise ValueError(
            "'losses' must leave no doubt which part of outputs and targets each function gets. Got functions that run "
            f"on one part for each of the tasks {tasks} as well as on the whole, with outputs that are "
            f"{describe_value(outputs)} and targets that are {describe_value(targets)}. If each task has its own part, "
            f"let the model return a dictionary, {{{tasks[0]!r}: ..., {tasks[1]!r}: ...}}, and give targets of each "
            "task. If they belong together, write one function losses(outputs, targets), or losses(model, batch), "
            "that returns the losses of all tasks."
        )


def _warn_of_gradients(problem: Problem, losses: Tensor, rows: Sequence[Sequence[Tensor | None]]) -> None:
    """Warn of tasks that are one, and of those whose gradients are not finite, which would freeze every model."""
    for i, j in () if problem.train is None else itertools.combinations(range(len(rows)), 2):
        if bool(losses[i] == losses[j]) and all(map(_equal, rows[i], rows[j])):
            warnings.warn(
                f"tasks {problem.tasks[i]!r} and {problem.tasks[j]!r} have the same loss and gradients on the first "
                "batch: they may be one task. Check that each loss takes its own outputs and targets.",
                stacklevel=7,
            )
    broken = [
        task
        for task, loss, row in zip(problem.tasks, losses.detach(), rows, strict=True)
        if bool(loss.isfinite()) and not all(bool(part.isfinite().all()) for part in row if part is not None)
    ]
    if broken:
        where = "at the start" if problem.train is None else "on the first batch of 'train'"
        warnings.warn(
            f"gradients of tasks {broken} are not finite {where}, though their losses are: a model with such gradients "
            "is frozen. nanmean and nansum cause them where labels are missing: select samples by a mask or "
            "torch.where instead. So do square roots and norms of zero.",
            stacklevel=7,
        )


def _equal(one: Tensor | None, other: Tensor | None) -> bool:
    return one is other or (one is not None and other is not None and torch.equal(one, other))


def _check_factory(settings: Settings, modules: Sequence[nn.Module], batch: Any) -> None:
    """Make models again if the result might differ: attributes differ, or there is only one model."""

    def make(seed: int) -> nn.Module:
        return make_modules(settings.problem, [seed], settings.device, settings.dtype)[0]

    others = differing_from_first(modules)
    for k in (0, *others[:1]) if others or len(modules) == 1 else ():
        check_factory(settings.problem, modules[k], settings.model_seeds[k], make, batch)


def check_distinct_samples(ranks: ProcessGroup, train: Batches, batch: Any) -> None:
    """Refuse DataLoaders that yield the same samples in every process of a run."""
    if not ranks.is_distributed or train.resumes_inside:  # tensors and Datasets are shared out here
        return
    digest = hashlib.sha256()

    def note(tensor: Tensor) -> Tensor:
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        return tensor

    map_tensors(note, batch)
    if len(set(ranks.gather(digest.hexdigest()))) == 1:
        raise ValueError(
            f"'train' must give each of the {ranks.size} processes its own samples: see "
            "torch.utils.data.DistributedSampler. Got the same first batch in all of them."
        )


def check_passes(name: str, data: Any, batches: Batches) -> None:
    """Refuse data that do not start from the beginning at each pass."""
    if isinstance(batches, TaskBatches):
        for task, part in batches.parts.items():
            check_passes(f"{name}[{task!r}]", data.data[task], part)
        return

    def read_first() -> Any:
        with isolated_randomness():
            return first_batch(name, batches.epoch(0, 0))

    check_starts_again(name, data, read_first, lambda one, other: digest(one) == digest(other))
    if not name.startswith("train"):
        warn_if_partial(name, data)


def first_batch(name: str, batches: Iterable[Any]) -> Any:
    """The first batch of a split; if it cannot be read, the error names the split."""
    try:
        for batch in batches:
            return batch
    except Exception as error:
        for note in (f"This came from reading the first batch of '{name}'.", *hints(error, None)):
            error.add_note(note)
        raise
    raise ValueError(f"'{name}' must hold at least one batch. Got an empty one.")


def check_counted(problem: Problem, name: str, batches: Batches, batch: Any) -> None:
    """Warn if the number of samples in a batch of a DataLoader is unknown, but means depend on it."""
    if isinstance(batches, TaskBatches):
        for task, part in batches.parts.items():
            check_counted(problem, f"{name}[{task!r}]", part, batch[task])
        return
    if problem.counts is not None or batches.resumes_inside or batches.steps == 1:
        return
    sizes: set[int] = set()

    def note(tensor: Tensor) -> Tensor:
        sizes.update(tensor.shape[:1])
        return tensor

    map_tensors(note, batch)
    if len(sizes) == 1:
        return
    kind = f"tensors whose first dimensions are {sorted(sizes)}" if sizes else f"a {type(batch).__name__}"
    rule = f"the first one's, {count_samples(batch)}, is taken" if sizes else "all count alike"
    warnings.warn(
        f"'counts' should say how many samples the batches of '{name}' have, since losses are means over samples and "
        f"batches may differ in size. Got {kind}: {rule}. See Problem.",
        stacklevel=6,
    )


def check_outputs(problem: Problem, batches: Batches, batch: Any, outputs: Any) -> None:
    """Warn if metrics would see the outputs of a split concatenated along a dimension that does not hold samples."""
    if not problem.metrics or problem.takes_model or batches.steps == 1:
        return
    samples, shapes = count_samples(batch), list[list[int]]()

    def note(tensor: Tensor) -> Tensor:
        if tensor.ndim and len(tensor) != samples:
            shapes.append(list(tensor.shape))
        return tensor

    map_tensors(note, outputs)
    if shapes:
        warnings.warn(
            f"outputs should have samples in their first dimension, along which batches are concatenated for metrics. "
            f"Got shape {shapes[0]} for a batch of {samples}: transpose it, or write losses(model, batch) and metrics "
            "of the form (model, batches).",
            stacklevel=6,
        )


def check_split(settings: Settings, name: str, module: nn.Module, batch: Any) -> Any:
    """Try a split before training, so that it cannot fail afterwards.

    Returns:
        The outputs of its first batch.
    """
    where = f"the first batch of '{name}', which is tried out before training"
    with isolated_randomness(), torch.no_grad(), came_from(where, batch), unchanged(batch):
        return settings.problem.run(copy.deepcopy(module).eval(), batch)[1]


def _check_representation(settings: Settings, module: nn.Module, batch: Any) -> None:
    """Refuse a representation with another path around it to the losses, or with trained parameters before it."""
    problem, name = settings.problem, settings.problem.representation
    assert name is not None
    gradients: list[dict[str, Tensor | None]] = []
    for cut in (False, True):
        model = copy.deepcopy(module)
        if cut:
            model.get_submodule(name).register_forward_hook(
                lambda _, inputs, output: change_tensor(name, output, Tensor.detach)
            )
        trained = {key: p for key, p in model.named_parameters() if p.requires_grad}
        with isolated_randomness():
            losses = problem.run(model, batch)[0]
        total = torch.where(losses.detach().isnan(), 0.0, losses).sum()
        grads: Any = [None] * len(trained)
        if total.requires_grad:
            grads = torch.autograd.grad(total, list(trained.values()), allow_unused=True)
        gradients.append(dict(zip(trained, grads, strict=True)))
    whole, heads = gradients
    inside = [key for key in whole if problem.is_shared(key)]
    if not inside:
        raise ValueError(f"'representation' must name a submodule with parameters to train. Got {quote(name)} instead.")
    around = [key for key in inside if heads[key] is not None]
    if around:
        raise ValueError(
            f"'representation' must be the only way from its module to the losses. {around[0]!r} also acts around it."
        )
    before = [key for key in whole if key not in inside and heads[key] is None and whole[key] is not None]
    if before:
        raise ValueError(
            f"'representation' must name a module with everything that comes before the heads. {before[0]!r} lies "
            f"before {name!r}: let one module hold both, and name that."
        )
