"""Training with the options of a run, and the print-out of its result."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from torch import Tensor

from paretomtl._support.atomic_files import file_name
from paretomtl._support.import_path import short_name
from paretomtl._support.safe_open import exists
from paretomtl._support.terminal import text_console
from paretomtl.cli._errors import NOT_STORED, stop_exit_code
from paretomtl.cli._lookup import find_method, find_optimizer, find_problem
from paretomtl.cli._printing import print_json
from paretomtl.cli._resume_command import resume_command
from paretomtl.cli._summary import quality_lines, ranked_words, summary
from paretomtl.cli._tables import print_front
from paretomtl.engine.processes import is_main_process
from paretomtl.front import Front
from paretomtl.front.storage import is_stored
from paretomtl.methods import Method
from paretomtl.methods.lookup import name_in_tables
from paretomtl.problems import PROBLEMS, Problem
from paretomtl.runs.options import OPTIONS, RunOptions
from paretomtl.training import Executor, TensorBoard, fit

_UNNAMED = str(inspect.signature(Problem).parameters["name"].default)


def train(
    options: RunOptions,
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
    """Train with these options; the front, and the folder of the run."""
    problem = find_problem(options.problem, options.with_)
    method = find_method(options.method, options.set_, problem)
    folder = out or Path("runs") / _folder_name(options, problem, method)
    callbacks: list[Any] = [TensorBoard(tensorboard)] if tensorboard is not None and is_main_process() else []
    callbacks.append(lambda report: options.save(folder))  # at the end of an epoch: a run may be killed
    front = fit(
        problem,
        method,
        preferences,
        epochs=options.epochs,
        batch_size=options.batch_size,
        seed=options.seed,
        optimizer=find_optimizer(options.optimizer, options.learning_rate, options.weight_decay),
        strategy=options.strategy,  # type: ignore[arg-type]
        device=options.device,
        precision=options.precision,
        weigh_every=options.weigh_every,
        workers=options.workers,
        accumulate=options.accumulate,
        clip_norm=options.clip_norm,
        compile=options.compile,
        keep=options.keep,
        patience=options.patience,
        start=start,
        only=only,
        executor=executor,
        out=folder,
        resume=resume,
        checkpoint_seconds=checkpoint_seconds,
        progress=progress,  # type: ignore[arg-type]
        callbacks=callbacks,
    )
    if is_main_process() and not exists(folder / OPTIONS):
        options.save(folder)
    return front, folder


def _folder_name(options: RunOptions, problem: Problem, method: Method) -> str:
    """The name of the run's folder; a problem without a name of its own has that of its file or attribute."""
    unnamed = options.problem not in PROBLEMS and problem.name == _UNNAMED
    name = file_name(short_name(options.problem) if unnamed else problem.name)
    return f"{name}-{file_name(name_in_tables(options.method, method).replace(':', '-'))}-{options.seed}"


def print_result(front: Front, folder: Path, *, as_json: bool) -> None:
    """Show what was trained; leave with a code of its own where it was stopped, or could not be stored."""
    if not is_main_process():  # the first process shows, and knows whether it could store
        return
    stored = is_stored(front, folder / "front")
    facts = {**summary(front, folder), "stored": stored}
    if not front.complete:
        facts["resume"] = resume_command()
    if as_json:
        print_json(facts)
    else:
        console = text_console()
        print_front(console, front, front.shown_splits)
        ranked = ranked_words(front)
        for line in (f"{ranked[0].upper()}{ranked[1:]}.", *quality_lines(facts), *_lines(facts)):
            console.print(line, highlight=False, soft_wrap=True)
    if not front.complete:
        raise typer.Exit(stop_exit_code())
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
