"""State that a model keeps outside of its parameters and buffers: found before training, and refused if it matters.

Checkpoints, fronts and stacks hold parameters and buffers. An attribute that a forward pass changes is in none of them.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import types
import weakref
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
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
_MOST = 10_000  # objects that are searched for the name of a tensor
_NUMBERS = (bool, int, float, complex, Tensor, np.ndarray, np.generic)
_REMEDY = (
    "keep it in a buffer of the model (register_buffer) that is changed in place, so that stacks, checkpoints and "
    "fronts have it; losses(model, batch) reaches it there"
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


def check_leaves(problem: Problem, model: nn.Module, losses: Tensor, batch: Any) -> None:
    """Refuse tensors to train that the losses reach, and that are no parameters of the model: nothing trains them.

    Tensors of the batch, those that a pass makes, and points that the model is called with may require gradients:
    physics losses differentiate by them.

    Args:
        problem: whose losses they are.
        model: the one that made the losses.
        losses: attached to their graph.
        batch: what they were computed on.
    """
    own = {id(parameter) for parameter in model.parameters()}
    map_tensors(lambda tensor: own.add(id(tensor)) or tensor, batch)  # type: ignore[func-returns-value]
    strangers = [leaf for leaf in _leaves(losses) if id(leaf) not in own]
    if not strangers:
        return

    def note(_: nn.Module, inputs: Any, named: Any) -> None:
        points: list[Tensor] = []
        map_tensors(lambda tensor: points.append(tensor) or tensor, (inputs, named))  # type: ignore[func-returns-value]
        leaves = [leaf for point in points for leaf in (point, *_leaves(point))]
        own.update(id(leaf) for leaf in leaves if not isinstance(leaf, nn.Parameter))

    handle = model.register_forward_pre_hook(note, with_kwargs=True)
    try:
        with isolated_randomness():
            again = _leaves(ModelWithLosses(problem, model)(batch)[0])
    finally:
        handle.remove()
    strangers = [leaf for leaf in strangers if id(leaf) not in own and any(leaf is other for other in again)]
    names = _places({"model": model, "losses": problem.losses})
    found = [names.get(id(leaf), f"shape {list(leaf.shape)}") for leaf in strangers]
    if found:
        raise ValueError(
            "'losses' must not have parameters to train other than those of the model: nothing trains them. Got "
            f"{', '.join(sorted(found)[:5])}. Make them part of what 'model' makes (modules of a list in "
            "nn.ModuleList), and reach them by losses(model, batch). What stays fixed needs requires_grad_(False)."
        )


def _leaves(tensor: Tensor) -> list[Tensor]:
    """The tensors that a gradient of this one would be added up in."""
    nodes, seen, found = [tensor.grad_fn], set[Any](), list[Tensor]()
    while nodes:
        node = nodes.pop()
        if node is not None and node not in seen:
            seen.add(node)
            nodes += [before for before, _ in node.next_functions]
            found += [node.variable] if hasattr(node, "variable") else []
    return found


def _places(roots: dict[str, Any]) -> dict[int, str]:
    """Where tensors are held, by their ids: in variables of functions, attributes and containers, the nearest first."""
    found, seen, todo = dict[int, str](), dict[int, Any](), list(roots.items())
    for name, value in todo:
        if id(value) in seen or len(seen) > _MOST:
            continue
        seen[id(value)] = value
        if isinstance(value, Tensor):
            found[id(value)] = name
        elif isinstance(value, (dict, list, tuple)):
            parts = value.items() if isinstance(value, dict) else enumerate(value)
            todo += [(f"{name}[{key!r}]", part) for key, part in parts]
        else:
            todo += [(f"{name}.{key}", part) for key, part in _parts(value).items()]
    return found


def _parts(value: Any) -> dict[str, Any]:
    """What an object, a module or a function holds, by name."""
    if isinstance(value, nn.Module):
        return {**dict(value.named_parameters()), **dict(attributes_of(value)[""]), **dict(value.named_children())}
    if isinstance(value, functools.partial):
        return {**value.keywords, "args": value.args, "func": value.func}
    if isinstance(value, (types.FunctionType, types.MethodType)):
        with contextlib.suppress(ValueError):  # a variable that is not set yet
            known = inspect.getclosurevars(value)
            return {**known.globals, **known.nonlocals, **vars(getattr(value, "__self__", None) or object)}
    return {} if isinstance(value, (type, types.ModuleType)) else dict(getattr(value, "__dict__", {}))


@contextlib.contextmanager
def other_modules_unchanged() -> Iterator[None]:
    """Refuse changes of modules that are called within and are no part of the model, as all models share them."""
    own, found = weakref.WeakSet[nn.Module](), dict[nn.Module, dict[str, Tensor]]()

    def note(module: nn.Module, _: Any) -> None:
        if isinstance(module, ModelWithLosses):
            own.update(module.modules())
        for part in () if module in own or module in found else module.modules():
            if part not in own and part not in found:
                found[part] = _copied(_tensors_of(part))

    handle = torch.nn.modules.module.register_module_forward_pre_hook(note)
    try:
        yield
    finally:
        handle.remove()
    changed = list[str]()
    for part, before in found.items():
        now = _tensors_of(part)
        for _, name in changes({"": before}, {"": now}):
            changed.append(f"{type(part).__name__}.{name}")
            if name in before and name in now and before[name].shape == now[name].shape:
                now[name].detach().copy_(before[name])
    if changed:
        raise ValueError(
            "'model' and 'losses' must not change modules that are no part of the model, as all models share them. Got "
            f"{changed[:3]}, which a forward pass changed. A fixed network needs eval mode: network.eval(). What "
            "changes from step to step belongs in what 'model' makes, where losses(model, batch) reaches it."
        )


def _tensors_of(part: nn.Module) -> dict[str, Tensor]:
    """The parameters and buffers of a module itself; other kinds, such as quantised ones, cannot be compared."""
    tensors: list[tuple[str, Any]] = [*part._parameters.items(), *part._buffers.items()]
    return {name: each for name, each in tensors if type(each) in (Tensor, nn.Parameter) and not each.is_quantized}


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
            with contextlib.suppress(Exception):  # such as a lock, or an open file, inside of it
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
