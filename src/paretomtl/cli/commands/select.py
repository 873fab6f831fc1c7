from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paretomtl._support.tensor_json import to_numbers
from paretomtl._support.terminal import print_text, text_console
from paretomtl._support.text import short_number
from paretomtl.cli._errors import NOTHING_FITS, clean_errors
from paretomtl.cli._options import FrontArgument, ProblemSettings, complete_problem, parse_numbers
from paretomtl.cli._printing import print_json
from paretomtl.cli._trust import Trust

if TYPE_CHECKING:
    from rich.console import Console

    from paretomtl.cli._next_steps import Step
    from paretomtl.front import Choice, Front


@clean_errors
def select(
    run: FrontArgument,
    direction: Annotated[
        str | None,
        typer.Option(
            help="Nearest model to this direction of the losses, such as 1,2; a larger part allows a larger loss."
        ),
    ] = None,
    importance: Annotated[
        str | None,
        typer.Option(
            help="Best model for these importances of tasks, such as 3,1; a larger part asks for a smaller loss."
        ),
    ] = None,
    knee: Annotated[bool, typer.Option("--knee", help="Knee of the front, if it has one.")] = False,
    max_regret: Annotated[
        bool,
        typer.Option("--max-regret", help="Model of minimax regret, relative to the range of the front."),
    ] = False,
    at_least: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=NUMBER",
            help="Lower bound, such as accuracy:right=0.8 or 'right accuracy=0.8'; may be repeated.",
        ),
    ] = None,
    at_most: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=NUMBER", help="Upper bound, such as right=0.5 or loss:right=0.5; may be repeated."),
    ] = None,
    bound: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=NUMBER",
            help="Bound in the natural direction: upper for a loss, lower for an accuracy; may be repeated.",
        ),
    ] = None,
    best: Annotated[
        str | None,
        typer.Option(help="Best model in this task or metric, within the bounds if there are any."),
    ] = None,
    k: Annotated[int | None, typer.Option(help="Select this model directly.")] = None,
    split: Annotated[
        str | None, typer.Option(help="Split of the losses and metrics; default: val (train if there is none).")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Write the selected weights to this file (safetensors).")] = None,
    export_: Annotated[
        Path | None,
        typer.Option(
            "--export", help="Write the selected weights (safetensors) and a model card (JSON) to this folder or file."
        ),
    ] = None,
    torchscript: Annotated[
        Path | None, typer.Option(help="Write the whole model to this file (TorchScript, traced).")
    ] = None,
    onnx: Annotated[Path | None, typer.Option(help="Write the whole model to this file (ONNX).")] = None,
    problem: Annotated[
        str | None,
        typer.Option(
            help="Problem whose model is exported, as for run; default: that of the run, if it is built in.",
            autocompletion=complete_problem,
        ),
    ] = None,
    with_: ProblemSettings = None,
    trust: Trust = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the choice as JSON.")] = False,
) -> None:
    """Select one model of a stored front, and say why.

    Without an option that selects, a few questions on the terminal find it; each compares two models.

    Exit codes: 0 selected, 2 bad input, 3 no model fits, 130 stopped by Ctrl-C.
    """
    from paretomtl._support.files.tensor_files import write_tensors
    from paretomtl.cli import _interview
    from paretomtl.cli._next_steps import print_next
    from paretomtl.cli._paths import check_target, load_front
    from paretomtl.front.choosing.candidates import build_table

    for option, path in (("--save", save), ("--torchscript", torchscript), ("--onnx", onnx)):
        check_target(option, path)
    source = None
    if export_ is not None or torchscript is not None or onnx is not None:  # refused before questions are asked
        from paretomtl.cli._export import Source, export

        source = Source.of(run, problem, with_, trust=trust)
        if torchscript is not None or onnx is not None:
            source.check_trust()
    front = load_front(run)
    nothing = (
        not knee
        and not max_regret
        and all(given is None for given in (direction, importance, at_least, at_most, bound, best))
    )
    if k is not None:
        choice = _numbered(front, k, split, alone=nothing)
    elif nothing and _interview.at_terminal():
        choice = _interview.ask(build_table(front, split))
    elif nothing:
        raise ValueError(
            "one of --direction, --importance, --knee, --max-regret, --best and --k must be given without a "
            "terminal to ask questions on. Got none instead."
        )
    else:
        choice = front.select(
            direction=parse_numbers("--direction", direction),
            importance=parse_numbers("--importance", importance),
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
        print_text(console, choice.reason)
        if shown:
            console.print()
            _print_values(console, front, shown)
    if choice.k is None:
        raise typer.Exit(NOTHING_FITS)
    if save is not None:
        weights = front.state_dict(choice.k)
        save.parent.mkdir(parents=True, exist_ok=True)
        write_tensors(save, weights, {"problem": front.problem, "k": str(choice.k)})
    if source is not None:
        export(run, source, choice.k, choice.reason, choice.split, weights=export_, torchscript=torchscript, onnx=onnx)
    elif not as_json and save is None:
        rule = {
            "--direction": direction,
            "--importance": importance,
            "--knee": knee,
            "--max-regret": max_regret,
            "--at-least": at_least,
            "--at-most": at_most,
            "--bound": bound,
            "--best": best,
            "--split": split,
        }
        by_rule = [] if nothing or k is not None else _words_of(rule)
        print_next(text_console(), _next_steps(run, front, choice.k, by_rule))


def _numbered(front: Front, k: int, split: str | None, *, alone: bool) -> Choice:
    """The choice of a model by its number."""
    from paretomtl.front.choosing.candidates import build_table

    if not alone:
        raise ValueError(f"'--k' must be the only way of choosing. Got {k} with another one.")
    if k not in front.subproblems:
        raise ValueError(f"'--k' must be one of the models trained, {list(front.subproblems)}. Got {k} instead.")
    table = build_table(front, split)
    return table.choose(front.subproblems.index(k), f"asked for by its number; values on {table.on}.")


def _by_split(front: Front, choice: Choice) -> dict[str, dict[str, dict[str, float | None]]]:
    """Losses and metrics of the selected model on the split that it was selected by, and on test."""
    from paretomtl.front.choosing.candidates import build_table

    if choice.k is None:
        return {}
    by_split = {}
    for split in dict.fromkeys([choice.split, *front.shown_splits[1:]]):
        table, row = build_table(front, split), front.subproblems.index(choice.k)
        values = table.choose(row, "")
        by_split[split] = {"losses": to_numbers(values.losses), "metrics": to_numbers(values.metrics)}
    return by_split


def _words_of(options: Mapping[str, str | list[str] | bool | None]) -> list[str]:
    """The options as they were typed."""
    words = []
    for name, value in options.items():
        if value is True:
            words.append(name)
        elif value:
            words += [word for each in ([value] if isinstance(value, str) else value) for word in (name, each)]
    return words


def _next_steps(run: Path, front: Front, k: int, rule: list[str]) -> list[Step]:
    """The commands after a choice: keep the weights if there are any, and train more models like this one.

    Args:
        run: the folder.
        front: the front.
        k: the chosen model.
        rule: the options that chose it, by which an export knows the reason; empty for its number.
    """
    from paretomtl._support.files.atomic_files import file_name
    from paretomtl._support.files.safe_open import exists
    from paretomtl.front.models import NoModels
    from paretomtl.runs.options import OPTIONS

    folder = shlex.quote(str(run))
    steps = []
    named, what = _named_problem(run) if exists(run / OPTIONS) else ("", "")
    if not isinstance(front.models, NoModels):
        chosen = shlex.join(rule or ["--k", str(k)])
        name = shlex.quote(f"{file_name(front.problem)}-model-{k}")
        steps.append((f"paretomtl select {folder} {chosen} --export {name}{named}", f"keep its weights{what}"))
    if exists(run / OPTIONS) and front.reading in ("direction", "importance"):
        steps.append((f"paretomtl refine {folder} --around {k}{named}", f"train more models like it{what}"))
    return steps


def _named_problem(run: Path) -> tuple[str, str]:
    """The options that name a problem of the user's own, which no file may name, and what they do; else nothing."""
    from paretomtl._support.imports.import_path import relative_name
    from paretomtl.cli._run_options import RunOptions
    from paretomtl.cli._trust import needs_trust

    try:
        options = RunOptions.load(run)
    except (ValueError, OSError):  # refine says what is wrong with the file
        return "", ""
    if not needs_trust(options.problem, options.with_):
        return "", ""
    words = ["--problem", name := relative_name(options.problem)]
    words += [word for setting in options.with_ for word in ("--with", setting)]
    return (f" {shlex.join(words)}", f"; imports {name}") if all(map(str.isprintable, words)) else ("", "")


def _print_values(console: Console, front: Front, shown: dict[str, dict[str, dict[str, float | None]]]) -> None:
    """Print metrics and losses of the chosen model, a line each."""
    from paretomtl.cli._tables import Column, print_tables

    columns = [
        {**parts["metrics"], **{f"{task} loss": parts["losses"][task] for task in front.tasks}}
        for parts in shown.values()
    ]
    names = list(dict.fromkeys(name for values in columns for name in values))
    cells = [
        ["-" if (value := values.get(name)) is None else short_number(value) for name in names] for values in columns
    ]
    groups = [[[Column(split, some)] for split, some in zip(shown, cells, strict=True)]]
    print_tables(console, Column("", names, text=True), [], groups)


def _bounds(option: str, texts: list[str] | None) -> dict[str, float] | None:
    if texts is None:
        return None
    bounds: dict[str, float] = {}
    for text in texts:
        name, equals, value = text.replace(">=", "=").replace("<=", "=").rpartition("=")
        name = name.strip()
        if name in bounds:
            raise ValueError(f"'{option}' must be given once for each name. Got {name!r} twice.")
        try:
            bounds[name] = float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise ValueError(f"'{option}' must be NAME=NUMBER. Got {text!r} instead.")
    return bounds
