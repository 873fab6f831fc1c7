"""Training with the options of a run, and the print-out of its result."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from paretomtl._support.files.atomic_files import file_name
from paretomtl._support.terminal import print_text, text_console
from paretomtl.cli._errors import NOT_STORED, stop_exit_code
from paretomtl.cli._lookup import find_method, find_optimizer, find_problem, name_on_disk
from paretomtl.cli._next_steps import Step, choosing_steps, print_next
from paretomtl.cli._printing import print_json
from paretomtl.cli._proposals import check_same_problem
from paretomtl.cli._resume_command import resume_command
from paretomtl.cli._run_options import RunOptions
from paretomtl.cli._summary import joined_lines, quality_lines, ranked_words, summary
from paretomtl.cli._tables import print_front
from paretomtl.diagnosis import Proposal
from paretomtl.engine.processes import is_main_process
from paretomtl.front import Front
from paretomtl.front.storage.front_folder import is_stored
from paretomtl.methods import Method
from paretomtl.methods.lookup import name_in_tables
from paretomtl.problems import Problem
from paretomtl.runs.folder import RunFolder
from paretomtl.training import TensorBoard, fit


def train(
    options: RunOptions, *, out: Path | None, tensorboard: Path | None = None, proposal: Proposal | None = None
) -> tuple[Front, Path]:
    """Train with these options, which may come from a proposal; return the front and the folder of the run."""
    problem = find_problem(options.problem, options.with_)
    if proposal is not None:
        check_same_problem(proposal, problem)
    method = find_method(options.method, options.set_, problem)
    path = out or Path("runs") / _folder_name(options, problem, method)
    training = replace(
        options.training,
        method=method,
        optimizer=find_optimizer(options.optimizer, options.learning_rate, options.weight_decay),
        out=RunFolder(path, options.stored()),
        callbacks=[TensorBoard(tensorboard)] if tensorboard is not None and is_main_process() else [],
    )
    return fit(problem, **vars(training)), path


def _folder_name(options: RunOptions, problem: Problem, method: Method) -> str:
    name, shown = name_on_disk(options.problem, problem), name_in_tables(options.method, method)
    return f"{name}-{file_name(shown.replace(':', '-'))}-{options.training.seed}"


def print_result(front: Front, folder: Path, *, as_json: bool, joined: dict[str, Any] | None = None) -> None:
    """Print the result; exit with a special code if training was stopped or the front could not be stored.

    Args:
        front: what was trained.
        folder: that of the run.
        as_json: print JSON in place of text.
        joined: the facts of a front that these models joined; None for none.
    """
    if not is_main_process():  # the main process prints, and knows whether the front was stored
        return
    stored = is_stored(front, folder / "front")
    facts = {**summary(front, folder), "stored": stored}
    if not front.complete:
        facts["resume"] = resume_command()
    if joined is not None:
        facts["joined"] = joined
    if as_json:
        print_json(facts)
    else:
        console = text_console()
        print_front(console, front, front.shown_splits)
        ranked = ranked_words(front)
        for line in (f"{ranked[0].upper()}{ranked[1:]}.", *quality_lines(facts), *_lines(facts)):
            print_text(console, line)
        for decision in front.decisions:
            print_text(console, f"decision: {decision}")
        for line in [] if joined is None else joined_lines(joined):
            print_text(console, line)
        print_next(console, _next_steps(facts))
    if not front.complete:
        raise typer.Exit(stop_exit_code())
    if not stored:
        raise typer.Exit(NOT_STORED)


def _lines(facts: dict[str, Any]) -> list[str]:
    lines = [f"Trained in {facts['seconds']:.1f} s; {facts['strategy']}."]
    if not facts["complete"]:
        lines.append("Stopped early.")
    elif facts["ended"].startswith("patience"):
        lines.append(f"Ended by {facts['ended']}.")
    if not facts["stored"]:
        return [*lines, f"Not stored in {facts['folder']}: a warning above says why, and where it is."]
    return [*lines, f"Stored in {facts['folder']}."]


def _next_steps(facts: dict[str, Any]) -> list[Step]:
    """The commands after training: resume, or see the new models with the old ones, choose and explore."""
    if not facts["complete"]:
        return [(facts["resume"], "resume the run")]
    if not facts["stored"]:
        return []
    joined = facts.get("joined")
    folder = shlex.quote(facts["folder"] if joined is None else joined["folder"])
    more = [] if joined is None else [(f"paretomtl show {folder}", "old and new models")]
    return [*more, *choosing_steps(folder)]
