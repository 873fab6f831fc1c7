from __future__ import annotations

import shlex
from typing import Annotated, Any

import typer

from paretomtl._support.terminal import text_console
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
from paretomtl.training.options import STORED


@clean_errors
def diagnose(
    problem: ProblemArgument,
    with_: ProblemSettings = None,
    epochs: Annotated[int | None, typer.Option(help="Number of epochs; default: a tenth of the recipe's.")] = None,
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
    progress: ProgressName = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Find out in a short run whether a front is worth it, with which preferences, and whether losses need scaling.

    For each seed, it trains one model with equal weights and a network for each task; if a front is worth it, also
    models near its ends. Nothing is stored.
    """
    from paretomtl.cli._lookup import find_optimizer, find_problem, method_settings
    from paretomtl.diagnosis import diagnose as measure

    training: dict[str, Any] = {name: value for name, value in locals().items() if name in STORED}
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
        long = diagnosis.epochs * (1 if made.train is None else 10)  # for a recipe without a number of epochs
        options["--epochs"] = long if made.recipe.epochs is None else None
        by_direction = ["--method", "pareto-mtl"] if rows else []  # the default method reads rows as importances
        words = ["run", problem, *settings, *by_direction, "--preferences", rows or str(verdict.preferences), *scale]
    elif verdict.again is not None:
        words = ["diagnose", problem, *settings, *(part for name, n in verdict.again for part in (f"--{name}", str(n)))]
        words += [word for setting in set_ or [] for word in ("--set", setting)]
        options |= {"--split": split, "--device": device, "--precision": None if precision == "float32" else precision}
    if words:
        given = [word for name, value in options.items() if value is not None for word in (name, str(value))]
        console.print(f"Next: paretomtl {shlex.join([*words, *given])}", highlight=False, soft_wrap=True)
