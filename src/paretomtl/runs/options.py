"""The options that a run was started with on the command line, stored in its folder as ``asked.json``."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, get_type_hints

from paretomtl._support.atomic_files import pointing_to_doctor, read_record, write_record
from paretomtl._support.safe_open import SMALL_RECORD, exists

OPTIONS = "asked.json"
"""The name of the file in the run's folder."""

FORMAT = 1
"""The version of the file; None is the version of files that name none."""

_LARGEST = 2**63


@dataclass(frozen=True)
class RunOptions:
    """The options of ``paretomtl run`` that decide how a problem is trained; all but the preferences.

    ``paretomtl refine`` trains further preferences with the same options, and ``paretomtl select`` exports a model of
    the same problem.
    """

    problem: str
    with_: Sequence[str]
    method: str
    set_: Sequence[str]
    epochs: int | None
    batch_size: int | None
    optimizer: str | None
    learning_rate: float | None
    weight_decay: float | None
    seed: int
    strategy: str
    device: str | None
    precision: str
    weigh_every: int
    workers: int | None
    clip_norm: float | None
    compile: bool
    keep: str
    accumulate: int = 1
    patience: int | None = None

    @classmethod
    def load(cls, run: Path) -> Self:
        """The options of a run.

        A FileNotFoundError for one that was not started on the command line, a ValueError that names a damaged file.
        """
        path = run / OPTIONS
        if not exists(path):
            raise FileNotFoundError(
                f"'RUN' must be a run of the command line. '{run}' has no {OPTIONS}; in Python, use pm.fit(problem, "
                "preferences=front.around(k))."
            )
        with pointing_to_doctor(run):
            stored = read_record(path, [None, FORMAT], limit=SMALL_RECORD)
        try:
            options = cls(**stored)
        except TypeError as error:
            raise ValueError(f"'{path}' must hold the options of a run. It is damaged: {error}.") from None
        for name, kind in get_type_hints(cls).items():
            value = getattr(options, name)
            if not _fits(value, kind):
                raise ValueError(f"'{path}' must hold the options of a run. Got {value!r:.80} for '{name}'.")
        return options

    def save(self, folder: Path) -> None:
        """Store the options. A run that is resumed keeps those it was started with, except for its length."""
        options = dataclasses.asdict(self)
        lengths = {name: options.pop(name) for name in ("epochs", "patience")}
        if lengths["patience"] is None:  # a version that does not know the option reads the file all the same
            del lengths["patience"]
        with suppress(OSError, ValueError):  # training goes on without the file, and reports a full disk by itself
            if exists(folder / OPTIONS):
                stored = read_record(folder / OPTIONS, [None, FORMAT], limit=SMALL_RECORD)
                options = {name: value for name, value in stored.items() if name != "patience"}
                if {**options, **lengths} == stored:
                    return
            write_record(folder / OPTIONS, {**options, **lengths}, format=FORMAT)


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value from JSON is of the kind that an option is annotated with."""
    if kind == Sequence[str]:
        return isinstance(value, list) and all(isinstance(part, str) for part in value)
    if isinstance(value, bool):
        return kind is bool
    if isinstance(value, int) and abs(value) >= _LARGEST:  # numbers in a file may have thousands of digits
        return False
    return isinstance(value, kind) or (isinstance(value, int) and isinstance(0.0, kind))
