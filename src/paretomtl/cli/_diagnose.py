from __future__ import annotations

import shlex
from typing import Annotated

import typer

from paretomtl._support.terminal import text_console
from paretomtl.cli._common import (
    BatchSize,
    Device,
    LearningRate,
    OptimizerName,
    OptimizerNumber,
    Precision,
    ProblemArgument,
    ProblemSettings,
    ProgressName,
    StrategyName,
    clean_errors,
    find_optimizer,
    find_problem,
    method_settings,
    print_json,
)
from paretomtl.diagnosis import diagnose as measure


@clean_errors
def diagnose(
    problem: ProblemArgument,
    with_: ProblemSettings = None,
    epochs: Annotated[int | None, typer.Option(help="How long; a tenth of the recipe's if left out.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="scale=auto, or other factors of the losses in all runs.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="How many; one cannot tell a difference from chance.")] = 3,
    split: Annotated[
        str | None, typer.Option(help="Where losses are compared: train, val or test; val or train if left out.")
    ] = None,
    batch_size: BatchSize = None,
    optimizer: OptimizerName = None,
    learning_rate: LearningRate = None,
    weight_decay: OptimizerNumber = None,
    strategy: StrategyName = "auto",
    device: Device = None,
    precision: Precision = "float32",
    progress: ProgressName = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Find out in a short run whether a front is worth it, with which preferences, and whether losses need scaling.

    Trains one model with equal weights and a network for each task, for each seed; where a front is worth it, also
    models near its ends. Nothing is stored.
    """
    found = find_problem(problem, with_ or [])
    chosen = method_settings(set_ or [], ["linear"], found)  # whose weights all runs of a diagnosis have
    diagnosis = measure(
        found,
        epochs=epochs,
        seeds=seeds,
        split=split,
        batch_size=batch_size,
        optimizer=find_optimizer(optimizer, learning_rate, weight_decay),
        strategy=strategy,  # type: ignore[arg-type]
        device=device,
        precision=precision,
        scale=chosen.get("scale"),
        progress=progress,  # type: ignore[arg-type]
    )
    if as_json:
        print_json(diagnosis.numbers())
        return
    console = text_console()
    for line in [*diagnosis.tables(), "", *diagnosis.sentences(min(console.width, 80))]:
        console.print(line, highlight=False, soft_wrap=True)
    verdict = diagnosis.verdict
    settings = [word for setting in with_ or [] for word in ("--with", setting)]
    options: dict[str, object] = {
        "--batch-size": batch_size,
        "--optimizer": optimizer,
        "--learning-rate": learning_rate,
        "--weight-decay": weight_decay,
    }
    words: list[str] = []
    if verdict.preferences is not None:
        rows = ":".join(",".join(f"{part:g}" for part in row) for row in verdict.directions)
        by = verdict.scale if verdict.factors is None else ",".join(f"{factor:g}" for factor in verdict.factors)
        scale = [] if by is None else ["--set", f"scale={by}"]
        long = diagnosis.epochs * (1 if found.train is None else 10)  # a problem's recipe says it, where there is one
        options["--epochs"] = long if found.recipe.epochs is None else None
        words = ["run", problem, *settings, "--preferences", rows or str(verdict.preferences), *scale]
    elif verdict.again is not None:
        words = ["diagnose", problem, *settings, *(part for name, n in verdict.again for part in (f"--{name}", str(n)))]
        words += [word for setting in set_ or [] for word in ("--set", setting)]
        options |= {"--split": split, "--device": device, "--precision": None if precision == "float32" else precision}
    if words:
        given = [word for name, value in options.items() if value is not None for word in (name, str(value))]
        console.print(f"Next: paretomtl {shlex.join([*words, *given])}", highlight=False, soft_wrap=True)
