from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from paretomtl._files import check_writable
from paretomtl.cli._common import clean_errors
from paretomtl.experiments import STUDIES, save_rows
from paretomtl.report import DRAWINGS

VERDICT_STYLE = {"reproduced": "green", "partly": "yellow"}


@clean_errors
def reproduce(
    name: Annotated[str, typer.Argument(help=f"The study: {', '.join(STUDIES)}.", show_default=False)],
    out: Annotated[Path | None, typer.Option(help="Where results and figures go; out/NAME if left out.")] = None,
    smoke: Annotated[bool, typer.Option("--smoke", help="A tiny run that only shows that everything works.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print claims and measurements as JSON.")] = False,
) -> None:
    """Run a study of the paper: print what it claims and what was measured, write all points and the figures."""
    study = STUDIES.get(name)
    if study is None:
        raise typer.BadParameter(f"must be one of {', '.join(STUDIES)}. Got {name!r} instead.", param_hint="NAME")
    folder = out or Path("out") / name
    check_writable("--out", folder)
    console, errors = Console(), Console(stderr=True)
    cells = study.cells(smoke=smoke)
    began = time.perf_counter()
    rows: list[dict[str, Any]] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as progress:
        task = progress.add_task(name, total=len(cells))
        for cell in cells:
            progress.update(task, description=f"{name}: {cell.part}")
            rows += study.run(cell)
            progress.advance(task)
    results = folder / f"{name}.json"
    save_rows(results, name, f"paretomtl reproduce {name}{' --smoke' if smoke else ''}", rows)
    figures = DRAWINGS[name](rows, folder)
    seconds = time.perf_counter() - began

    claims, facts = study.claims(rows), study.facts(rows)
    if as_json:
        print(
            json.dumps({"smoke": smoke, "claims": [vars(claim) for claim in claims], "measured": dict(facts)}, indent=2)
        )
        return
    console.print(_claims_table(claims))
    console.print(_facts_table(facts))
    if smoke:
        console.print("[yellow]A smoke run: too short for its verdicts to mean anything.[/]")
    pictures = ", ".join(sorted({path.stem for path in figures}))
    console.print(
        f"{len(rows)} runs in {seconds:.0f} s. All points: {results}. Figures (PNG, SVG): {pictures}.", soft_wrap=True
    )


def _claims_table(claims: list[Any]) -> Table:
    table = Table(title="What the paper claims, and what was measured", title_justify="left", show_lines=True)
    table.add_column("claim", ratio=4)
    table.add_column("measured", ratio=5)
    table.add_column("verdict", width=10)
    for claim in claims:
        style = VERDICT_STYLE.get(claim.verdict, "red")
        table.add_row(f"{claim.claim} [dim]({claim.where})[/]", claim.measured, f"[{style}]{claim.verdict}[/]")
    return table


def _facts_table(facts: list[tuple[str, str]]) -> Table:
    table = Table(title="Measured besides", title_justify="left", show_lines=True)
    table.add_column("what", ratio=3)
    table.add_column("figure", ratio=5)
    for what, figure in facts:
        table.add_row(what, figure)
    return table
