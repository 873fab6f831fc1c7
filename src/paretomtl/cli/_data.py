from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from paretomtl.cli._common import clean_errors, print_json
from paretomtl.problems import Canvases, prepare_canvases
from paretomtl.problems._canvases import MIXES
from paretomtl.problems._prepared import PUBLISHED, canvases_file
from paretomtl.report import draw_sheet

data = typer.Typer(help="Data sets of overlapped images, the paper's and others.", no_args_is_help=True)


def complete_name(start: str) -> list[str]:
    """For tab completion."""
    return [name for name in MIXES if name.startswith(start)]


@data.command("prepare")
@clean_errors
def prepare(
    name: Annotated[
        str, typer.Argument(help=f"One of {', '.join(MIXES)}.", autocompletion=complete_name, show_default=False)
    ],
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="A folder with the published files of MNIST or Fashion-MNIST, or with mnist and fashion-mnist in it; "
            "downloads them if left out.",
            show_default=False,
        ),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(help="Where the result is kept; $PARETOMTL_DATA, or the user's cache folder, if left out."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the canvases; the checksums of seed 0 are published.")] = 0,
    sheet: Annotated[
        Path | None,
        typer.Option(help="Where a picture of some samples goes (PNG); beside the data if left out."),
    ] = None,
    no_sheet: Annotated[bool, typer.Option("--no-sheet", help="Draw no such picture.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Make a data set of overlapped images, as in the paper; what is there already is only verified."""
    errors, began = Console(stderr=True), time.perf_counter()
    path = canvases_file(name, cache, seed)
    canvases = prepare_canvases(
        name,
        source=source,
        cache=cache,
        seed=seed,
        tell=lambda text: errors.print(text, highlight=False, soft_wrap=True, markup=False),
    )
    drawn = None if no_sheet else _draw(canvases, sheet or path.with_suffix(".png"), errors)
    checksum = canvases.checksum()
    facts = {
        "name": name,
        "seed": seed,
        "file": str(path),
        "bytes": path.stat().st_size,
        "sha256": checksum,
        "published": PUBLISHED[name] if seed == 0 else None,
        "train": len(canvases.train_labels),
        "test": len(canvases.test_labels),
        "sheet": None if drawn is None else str(drawn),
        "seconds": time.perf_counter() - began,
    }
    if as_json:
        print_json(facts)
        return
    lines = [
        f"{name}, {canvases.origin} with seed {seed}: {facts['train']:,} training and {facts['test']:,} test canvases, "
        "36 by 36",
        f"file    {path} ({path.stat().st_size / 1e6:.0f} MB)",
        f"sha256  {checksum} ({'as published' if seed == 0 else 'published for seed 0 only'})",
        *([] if drawn is None else [f"sheet   {drawn}"]),
    ]
    if seed == 0:
        place = "" if path == canvases_file(name, None, seed) else f"PARETOMTL_DATA={path.parent} "
        lines.append(f"Train on it with: {place}paretomtl run {name}")
    for line in lines:
        Console().print(line, highlight=False, soft_wrap=True, markup=False)


def _draw(canvases: Canvases, path: Path, errors: Console) -> Path | None:
    """The contact sheet, where figures can be drawn."""
    try:
        draw_sheet(canvases, path)
    except ModuleNotFoundError as error:
        errors.print(f"No contact sheet: {error}", highlight=False, soft_wrap=True, markup=False)
        return None
    return path
