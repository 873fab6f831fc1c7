from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from paretomtl._support.import_path import absolute_name
from paretomtl._support.terminal import text_console
from paretomtl.cli._common import ProblemSettings, RunArgument, clean_errors, complete_problem
from paretomtl.cli._places import load_front
from paretomtl.cli._run_options import RunOptions, print_result
from paretomtl.cli._trust import Trust, method_needs_trust, needs_trust, refusal


@clean_errors
def refine(
    run: RunArgument,
    around: Annotated[int, typer.Option(help="The subproblem whose trade-off you liked.", show_default=False)],
    count: Annotated[int, typer.Option(help="How many preferences to try around it.")] = 5,
    angle: Annotated[
        float | None,
        typer.Option(help="How far they go, in degrees; half way to the nearest other solution if left out."),
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="As in the run if left out.")] = None,
    seed: Annotated[int | None, typer.Option(help="As in the run if left out.")] = None,
    problem: Annotated[
        str | None,
        typer.Option(help="The problem, as for run; the run's own if it is built in.", autocompletion=complete_problem),
    ] = None,
    with_: ProblemSettings = None,
    trust: Trust = False,
    out: Annotated[Path | None, typer.Option(help="The new run's folder; RUN-around-K if left out.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the folder's last checkpoint.")] = False,
    propose: Annotated[bool, typer.Option("--propose", help="Print the preferences, and train nothing.")] = False,
    progress: Annotated[str, typer.Option(help="auto, rich, plain or quiet.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Look closer at a trade-off: train preferences around a solution, as the run was trained.

    The new preferences lie around the direction of that solution's losses on validation, or on training where there is
    no such split, or around its importances, up to half way to the nearest other solution.
    """
    front = load_front(run)
    rows = front.around(around, count, angle=angle)
    console = text_console(stderr=True)
    by = f", by its losses on {front.ranking_split}" if front.reading == "direction" else ""
    console.print(f"{front.reading.capitalize()}s around subproblem {around} of {run}{by}:", highlight=False)
    for row in rows.tolist():
        console.print("  " + "  ".join(f"{value:.4f}" for value in row), highlight=False)
    if propose:
        return
    asked = RunOptions.of(run)
    command = ["paretomtl", "refine", str(run), "--around", str(around)]
    if problem is not None:
        asked = dataclasses.replace(asked, problem=absolute_name(problem), with_=with_ or [])
    elif with_:
        raise ValueError("'--with' must go with '--problem': the run says what it was asked for.")
    elif not trust and needs_trust(asked.problem, asked.with_):
        raise refusal(run / "asked.json", asked.problem, asked.with_, command)
    if not trust and method_needs_trust(asked.method):
        raise refusal(run / "asked.json", asked.method, asked.set_, command, "method")
    asked = dataclasses.replace(
        asked, epochs=asked.epochs if epochs is None else epochs, seed=asked.seed if seed is None else seed
    )
    found, folder = asked.train(
        rows,
        only=None,
        out=out or run.with_name(f"{run.name}-around-{around}"),
        resume=resume,
        checkpoint_seconds=30.0,
        progress=progress,
        tensorboard=None,
    )
    print_result(found, folder, as_json=as_json)
