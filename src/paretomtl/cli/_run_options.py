"""What a run was asked for on the command line, kept in its folder so that another run can be asked for the same."""

from __future__ import annotations

import dataclasses
import inspect
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

import typer
from torch import Tensor

from paretomtl import TensorBoard
from paretomtl._support.files import file_name, pointing_to_doctor, read_record, write_record
from paretomtl._support.import_path import short_name
from paretomtl._support.safe_open import SMALL_RECORD, exists
from paretomtl._support.terminal import text_console
from paretomtl.cli._again import resuming
from paretomtl.cli._common import (
    NOT_STORED,
    code_of_stop,
    find_method,
    find_optimizer,
    find_problem,
    print_json,
)
from paretomtl.cli._show import quality_lines, ranked_words, summary
from paretomtl.cli._tables import print_front
from paretomtl.engine.processes import is_main_process
from paretomtl.front import Front
from paretomtl.front.storage import is_stored
from paretomtl.methods import Method
from paretomtl.methods.lookup import name_in_tables
from paretomtl.problems import PROBLEMS, Problem
from paretomtl.training import Executor, fit

_FILE = "asked.json"
_LARGEST = 2**63
_UNNAMED = str(inspect.signature(Problem).parameters["name"].default)
FORMAT = 1
"""The version of the file; None are those that said none."""


@dataclass(frozen=True)
class RunOptions:
    """The options of ``paretomtl run`` that decide how a problem is trained; all but the preferences."""

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
    def of(cls, run: Path) -> RunOptions:
        """What a run was asked for.

        A FileNotFoundError for one that was not started on the command line, a ValueError that names a damaged file.
        """
        path = run / _FILE
        if not exists(path):
            raise FileNotFoundError(
                f"'RUN' must be a run of the command line. '{run}' has no {_FILE}; in Python, use pm.fit(problem, "
                "preferences=front.around(k))."
            )
        with pointing_to_doctor(run):
            stored = read_record(path, [None, FORMAT], limit=SMALL_RECORD)
        try:
            asked = cls(**stored)
        except TypeError as error:
            raise ValueError(f"'{path}' must hold the options of a run. It is damaged: {error}.") from None
        for name, kind in get_type_hints(cls).items():
            value = getattr(asked, name)
            if not _fits(value, kind):
                raise ValueError(f"'{path}' must hold the options of a run. Got {value!r:.80} for '{name}'.")
        return asked

    def train(
        self,
        preferences: int | Tensor | Sequence[Sequence[float]] | None,
        *,
        start: Front | None = None,
        only: list[int] | None,
        executor: Executor | None = None,
        out: Path | None,
        resume: bool,
        checkpoint_seconds: float,
        progress: str,
        tensorboard: Path | None,
    ) -> tuple[Front, Path]:
        """Train as asked for; the front, and the folder of the run."""
        found = find_problem(self.problem, self.with_)
        method = find_method(self.method, self.set_, found)
        folder = out or Path("runs") / self._folder_name(found, method)
        callbacks: list[Any] = [TensorBoard(tensorboard)] if tensorboard is not None and is_main_process() else []
        callbacks.append(lambda report: self._keep(folder))  # at the end of an epoch: a run may be killed
        front = fit(
            found,
            method,
            preferences,
            epochs=self.epochs,
            batch_size=self.batch_size,
            seed=self.seed,
            optimizer=find_optimizer(self.optimizer, self.learning_rate, self.weight_decay),
            strategy=self.strategy,  # type: ignore[arg-type]
            device=self.device,
            precision=self.precision,
            weigh_every=self.weigh_every,
            workers=self.workers,
            accumulate=self.accumulate,
            clip_norm=self.clip_norm,
            compile=self.compile,
            keep=self.keep,
            patience=self.patience,
            start=start,
            only=only,
            executor=executor,
            out=folder,
            resume=resume,
            checkpoint_seconds=checkpoint_seconds,
            progress=progress,  # type: ignore[arg-type]
            callbacks=callbacks,
        )
        if is_main_process() and not exists(folder / _FILE):
            self._keep(folder)
        return front, folder

    def _folder_name(self, problem: Problem, method: Method) -> str:
        """The name of the run's folder; a problem that has no name of its own has that of its file or attribute."""
        own = self.problem not in PROBLEMS and problem.name == _UNNAMED
        name = file_name(short_name(self.problem) if own else problem.name)
        return f"{name}-{file_name(name_in_tables(self.method, method).replace(':', '-'))}-{self.seed}"

    def _keep(self, folder: Path) -> None:
        """Store the options; those of a run that is resumed stay, but for how long it is to be trained."""
        options = dataclasses.asdict(self)
        lengths = {name: options.pop(name) for name in ("epochs", "patience")}
        if lengths["patience"] is None:  # a version that does not know the option reads the file all the same
            del lengths["patience"]
        with suppress(OSError, ValueError):  # it is only for ``refine``; a full disk is said where it matters
            if exists(folder / _FILE):
                stored = read_record(folder / _FILE, [None, FORMAT], limit=SMALL_RECORD)
                options = {name: value for name, value in stored.items() if name != "patience"}
                if {**options, **lengths} == stored:
                    return
            write_record(folder / _FILE, {**options, **lengths}, format=FORMAT)


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value from JSON is of the kind that an option is annotated with."""
    if kind == Sequence[str]:
        return isinstance(value, list) and all(isinstance(part, str) for part in value)
    if isinstance(value, bool):
        return kind is bool
    if isinstance(value, int) and abs(value) >= _LARGEST:  # numbers in a file may have thousands of digits
        return False
    return isinstance(value, kind) or (isinstance(value, int) and isinstance(0.0, kind))


def print_result(front: Front, folder: Path, *, as_json: bool) -> None:
    """Show what was trained; leave with a code of its own where it was stopped, or could not be stored."""
    if not is_main_process():  # the first process shows, and knows whether it could store
        return
    stored = is_stored(front, folder / "front")
    facts = {**summary(front, folder), "stored": stored}
    if not front.complete:
        facts["resume"] = resuming()
    if as_json:
        print_json(facts)
    else:
        console = text_console()
        print_front(console, front, front.shown_splits)
        ranked = ranked_words(front)
        for line in (f"{ranked[0].upper()}{ranked[1:]}.", *quality_lines(facts), *_lines(facts)):
            console.print(line, highlight=False, soft_wrap=True)
    if not front.complete:
        raise typer.Exit(code_of_stop())
    if not stored:
        raise typer.Exit(NOT_STORED)


def _lines(facts: dict[str, Any]) -> list[str]:
    first = f"Trained in {facts['seconds']:.1f} s; {facts['strategy']}."
    lines = [first] if facts["complete"] else [first, f"Stopped early. Go on with: {facts['resume']}"]
    if facts["ended"].startswith("patience"):
        lines.append(f"Ended by {facts['ended']}.")
    if not facts["stored"]:
        return [*lines, f"Not stored in {facts['folder']}: a warning above says why, and where it is."]
    shown = shlex.quote(facts["folder"])
    return [*lines, f"Stored in {facts['folder']}; see it again with: paretomtl show {shown}"]
