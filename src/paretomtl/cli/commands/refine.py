from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paretomtl._support.imports.import_path import absolute_name
from paretomtl._support.terminal import text_console
from paretomtl.cli._errors import clean_errors
from paretomtl.cli._options import ProblemSettings, ProgressName, Resume, RunArgument, complete_problem
from paretomtl.cli._trust import Trust, method_needs_trust, needs_trust, refusal

if TYPE_CHECKING:
    from paretomtl.cli._run_options import RunOptions
    from paretomtl.front import Front


@clean_errors
def refine(
    run: RunArgument,
    around: Annotated[int, typer.Option(help="Subproblem whose trade-off you like.", show_default=False)],
    count: Annotated[int, typer.Option(help="Number of new preferences around it.")] = 5,
    angle: Annotated[
        float | None,
        typer.Option(help="Largest angle from it, in degrees; default: half way to the nearest other solution."),
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Number of epochs; default: as in the run.")] = None,
    seed: Annotated[int | None, typer.Option(help="Random seed; default: as in the run.")] = None,
    problem: Annotated[
        str | None,
        typer.Option(
            help="Problem, as for run; default: that of the run, if it is built in.", autocompletion=complete_problem
        ),
    ] = None,
    with_: ProblemSettings = None,
    trust: Trust = False,
    out: Annotated[Path | None, typer.Option(help="Folder of the new run; default: RUN-around-K.")] = None,
    resume: Resume = False,
    propose: Annotated[bool, typer.Option("--propose", help="Print the preferences without training.")] = False,
    progress: ProgressName = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Look closer at a trade-off: train new preferences around a solution, with the options of its run.

    The new preferences lie around the direction of that solution's losses on validation (on training if there is no
    such split), or around its importances, up to half way to the nearest other solution.
    """
    from paretomtl.cli._paths import load_front
    from paretomtl.cli._run_options import RunOptions
    from paretomtl.cli._train import print_result, train
    from paretomtl.runs.options import OPTIONS

    front = load_front(run)
    rows = front.around(around, count, angle=angle)
    console = text_console(stderr=True)
    by = f", by its losses on {front.ranking_split}" if front.reading == "direction" else ""
    console.print(f"{front.reading.capitalize()}s around subproblem {around} of {run}{by}:", highlight=False)
    for row in rows.tolist():
        console.print("  " + "  ".join(f"{value:.4f}" for value in row), highlight=False)
    if propose:
        return
    options = RunOptions.load(run)
    command = ["paretomtl", "refine", str(run), "--around", str(around)]
    if problem is not None:
        options = replace(options, problem=absolute_name(problem), with_=with_ or [])
    elif with_:
        raise ValueError("'--with' must go with '--problem': otherwise the problem of the run keeps its own arguments.")
    elif not trust and needs_trust(options.problem, options.with_):
        raise refusal(run / OPTIONS, options.problem, options.with_, command)
    if not trust and method_needs_trust(options.method):
        raise refusal(run / OPTIONS, options.method, options.set_, command, "method")
    if "probe" in front.measured:  # the run had a probe: its method does not read these rows as it read its own
        options = replace(options, **_settled(options, front, around))
    training = replace(
        options.training,
        preferences=rows,
        epochs=(options.training.epochs or _epochs_of(front)) if epochs is None else epochs,
        minutes=None,
        seed=options.training.seed if seed is None else seed,
        resume=resume,
        progress=progress,  # type: ignore[arg-type]
    )
    refined, folder = train(
        replace(options, training=training), out=out or run.with_name(f"{run.name}-around-{around}")
    )
    print_result(refined, folder, as_json=as_json)


def _epochs_of(front: Front) -> int | None:
    """The epochs that a front was trained for; None if it does not say."""
    return len(front.history["losses"]) or None if "losses" in front.history else None


def _settled(options: RunOptions, front: Front, around: int) -> dict[str, Any]:
    """The method, by its name and settings, that trains what a probe left: directions, or the importances before."""
    from paretomtl.cli._lookup import find_method, find_problem
    from paretomtl.methods.lookup import changed_options, reach_first

    method = find_method(options.method, options.set_, find_problem(options.problem, options.with_))
    if method.probe_share is None:
        method = reach_first(method)
    row = front.subproblems.index(around)
    method = method.for_refining(front.reading, front.measured, front.scale, row)
    return {"method": method.name, "set_": changed_options(method)}
