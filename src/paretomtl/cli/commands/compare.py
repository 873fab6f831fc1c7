from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paretomtl._support.terminal import text_console
from paretomtl.cli._errors import SOME_FAILED, clean_errors
from paretomtl.cli._options import (
    BatchSize,
    ClipNorm,
    Device,
    Epochs,
    Keep,
    LearningRate,
    MethodSettings,
    OptimizerName,
    Precision,
    Preferences,
    ProblemArgument,
    ProblemSettings,
    ProgressName,
    StrategyName,
    WeighEvery,
    WeightDecay,
)
from paretomtl.cli._printing import print_above, print_json
from paretomtl.cli._ray import Cpus, OnRay, check_methods_for, ray_executor
from paretomtl.cli._resume_command import repeat_command
from paretomtl.methods.registry import METHODS
from paretomtl.training.options import STORED

if TYPE_CHECKING:
    from rich.console import Console

    from paretomtl.compare import FailedRun, Summary

_UNRANKED = "No validation split; give `val` to rank by it."


@clean_errors
def compare(
    problem: ProblemArgument,
    with_: ProblemSettings = None,
    methods: Annotated[
        str | None,
        typer.Option(help="Methods separated by commas, as for run; default: all built-in ones.", show_default=False),
    ] = None,
    set_: MethodSettings = None,
    seeds: Annotated[int, typer.Option(help="Number of seeds for each method.")] = 5,
    preferences: Preferences = None,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    optimizer: OptimizerName = None,
    learning_rate: LearningRate = None,
    weight_decay: WeightDecay = None,
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
        typer.Option(help="Folder for results and figure; runs that are already stored there are not trained again."),
    ] = None,
    fronts_: Annotated[
        bool, typer.Option("--fronts", help="Also store the models in OUT/fronts, for select and report.")
    ] = False,
    progress: ProgressName = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """Train several methods with the same recipe, seeds and budget, and say which does best.

    Methods are ranked by their hypervolume on validation (on training if there is no such split), all with the same
    reference point. Results on test are shown next to it. A run that fails does not stop the others; the exit code is
    then 6.
    """
    from rich.text import Text

    from paretomtl.cli._lookup import find_optimizer, find_problem, method_settings
    from paretomtl.cli._summary import ranked_words
    from paretomtl.cli._tables import print_front
    from paretomtl.compare import RESULTS, common_reference, summaries, verdict
    from paretomtl.compare import compare as compare_methods
    from paretomtl.report import draw_comparison

    options: dict[str, Any] = {name: value for name, value in locals().items() if name in STORED}
    settings = with_ or []
    made = find_problem(problem, settings)
    arguments = "".join(f" --with {setting}" for setting in settings)
    names = list(METHODS) if methods is None else [name.strip() for name in methods.split(",")]
    check_methods_for(ray, names)
    if seeds < 1:
        raise ValueError(f"'--seeds' must be at least 1. Got {seeds} instead.")
    if fronts_ and out is None:
        raise ValueError("'--fronts' must come with '--out', where they are stored.")
    changed = "".join(f" --set {setting}" for setting in set_ or [])
    errors = text_console(stderr=True)
    place = "are not stored: --out FOLDER keeps every run" if out is None else f"go to {out / RESULTS}"
    if not as_json:
        errors.print(f"Results {place}.", style="dim", highlight=False, soft_wrap=True)
    failed: list[FailedRun] = []

    def tell_failed(run: FailedRun) -> None:
        failed.append(run)
        print_above(str(run))

    chosen = find_optimizer(optimizer, learning_rate, weight_decay)
    if chosen is not None:
        options["optimizer"] = _Named(chosen, f"{optimizer or 'adam'} {learning_rate} {weight_decay}")
    rows, fronts = compare_methods(
        made,
        names,
        seeds,
        preferences=preferences,
        method_settings=method_settings(set_ or [], names, made),
        problem_settings=settings,
        folder=out,
        command=f"{shlex.join(['paretomtl', 'compare', problem])}{arguments} --methods {','.join(names)}{changed} "
        f"--seeds {seeds}",
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
    ranking = table[0].split
    unranked = ranking == "train" and made.train is not None
    if as_json:
        content = [_facts(each) for each in table]
        note = _UNRANKED if unranked else None
        facts = {"split": ranking, "reference": reference, "methods": content, "verdict": verdict(table), "note": note}
        wrong = [{"method": run.method, "seed": run.seed, "error": run.reason} for run in failed]
        print_json({**facts, **({"failed": wrong} if wrong else {})})
        _leave_if(failed, out)
        return
    console = text_console()
    if seeds == 1:
        for name, front in fronts.items():
            console.print(Text.assemble((name, "bold"), f", {len(front)} models, {ranked_words(front)}"))
            print_front(console, front, front.shown_splits)
            console.print()
    _print_table(console, table, rows[0]["tasks"])
    where = f"Ranked by hypervolume on {ranking} at {tuple(round(value, 3) for value in reference)}"
    test = ", test next to it" if table[0].test is not None else ""
    note = "; * of a single point, the best losses of separate networks" if any(s.ideal for s in table) else ""
    console.print(f"{where}{test}{note}; K models each.", highlight=False, soft_wrap=True)
    if unranked:
        console.print(_UNRANKED, highlight=False, soft_wrap=True)
    console.print(verdict(table), highlight=False, soft_wrap=True)
    if out is not None:
        console.print(
            f"All points: {out / 'compare.json'}. Figure: {out / 'compare.png'}.", highlight=False, soft_wrap=True
        )
    _leave_if(failed, out)


def _leave_if(failed: list[FailedRun], out: Path | None) -> None:
    """List the failed runs again below the table, and exit with their exit code."""
    if not failed:
        return
    errors = text_console(stderr=True)
    for run in failed:
        errors.print(str(run), style="yellow", highlight=False, soft_wrap=True)
    if out is not None:
        errors.print(f"To try them again: {repeat_command()}", highlight=False, soft_wrap=True)
    raise typer.Exit(SOME_FAILED)


class _Named:
    """An optimizer factory with a name, so that stored results of another optimizer are not mistaken for its own."""

    def __init__(self, factory: object, name: str) -> None:
        self._factory = factory
        self._name = name

    def __call__(self, parameters: object) -> object:
        return self._factory(parameters)  # type: ignore[operator]

    def __str__(self) -> str:
        return self._name


def _print_table(console: Console, summaries: list[Summary], tasks: list[str]) -> None:
    """Print one row per method: indicators on the split that ranks, and on test next to it."""
    from paretomtl.cli._tables import Column, print_tables

    tests = [each.test for each in summaries if each.test is not None]
    parts = [summaries] if summaries[0].test is None else [summaries, tests]
    volumes = [[Column("hypervolume", [_volume(each) for each in part], part[0].split)] for part in parts]
    spreads = [[Column("spread", [f"{each.spread:.3g}" for each in part], part[0].split)] for part in parts]
    best = [
        [Column(f"best {task}", [f"{each.best[i]:.3g}" for each in part], part[0].split)]
        for i, task in enumerate(tasks if len(tasks) == 2 else [])
        for part in parts
    ]
    models = Column("K", [str(each.models) for each in summaries])
    time = Column("time", [f"{each.seconds:.1f} s" for each in summaries])
    key = Column("method", [each.method for each in summaries], text=True)
    print_tables(console, key, [models, time], [volumes, [*spreads, *best]])


def _volume(each: Summary) -> str:
    mean, deviation = each.hypervolume
    text = f"{mean:.4g}" if math.isnan(deviation) else f"{mean:.4g} ± {deviation:.2g}"
    return text + ("*" if each.ideal else "")


def _facts(each: Summary) -> dict[str, Any]:
    """Return a summary for JSON: the split, the numbers on it, and those on test."""
    test = None if each.test is None else _facts(each.test)
    return {**vars(each), "seeds": each.seeds, "hypervolume": _pair(each.hypervolume), "test": test}


def _pair(hypervolume: tuple[float, float]) -> dict[str, float | None]:
    mean, deviation = hypervolume
    return {"mean": mean, "std": None if math.isnan(deviation) else deviation}
