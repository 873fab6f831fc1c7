from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from paretomtl._support.terminal import print_text, text_console
from paretomtl.cli._errors import clean_errors


@clean_errors
def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...", help="Folders of runs or of stored fronts, or .csv files of losses.", show_default=False
        ),
    ],
    out: Annotated[Path, typer.Option(help="HTML file to write.")] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="Title of the page; default: the problem.")] = None,
) -> None:
    """Write one HTML page with the models of these runs, to explore, to select from and to share.

    It needs no network and no other file. All runs of a page must have the same tasks.
    """
    from paretomtl.cli._paths import check_run, check_target
    from paretomtl.cli._proposals import without_proposals
    from paretomtl.report import write_page

    runs = without_proposals(runs)
    for run in runs:
        check_run(run)
    check_target("--out", out)
    path = write_page(runs, out, title=title)
    size = path.stat().st_size / 1e6
    console = text_console()
    print_text(console, f"Written: {path} ({size:.1f} MB).")
    print_text(console, "\nNext: open it in a browser, find a model, and copy its command from the page.")
