"""State that a model keeps outside of its parameters and buffers: found before training, and refused if it matters.

Checkpoints, fronts and stacks hold parameters and buffers. An attribute that a forward pass changes is in none of them.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from paretomtl._support.random_state import isolated_randomness
from paretomtl.engine.batches.structure import map_samples, map_tensors
from paretomtl.engine.global_state import global_numbers
from paretomtl.engine.models.attributes import Place, Spaces, attributes_of, changes
from paretomtl.engine.models.base import ModelWithLosses
from paretomtl.engine.models.modules import copy_template, frozen_tensors
from paretomtl.problems import Problem
from paretomtl.problems.task_losses import loss_functions

_LARGEST = 1 << 22  # bytes of the largest tensor of the losses that is copied
_NUMBERS = (bool, int, float, complex, Tensor, np.ndarray, np.generic)
_REMEDY = (
    "keep it in a buffer (register_buffer) that is changed in place, so that stacks, checkpoints and fronts have it"
)


def check_hidden_state(problem: Problem, module: nn.Module, batch: Any) -> list[str]:
    """Refuse attributes that a forward pass changes and later passes may depend on.

    A number or tensor that changes again when the same pass is repeated accumulates, and may act at any later step. To
    judge other attributes, two copies see other samples, one with the attributes after the pass, one with the old ones.
    Attributes that are only written, such as attention maps kept for inspection, are fine.

    Args:
        problem: whose losses are computed; an object that computes them is checked, too.
        module: a model as the factory made it; it is not changed.
        batch: the first one.

    Returns:
        The names of frozen parameters that the pass changes, as those of a teacher that follows the model.
    """
    _check_losses_have_no_parameters(problem)
    own = _loss_spaces(problem) | {"global variables": global_numbers(problem.losses, module)}
    start = {label: _copied(space) for label, space in own.items()}
    try:
        used = copy_template(module, frozen=True)
        _pass(problem, used, batch)
        parameters = dict(used.named_parameters())
        moved = [
            name
            for name, tensor in frozen_tensors(module).items()
            if name not in parameters or not torch.equal(tensor, parameters[name])
        ]
        fresh = attributes_of(module) | start
        changed = changes(fresh, attributes_of(used) | own)
        if changed:
            _check_accumulation(problem, module, used, batch, own, changed)
            _check_effect(problem, used, batch, fresh, own, changed)
        return moved
    finally:  # others may hold the same lists, so these are not replaced
        _put_back(own, start, [(a, b) for a, b in changes(start, own) if isinstance(start[a].get(b), _NUMBERS)])


def _check_accumulation(
    problem: Problem, module: nn.Module, used: nn.Module, batch: Any, own: Spaces, changed: Sequence[Place]
) -> None:
    """Refuse numbers and tensors that change once more when the first pass is repeated."""
    again = copy.deepcopy(used)
    with torch.no_grad():
        for buffer, first in zip(again.buffers(), module.buffers(), strict=False):
            if buffer.shape == first.shape:
                buffer.copy_(first)
    once = attributes_of(used) | {label: _copied(space) for label, space in own.items()}
    _pass(problem, again, batch)
    twice = attributes_of(again) | own
    growing = [
        (label, name)
        for label, name in changes(once, twice)
        if (label, name) in changed and isinstance(twice[label].get(name), _NUMBERS)
    ]
    _put_back(own, once, changed)
    if growing:
        raise ValueError(
            "'model' and 'losses' must not count or accumulate in attributes or global variables. Got "
            f"{in_words(growing)}, which every forward pass changes: {_REMEDY}."
        )


def _check_effect(
    problem: Problem,
    used: nn.Module,
    batch: Any,
    fresh: Mapping[str, Mapping[str, Any]],
    own: Spaces,
    changed: Sequence[Place],
) -> None:
    """Refuse changed attributes if restoring them changes the losses of other samples."""
    after = {label: _copied(space) for label, space in own.items()}
    renewed = copy.deepcopy(used)
    _put_back(attributes_of(renewed), fresh, changed)
    for training in (True, False):
        for samples in (_first_half(batch), batch):
            losses = try_pass(problem, copy.deepcopy(used), samples, training=training)
            _put_back(own, fresh, changed)
            expected = try_pass(problem, copy.deepcopy(renewed), samples, training=training)
            _put_back(own, after, changed)
            if losses is not None or expected is not None:
                break  # both fail on half of a batch: try the whole one
        if losses is None or expected is None or not torch.equal(losses.nan_to_num(), expected.nan_to_num()):
            raise ValueError(
                f"'model' and 'losses' must keep what changes from step to step in parameters and buffers. Got "
                f"{in_words(changed)}, which one forward pass changes and the next one depends on: {_REMEDY}."
            )


def _pass(problem: Problem, model: nn.Module, batch: Any, *, training: bool = True) -> Tensor:
    """The losses of a forward pass; dropout draws the same at each call."""
    with isolated_randomness(0):
        losses: Tensor = ModelWithLosses(problem, model.train() if training else model.eval())(batch)[0].detach()
    for space in attributes_of(model).values():  # graphs cannot be copied
        space.update({name: map_tensors(Tensor.detach, value) for name, value in space.items() if _is_attached(value)})
    return losses


def try_pass(problem: Problem, model: nn.Module, batch: Any, *, training: bool) -> Tensor | None:
    """The losses of a forward pass; None if it fails."""
    try:
        return _pass(problem, model, batch, training=training)
    except Exception:  # such as states of another batch size
        return None


class _Cells(MutableMapping[str, Any]):
    """The variables that a function keeps in its closure."""

    def __init__(self, function: Any) -> None:
        pairs = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        self._cells = {name: cell for name, cell in pairs if _is_filled(cell)}

    def __getitem__(self, name: str) -> Any:
        return self._cells[name].cell_contents

    def __setitem__(self, name: str, value: Any) -> None:
        self._cells[name].cell_contents = value

    def __delitem__(self, name: str) -> None:
        raise KeyError(name)

    def __iter__(self) -> Any:
        return iter(self._cells)

    def __len__(self) -> int:
        return len(self._cells)


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _loss_spaces(problem: Problem) -> Spaces:
    """Where the function that computes losses may keep state: the object that it belongs to, and its closure."""
    spaces: Spaces = {}
    for label, losses in loss_functions(problem.losses).items():
        owner = getattr(losses, "__self__", None if hasattr(losses, "__code__") else losses)
        if isinstance(owner, nn.Module):
            spaces |= {f"{label}().{name}".rstrip("."): space for name, space in attributes_of(owner).items()}
        elif hasattr(owner, "__dict__") and not isinstance(owner, type):
            spaces[f"{label}()"] = vars(owner)
        elif hasattr(losses, "__code__"):
            spaces[f"{label}()"] = _Cells(losses)
    return spaces


def _check_losses_have_no_parameters(problem: Problem) -> None:
    for losses in loss_functions(problem.losses).values():
        owner = getattr(losses, "__self__", losses)
        if isinstance(owner, nn.Module) and any(p.requires_grad for p in owner.parameters()):
            names = [name for name, p in owner.named_parameters() if p.requires_grad][:5]
            raise ValueError(
                f"'losses' must not have parameters to train, which belong to the model. Got {names}: make them part "
                "of what 'model' makes, and write losses(model, batch)."
            )


def _is_attached(value: Any) -> bool:
    """Whether a tensor, or one in a container, is attached to a graph."""
    attached: list[bool] = []

    def note(tensor: Tensor) -> Tensor:
        attached.append(tensor.grad_fn is not None)
        return tensor

    map_tensors(note, value)
    return any(attached)


def _copied(space: Mapping[str, Any]) -> dict[str, Any]:
    """Copies of the values; large ones, and those that cannot be copied, stay the same objects."""
    values = dict(space)
    for name, value in values.items():
        large = isinstance(value, (Tensor, np.ndarray)) and value.nbytes > _LARGEST
        if isinstance(value, (*_NUMBERS, list, dict, set, torch.Generator)) and not large:
            with suppress(Exception):  # such as a lock, or an open file, inside of it
                values[name] = copy.deepcopy(map_tensors(Tensor.detach, value) if _is_attached(value) else value)
    return values


def _put_back(spaces: Spaces, values: Mapping[str, Mapping[str, Any]], places: Sequence[Place]) -> None:
    for label, name in places:
        if label not in spaces:
            continue
        if name in values[label]:
            spaces[label][name] = _copied({name: values[label][name]})[name]
        else:
            spaces[label].pop(name, None)


def _first_half(batch: Any) -> Any:
    """Another batch: the first half of the samples, at least two."""
    return map_samples(lambda tensor: tensor[: max(2, len(tensor) // 2)], batch)


def in_words(changed: Sequence[tuple[str, str]]) -> str:
    """The names of some attributes."""
    return ", ".join(repr(f"{label}.{name}" if label else name) for label, name in changed[:3])
