"""The options of ``paretomtl run``, from its arguments or from the folder of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self, get_type_hints

from paretomtl._support.imports.import_path import absolute_name
from paretomtl.runs.options import read_options
from paretomtl.training.options import STORED, TrainingOptions


@dataclass(frozen=True)
class RunOptions:
    """A problem, a method and an optimizer by name, and the options of training.

    ``paretomtl refine`` trains further preferences with the same options, and ``paretomtl select`` exports a model of
    the same problem.
    """

    problem: str
    with_: Sequence[str]
    method: str
    set_: Sequence[str]
    optimizer: str | None
    learning_rate: float | None
    weight_decay: float | None
    training: TrainingOptions

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Self:
        """Pick the options from the arguments of a command, given as its ``locals()``."""
        own = {name: arguments[name] for name in _NAMED}
        own |= {name: absolute_name(own[name]) for name in ("problem", "method")}
        own |= {name: own[name] or [] for name in ("with_", "set_")}
        rest = {name: value for name, value in arguments.items() if name not in own}
        return cls(**own, training=TrainingOptions.of(rest))

    @classmethod
    def load(cls, run: Path) -> Self:
        """Load the options of a run on disk; errors are those of :func:`~paretomtl.runs.options.read_options`."""
        kinds = {**get_type_hints(cls), **STORED}
        del kinds["training"]
        stored = read_options(run, kinds, _NAMED)
        return cls(**{name: stored.pop(name) for name in _NAMED}, training=TrainingOptions(**stored))

    def stored(self) -> dict[str, Any]:
        """The content of ``asked.json``."""
        own = {name: getattr(self, name) for name in _NAMED}
        return {**own, **{name: getattr(self.training, name) for name in STORED}}


_NAMED = tuple(each.name for each in fields(RunOptions) if each.name != "training")
