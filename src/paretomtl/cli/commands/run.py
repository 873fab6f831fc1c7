from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paretomtl.cli._errors import clean_errors
from paretomtl.cli._options import (
    METHOD_HELP,
    Accumulate,
    Average,
    BatchSize,
    Branch,
    CheckpointSeconds,
    ClipNorm,
    Compile,
    Device,
    Epochs,
    Keep,
    LearningRate,
    Minutes,
    OptimizerName,
    Patience,
    Precision,
    PreferenceVectors,
    ProblemArgument,
    ProblemSettings,
    ProgressName,
    Resume,
    Seed,
    StrategyName,
    WeighEvery,
    WeightDecay,
    WorkerCount,
    complete_method,
    parse_preferences,
)
from paretomtl.cli._proposals import take_proposal
from paretomtl.cli._ray import Cpus, OnRay, ShardSize, check_methods_for, ray_executor

if TYPE_CHECKING:
    from paretomtl.front import Front


@clean_errors
def run(
    problem: ProblemArgument,
    with_: ProblemSettings = None,
    method: Annotated[str, typer.Option(help=METHOD_HELP, autocompletion=complete_method)] = "auto",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Option of the method, such as epsilon=0.2; may be repeated."),
    ] = None,
    preferences: PreferenceVectors = None,
    proposal: Annotated[
        str | None, typer.Option(help="Models, method and scale that diagnose has stored, by name or file.")
    ] = None,
    epochs: Epochs = None,
    minutes: Minutes = None,
    batch_size: BatchSize = None,
    optimizer: OptimizerName = None,
    learning_rate: LearningRate = None,
    weight_decay: WeightDecay = None,
    seed: Seed = 0,
    strategy: StrategyName = "auto",
    device: Device = None,
    precision: Precision = "float32",
    weigh_every: WeighEvery = 1,
    workers: WorkerCount = None,
    accumulate: Accumulate = 1,
    clip_norm: ClipNorm = None,
    compile: Compile = False,
    keep: Keep = "last",
    patience: Patience = None,
    start: Annotated[
        Path | None,
        typer.Option(help="Start from the weights of this run or stored front, of the same tasks and model."),
    ] = None,
    branch: Branch = None,
    average: Average = None,
    only: Annotated[str | None, typer.Option(help="Train only these models, such as 0,2.")] = None,
    ray: OnRay = None,
    cpus: Cpus = 1,
    shard_size: ShardSize = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the run; default: in runs, named by problem, method and seed.", show_default=False
        ),
    ] = None,
    resume: Resume = False,
    checkpoint_seconds: CheckpointSeconds = 30.0,
    tensorboard: Annotated[Path | None, typer.Option(help="Folder for TensorBoard event files.")] = None,
    progress: ProgressName = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train a front: one model per trade-off.

    Under torchrun, all processes share each batch, and the first one writes and prints.

    Exit codes: 0 done, 2 bad input, 5 trained but not stored, 130 stopped by Ctrl-C, 143 by SIGTERM. A stopped run
    has stored a checkpoint and a front of its models so far.
    """
    from paretomtl.cli._run_options import RunOptions
    from paretomtl.cli._train import print_result, train

    chosen: dict[str, Any] = {"method": method, "preferences": parse_preferences(preferences)}
    if proposal is not None:
        chosen |= take_proposal(proposal, None if method == "auto" else method, preferences, set_ or [])
    check_methods_for(ray, [chosen["method"]])
    parsed = {
        **{name: value for name, value in chosen.items() if name != "proposal"},
        "start": None if start is None else _front_in(start),
        "only": _subproblems(only),
        "executor": ray_executor(ray, cpus, shard_size, problem, with_ or []),
    }
    options = RunOptions.of({**locals(), **parsed})
    front, folder = train(options, out=out, tensorboard=tensorboard, proposal=chosen.get("proposal"))
    print_result(front, folder, as_json=as_json)


def _front_in(folder: Path) -> Front:
    """The front to start from; nothing of its run is imported."""
    from paretomtl.front import Front

    try:
        return Front.load(folder)
    except (OSError, ValueError) as error:
        error.add_note("This came from '--start'.")
        raise


def _subproblems(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"'--only' must be whole numbers separated by commas. Got {text!r} instead.") from None
