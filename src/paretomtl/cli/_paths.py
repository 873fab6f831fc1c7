"""Paths that commands read and write, checked before anything else is done."""

from __future__ import annotations

from pathlib import Path

from paretomtl._support.files.atomic_files import check_writable
from paretomtl._support.files.safe_open import exists
from paretomtl._support.text import suggest_name
from paretomtl.front import Front
from paretomtl.front.storage.csv_table import is_table

_RUNS = Path("runs")


def load_front(run: Path) -> Front:
    """Load the front in a folder; an error says what is there instead."""
    check_run(run)
    return Front.load(run)


def has_front(run: Path) -> bool:
    """Whether a folder is a stored front, or a run that has stored one."""
    return exists(run / "front.json") or exists(run / "front" / "front.json")


def check_run(run: Path) -> None:
    """Refuse a path that is neither the folder of a run or front nor a table of losses."""
    if is_table(run) and exists(run):
        return
    if has_front(run):
        return
    if exists(run / "config.json"):
        remedy = f"repeat its command with --resume, or look at it: paretomtl watch {run}"
        rule = "'RUN' must be the folder of a front or run"
        raise FileNotFoundError(f"{rule}. Got '{run}', which has an unfinished run: {remedy}")
    if run.is_dir():
        state = "contains neither a run nor a front"
    elif exists(run):
        state = "is a file, but not a .csv file of losses"
    else:
        state = "does not exist"
    raise FileNotFoundError(f"'RUN' must be the folder of a front or run. Got '{run}', which {state}.{_known(run)}")


def check_target(option: str, path: Path | None) -> None:
    """Refuse an output file that is a folder, or whose folder is not writable; None means no output."""
    if path is None:
        return
    if path.is_dir():
        raise ValueError(f"'{option}' must be a file. Got '{path}', which is a folder.")
    there = next((folder for folder in path.absolute().parents if folder.exists()), path.parent)
    try:
        check_writable(option, there)  # missing folders are created with the file
    except ValueError:
        raise ValueError(f"'{option}' must be in a folder that can be written. Got '{path}' instead.") from None


def _known(run: Path) -> str:
    """Suggest the run here with the most similar name, or list some runs."""
    runs = sorted(str(path.parent) for path in _RUNS.glob("*/config.json"))
    some = ", ".join(runs[:3]) + (", ..." if len(runs) > 3 else "")
    return suggest_name(str(run), runs) or (f" Runs here: {some}." if runs else "")
