"""User-defined problems by name, ``package.module:attribute`` or ``FILE.py:attribute``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paretomtl._support.argument_checks import quote
from paretomtl._support.imports.import_path import FORMS, check_own, find_object, split_name
from paretomtl._support.signatures import check_takes
from paretomtl.problems._problem import Problem


@dataclass(frozen=True)
class NamedProblem:
    """A problem that is imported where it is needed, rather than sent there.

    Attributes:
        name: ``package.module:attribute`` or ``FILE.py:attribute``, a :class:`~paretomtl.Problem` or a function that
            makes one.
        arguments: the arguments of that function.

    Example:
        >>> NamedProblem("paretomtl.problems:quadratic", {"dimension": 4}).make().name
        'quadratic'
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or split_name(self.name) is None:
            raise ValueError(f"'problem' must be {FORMS}. Got {quote(self.name)} instead.")

    def resolve(self) -> Any:
        """The object of this name; the current folder is also searched."""
        return find_object("PROBLEM", self.name, Problem)

    def make(self) -> Problem:
        """The problem. Only a Problem, or a function that can make one, is used."""
        target = self.resolve()
        if not isinstance(target, Problem) and callable(target):
            check_own("PROBLEM", self.name, target, "Problem")
            rule = "be a Problem, or a function that makes one from what --with sets"
            check_takes("PROBLEM", target, rule, **self.arguments)
            target = target(**self.arguments)
        if not isinstance(target, Problem):
            raise TypeError(f"'PROBLEM' must be a Problem or make one. '{self.name}' is a {type(target).__name__}.")
        return target
