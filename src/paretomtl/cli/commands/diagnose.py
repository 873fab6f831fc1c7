from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paretomtl._support.terminal import print_command, print_text, text_console
from paretomtl.cli._errors import clean_errors
from paretomtl.cli._options import (
    BatchSize,
    Device,
    LearningRate,
    OptimizerName,
    Precision,
    ProblemArgument,
    ProblemSettings,
    ProgressName,
    StrategyName,
    WeightDecay,
)
from paretomtl.cli._printing import print_json
from paretomtl.cli._proposals import check_proposal_file, proposal_path, spelled_out
from paretomtl.training.options import STORED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from paretomtl.diagnosis import Diagnosis, Proposal


@clean_errors
def diagnose(
    problem: ProblemArgument,
    with_: ProblemSettings = None,
    epochs: Annotated[
        int | None, typer.Option(help="Number of epochs; default: a tenth of the recipe's, 3 or more.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Factors of the losses in all runs: scale=auto, or numbers."),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Number of seeds; a single one cannot tell a difference from chance.")] = 3,
    split: Annotated[
        str | None,
        typer.Option(
            help="Split on which losses are compared: train, val or test; default: val (train if there is none)."
        ),
    ] = None,
    batch_size: BatchSize = None,
    optimizer: OptimizerName = None,
    learning_rate: LearningRate = None,
    weight_decay: WeightDecay = None,
    strategy: StrategyName = "auto",
    device: Device = None,
    precision: Precision = "float32",
    out: Annotated[
        Path | None, typer.Option(help="File of the proposal (JSON); default: in runs, named by the problem.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the diagnosis to this file, such as diagnosis.pdf, .svg or .png.")
    ] = None,
    dark: Annotated[bool, typer.Option("--dark", help="With --plot: draw for a dark background.")] = False,
    progress: ProgressName = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Find out in a short run whether a front is worth it, with which preferences, and whether losses need scaling.

    For each seed, it trains one model with equal weights and a network for each task; if a front is worth it, also
    models near its ends. Models are not stored. The proposal is: run takes it by name.
    """
    from paretomtl.cli._lookup import find_method, find_optimizer, find_problem, method_settings, name_on_disk
    from paretomtl.cli._next_steps import given_options, print_next, rough_time
    from paretomtl.cli._paths import check_target
    from paretomtl.diagnosis import ONE_MODEL
    from paretomtl.diagnosis import diagnose as measure
    from paretomtl.diagnosis.evidence import task_gaps

    training: dict[str, Any] = {name: value for name, value in locals().items() if name in STORED}
    for option, path in (("--out", out), ("--plot", plot)):
        check_target(option, path)
    check_proposal_file(out)
    if plot is not None:
        from paretomtl.report.figures.style import check_figure_file

        check_figure_file("--plot", plot)  # before anything is trained
    if dark and plot is None:
        raise ValueError("'--dark' must go with '--plot'. Got no file to draw to.")
    made = find_problem(problem, with_ or [])
    chosen = method_settings(set_ or [], ["linear"], made)  # all runs of a diagnosis have fixed weights
    diagnosis = measure(
        made,
        seeds=seeds,
        split=split,
        optimizer=find_optimizer(optimizer, learning_rate, weight_decay),
        scale=chosen.get("scale"),
        progress=progress,  # type: ignore[arg-type]
        **training,
    )
    name = name_on_disk(problem, made) if out is None else str(out)
    stored = _store(diagnosis, proposal_path(name) if out is None else out)
    if plot is not None:
        diagnosis.plot(plot, dark=dark)
    if as_json:
        print_json({**diagnosis.numbers(), "proposal": None if stored is None else str(stored)})
        return
    console = text_console()
    for line in (*diagnosis.tables(console.width), ""):
        print_command(console, line)
    for text in diagnosis.paragraphs():
        print_text(console, text)
    if stored is not None:
        print_text(console, f"The proposal is stored in {stored}.")
    if plot is not None:
        print_text(console, f"Figure: {plot}")
    settings = [word for setting in with_ or [] for word in ("--with", setting)]
    recipe: dict[str, object] = {
        "--batch-size": batch_size,
        "--optimizer": optimizer,
        "--learning-rate": learning_rate,
        "--weight-decay": weight_decay,
    }
    long = diagnosis.epochs * (1 if made.train is None else 10)  # for a recipe without a number of epochs
    training_length = {"--epochs": long if made.recipe.epochs is None else None}
    scaling = _scaling(diagnosis, set_ or [])
    plain = ["run", problem, *settings, *scaling, *given_options(recipe | training_length)]
    models = find_method("auto", [], made).usual_count(len(made.tasks))  # of run without options
    looking = (plain, f"train a front of {models} models, and look at them")
    steps = []
    if diagnosis.proposal is not None:
        taken = spelled_out(diagnosis.proposal) if stored is None else ["--proposal", name]
        proposed = ["run", problem, *settings, *taken, *given_options(recipe | training_length)]
        steps = [(plain, f"train a front of {models} models"), (proposed, _proposed(diagnosis.proposal))]
    elif (again := diagnosis.verdict.again) is not None:
        arguments = dict(again)
        scaling = ["--set", f"scale={arguments.pop('scale')}"] if "scale" in arguments else _words(set_ or [])
        recipe |= {"--split": split, "--device": device, "--precision": None if precision == "float32" else precision}
        longer = [part for key, value in arguments.items() for part in (f"--{key}", str(value))]
        words = ["diagnose", problem, *settings, *scaling, *longer, *given_options(recipe)]
        seconds = _seconds_of(diagnosis, int(arguments["seeds"]), int(arguments["epochs"]))
        steps = [(words, f"diagnose again, in about {rough_time(seconds)}")]
    elif diagnosis.verdict.word in ONE_MODEL:
        one = ["--method", "linear", "--preferences", "1"]
        words = ["run", problem, *settings, *one, *_words(set_ or []), *given_options(recipe | training_length)]
        steps = [(words, "train one model with equal weights")]
    if diagnosis.verdict.word == "gap-only" and not steps:
        steps = [looking]
    if diagnosis.verdict.word == "cannot-tell-yet":
        # Where joint training is known to cost something, models answer more than another diagnosis of the same losses.
        costs = any(gap.word == "worse" for gap in task_gaps(diagnosis))
        rescaled = "scale" in dict(diagnosis.verdict.again or ())
        steps = [looking, *steps] if costs and not rescaled else [*steps, looking]
    print_next(console, [(f"paretomtl {shlex.join(words)}", what) for words, what in steps])


def _words(settings: Sequence[str]) -> list[str]:
    """The words of a command that pass settings on."""
    return [word for setting in settings for word in ("--set", setting)]


def _scaling(diagnosis: Diagnosis, settings: Sequence[str]) -> list[str]:
    """The words with which the default method scales losses as this diagnosis did, or leaves them alone."""
    from paretomtl.diagnosis.units import compare_units

    if not settings and compare_units(diagnosis).best is not None:
        return ["--set", "scale=None"]  # the default method would divide that loss by its small first value
    return _words(settings)


def _proposed(proposal: Proposal) -> str:
    """What a run of a proposal trains."""
    if isinstance(proposal.preferences, int):
        return f"train the proposed front of {proposal.preferences} models"
    count = len(proposal.preferences)
    return f"train {count} models along the proposed preferences" if count > 1 else "train the one proposed preference"


def _seconds_of(diagnosis: Diagnosis, seeds: int, epochs: int) -> float:
    """Estimate how long a diagnosis with other seeds and epochs takes, if it trains as many models per seed."""
    return diagnosis.seconds * (seeds * epochs) / (len(diagnosis.seeds) * diagnosis.epochs)


def _store(diagnosis: Diagnosis, path: Path) -> Path | None:
    """Store the proposal, if there is one; a folder that cannot be written loses nothing that was measured."""
    if diagnosis.proposal is None:
        return None
    try:
        return diagnosis.proposal.save(path)
    except OSError as error:
        print_text(text_console(stderr=True), f"The proposal is not stored in '{path}': {error}", style="yellow")
        return None
