"""Inputs of an exported model: the arguments with which the losses of a problem call it, without needless ones."""

from __future__ import annotations

import inspect
import re
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import BoundArguments, Parameter
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from paretomtl.problems import Problem

WEIGHTS_ADVICE = "Its weights can be exported without it: --export FOLDER, or Front.state_dict(k)."
"""The end of an error about a model that cannot be exported."""

_Outputs = list[tuple[str, Tensor]]
"""Tensors of an output with their names. Places in tuples have none: a tuple without its first tensor moves up."""


@contextmanager
def export_inputs(problem: Problem, model: nn.Module, batches: Sequence[Any]) -> Iterator[list[tuple[Any, ...]]]:
    """Find the inputs of a model for an export: those of its first call by the losses of a problem.

    Optional arguments that only serve the losses, such as labels, are left out: an exported program would demand
    them. Within the block, ``model.forward`` takes the inputs that remain by position, and returns no None.

    Args:
        problem: its losses call the model.
        model: in eval mode.
        batches: of different numbers of samples.

    Yields:
        For each batch, the inputs in the order of ``forward``.
    """
    calls = [_record_call(problem, model, batch) for batch in batches]
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of calls that are only tried
        calls = _leave_out_needless(model, calls)
        plain = not calls[0].kwargs and not _has_none(_call(model, calls[0]))
    if plain:
        yield [call.args for call in calls]
        return
    # An attribute in front of the method: a module around the model would rename its weights.
    attributes = vars(model)
    own = {name: attributes[name] for name in ("forward",) if name in attributes}
    attributes["forward"] = _positional(model.forward, calls[0])
    try:
        yield [(*call.args, *call.kwargs.values()) for call in calls]
    finally:
        del attributes["forward"]
        attributes.update(own)


def _record_call(problem: Problem, model: nn.Module, batch: Any) -> BoundArguments:
    """The arguments of the first call of a model by the losses of a problem."""
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def note(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        calls.append((args, kwargs))

    handle = model.register_forward_pre_hook(note, with_kwargs=True)
    try:
        with torch.no_grad():
            problem.run(model, batch)
    finally:
        handle.remove()
    if not calls:
        raise ValueError(
            f"'problem' must call its model for an export. Its losses call only parts of the model. {WEIGHTS_ADVICE}"
        )
    args, kwargs = calls[0]
    if not args and not kwargs:
        raise ValueError(
            f"'problem' must have a model with an input for an export. Its model takes none. {WEIGHTS_ADVICE}"
        )
    call = inspect.signature(model.forward).bind(*args, **kwargs)
    kinds = {parameter.kind for name, parameter in call.signature.parameters.items() if name in call.arguments}
    if Parameter.VAR_KEYWORD in kinds or (call.kwargs and Parameter.VAR_POSITIONAL in kinds):
        raise ValueError(
            f"'problem' must have a model whose 'forward' names its arguments for an export, without *args and "
            f"**kwargs. Got the keywords {sorted(call.kwargs)}. {WEIGHTS_ADVICE}"
        )
    return call


def _leave_out_needless(model: nn.Module, calls: list[BoundArguments]) -> list[BoundArguments]:
    """Leave out arguments with the default None that the predictions do not depend on, one by one from the last.

    A sum of losses changes with each label, although it vanishes without them all. So losses are compared only in the
    end. If one remains that is another one, they are compared for each argument.
    """
    parameters = calls[0].signature.parameters
    optional = [name for name in calls[0].arguments if parameters[name].default is None]
    if not optional or any(set(call.arguments) != set(calls[0].arguments) for call in calls):
        return calls
    wholes = [_outputs(_call(model, call)) for call in calls]
    if not all(map(_predictions, wholes)):
        return calls

    def leave_out(losses: bool) -> list[BoundArguments]:
        fewer, left = calls, optional[::-1]
        while name := next((name for name in left if _is_needless(model, fewer, name, wholes, losses=losses)), None):
            fewer = [_without(call, name) for call in fewer]
            left.remove(name)
        return fewer

    fewer = leave_out(losses=False)
    kept = all(_keeps(_outputs(_call(model, call)), whole) for call, whole in zip(fewer, wholes, strict=True))
    return fewer if kept else leave_out(losses=True)


def _is_needless(
    model: nn.Module, calls: list[BoundArguments], name: str, wholes: list[_Outputs], *, losses: bool
) -> bool:
    """Whether predictions (and losses, unless they vanish) stay the same without an argument, whatever its value is.

    An attention mask of ones changes nothing until a sentence is padded. So other values are tried, too.
    """
    for call, whole in zip(calls, wholes, strict=True):
        fewer, expected = _outputs(_call(model, _without(call, name))), _predictions(whole)
        if not _equal(_predictions(fewer), expected) or (losses and not _keeps(fewer, whole)):
            return False
        for change in (_zeros_and_ones, _ones_and_zeros):
            changed = {**call.arguments, name: tree_map_only(Tensor, change, call.arguments[name])}
            found = _call(model, BoundArguments(call.signature, OrderedDict(changed)))
            # A value that the model refuses, such as a class that it does not have, tells nothing.
            if found is not None and not _equal(_predictions(_outputs(found)), expected):
                return False
    return True


def _zeros_and_ones(tensor: Tensor) -> Tensor:
    """Zeros and ones in turn: valid labels, masks and numbers of most models."""
    return (torch.arange(tensor.numel(), device=tensor.device) % 2).reshape(tensor.shape).to(tensor.dtype)


def _ones_and_zeros(tensor: Tensor) -> Tensor:
    return (1 - torch.arange(tensor.numel(), device=tensor.device) % 2).reshape(tensor.shape).to(tensor.dtype)


def _without(call: BoundArguments, name: str) -> BoundArguments:
    arguments = OrderedDict((other, value) for other, value in call.arguments.items() if other != name)
    return BoundArguments(call.signature, arguments)


def _call(model: nn.Module, call: BoundArguments) -> Any:
    """What a model returns; None if it fails."""
    try:
        return model(*call.args, **call.kwargs)
    except Exception:  # anything that a model may raise for an argument that it needs
        return None


def _outputs(found: Any, name: str = "") -> _Outputs:
    """The tensors in an output: a tensor, or tuples, lists and dictionaries of them."""
    if isinstance(found, Tensor):
        return [(name, found)]
    if isinstance(found, Mapping):
        return [output for key, part in found.items() for output in _outputs(part, f"{name}.{key}")]
    if isinstance(found, (tuple, list)):
        return [output for part in found for output in _outputs(part, f"{name}.")]
    return []


def _predictions(outputs: _Outputs) -> _Outputs:
    """All outputs but losses, which are single numbers, or named so."""
    return [
        (name, tensor)
        for name, tensor in outputs
        if tensor.ndim and not {"loss", "losses"} & set(re.split(r"[\W\d_]+", name.lower()))
    ]


def _equal(one: _Outputs, other: _Outputs) -> bool:
    return len(one) == len(other) and _keeps(one, other)


def _keeps(fewer: _Outputs, whole: _Outputs) -> bool:
    """Whether outputs are some of others, bit by bit, in their order."""
    rest = iter(whole)
    return all(any(_same(output, other) for other in rest) for output in fewer)


def _same(one: tuple[str, Tensor], other: tuple[str, Tensor]) -> bool:
    return one[0] == other[0] and one[1].dtype == other[1].dtype and torch.equal(one[1], other[1])


def _has_none(found: Any) -> bool:
    """Whether an output has None in it, which no exporter writes."""
    if isinstance(found, Mapping):
        return any(map(_has_none, found.values()))
    return any(map(_has_none, found)) if isinstance(found, (tuple, list)) else found is None


def _drop_none(found: Any) -> Any:
    if not _has_none(found):
        return found  # in the model's own type
    if isinstance(found, Mapping):
        return {name: _drop_none(part) for name, part in found.items() if part is not None}
    if isinstance(found, (tuple, list)):
        return tuple(_drop_none(part) for part in found if part is not None)
    return found


def _positional(forward: Callable[..., Any], call: BoundArguments) -> Callable[..., Any]:
    """A forward that takes the arguments of a call by position, under their names, and returns no None."""
    count, keywords = len(call.args), list(call.kwargs)

    def positional(*values: Any) -> Any:
        return _drop_none(forward(*values[:count], **dict(zip(keywords, values[count:], strict=True))))

    named = inspect.Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in call.arguments])
    positional.__signature__ = named if keywords else call.signature  # type: ignore[attr-defined]
    return positional
