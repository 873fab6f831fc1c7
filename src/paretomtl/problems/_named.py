"""Problems by name: built-in ones, and anybody's as ``package.module:attribute``."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paretomtl._signatures import check_takes
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
        module, _, attribute = self.name.partition(":")
        if not all(part.isidentifier() for part in (*module.split("."), attribute)):
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
        except (TypeError, ValueError) as error:
            error.add_note(f"This came of importing '{module_name}'.")
            raise
        if not hasattr(module, attribute):
            raise ValueError(
                f"'PROBLEM' must name an attribute of '{module_name}'. Got {attribute!r}, which it has not."
            )
        return getattr(module, attribute)

    def make(self) -> Problem:
        """The problem; nothing is called that cannot be somebody's function for it."""
        found = self.found()
        if not isinstance(found, Problem) and callable(found):
            check_factory(self.name, found)
            rule = "be a Problem, or a function that makes one from what --with sets"
            check_takes("PROBLEM", found, rule, **self.arguments)
            found = found(**self.arguments)
        if not isinstance(found, Problem):
            raise TypeError(f"'PROBLEM' must be a Problem or make one. '{self.name}' is a {type(found).__name__}.")
        return found


def check_factory(name: str, found: Callable[..., Any]) -> None:
    """Refuse to call what Python itself brings, such as ``os:system``: it makes no problem, whatever else it does."""
    function: Any = found
    while isinstance(function, functools.partial):
        function = function.func
    if not inspect.isroutine(function) and not inspect.isclass(function):
        function = type(function)
    module = inspect.getmodule(function)
    if (
        inspect.isbuiltin(function)
        or module is None
        or _is_of_python(module.__name__, getattr(module, "__file__", None))
    ):
        raise TypeError(
            f"'PROBLEM' must be a Problem or a function that makes one. '{name}' is a part of Python itself."
        )


def _is_of_python(module: str, file: str | None) -> bool:
    """Whether a module is of the standard library, rather than a file of the same name elsewhere."""
    if file is None:
        return module.partition(".")[0] in sys.stdlib_module_names and module != "__main__"
    path, paths = Path(file).resolve(), sysconfig.get_paths()
    library = any(path.is_relative_to(Path(paths[key]).resolve()) for key in ("stdlib", "platstdlib"))
    return library and not any(path.is_relative_to(Path(paths[key]).resolve()) for key in ("purelib", "platlib"))
