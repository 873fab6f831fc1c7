"""Options of TorchJD's weightings and scalarizers, set one by one as on a command line."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch

from paretomtl._support.argument_checks import quote
from paretomtl._support.imports.optional_packages import require
from paretomtl.methods._torchjd import TorchJD, torchjd_type

_WRAPPER = ("learning_rate", "scale", "options")
_GIVEN_BY_FIT = "shape"  # the number of tasks
_PROJECTOR = "projector"


def torchjd_option_names(source: str) -> list[str]:
    """The options that can be set: arguments of the constructor and of its projector, and those of the wrapper."""
    return [*_arguments(source), *(_projector_arguments() if _takes_projector(source) else ()), *_WRAPPER]


def set_torchjd_options(method: str | TorchJD, values: Mapping[str, Any]) -> TorchJD:
    """Make a method of TorchJD with other options, from the name of its source or a configured method.

    Args:
        method: a source such as "UPGrad", or a method.
        values: options by name; sequences of numbers become vectors, and options of a projector make one.
    """
    source = method if isinstance(method, str) else method.source
    before: Mapping[str, Any] = {} if isinstance(method, str) else method.options
    given = values.get("options", {})
    own = ("learning_rate", "scale")
    wrapper: dict[str, Any] = {} if isinstance(method, str) else {name: getattr(method, name) for name in own}
    wrapper |= {name: values[name] for name in own if name in values}
    if not isinstance(given, Mapping):
        return TorchJD(source, given, **wrapper)  # raises the error
    options = {**before, **given}
    arguments = _arguments(source)
    for name, argument in arguments.items():
        if name in values:
            options[name] = _value(values[name], argument)
    if _takes_projector(source):
        known = _projector_arguments()
        changed = {name: values[name] for name in known if name in values}
        if changed:
            old = {name: getattr(options.get(_PROJECTOR), name, default) for name, default in known.items()}
            try:
                options[_PROJECTOR] = require("torchjd.linalg", "torchjd").QuadprogProjector(**{**old, **changed})
            except TypeError:
                raise ValueError(f"'options' must be what {source} takes. Got {quote(changed)} instead.") from None
            except ImportError as error:
                raise ModuleNotFoundError(f"'torchjd:{source}' needs more than TorchJD itself. {error}") from None
    return TorchJD(source, options, **wrapper)


def _arguments(source: str) -> dict[str, inspect.Parameter]:
    """The arguments of the constructor that can be set by numbers, text and tuples."""
    parameters = inspect.signature(torchjd_type(source)).parameters
    kinds = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    left_out = (_GIVEN_BY_FIT, _PROJECTOR)
    return {name: each for name, each in parameters.items() if name not in left_out and each.kind not in kinds}


def _takes_projector(source: str) -> bool:
    known = _PROJECTOR in inspect.signature(torchjd_type(source)).parameters
    return known and hasattr(require("torchjd.linalg", "torchjd"), "QuadprogProjector")


def _projector_arguments() -> dict[str, Any]:
    """The options of TorchJD's default projector, with their defaults."""
    parameters = inspect.signature(require("torchjd.linalg", "torchjd").QuadprogProjector).parameters
    return {name: each.default for name, each in parameters.items()}


def _value(value: Any, argument: inspect.Parameter) -> Any:
    is_vector = isinstance(value, (list, tuple)) and "Tensor" in str(argument.annotation)
    return torch.tensor(value, dtype=torch.float64) if is_vector else value
