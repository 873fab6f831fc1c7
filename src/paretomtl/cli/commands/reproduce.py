from __future__ import annotations

import contextlib
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paretomtl._support.imports.optional_packages import require
from paretomtl._support.terminal import print_text, text_console
from paretomtl._support.text import suggest_name
from paretomtl.cli._errors import clean_errors
from paretomtl.cli._options import ProgressName
from paretomtl.cli._printing import print_above, print_json
from paretomtl.cli._ray import Cpus, OnRay, ray_executor

if TYPE_CHECKING:
    from rich.table import Table

    from paretomtl.cli._next_steps import Step
    from paretomtl.paper.claims import Claim
    from paretomtl.paper.runner import Progress
    from paretomtl.paper.study import Size, Study

VERDICT_STYLE = {
    "reproduced": "green",
    "holds": "green",
    "partly": "yellow",
    "not told apart": "yellow",
    "not measured": "dim",
}
EVERYTHING = "all"
_DEFAULT = Path("out") / "reproduce"


def complete_study(start: str) -> list[str]:
    """Names of studies for tab completion."""
    from paretomtl.paper import STUDIES

    return [name for name in (*STUDIES, EVERYTHING) if name.startswith(start)]


@clean_errors
def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            metavar="STUDY",
            help=f"Name of a study (see [bold]paretomtl list[/]), or {EVERYTHING}.",
            autocompletion=complete_study,
            show_default=False,
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="Folder of rows and figures; default: out/reproduce.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small run: minutes on two cores.")] = False,
    smoke: Annotated[bool, typer.Option("--smoke", help="A tiny run that only shows that everything works.")] = False,
    seeds: Annotated[
        int | None, typer.Option(help="Number of seeds of every cell; those that are not stored are trained.")
    ] = None,
    draw: Annotated[bool, typer.Option("--draw", help="Train nothing; use the stored rows.")] = False,
    seconds: Annotated[float | None, typer.Option(help="Begin no cell that would end after this many seconds.")] = None,
    only: Annotated[str | None, typer.Option(help="Train only cells whose name contains this.")] = None,
    data: Annotated[Path | None, typer.Option(help="Folder of data sets; default: the user's cache.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Retrain cells that were stored with other settings.")] = False,
    ray: OnRay = None,
    cpus: Cpus = 1,
    progress: ProgressName = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print claims and measurements as JSON.")] = False,
) -> None:
    """Run a study of the paper: print what it claims and what was measured, write all points and the figures.

    Stored rows are kept, so that a study may be run in several calls.
    """
    from paretomtl.paper import STUDIES

    if name not in (*STUDIES, EVERYTHING):
        known = (*STUDIES, EVERYTHING)
        raise ValueError(f"'STUDY' must be one of {', '.join(known)}. Got {name!r} instead.{suggest_name(name, known)}")
    if quick and smoke:
        raise ValueError("'--quick' and '--smoke' must not both be given: each is a size.")
    from paretomtl._support.files.atomic_files import check_writable
    from paretomtl.paper import runner

    size: Size = "smoke" if smoke else "quick" if quick else "full"
    results, errors = {}, text_console(stderr=True)
    executor = ray_executor(ray, cpus)
    folder = out or _DEFAULT
    check_writable("--out", folder)
    chosen = _choose_studies(name, size, only)
    require("matplotlib.pyplot", "figures")  # fails now rather than after hours of training
    if draw:
        _check_stored(chosen, folder)
    else:  # check all studies before training the first one
        for each in chosen:
            runner.check_study(each, STUDIES[each], folder, size=size, seeds=seeds, only=only, data=data)
    with executor or contextlib.nullcontext():
        for each in chosen:
            began = time.perf_counter()
            if draw:
                stored = runner.stored_study(each, STUDIES[each], folder, size, seeds)
            else:
                options = [f" --{size}"] if size != "full" else []
                options += [f" --seeds {seeds}"] if seeds is not None else []
                command = f"paretomtl reproduce {each}{''.join(options)}"
                if not as_json:
                    place = runner.results_file(folder, each)
                    print_text(errors, f"Results go to {place}.", style="dim")
                stored = runner.run_study(
                    each, STUDIES[each], folder, size=size, seeds=seeds, seconds=seconds, only=only, data=data,
                    again=again, command=command, executor=executor, progress=progress,  # type: ignore[arg-type]
                    log=print_above,
                )  # fmt: skip
            results[each] = _print_results(
                each, STUDIES[each], stored, folder, quiet=as_json, began=began, size=size, draw=draw
            )
    if as_json:
        print_json(results[name] if name != EVERYTHING else results)


def _choose_studies(name: str, size: Size, only: str | None) -> list[str]:
    """Return the requested studies; of "all", those that have a cell to train."""
    from paretomtl.paper import STUDIES
    from paretomtl.paper.runner import check_only

    if name != EVERYTHING:
        return [name]
    cells = {each: study.cells(size) for each, study in STUDIES.items()}
    check_only(only, [cell for some in cells.values() for cell in some])
    return [each for each, some in cells.items() if only is None or any(only in cell.name for cell in some)]


def _check_stored(chosen: list[str], folder: Path) -> None:
    """Refuse to draw a study without figures or without stored results."""
    from paretomtl.paper import STUDIES
    from paretomtl.paper.runner import results_file
    from paretomtl.paper.study import check_figures

    for each in chosen:
        check_figures(each, STUDIES[each])
    if not any(results_file(folder, each).exists() for each in chosen):
        raise ValueError(f"'--draw' must come with an '--out' that has results. '{folder}' has none of {chosen[0]}.")


def _print_results(
    name: str, study: Study, progress: Progress, folder: Path, *, quiet: bool, began: float, size: Size, draw: bool
) -> dict[str, Any]:
    """Draw the figures, and print the claims and facts as far as the rows allow."""
    from paretomtl.cli._next_steps import print_next
    from paretomtl.paper.panels import draw_figures
    from paretomtl.paper.runner import results_file
    from paretomtl.paper.study import describe_divergence

    console = text_console(quiet=quiet)
    claims, facts, figures, remarks = [], [], [], []
    if progress.rows:
        figures = draw_figures(progress.rows, folder, study.figures)
    try:
        claims, facts = study.claims(progress.rows), study.facts(progress.rows)
    except ValueError as error:
        if not progress.missing:
            raise
        remarks.append(f"Not judged before all cells are trained: {error}")
    if claims:
        console.print(_claims_table(claims, study.asks))
    if facts:
        console.print(_facts_table(facts))
    if (divergence := describe_divergence(progress.rows)) is not None:
        remarks.append(divergence)
    if size != "full":
        remarks.append(f"A {size} run: too short for its verdicts to mean anything.")
    if progress.missing:
        shown = "; ".join(progress.missing[:4]) + ("; ..." if len(progress.missing) > 4 else "")
        remarks.append(f"Missing {len(progress.missing)} cells: {shown}.")
    for remark in remarks:
        print_text(console, remark, style="yellow")
    seconds = time.perf_counter() - began
    drawn = ", ".join(sorted({path.stem.removesuffix("-dark") for path in figures})) or "none"
    print_text(
        console,
        f"{name}: {len(progress.rows)} runs, {progress.trained} cells trained now, {seconds:.0f} s. All points: "
        f"{results_file(folder, name)}. Figures (PNG for light and dark pages, SVG): {drawn}.",
    )
    print_next(console, _next_steps(name, folder, size, missing=bool(progress.missing)))
    return {
        "size": size,
        "missing": progress.missing,
        "claims": [vars(claim) for claim in claims],
        "measured": dict(facts),
    }


def _next_steps(name: str, folder: Path, size: Size, *, missing: bool) -> list[Step]:
    """The commands after a study: train what is missing, then the full study; at its end, draw it again."""
    place = "" if folder == _DEFAULT else f" --out {shlex.quote(str(folder))}"
    again = f"paretomtl reproduce {name}{'' if size == 'full' else f' --{size}'}{place}"
    if missing:
        return [(again, "train the missing cells")]
    if size != "full":  # a smoke run has shorter settings, whose rows do not count; a quick one has fewer seeds
        anew = " --again" if size == "smoke" else ""
        return [(f"paretomtl reproduce {name}{anew}{place}", "the full study")]
    return [(f"{again} --draw", "draw the figures again")]


def _claims_table(claims: list[Claim], title: str) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", show_lines=True)
    table.add_column("claim", ratio=4)
    table.add_column("measured", ratio=5)
    table.add_column("verdict", width=12)
    for claim in claims:
        style = VERDICT_STYLE.get(claim.verdict.removeprefix("so far "), "red")
        sentence = Text.assemble(claim.claim, (f" ({claim.where})", "dim"))
        table.add_row(sentence, claim.measured, Text(claim.verdict, style))
    return table


def _facts_table(facts: list[tuple[str, str]]) -> Table:
    from rich.table import Table

    table = Table(title="Other measurements", title_justify="left", show_lines=True)
    table.add_column("what", ratio=3)
    table.add_column("figure", ratio=5)
    for what, figure in facts:
        table.add_row(what, figure)
    return table
