from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from paretomtl._support.files import write_tensors
from paretomtl._support.terminal import text_console
from paretomtl.cli._common import (
    NOTHING_FITS,
    FrontArgument,
    ProblemSettings,
    clean_errors,
    complete_problem,
    numbers_of,
    print_json,
)
from paretomtl.cli._export import Source, export
from paretomtl.cli._interview import ask, at_terminal
from paretomtl.cli._places import check_target, load_front
from paretomtl.cli._tables import Column, print_tables
from paretomtl.cli._trust import Trust
from paretomtl.front import Front
from paretomtl.front.candidates import Choice, build_table


@clean_errors
def select(
    run: FrontArgument,
    direction: Annotated[
        str | None,
        typer.Option(help="Nearest to this direction of the losses, such as 1,2; more allows more."),
    ] = None,
    importance: Annotated[
        str | None,
        typer.Option(help="Best for these importances of the tasks, such as 3,1; more asks for less."),
    ] = None,
    knee: Annotated[bool, typer.Option("--knee", help="The knee of the front, if it has one.")] = False,
    max_regret: Annotated[
        bool,
        typer.Option("--max-regret", help="The smallest of the largest regrets, between best and worst of the front."),
    ] = False,
    at_least: Annotated[
        list[str] | None,
        typer.Option(help="A bound on a metric or loss, such as accuracy:right=0.8 or 'right accuracy=0.8'."),
    ] = None,
    at_most: Annotated[
        list[str] | None, typer.Option(help="A bound from above, such as 'right=0.5' or 'loss:right=0.5'.")
    ] = None,
    bound: Annotated[
        list[str] | None,
        typer.Option(help="A bound as the name asks for it: losses at most, accuracies at least."),
    ] = None,
    best: Annotated[
        str | None, typer.Option(help="The task or metric to choose by, within the bounds if there are any.")
    ] = None,
    k: Annotated[int | None, typer.Option(help="This subproblem, whatever speaks for others.")] = None,
    split: Annotated[
        str | None, typer.Option(help="Whose losses and metrics; val, or train where there is none, if left out.")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Write the chosen weights to this file, as safetensors.")] = None,
    export_: Annotated[
        Path | None,
        typer.Option(
            "--export", help="Write the chosen model, as safetensors with a card in JSON, to this folder or file."
        ),
    ] = None,
    torchscript: Annotated[
        Path | None, typer.Option(help="Write the whole model to this file, as TorchScript, traced.")
    ] = None,
    onnx: Annotated[Path | None, typer.Option(help="Write the whole model to this file, as ONNX.")] = None,
    problem: Annotated[
        str | None,
        typer.Option(
            help="Whose model to export, as for run; a built-in one is known to a run that was started by a command.",
            autocompletion=complete_problem,
        ),
    ] = None,
    with_: ProblemSettings = None,
    trust: Trust = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the choice as JSON.")] = False,
) -> None:
    """Choose one solution of a stored front, and say why.

    Without a way of choosing, on a terminal, a few questions find it, each a comparison of two solutions.

    Exit codes: 0 chosen, 2 bad input, 3 no solution fits, 130 stopped by Ctrl-C.
    """
    for option, path in (("--save", save), ("--torchscript", torchscript), ("--onnx", onnx)):
        check_target(option, path)
    exported = export_ is not None or torchscript is not None or onnx is not None
    source = Source.of(run, problem, with_, trust=trust) if exported else None  # before questions are asked
    if source is not None and (torchscript is not None or onnx is not None):
        source.check_trust()
    front = load_front(run)
    nothing = (
        not knee
        and not max_regret
        and all(given is None for given in (direction, importance, at_least, at_most, bound, best))
    )
    if k is not None:
        choice = _numbered(front, k, split, alone=nothing)
    elif nothing and at_terminal():
        choice = ask(build_table(front, split))
    elif nothing:
        raise ValueError(
            "one of --direction, --importance, --knee, --max-regret, --best and --k must be given where no terminal "
            "can be asked. Got none instead."
        )
    else:
        choice = front.select(
            direction=numbers_of("--direction", direction),
            importance=numbers_of("--importance", importance),
            knee=knee,
            max_regret=max_regret,
            bounds=_bounds("--bound", bound),
            at_least=_bounds("--at-least", at_least),
            at_most=_bounds("--at-most", at_most),
            best=best,
            split=split,
        )
    shown = _by_split(front, choice)
    if as_json:
        missed = {"nearest": choice.nearest, "misses": dict(choice.misses)}
        own = shown.get(choice.split, {"losses": {}, "metrics": {}})
        test = shown["test"] if "test" in shown and choice.split != "test" else None
        print_json({"k": choice.k, "reason": choice.reason, "split": choice.split, **own, "test": test, **missed})
    else:
        console = text_console()
        console.print(choice.reason, highlight=False)
        if shown:
            _print_values(console, shown)
    if choice.k is None:
        raise typer.Exit(NOTHING_FITS)
    if save is not None:
        weights = front.state_dict(choice.k)
        save.parent.mkdir(parents=True, exist_ok=True)
        write_tensors(save, weights, {"problem": front.problem, "subproblem": str(choice.k)})
    if source is not None:
        export(run, source, choice.k, choice.reason, choice.split, weights=export_, torchscript=torchscript, onnx=onnx)


def _numbered(front: Front, k: int, split: str | None, *, alone: bool) -> Choice:
    """The solution of a subproblem that was named."""
    if not alone:
        raise ValueError(f"'--k' must be the only way of choosing. Got {k} with another one.")
    if k not in front.subproblems:
        raise ValueError(f"'--k' must be one of the subproblems trained, {list(front.subproblems)}. Got {k} instead.")
    table = build_table(front, split)
    return table.choose(front.subproblems.index(k), f"asked for by its number; values on {table.split}.")


def _by_split(front: Front, choice: Choice) -> dict[str, dict[str, dict[str, float | None]]]:
    """Losses and metrics of the chosen solution on the split that it was chosen by, and on test beside it."""
    if choice.k is None:
        return {}
    found = {}
    for split in dict.fromkeys([choice.split, *front.shown_splits[1:]]):
        table, row = build_table(front, split), front.subproblems.index(choice.k)
        values = table.choose(row, "")
        found[split] = {"losses": _finite(values.losses), "metrics": _finite(values.metrics)}
    return found


def _print_values(console: Console, shown: dict[str, dict[str, dict[str, float | None]]]) -> None:
    columns = [{**parts["losses"], **parts["metrics"]} for parts in shown.values()]
    names = list(dict.fromkeys(name for values in columns for name in values))
    cells = [["-" if (value := values.get(name)) is None else f"{value:.4g}" for name in names] for values in columns]
    groups = [[[Column(split, some)] for split, some in zip(shown, cells, strict=True)]]
    print_tables(console, Column("", names, text=True), [], groups)


def _finite(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


def _bounds(option: str, texts: list[str] | None) -> dict[str, float] | None:
    if texts is None:
        return None
    bounds: dict[str, float] = {}
    for text in texts:
        name, found, value = text.replace(">=", "=").replace("<=", "=").rpartition("=")
        name = name.strip()
        if name in bounds:
            raise ValueError(f"'{option}' must be given once for each name. Got {name!r} twice.")
        try:
            bounds[name] = float(value)
        except ValueError:
            found = ""
        if not found:
            raise ValueError(f"'{option}' must be NAME=NUMBER. Got {text!r} instead.")
    return bounds
