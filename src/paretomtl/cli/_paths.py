"""Paths that commands read and write, checked before anything else is done."""

from __future__ import annotations

from pathlib import Path

from paretomtl._support.atomic_files import check_writable
from paretomtl._support.safe_open import exists
from paretomtl._support.text import suggest_name
from paretomtl.front import Front
from paretomtl.front.csv_table import is_table

_RUNS = Path("runs")


def load_front(run: Path) -> Front:
    """The front in a folder; an error that says what is there instead."""
    check_run(run)
    return Front.load(run)


def check_run(run: Path) -> None:
    """Refuse what is neither the folder of a run or front nor a table of losses."""
    if is_table(run) and exists(run):
        return
    if exists(run / "front.json") or exists(run / "front" / "front.json"):
        return
    if exists(run / "config.json"):
        state = "has an unfinished run: the command that began it goes on with --resume, and watch shows it"
    elif run.is_dir():
        state = "has neither a run nor a front in it"
    elif exists(run):
        state = "is a file, and no .csv file of losses"
    else:
        state = "is not there"
    raise FileNotFoundError(f"'RUN' must be the folder of a front or run. Got '{run}', which {state}.{_known(run)}")


def check_target(option: str, path: Path | None) -> None:
    """Refuse a file to write that is a folder, or is in a place where nothing can be written; None is no file."""
    if path is None:
        return
    if path.is_dir():
        raise ValueError(f"'{option}' must be a file. Got '{path}', which is a folder.")
    there = next((folder for folder in path.absolute().parents if folder.exists()), path.parent)
    try:
        check_writable(option, there)  # folders that are not there yet are made with the file
    except ValueError:
        raise ValueError(f"'{option}' must be in a folder that can be written. Got '{path}' instead.") from None


def _known(run: Path) -> str:
    """The nearest run here, or some of them."""
    runs = sorted(str(path.parent) for path in _RUNS.glob("*/config.json"))
    some = ", ".join(runs[:3]) + (", ..." if len(runs) > 3 else "")
    return suggest_name(str(run), runs) or (f" Runs here: {some}." if runs else "")
