from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from paretomtl._support.terminal import text_console
from paretomtl._support.text import suggest_name
from paretomtl.cli._common import clean_errors, print_json
from paretomtl.problems import Canvases, prepare_canvases, prepare_census, prepare_localization, prepare_utkface
from paretomtl.problems._census.files import PUBLISHED_CENSUS, census_file
from paretomtl.problems._localization.problem import SIZE, localization_file
from paretomtl.problems._multi_mnist.canvases import MIXES
from paretomtl.problems._multi_mnist.files import PUBLISHED, canvases_file
from paretomtl.problems._utkface.problem import SIDE, utkface_file
from paretomtl.report import draw_sheet

data = typer.Typer(help="Data sets: what is published or yours, read, verified and kept.", no_args_is_help=True)

NAMES = (*MIXES, "census", "utkface", "localization")


def complete_name(start: str) -> list[str]:
    """For tab completion."""
    return [name for name in NAMES if name.startswith(start)]


@dataclass(frozen=True)
class _Prepared:
    """What was prepared: its file, its checksum, and a line on what it is."""

    path: Path
    usual: Path
    checksum: str
    published: str | None
    summary: str
    facts: dict[str, Any]
    arguments: str = ""  # that the problem needs to find it


@data.command("prepare")
@clean_errors
def prepare(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help=f"One of {', '.join(NAMES)}.", autocompletion=complete_name, show_default=False
        ),
    ],
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="A folder with the published files, or with a folder of each set in it; downloads them if left out, "
            "where that can be done.",
            show_default=False,
        ),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(help="Where the result is kept; $PARETOMTL_DATA, or the user's cache folder, if left out."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of canvases; the checksums of seed 0 are published.")] = 0,
    side: Annotated[int, typer.Option(help="Of faces, in pixels.")] = SIDE,
    size: Annotated[str, typer.Option(help="Of frames for localization, height by width.")] = f"{SIZE[0]}x{SIZE[1]}",
    skip_broken: Annotated[
        bool, typer.Option("--skip-broken", help="Leave out faces and frames that cannot be read, and name them.")
    ] = False,
    sheet: Annotated[
        Path | None,
        typer.Option(help="Where a picture of some canvases goes (PNG); beside the data if left out."),
    ] = None,
    no_sheet: Annotated[bool, typer.Option("--no-sheet", help="Draw no such picture.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Read a data set once, verify it and keep it in one file; what is there already is only verified."""
    if name not in NAMES:
        raise ValueError(f"'NAME' must be one of {', '.join(NAMES)}. Got {name!r} instead.{suggest_name(name, NAMES)}")
    errors, began = text_console(stderr=True), time.perf_counter()

    def log(text: str) -> None:
        errors.print(text, highlight=False, soft_wrap=True)

    drawn = None
    if name in MIXES:
        canvases = prepare_canvases(name, source=source, cache=cache, seed=seed, log=log)
        found = _canvases(canvases, cache)
        drawn = None if no_sheet else _draw(canvases, sheet or found.path.with_suffix(".png"), errors)
    else:
        found = _others(source, cache, side, _size(size), skip_broken, log)[name]()
    facts = {
        "name": name,
        "file": str(found.path),
        "bytes": found.path.stat().st_size,
        "sha256": found.checksum,
        "published": found.published,
        **found.facts,
        "sheet": None if drawn is None else str(drawn),
        "seconds": time.perf_counter() - began,
    }
    if as_json:
        print_json(facts)
        return
    said = "as published" if found.published else "published for seed 0 only" if name in MIXES else "not published"
    lines = [
        f"{name}, {found.summary}",
        f"file    {found.path} ({found.path.stat().st_size / 1e6:.0f} MB)",
        f"sha256  {found.checksum} ({said})",
        *([] if drawn is None else [f"sheet   {drawn}"]),
    ]
    if found.facts.get("seed", 0) == 0:
        place = "" if found.path == found.usual else f"PARETOMTL_DATA={shlex.quote(str(found.path.parent))} "
        lines.append(f"Train on it with: {place}paretomtl run {name}{found.arguments}")
    for line in lines:
        text_console().print(line, highlight=False, soft_wrap=True)


def _canvases(made: Canvases, cache: Path | None) -> _Prepared:
    counts = {"train": len(made.train_labels), "test": len(made.test_labels)}
    return _Prepared(
        canvases_file(made.name, cache, made.seed),
        canvases_file(made.name, None, made.seed),
        made.checksum(),
        PUBLISHED[made.name] if made.seed == 0 else None,
        f"{made.origin} with seed {made.seed}: {counts['train']:,} training and {counts['test']:,} test canvases, "
        "36 by 36",
        {"seed": made.seed, **counts},
    )


def _others(
    source: Path | None,
    cache: Path | None,
    side: int,
    size: tuple[int, int],
    skip_broken: bool,
    log: Callable[[str], None],
) -> dict[str, Callable[[], _Prepared]]:
    """What prepares the sets that are no canvases, by name."""

    def census() -> _Prepared:
        made = prepare_census(source, cache, log)
        counts = {"train": len(made.train_labels), "test": len(made.test_labels)}
        summary = (
            f"{counts['train']:,} training and {counts['test']:,} test records, {len(made.feature_names)} features"
        )
        files = (census_file(cache, True), census_file(None, True))
        return _Prepared(*files, made.checksum(), PUBLISHED_CENSUS, summary, counts)

    def utkface() -> _Prepared:
        made = prepare_utkface(source, cache, side, skip_broken, log)
        files = (utkface_file(cache, side), utkface_file(None, side))
        summary, arguments = f"{len(made):,} faces, {side} by {side}", "" if side == SIDE else f" --with side={side}"
        return _Prepared(*files, made.checksum(), None, summary, {"faces": len(made)}, arguments)

    def localization() -> _Prepared:
        made = prepare_localization(source, cache, size, log, skip_broken)
        files = (localization_file(cache, size), localization_file(None, size))
        count = len(made.images)
        summary = f"{count:,} frames, {size[0]} by {size[1]}"
        arguments = "" if size == SIZE else f" --with 'size=({size[0]}, {size[1]})'"
        return _Prepared(*files, made.checksum(), None, summary, {"frames": count}, arguments)

    return {"census": census, "utkface": utkface, "localization": localization}


def _size(text: str) -> tuple[int, int]:
    """A size such as 48x64."""
    parts = text.lower().split("x")
    if len(parts) != 2 or not all(part.isdecimal() for part in parts):
        raise ValueError(f"'--size' must be height and width in pixels, such as 48x64. Got {text!r} instead.")
    return int(parts[0]), int(parts[1])


def _draw(canvases: Canvases, path: Path, errors: Console) -> Path | None:
    """The contact sheet, where figures can be drawn."""
    try:
        draw_sheet(canvases, path)
    except ModuleNotFoundError as error:
        errors.print(f"No contact sheet: {error}", highlight=False, soft_wrap=True)
        return None
    return path
