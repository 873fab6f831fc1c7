"""Numbers in global variables that losses and forward passes read by name."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from torch import Tensor, nn

from paretomtl.problems.task_losses import loss_functions

_MOST = 100  # entries of the largest container that is read
_LARGEST = 1 << 10  # numbers of the largest tensor
_PLAIN = (bool, int, float, complex)


class GlobalNumbers(MutableMapping[str, Any]):
    """Global numbers and small tensors by name, and those in dictionaries and lists by name and key.

    Values are set in place, so that other holders of a dictionary or a list see them.

    Args:
        functions: those whose global names are looked up; functions that they call are left out.
    """

    def __init__(self, functions: list[Callable[..., Any]]) -> None:
        self._places: dict[str, tuple[Any, Any]] = {}
        for function in functions:
            known = getattr(function, "__globals__", {})
            code = getattr(function, "__code__", None)
            for name in () if code is None else code.co_names:
                if name in known:
                    self._add(name, known, name)

    def __getitem__(self, name: str) -> Any:
        holder, key = self._places[name]
        return holder[key]

    def __setitem__(self, name: str, value: Any) -> None:
        holder, key = self._places[name]
        holder[key] = value

    def __delitem__(self, name: str) -> None:
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, (holder, key) in self._places.items() if _has(holder, key)])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _add(self, name: str, holder: Any, key: Any) -> None:
        value = holder[key]
        if _is_number(value):
            self._places[name] = (holder, key)
        elif type(value) in (dict, list) and len(value) <= _MOST:
            for inner in value if isinstance(value, dict) else range(len(value)):
                if _is_number(value[inner]):
                    self._places[f"{name}[{inner!r}]"] = (value, inner)


def global_numbers(losses: Any, module: nn.Module) -> GlobalNumbers:
    """Global numbers that the losses and the forward passes of a module's parts read, except for torch's own."""
    kinds = dict.fromkeys(type(part) for part in module.modules() if not type(part).__module__.startswith("torch."))
    functions = [getattr(each, "__func__", each) for each in loss_functions(losses).values()]
    return GlobalNumbers([*functions, *(kind.forward for kind in kinds)])


def numbers_outside(losses: Any, module: nn.Module) -> dict[str, Any]:
    """Snapshot of the numbers that Python passes to a step, and that a capture would freeze.

    They come from :func:`global_numbers`, the closure of the losses, and the object that the losses belong to. A
    tensor on a device is represented by its address, because a replay reads it there.
    """
    numbers: dict[str, Any] = {}

    def note(name: str, value: Any) -> None:
        if isinstance(value, Tensor):
            numbers[name] = value.data_ptr() if value.is_cuda else value.tolist() if _is_number(value) else None
        elif isinstance(value, _PLAIN):
            numbers[name] = value
        elif type(value) in (dict, list) and len(value) <= _MOST:
            for key in value if isinstance(value, dict) else range(len(value)):
                if _is_number(value[key]):
                    note(f"{name}[{key!r}]", value[key])

    for name, value in global_numbers(losses, module).items():
        note(name, value)
    for label, each in loss_functions(losses).items():
        function = getattr(each, "__func__", each)
        for name, cell in zip(
            getattr(getattr(function, "__code__", None), "co_freevars", ()),
            getattr(function, "__closure__", None) or (),
            strict=False,
        ):
            with contextlib.suppress(ValueError):  # an empty cell
                note(f"closure {name} of {label}", cell.cell_contents)
        owner = getattr(each, "__self__", None if hasattr(each, "__code__") else each)
        for name, value in getattr(owner, "__dict__", {}).items():
            note(f"{label} {name}", value)
    return numbers


def _is_number(value: Any) -> bool:
    return isinstance(value, _PLAIN) or (isinstance(value, Tensor) and value.numel() <= _LARGEST)


def _has(holder: Any, key: Any) -> bool:
    return key in holder if isinstance(holder, dict) else key < len(holder)
