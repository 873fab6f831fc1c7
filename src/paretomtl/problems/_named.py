"""Problems by name: built-in ones, and anybody's as ``package.module:attribute``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paretomtl.problems._problem import Problem


@dataclass(frozen=True)
class NamedProblem:
    """A problem that is found where it is needed, rather than sent there.

    Attributes:
        name: ``package.module:attribute``, a :class:`~paretomtl.Problem` or a function that makes one.
        arguments: of that function.

    Example:
        >>> NamedProblem("paretomtl.problems:quadratic", {"dimension": 4}).make().name
        'quadratic'
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        module, found, attribute = self.name.partition(":")
        if not found or not module or not attribute:
            raise ValueError(f"'problem' must be package.module:attribute. Got {self.name!r} instead.")

    def found(self) -> Any:
        """What the name stands for, looked for in the current folder, too."""
        module_name, _, attribute = self.name.partition(":")
        if str(Path.cwd()) not in sys.path:
            sys.path.insert(0, str(Path.cwd()))
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
                raise
            raise ValueError(
                f"'PROBLEM' must name a module that can be imported. Got {module_name!r}: {error}. It must be "
                "installed, or on PYTHONPATH, wherever the problem is trained."
            ) from None
        if not hasattr(module, attribute):
            raise ValueError(
                f"'PROBLEM' must name an attribute of '{module_name}'. Got {attribute!r}, which it has not."
            )
        return getattr(module, attribute)

    def make(self) -> Problem:
        """The problem."""
        found = self.found()
        if not isinstance(found, Problem) and callable(found):
            found = found(**self.arguments)
        if not isinstance(found, Problem):
            raise TypeError(f"'PROBLEM' must be a Problem or make one. '{self.name}' is a {type(found).__name__}.")
        return found
