"""Lazy imports: names are imported on first use, so that a package or a command starts at once."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


def lazy_names(
    package: str, names: Mapping[str, Sequence[str]], submodules: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` (PEP 562) of a package that imports its public names lazily.

    The package also imports the names under ``TYPE_CHECKING``, for type checkers and editors, and lists them in
    ``__all__``. A test compares the three.

    Args:
        package: the package's ``__name__``.
        names: the names in each module, by the module's full name.
        submodules: modules that are attributes of the package too.

    Example:
        >>> get, listed = lazy_names(__name__, {"fractions": ["Fraction"]})
        >>> get("Fraction")(1, 2)
        Fraction(1, 2)
    """
    modules = {name: module for module, some in names.items() for name in some}

    def get(name: str) -> Any:
        if name not in modules and name not in submodules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with _collection_paused():
            if name in modules:
                value = getattr(importlib.import_module(modules[name]), name)
            else:
                value = importlib.import_module(f"{package}.{name}")
        vars(sys.modules[package])[name] = value  # later lookups skip this function
        return value

    def list_names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules, *submodules})

    return get, list_names


@contextmanager
def _collection_paused() -> Iterator[None]:
    """Pause garbage collection: modules stay alive, so that scanning all objects of torch again frees nothing.

    This saves a tenth of the time of ``from paretomtl import fit``.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class LazyTable(Mapping[str, T]):
    """Objects by name, each imported on lookup; listing the names imports nothing.

    Args:
        places: the import path of each, as ``module:attribute``.

    Example:
        >>> table = LazyTable[type]({"fraction": "fractions:Fraction"})
        >>> list(table), "fraction" in table
        (['fraction'], True)
        >>> table["fraction"](1, 2)
        Fraction(1, 2)
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = dict(places)

    def __getitem__(self, name: str) -> T:
        module, _, attribute = self._places[name].partition(":")
        value: T = getattr(importlib.import_module(module), attribute)
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        return f"LazyTable({self._places})"
