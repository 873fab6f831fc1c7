"""Problems by name: built-in ones, and anybody's as ``package.module:attribute`` or ``FILE.py:attribute``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paretomtl._support.import_path import FORMS, check_own, find_object, split_name
from paretomtl._support.signatures import check_takes
from paretomtl.problems._problem import Problem


@dataclass(frozen=True)
class NamedProblem:
    """A problem that is found where it is needed, rather than sent there.

    Attributes:
        name: ``package.module:attribute`` or ``FILE.py:attribute``, a :class:`~paretomtl.Problem` or a function that
            makes one.
        arguments: of that function.

    Example:
        >>> NamedProblem("paretomtl.problems:quadratic", {"dimension": 4}).make().name
        'quadratic'
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or split_name(self.name) is None:
            raise ValueError(f"'problem' must be {FORMS}. Got {self.name!r} instead.")

    def found(self) -> Any:
        """What the name stands for, looked for in the current folder, too."""
        return find_object("PROBLEM", self.name, Problem)

    def make(self) -> Problem:
        """The problem; nothing is called that cannot be somebody's function for it."""
        found = self.found()
        if not isinstance(found, Problem) and callable(found):
            check_own("PROBLEM", self.name, found, "Problem")
            rule = "be a Problem, or a function that makes one from what --with sets"
            check_takes("PROBLEM", found, rule, **self.arguments)
            found = found(**self.arguments)
        if not isinstance(found, Problem):
            raise TypeError(f"'PROBLEM' must be a Problem or make one. '{self.name}' is a {type(found).__name__}.")
        return found
