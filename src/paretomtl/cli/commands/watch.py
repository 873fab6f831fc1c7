from __future__ import annotations

import shlex
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from paretomtl._support.terminal import text_console
from paretomtl.cli._errors import clean_errors


@clean_errors
def watch(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Folders of runs; they need not exist yet.", metavar="RUN...", show_default=False),
    ],
    port: Annotated[int, typer.Option(help="Port to serve on; 0 takes any free port.")] = 0,
    open_: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = False,
) -> None:
    """Show runs while they train: serve the page of [bold]report[/] to this machine alone, until Ctrl-C."""
    from paretomtl.cli._proposals import without_proposals
    from paretomtl.report.page import PageServer, Watched

    runs = without_proposals(runs)
    try:
        with PageServer(Watched(runs), port) as server:
            text_console().print(f"Serving {server.url} until Ctrl-C.", highlight=False)
            if open_:
                webbrowser.open(server.url)
            server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt as error:
        error.add_note(f"To keep the page: paretomtl report {shlex.join(map(str, runs))}")
        raise
