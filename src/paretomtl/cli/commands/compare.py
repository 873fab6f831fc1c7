from __future__ import annotations

import math
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paretomtl._support.splits import split_word
from paretomtl._support.terminal import print_command, print_text, text_console
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
from paretomtl.methods.registry import METHODS, is_known
from paretomtl.training.options import STORED

if TYPE_CHECKING:
    from rich.console import Console

    from paretomtl.cli._next_steps import Step
    from paretomtl.compare import FailedRun, Summary

_UNRANKED = "No validation split; {} to rank by it."
_UNITED: dict[str, Callable[[Summary], tuple[float, float] | None]] = {
    "regret": lambda each: each.regret,
    "R2": lambda each: each.r2,
    "IGD+": lambda each: each.igd_plus,
}


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
    reference point. Results on test are shown next to it, and further indicators: the hypervolume at a tight reference
    point, the share of the box, regret over random utilities, R2 and IGD+ to the best of all runs, regions and angles,
    and Δm against separate networks (method single-task). A run that fails does not stop the others; the exit code is
    then 6.
    """
    from rich.text import Text

    from paretomtl.cli._lookup import find_optimizer, find_problem, method_settings, ranking_remedy, settings_of
    from paretomtl.cli._method_names import method_name
    from paretomtl.cli._next_steps import given_options, print_next
    from paretomtl.cli._summary import point_text, ranked_words
    from paretomtl.cli._tables import print_front
    from paretomtl.compare import RESULTS, common_reference, summaries, tight_references, verdict
    from paretomtl.compare import compare as compare_methods
    from paretomtl.report import draw_comparison, draw_cost

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
        print_text(errors, f"Results {place}.", style="dim")
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
        command=f"{shlex.join(['paretomtl', 'compare', problem])}{arguments} --methods {','.join(names)}"
        f"{changed} --seeds {seeds}",
        keep_fronts=fronts_,
        progress=progress,  # type: ignore[arg-type]
        failed=tell_failed,
        executor=ray_executor(ray, cpus, problem=problem, settings=settings),
        **options,
    )
    table = summaries(rows)
    reference, tight = common_reference(rows), tight_references(rows)
    costs: list[Path] = []
    if out is not None:
        draw_comparison(rows, out)
        costs = draw_cost(rows, out)
    ranking = table[0].split
    unranked = ranking == "train" and made.train is not None
    remedy = _UNRANKED.format(ranking_remedy(problem))
    if as_json:
        content = [_facts(each) for each in table]
        facts = {
            "split": ranking,
            "reference": reference,
            "tight_reference": tight,
            "methods": content,
            "verdict": verdict(table),
            "note": remedy if unranked else None,
        }
        wrong = [{"method": run.method, "seed": run.seed, "error": run.reason} for run in failed]
        print_json({**facts, **({"failed": wrong} if wrong else {})})
        _leave_if(failed, out)
        return
    console = text_console()
    if seeds == 1:
        for name, front in fronts.items():
            title = Text.assemble(method_name(console, name, "bold"), f", {len(front)} models, {ranked_words(front)}")
            print_text(console, title)
            print_front(console, front, front.shown_splits)
            console.print()
    _print_table(console, table, rows[0]["tasks"])
    where = f"Ranked by hypervolume on {split_word(ranking)} at {point_text(reference)}"
    test = ", test next to it" if table[0].test is not None else ""
    note = "; * of a single point, the best losses of separate networks" if any(s.ideal for s in table) else ""
    print_text(console, f"{where}{test}{note}; K models each.")
    for line in _explanations(table, tight):
        print_text(console, line, style="dim")
    if unranked:
        print_text(console, remedy)
    console.print()
    print_text(console, verdict(table))
    if out is not None:
        drawn = f" Hypervolume against cost: {costs[0]}." if costs else ""
        print_text(console, f"All points: {out / RESULTS}. Figure: {out / 'compare.png'}.{drawn}")
    _leave_if(failed, out)
    given = {
        "--preferences": preferences,
        "--epochs": epochs,
        "--batch-size": batch_size,
        "--optimizer": optimizer,
        "--learning-rate": learning_rate,
        "--weight-decay": weight_decay,
        "--clip-norm": clip_norm,
    }
    words = [problem, *_with(settings), *given_options(given)]
    best = _typed(next((each.method for each in table if not each.ideal), None), names)
    if best is not None:
        taken = settings_of(best, set_ or [], made)
        words += [word for setting in taken for word in ("--set", setting)]
    print_next(console, _next_steps(best, words, out, fronts=fronts_))


def _leave_if(failed: list[FailedRun], out: Path | None) -> None:
    """List the failed runs again below the table, and exit with their exit code."""
    if not failed:
        return
    errors = text_console(stderr=True)
    for run in failed:
        print_text(errors, str(run), style="yellow")
    if out is not None:
        print_command(errors, f"To try them again: {repeat_command()}")
    raise typer.Exit(SOME_FAILED)


def _typed(method: str | None, names: list[str]) -> str | None:
    """The name of a method as it was typed; tables call methods of a user by a name of their own."""
    if method is None or is_known(method):
        return method
    own = [name for name in names if not is_known(name)]
    return own[0] if len(own) == 1 else None


def _next_steps(best: str | None, words: list[str], out: Path | None, *, fronts: bool) -> list[Step]:
    """The commands after a comparison: explore the stored fronts, or train the best method and keep its models."""
    if out is not None and fronts:
        folders = shlex.quote(str(out / "fronts"))
        return [(f"paretomtl report {folders}/*", "explore all models in a browser")]
    if best is None:  # separate networks alone, or a method whose name cannot be told
        return []
    run = shlex.join(["paretomtl", "run", *words, "--method", best])
    return [(run, f"train {best}, and keep its models")]


def _with(settings: list[str]) -> list[str]:
    return [word for setting in settings for word in ("--with", setting)]


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
    from paretomtl.cli._method_names import method_name
    from paretomtl.cli._tables import Column, print_tables

    tests = [each.test for each in summaries if each.test is not None]
    parts = [summaries] if summaries[0].test is None else [summaries, tests]
    volumes, losses = (
        [
            [Column(name, [text(each) for each in part], part[0].split) for part in parts]
            for name, text in columns.items()
        ]
        for columns in (_indicators(summaries), _best_losses(tasks))
    )
    placed = [
        [Column(name, [_number(getattr(each, field), factor) for each in summaries], "train")]
        for name, field, factor in (("in region %", "in_region", 100), ("median angle", "median_angle", 1))
        if any(getattr(each, field) is not None for each in summaries)
    ]
    measured = [each.test or each for each in summaries]
    united = [
        [Column(name, [_volume(each, pair(each), 3) for each in measured], measured[0].split)]
        for name, pair in _UNITED.items()
        if any(pair(each) is not None for each in measured)
    ]
    models = Column("K", [str(each.models) for each in summaries])
    time = Column("time", [f"{each.seconds:.1f} s" for each in summaries])
    names = [method_name(console, each.method) for each in summaries]
    key = Column("method", [name.plain for name in names], text=True, styled=names)
    print_tables(console, key, [models, time], [volumes, united, [*placed, *losses]])


def _indicators(summaries: list[Summary]) -> dict[str, Callable[[Summary], str]]:
    """Return the columns on both splits by name, those that are known, and the text of a cell."""
    columns: dict[str, Callable[[Summary], str]] = {"hypervolume": lambda each: _volume(each, each.hypervolume)}
    if any(each.tight_hypervolume is not None for each in summaries):
        columns["tight hypervolume"] = lambda each: _volume(each, each.tight_hypervolume)
    if any(each.box_share is not None for each in summaries):
        columns["% of box"] = lambda each: _number(each.box_share, 100)
    if any(each.delta_m is not None for each in summaries):
        columns["best Δm %"] = lambda each: _number(each.delta_m, 1)
    return columns


def _best_losses(tasks: list[str]) -> dict[str, Callable[[Summary], str]]:
    """Return the columns of the spread and, for two tasks, of the best losses, as those of the indicators."""
    columns: dict[str, Callable[[Summary], str]] = {"spread": lambda each: f"{each.spread:.3g}"}
    if len(tasks) == 2:
        columns[f"best {tasks[0]}"] = lambda each: f"{each.best[0]:.3g}"
        columns[f"best {tasks[1]}"] = lambda each: f"{each.best[1]:.3g}"
    return columns


def _explanations(summaries: list[Summary], tight: dict[str, list[float]]) -> list[str]:
    """Explain the columns that are shown, in one line each."""
    from paretomtl.cli._summary import point_text

    lines = []
    if tight:
        places = ", ".join(f"{point_text(point)} on {split_word(split)}" for split, point in tight.items())
        lines.append(f"Tight hypervolume: just beyond the best models of all methods, {places}.")
    if any((each.test or each).regret is not None for each in summaries):
        first = summaries[0]
        measured = "" if first.test is None else " and are measured on test"
        where = split_word(first.split)
        lines += [
            f"Regret: what users with random utilities lose who choose from one run on {where}{measured}.",
            "R2, IGD+: distance to the ideal point, and to the best models, of all runs here.",
            "These three are lower for better fronts, and in units of the losses' range over all runs here.",
        ]
    if any(each.delta_m is not None for each in summaries):
        lines.append("Best Δm: of the best model against separate networks; below zero is better than these.")
    return lines


def _number(value: float | None, factor: float) -> str:
    return "-" if value is None else f"{factor * value:.1f}"


def _volume(each: Summary, volume: tuple[float, float] | None, digits: int = 4) -> str:
    if volume is None:
        return "-"
    mean, deviation = volume
    text = f"{mean:.{digits}g}" + ("" if math.isnan(deviation) else f" ± {deviation:.2g}")
    return text + ("*" if each.ideal else "")


def _facts(each: Summary) -> dict[str, Any]:
    """Return a summary for JSON: the split, the numbers on it, and those on test."""
    test = None if each.test is None else _facts(each.test)
    pairs = {
        "hypervolume": _pair(each.hypervolume),
        "tight_hypervolume": _pair(each.tight_hypervolume),
        "regret": _pair(each.regret),
        "r2": _pair(each.r2),
        "igd_plus": _pair(each.igd_plus),
    }
    return {**vars(each), "seeds": each.seeds, **pairs, "test": test}


def _pair(numbers: tuple[float, float] | None) -> dict[str, float | None] | None:
    if numbers is None:
        return None
    mean, deviation = numbers
    return {"mean": mean, "std": None if math.isnan(deviation) else deviation}
