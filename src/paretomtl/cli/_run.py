from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from paretomtl._support.import_path import absolute_name
from paretomtl.cli._common import (
    METHOD_HELP,
    Accumulate,
    BatchSize,
    ClipNorm,
    Device,
    Epochs,
    Keep,
    LearningRate,
    OptimizerName,
    OptimizerNumber,
    Patience,
    Precision,
    PreferenceVectors,
    ProblemArgument,
    ProblemSettings,
    StrategyName,
    WeighEvery,
    WorkerCount,
    clean_errors,
    complete_method,
    preferences_of,
)
from paretomtl.cli._ray import Cpus, OnRay, ShardSize, check_methods_for, ray_executor
from paretomtl.cli._run_options import RunOptions, print_result
from paretomtl.front import Front


@clean_errors
def run(
    problem: ProblemArgument,
    with_: ProblemSettings = None,
    method: Annotated[str, typer.Option(help=METHOD_HELP, autocompletion=complete_method)] = "pareto-mtl",
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="An option of the method, such as epsilon=0.2; may be repeated."
        ),
    ] = None,
    preferences: PreferenceVectors = None,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    optimizer: OptimizerName = None,
    learning_rate: LearningRate = None,
    weight_decay: OptimizerNumber = None,
    seed: Annotated[int, typer.Option(help="Of starts, data order and dropout.")] = 0,
    strategy: StrategyName = "auto",
    device: Device = None,
    precision: Precision = "float32",
    weigh_every: WeighEvery = 1,
    workers: WorkerCount = None,
    accumulate: Accumulate = 1,
    clip_norm: ClipNorm = None,
    compile_: Annotated[bool, typer.Option("--compile", help="Run the models through torch.compile.")] = False,
    keep: Keep = "last",
    patience: Patience = None,
    start: Annotated[
        Path | None,
        typer.Option(help="Begin with the weights of this run, or stored front, of the same tasks and model."),
    ] = None,
    only: Annotated[str | None, typer.Option(help="Train these subproblems alone, such as 0,2.")] = None,
    ray: OnRay = None,
    cpus: Cpus = 1,
    shard_size: ShardSize = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The run's folder; one in runs, named by problem, method and seed, if left out.", show_default=False
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on from the folder's last checkpoint; --epochs may be raised."),
    ] = False,
    checkpoint_seconds: Annotated[float, typer.Option(help="The least time between checkpoints.")] = 30.0,
    tensorboard: Annotated[Path | None, typer.Option(help="Write TensorBoard's event files to this folder.")] = None,
    progress: Annotated[str, typer.Option(help="auto, rich, plain or quiet.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train a front: one model per preference.

    Under torchrun, all processes share each batch, and the first one writes and prints.

    Exit codes: 0 done, 2 bad input, 5 trained but not stored, 130 stopped by Ctrl-C, 143 by SIGTERM (a checkpoint and a
    front of what there is are stored).
    """
    check_methods_for(ray, [method])
    asked = RunOptions(
        problem=absolute_name(problem),
        with_=with_ or [],
        method=absolute_name(method),
        set_=set_ or [],
        epochs=epochs,
        batch_size=batch_size,
        optimizer=optimizer,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        seed=seed,
        strategy=strategy,
        device=device,
        precision=precision,
        weigh_every=weigh_every,
        workers=workers,
        accumulate=accumulate,
        clip_norm=clip_norm,
        compile=compile_,
        keep=keep,
        patience=patience,
    )
    front, folder = asked.train(
        preferences_of(preferences),
        start=None if start is None else _front_in(start),
        only=_subproblems(only),
        executor=ray_executor(ray, cpus, shard_size, problem, with_ or []),
        out=out,
        resume=resume,
        checkpoint_seconds=checkpoint_seconds,
        progress=progress,
        tensorboard=tensorboard,
    )
    print_result(front, folder, as_json=as_json)


def _front_in(folder: Path) -> Front:
    """The front to begin with; nothing of its run is imported."""
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
