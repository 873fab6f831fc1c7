from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from paretomtl._terminal import text_console
from paretomtl.cli._again import repeated
from paretomtl.cli._common import (
    SOME_FAILED,
    BatchSize,
    ClipNorm,
    Device,
    Epochs,
    Keep,
    OptimizerName,
    OptimizerNumber,
    Precision,
    Preferences,
    ProblemArgument,
    ProblemSettings,
    ProgressName,
    StrategyName,
    WeighEvery,
    clean_errors,
    find_optimizer,
    find_problem,
    print_above,
    print_front,
    print_json,
)
from paretomtl.cli._ray import Cpus, OnRay, check_methods_for, ray_executor
from paretomtl.experiments import RESULTS, FailedRun, Summary, common_reference, summaries, verdict
from paretomtl.experiments import compare as compare_methods
from paretomtl.methods import METHODS
from paretomtl.report import draw_comparison


@clean_errors
def compare(
    problem: ProblemArgument,
    with_: ProblemSettings = None,
    methods: Annotated[
        str | None,
        typer.Option(help="Names separated by commas, as for run; all built-in ones if left out.", show_default=False),
    ] = None,
    seeds: Annotated[int, typer.Option(help="How many seeds for each method.")] = 5,
    preferences: Preferences = None,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    optimizer: OptimizerName = None,
    learning_rate: OptimizerNumber = None,
    weight_decay: OptimizerNumber = None,
    strategy: StrategyName = "auto",
    device: Device = None,
    precision: Precision = "float32",
    weigh_every: WeighEvery = 1,
    clip_norm: ClipNorm = None,
    keep: Keep = "last",
    ray: OnRay = None,
    cpus: Cpus = 1,
    out: Annotated[
        Path | None,
        typer.Option(help="Where results and the figure go; what is there already is not trained again."),
    ] = None,
    fronts_: Annotated[
        bool, typer.Option("--fronts", help="Store the models, too, in OUT/fronts, for select and report.")
    ] = False,
    progress: ProgressName = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """Train several methods with the same recipe, seeds and budget, and say which does best.

    Hypervolumes are on the test split, or else on training, all against one reference point. A run that fails does not
    stop the others; the exit code is then 6.
    """
    settings = with_ or []
    found, said = find_problem(problem, settings), "".join(f" --with {setting}" for setting in settings)
    names = list(METHODS) if methods is None else [name.strip() for name in methods.split(",")]
    check_methods_for(ray, names)
    if seeds < 1:
        raise ValueError(f"'--seeds' must be at least 1. Got {seeds} instead.")
    if fronts_ and out is None:
        raise ValueError("'--fronts' must come with '--out', where they are stored.")
    errors = text_console(stderr=True)
    place = "are not stored: --out FOLDER keeps every run" if out is None else f"go to {out / RESULTS}"
    if not as_json:
        errors.print(f"Results {place}.", style="dim", highlight=False, soft_wrap=True)
    failed: list[FailedRun] = []

    def tell_failed(run: FailedRun) -> None:
        failed.append(run)
        print_above(str(run))

    options: dict[str, Any] = {
        "epochs": epochs,
        "batch_size": batch_size,
        "strategy": strategy,
        "device": device,
        "precision": precision,
        "weigh_every": weigh_every,
        "clip_norm": clip_norm,
        "keep": keep,
    }
    chosen = find_optimizer(optimizer, learning_rate, weight_decay)
    if chosen is not None:
        options["optimizer"] = _Named(chosen, f"{optimizer or 'adam'} {learning_rate} {weight_decay}")
    rows, fronts = compare_methods(
        found,
        names,
        seeds,
        preferences=preferences,
        problem_settings=settings,
        folder=out,
        command=f"{shlex.join(['paretomtl', 'compare', problem])}{said} --methods {','.join(names)} --seeds {seeds}",
        keep_fronts=fronts_,
        progress=progress,  # type: ignore[arg-type]
        failed=tell_failed,
        executor=ray_executor(ray, cpus, problem=problem, settings=settings),
        **options,
    )
    table = summaries(rows)
    reference = common_reference(rows)
    if out is not None:
        draw_comparison(rows, out)
    if as_json:
        content = [{**vars(each), "hypervolume": _pair(each.hypervolume)} for each in table]
        wrong = [{"method": run.method, "seed": run.seed, "error": run.reason} for run in failed]
        found_failed = {"failed": wrong} if wrong else {}
        print_json({"reference": reference, "methods": content, "verdict": verdict(table), **found_failed})
        _leave_if(failed, out)
        return
    console = text_console()
    if seeds == 1:
        for name, front in fronts.items():
            console.print(Text.assemble((name, "bold"), f", {len(front)} models, losses on {front.shown_split}"))
            print_front(console, front, front.shown_split)
            console.print()
    console.print(_table(table, rows[0]["tasks"]))
    where = f"Hypervolume on {rows[0]['split']} at {tuple(round(value, 3) for value in reference)}"
    note = "; * of one point made of the best losses of separate networks" if any(s.ideal for s in table) else ""
    console.print(f"{where}{note}; K models each.", highlight=False, soft_wrap=True)
    console.print(verdict(table), highlight=False, soft_wrap=True)
    if out is not None:
        console.print(
            f"All points: {out / 'compare.json'}. Figure: {out / 'compare.png'}.", highlight=False, soft_wrap=True
        )
    _leave_if(failed, out)


def _leave_if(failed: list[FailedRun], out: Path | None) -> None:
    """Name the runs that failed once more, below the table, and end with their exit code."""
    if not failed:
        return
    errors = text_console(stderr=True)
    for run in failed:
        errors.print(str(run), style="yellow", highlight=False, soft_wrap=True)
    if out is not None:
        errors.print(f"To try them again: {repeated()}", highlight=False, soft_wrap=True)
    raise typer.Exit(SOME_FAILED)


class _Named:
    """A factory that says what it makes, so that results of others are not taken for its own."""

    def __init__(self, factory: object, name: str) -> None:
        self._factory = factory
        self._name = name

    def __call__(self, parameters: object) -> object:
        return self._factory(parameters)  # type: ignore[operator]

    def __str__(self) -> str:
        return self._name


def _table(found: list[Summary], tasks: list[str]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("method", no_wrap=True)
    table.add_column("K", justify="right")
    table.add_column("hypervolume", justify="right", no_wrap=True)
    best = [f"best {task}" for task in tasks] if len(tasks) == 2 else []
    for name in ("spread", *best, "time"):
        widest = max(map(len, name.split()))
        table.add_column(name, justify="right", overflow="fold", min_width=min(12, max(6, widest)))
    for each in found:
        mean, deviation = each.hypervolume
        volume = f"{mean:.4g}" if math.isnan(deviation) else f"{mean:.4g} ± {deviation:.2g}"
        table.add_row(
            each.method,
            str(each.models),
            volume + ("*" if each.ideal else ""),
            f"{each.spread:.3g}",
            *[f"{value:.3g}" for value in each.best[: len(best)]],
            f"{each.seconds:.1f} s",
        )
    return table


def _pair(hypervolume: tuple[float, float]) -> dict[str, float | None]:
    mean, deviation = hypervolume
    return {"mean": mean, "std": None if math.isnan(deviation) else deviation}
