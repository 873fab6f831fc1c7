"""Lookup of a method by name, built-in or the user's own, and of its options."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from paretomtl._support.argument_checks import quote
from paretomtl._support.imports.import_path import FORMS, check_own, find_object, short_name, split_name
from paretomtl._support.signatures import check_takes
from paretomtl._support.text import suggest_name
from paretomtl.methods._reachable import Reachable
from paretomtl.methods._torchjd import TorchJD
from paretomtl.methods._torchjd_options import set_torchjd_options, torchjd_option_names
from paretomtl.methods.base import Method
from paretomtl.methods.registry import METHODS, TORCHJD, is_known


def resolve_method(method: str | Method) -> Method:
    """Return a configured method unchanged, or make the one with this name.

    "torchjd:UPGrad" is a method of TorchJD. "package.module:attribute" and "FILE.py:attribute" name your own: a method,
    its class, or a function that makes it. That module is imported, so it runs as code.

    Example:
        >>> resolve_method("mgda")
        MGDA(rescale=False)
    """
    return set_options(method, {})


def set_options(method: str | Method, values: Mapping[str, Any]) -> Method:
    """Change options of a method, given by name or configured; :func:`option_names` lists them.

    Example:
        >>> set_options("mgda", {"rescale": True})
        MGDA(rescale=True)
    """
    if isinstance(method, str) and method.startswith(TORCHJD):
        return set_torchjd_options(method.removeprefix(TORCHJD), values)
    source = _source(method)
    if isinstance(source, TorchJD):
        return set_torchjd_options(source, values) if values else source
    if isinstance(source, Method):
        return dataclasses.replace(source, **values) if values else source  # type: ignore[type-var]
    if method not in METHODS:
        check_own("method", str(method), source, "Method")
        check_takes("method", source, "be a Method, or make one from what --set sets", **values)
    made = source(**values)
    if not isinstance(made, Method):
        raise TypeError(f"'method' must be a Method or make one. '{method}' makes a {type(made).__name__}.")
    return made


def option_names(method: str | Method) -> list[str]:
    """The names of the options of a method."""
    if isinstance(method, str) and method.startswith(TORCHJD):
        return torchjd_option_names(method.removeprefix(TORCHJD))
    source = _source(method)
    if isinstance(source, TorchJD):
        return torchjd_option_names(source.source)
    if isinstance(source, Method):
        fields: tuple[Any, ...] = dataclasses.fields(source) if dataclasses.is_dataclass(source) else ()
        return [field.name for field in fields if field.init]
    return list(inspect.signature(source).parameters)


def reach_first(method: Method) -> Method:
    """A method of directions, after a probe that measures which directions models reach."""
    scale = getattr(method, "scale", None)
    inner = method if scale is None else dataclasses.replace(method, scale=None)  # type: ignore[type-var]
    return Reachable(inner, scale="auto" if scale is None else scale)


def changed_options(method: Method) -> list[str]:
    """The options of a method that differ from its defaults, each as NAME=VALUE with a Python literal.

    Example:
        >>> from paretomtl.methods import PNorm
        >>> changed_options(PNorm(p=3, scale=(1.0, 2.0)))
        ['p=3', 'scale=(1.0, 2.0)']
    """
    fields = dataclasses.fields(method)  # type: ignore[arg-type]
    return [f"{each.name}={value!r}" for each in fields if (value := getattr(method, each.name)) != each.default]


def name_in_tables(name: str | Method, method: Method) -> str:
    """The name of a method in tables and folders: its own, unless a user's method has the name of a built-in one.

    Args:
        name: the requested name.
        method: the method of that name.
    """
    own = isinstance(name, str) and not is_known(name)
    return short_name(str(name)) if own and is_known(method.name) else method.name


def _source(method: str | Method) -> Method | Callable[..., Any]:
    """A method, or a function that makes one."""
    if isinstance(method, Method):
        return method
    if not isinstance(method, str):
        raise TypeError(
            f"'method' must be a name or a configured method, such as ParetoMTL(). Got {quote(method)} instead."
        )
    if method in METHODS:
        return METHODS[method]
    if split_name(method) is None:
        raise ValueError(
            f"'method' must be one of {', '.join(METHODS)}, torchjd:NAME, {FORMS}. "
            f"Got {quote(method)} instead.{suggest_name(method, METHODS)}"
        )
    source = find_object("method", method, Method)
    if not isinstance(source, Method) and not callable(source):
        raise TypeError(f"'method' must be a Method or make one. '{method}' is a {type(source).__name__}.")
    return source  # type: ignore[no-any-return]
