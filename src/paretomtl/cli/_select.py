from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from paretomtl._files import write_tensors
from paretomtl.cli._common import NOTHING_FITS, clean_errors, numbers_of, print_json
from paretomtl.front import Front


@clean_errors
def select(
    run: Annotated[Path, typer.Argument(help="A run's folder, or that of a stored front.", show_default=False)],
    direction: Annotated[
        str | None,
        typer.Option(help="Nearest to this direction of the losses, such as 1,2; more allows more."),
    ] = None,
    importance: Annotated[
        str | None,
        typer.Option(help="Best for these importances of the tasks, such as 3,1; more asks for less."),
    ] = None,
    knee: Annotated[bool, typer.Option("--knee", help="The knee of the front, if it has one.")] = False,
    bound: Annotated[
        list[str] | None,
        typer.Option(help="What a solution must reach, such as 'accuracy=0.78'; losses: at most."),
    ] = None,
    best: Annotated[str | None, typer.Option(help="The task or metric to choose by within the bounds.")] = None,
    split: Annotated[
        str | None, typer.Option(help="What to look at; val, or train where there is none.", show_default=False)
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Write the chosen weights to this file, as safetensors.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the choice as JSON.")] = False,
) -> None:
    """Choose one solution of a stored front, and say why.

    Exit codes: 0 chosen, 2 bad input, 3 no solution fits.
    """
    front = Front.load(run)
    choice = front.select(
        direction=numbers_of("--direction", direction),
        importance=numbers_of("--importance", importance),
        knee=knee,
        bounds=_bounds(bound),
        best=best,
        split=split,
    )
    if as_json:
        values = {"losses": _finite(choice.losses), "metrics": _finite(choice.metrics)}
        print_json({"k": choice.k, "reason": choice.reason, **values})
    else:
        console = Console()
        console.print(choice.reason, highlight=False)
        for name, value in {**choice.losses, **choice.metrics}.items():
            console.print(f"  {name}: {value:.4g}", highlight=False)
    if choice.k is None:
        raise typer.Exit(NOTHING_FITS)
    if save is not None:
        write_tensors(save, front.state_dict(choice.k), {"problem": front.problem, "subproblem": str(choice.k)})


def _finite(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


def _bounds(texts: list[str] | None) -> dict[str, float] | None:
    if texts is None:
        return None
    bounds = {}
    for text in texts:
        name, found, value = text.replace(">=", "=").replace("<=", "=").rpartition("=")
        try:
            bounds[name.strip()] = float(value)
        except ValueError:
            found = ""
        if not found:
            raise ValueError(f"'--bound' must be NAME=NUMBER. Got {text!r} instead.")
    return bounds
