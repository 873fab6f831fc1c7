from __future__ import annotations

import shlex
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paretomtl._support.terminal import print_command, print_text, text_console
from paretomtl._support.text import suggest_name
from paretomtl.cli._errors import clean_errors
from paretomtl.cli._help import HELP, HelpfulCommand, HelpfulGroup
from paretomtl.cli._next_steps import print_next
from paretomtl.cli._printing import print_json
from paretomtl.problems.data_set import PrepareOptions
from paretomtl.problems.registry import DATA_SETS, ENTRIES, find_data_set

if TYPE_CHECKING:
    from rich.console import Console

    from paretomtl.problems import Canvases

data = typer.Typer(cls=HelpfulGroup, no_args_is_help=True)

_SIZE = "x".join(map(str, PrepareOptions.size))
_NOT_DOWNLOADED = ", ".join(name for name in DATA_SETS if not ENTRIES[name].download)


def complete_name(start: str) -> list[str]:
    """For tab completion."""
    return [name for name in DATA_SETS if name.startswith(start)]


@data.command("prepare", cls=HelpfulCommand, short_help=HELP["prepare"].summary)
@clean_errors
def prepare(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help=f"One of {', '.join(DATA_SETS)}.", autocompletion=complete_name, show_default=False
        ),
    ],
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="Folder with the published files, or with a folder for each set. Without it, the files are downloaded "
            f"(except for {_NOT_DOWNLOADED}).",
            show_default=False,
        ),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(help="Folder of the prepared file; default: $PARETOMTL_DATA, or the user's cache folder."),
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Random seed of canvases; the checksums of seed 0 are published.")
    ] = PrepareOptions.seed,
    side: Annotated[int, typer.Option(help="Image side in pixels (utkface).")] = PrepareOptions.side,
    size: Annotated[str, typer.Option(help="Image height and width in pixels (localization).")] = _SIZE,
    skip_broken: Annotated[
        bool,
        typer.Option(
            "--skip-broken", help="Leave out pictures that cannot be read, and list them (utkface, localization)."
        ),
    ] = False,
    sheet: Annotated[
        Path | None,
        typer.Option(help="File of a contact sheet of canvases (PNG); default: next to the prepared file."),
    ] = None,
    no_sheet: Annotated[bool, typer.Option("--no-sheet", help="Draw no contact sheet.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Read a data set once, verify it and store it in one file. An existing file is only verified."""
    if name not in DATA_SETS:
        raise ValueError(
            f"'NAME' must be one of {', '.join(DATA_SETS)}. Got {name!r} instead.{suggest_name(name, DATA_SETS)}"
        )
    errors, began = text_console(stderr=True), time.perf_counter()

    def log(text: str) -> None:
        print_text(errors, text)

    data_set = find_data_set(name)
    options = PrepareOptions(source, cache, seed, side, _size(size), skip_broken, log)
    prepared = data_set.prepare(options)
    path, default_path = data_set.file(options), data_set.file(replace(options, cache=None))
    drawn = None
    if prepared.canvases is not None and not no_sheet:
        drawn = _draw(prepared.canvases, sheet or path.with_suffix(".png"), errors)
    facts = {
        "name": name,
        "file": str(path),
        "bytes": path.stat().st_size,
        "sha256": prepared.checksum,
        "published": prepared.published,
        **prepared.facts,
        "sheet": None if drawn is None else str(drawn),
        "seconds": time.perf_counter() - began,
    }
    if as_json:
        print_json(facts)
        return
    lines = [
        f"{name}, {prepared.summary}",
        f"file    {path} ({path.stat().st_size / 1e6:.0f} MB)",
        f"sha256  {prepared.checksum} ({prepared.status})",
        *([] if drawn is None else [f"sheet   {drawn}"]),
    ]
    console = text_console()
    for line in lines:
        print_command(console, line)
    if prepared.facts.get("seed", 0) == 0:
        place = "" if path == default_path else f"PARETOMTL_DATA={shlex.quote(str(path.parent))} "
        print_next(console, [(f"{place}paretomtl run {name}{prepared.arguments}", "train on it")])


def _size(text: str) -> tuple[int, int]:
    """Parse a size such as 48x64."""
    parts = text.lower().split("x")
    if len(parts) != 2 or not all(part.isdecimal() for part in parts):
        raise ValueError(f"'--size' must be height and width in pixels, such as 48x64. Got {text!r} instead.")
    return int(parts[0]), int(parts[1])


def _draw(canvases: Canvases, path: Path, errors: Console) -> Path | None:
    """Draw the contact sheet, if matplotlib is installed."""
    from paretomtl.report import draw_sheet

    try:
        draw_sheet(canvases, path)
    except ModuleNotFoundError as error:
        print_text(errors, f"No contact sheet: {error}")
        return None
    return path
