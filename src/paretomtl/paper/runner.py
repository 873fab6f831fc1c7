"""Running a study: stored rows are reused, missing ones are trained and stored."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from paretomtl._support.files.atomic_files import check_writable
from paretomtl.compare.failed_runs import noting_kept
from paretomtl.compare.row_indicators import fill_indicators
from paretomtl.compare.row_store import Row, environment, load_rows, seconds_here, update_rows
from paretomtl.paper.data import check_data
from paretomtl.paper.study import Cell, Size, Study, check_figures
from paretomtl.training import Capacity, Channel, Executor, JobBatch, SerialExecutor
from paretomtl.training.preflight.loss_units import UNITS_WARNING
from paretomtl.training.progress.display import ProgressStyle
from paretomtl.training.progress.study import StudyProgress
from paretomtl.training.progress.study_listeners import quiet_elsewhere
from paretomtl.training.progress.time_left import Tally
from paretomtl.training.results.sanity_checks import BEATEN_WARNING, CLUMPED_WARNING

_SHOWN = 5  # rows that a message names
_REMEDY = "--again trains them again, and keeps the old rows in a separate file."


@dataclass(frozen=True)
class Progress:
    """The stored rows of a study, and its missing cells.

    Attributes:
        rows: all stored rows, in the order of the cells.
        missing: the names of the cells that are not complete yet.
        trained: the number of cells that this call trained.
    """

    rows: list[Row]
    missing: list[str]
    trained: int = 0


def results_file(folder: Path, name: str) -> Path:
    """The file with the rows of a study."""
    return folder / f"{name}.json"


def stored_study(name: str, study: Study, folder: Path, size: Size = "full", seeds: int | None = None) -> Progress:
    """Load and check the stored rows of a study; nothing is trained.

    Each row must belong to a cell with its present settings, and must be unique: an error names those that do not.
    """
    cells = _cells(study, size, seeds)
    path = results_file(folder, name)
    rows = load_rows(path) if path.exists() else []
    rows = fill_indicators(_check_rows(path, rows, cells))
    return Progress(rows, [cell.name for cell in cells if _missing_rows(cell, rows)])


def run_study(
    name: str,
    study: Study,
    folder: Path,
    *,
    size: Size = "full",
    seeds: int | None = None,
    seconds: float | None = None,
    only: str | None = None,
    data: Path | None = None,
    again: bool = False,
    other_processes: int = 0,
    command: str = "",
    log: Callable[[str], None] = lambda text: None,
    executor: Executor | None = None,
    progress: ProgressStyle = "auto",
) -> Progress:
    """Train the cells of a study that are not stored yet, and store the rows of each as soon as it ends.

    Args:
        name: the name of the study, and of its file.
        study: the study.
        folder: the folder of the rows.
        size: how much of the study to run.
        seeds: the number of seeds of every cell, in place of the study's own; further stored seeds are kept.
        seconds: start no cell that would end later than this, estimated by the slowest one so far.
        only: train only the cells whose name contains this.
        data: the folder of data sets.
        again: train cells again whose rows have other settings; those rows are moved to ``NAME-old.json``.
        other_processes: how many other processes train on the same device; stored with the time taken.
        command: the command that is stored with the results.
        log: called with messages other than progress, such as rows that are taken from another study.
        executor: where to train; a cell is one job. None trains one after another, in this process.
        progress: the display of all cells together, with the time left: "rich", "plain" or "quiet"; "auto" as in
            :func:`paretomtl.fit`.

    Raises:
        ValueError: the study has no figures, or stored rows are not those of the study.
        FileNotFoundError: data sets are not prepared.

    All of these are raised before anything is trained. After Ctrl-C, SIGTERM or an error, a note on the exception says
    how many cells are stored. The same call trains the others.
    """
    if executor is not None and seconds is not None:
        raise ValueError(f"'seconds' must be left out with an executor, which begins cells itself. Got {seconds}.")
    if seconds is not None and not seconds >= 0:
        raise ValueError(f"'seconds' must not be negative. Got {seconds} instead.")
    check_writable("out", folder)
    cells = _cells(study, size, seeds)
    check_only(only, cells)
    check_study(name, study, folder, size=size, seeds=seeds, only=only, data=data)
    path = results_file(folder, name)
    rows = load_rows(path) if path.exists() else []
    if again:
        rows = _set_aside_old(path, rows, cells, name, command)
    rows = _check_rows(path, rows, cells)
    for version in sorted({row["versions"]["paretomtl"] for row in rows} - {environment()["versions"]["paretomtl"]}):
        log(f"Rows of version {version} are kept: their settings are the same.")
    rows = _with_shared_rows(study, cells, rows, folder, log)
    began, trained = time.monotonic(), 0
    slowest = max((float(row.get("seconds") or 0.0) for row in rows), default=0.0)  # of the stored ones
    wanted = [(cell, _missing_rows(cell, rows)) for cell in cells if only is None or only in cell.name]
    incomplete = [(cell, sorted({seed for seed, _ in gone})) for cell, gone in wanted if gone]
    asked = len(wanted)
    with executor or SerialExecutor() as place:
        jobs = _Cells(incomplete, data, {"beside": other_processes} if other_processes else {}, place)
        known = seconds_here(rows, lambda row: _kind(row["cell"]))
        stored = asked - len(incomplete)
        tally = Tally(jobs.names, [*map(_kind, jobs.names)], stored=stored, known=known, slots=jobs.slots)

        def stop_in_time() -> None:
            spent = time.monotonic() - began
            if seconds is not None and spent + slowest > seconds and trained < len(incomplete):
                log(f"Stopping after {spent:.0f} s: the next cell may take {slowest:.0f} s.")
                jobs.stop()

        stop_in_time()
        display = StudyProgress(tally, progress, "cell")
        with noting_kept(lambda: stored + trained, asked, "cell", path), display as jobs.display:
            for i, (made, taken) in place.map(jobs):
                display.end(i)
                slowest = max(slowest, taken)
                new = {_label(row) for row in made}
                own = [row for row in rows if _label(row) not in new] + made
                rows = update_rows(path, name, command, partial(_with_others, cells=cells, rows=own))
                trained += 1
                stop_in_time()
    rows = update_rows(path, name, command, lambda stored: fill_indicators(_with_others(stored, cells, rows)))
    return Progress(rows, [cell.name for cell in cells if _missing_rows(cell, rows)], trained)


def check_only(only: str | None, cells: Sequence[Cell]) -> None:
    """Raise an error if no cell has this in its name."""
    if only is not None and not any(only in cell.name for cell in cells):
        known = "; ".join(cell.name for cell in cells)
        raise ValueError(f"'only' must be a part of the name of some cell. Got {only!r}; the cells are: {known}.")


def check_study(
    name: str,
    study: Study,
    folder: Path,
    *,
    size: Size = "full",
    seeds: int | None = None,
    only: str | None = None,
    data: Path | None = None,
) -> None:
    """Raise an error if a study cannot be trained or drawn: it has no figures, or its data are not prepared.

    The arguments are those of :func:`run_study`.
    """
    check_figures(name, study)
    cells = _cells(study, size, seeds)
    known, path = {cell.name: cell for cell in cells}, results_file(folder, name)
    rows = [row for row in (load_rows(path) if path.exists() else []) if _belongs(row, known)]
    rows = _with_shared_rows(study, cells, rows, folder, lambda text: None)
    check_data([cell for cell in cells if (only is None or only in cell.name) and _missing_rows(cell, rows)], data)


def _cells(study: Study, size: Size, seeds: int | None) -> Sequence[Cell]:
    """The cells of a study, with the number of seeds replaced if one is given."""
    if seeds is not None and seeds < 1:
        raise ValueError(f"'seeds' must be 1 or more. Got {seeds} instead.")
    return [cell if seeds is None else replace(cell, seeds=seeds) for cell in study.cells(size)]


def _kind(name: str) -> str:
    """The kind of a cell: cells whose names differ only in the last part take about the same time."""
    return name.rpartition(" / ")[0] or name


class _Cells(JobBatch):
    """Cells of a study with their missing seeds."""

    def __init__(
        self,
        work: Sequence[tuple[Cell, list[int]]],
        data: Path | None,
        stamp: Row,
        place: Executor,
    ) -> None:
        capacity = place.capacity(None) if work else Capacity(1, "cpu")
        device, self.slots = capacity.device, capacity.slots
        self.display: StudyProgress | None = None
        names = [cell.name for cell, _ in work]
        super().__init__(train_cell, names, work, (data, stamp), device, {cell.name: cell for cell, _ in work})

    def on_start(self, i: int, where: Mapping[str, Any]) -> None:
        if self.display is not None:
            self.display.begin(i)

    def poll(self) -> None:
        if self.display is not None:
            self.display.poll()


def train_cell(
    config: tuple[Path | None, Row], work: tuple[Cell, Sequence[int]], channel: Channel
) -> tuple[list[Row], float]:
    """Train some seeds of a cell; return the rows, with the machine that trained them, and the time taken."""
    (data, stamp), (cell, seeds) = config, work
    began = time.monotonic()
    stamp = {"settings": cell.settings, **stamp, **environment()}
    with quiet_elsewhere(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", UNITS_WARNING)  # studies compare scaled and unscaled losses on purpose
        for remark in (CLUMPED_WARNING, f"models .*{BEATEN_WARNING}"):  # which is what some of them show
            warnings.filterwarnings("ignore", remark)
        rows = cell.run(data, seeds)
    return [{"cell": cell.name, **row, **stamp} for row in rows], time.monotonic() - began


def _check_rows(path: Path, rows: Sequence[Row], cells: Sequence[Cell]) -> list[Row]:
    """Sort the rows in the order of the cells; an error names those that are foreign, old or duplicate."""
    known = {cell.name: cell for cell in cells}
    for row in rows:
        lacks = [field for field in ("cell", "seed", "stage", "settings", "versions") if field not in row]
        if lacks:
            raise ValueError(f"'{path}' must hold rows of this study. Got one without {', '.join(lacks)}. {_REMEDY}")
    foreign = [_label(row) for row in rows if row["cell"] not in known]
    if foreign:
        raise ValueError(f"'{path}' must hold only rows of this study and size. Got {_abbreviate(foreign)}. {_REMEDY}")
    old = [row for row in rows if not _belongs(row, known)]
    if old:
        differ = _difference(old[0]["settings"], known[old[0]["cell"]].settings)
        raise ValueError(
            f"'{path}' must hold rows with the present settings of the study. Got others for "
            f"{_abbreviate([_label(row) for row in old])}; the first differs in {differ}. {_REMEDY}"
        )
    doubled = [label for label, count in Counter(map(_label, rows)).items() if count > 1]
    if doubled:
        raise ValueError(
            f"'{path}' must hold each row once. Got more of {_abbreviate(doubled)}: delete all but one of them."
        )
    return _sort_rows(cells, rows)


def _belongs(row: Row, known: Mapping[str, Cell]) -> bool:
    cell = known.get(row.get("cell", ""))
    return cell is not None and row.get("settings") == cell.settings


def _set_aside_old(path: Path, rows: list[Row], cells: Sequence[Cell], name: str, command: str) -> list[Row]:
    """The rows with the present settings of their cells; the others are moved to a separate file."""
    known = {cell.name: cell for cell in cells}
    old = [row for row in rows if not _belongs(row, known)]
    if not old:
        return rows
    aside = path.with_name(f"{path.stem}-old.json")
    update_rows(aside, name, command, lambda earlier: earlier + [row for row in old if row not in earlier])
    return update_rows(path, name, command, lambda stored: [row for row in stored if _belongs(row, known)])


def _with_shared_rows(
    study: Study, cells: Sequence[Cell], rows: list[Row], folder: Path, log: Callable[[str], None]
) -> list[Row]:
    """These rows, and rows with the same settings from the studies that share cells."""
    for other in study.shares:
        path = results_file(folder, other)
        if not path.exists():
            continue
        stored = [row for row in load_rows(path) if "settings" in row]
        for cell in cells:
            same = [row for row in stored if row["settings"] == cell.settings]
            if _missing_rows(cell, rows) and not _missing_rows(cell, same, any_name=True):
                wanted = {(row["seed"], row["stage"]): row for row in same if row["seed"] < cell.seeds}
                rows = [row for row in rows if row["cell"] != cell.name]
                rows += [{**row, "cell": cell.name} for row in wanted.values()]
                log(f"{cell.name}: taken over from {other}")
    return _sort_rows(cells, rows)


def _with_others(stored: Sequence[Row], cells: Sequence[Cell], rows: Sequence[Row]) -> list[Row]:
    """These rows, and those that another process has stored in the meantime."""
    known, own = {cell.name: cell for cell in cells}, {_label(row) for row in rows}
    return _sort_rows(cells, [*rows, *(row for row in stored if _belongs(row, known) and _label(row) not in own)])


def _missing_rows(cell: Cell, rows: Sequence[Row], *, any_name: bool = False) -> list[tuple[int, str]]:
    """The seeds and stages of a cell that the rows do not have."""
    have = {(row["seed"], row["stage"]) for row in rows if any_name or row["cell"] == cell.name}
    return [(seed, stage) for seed in range(cell.seeds) for stage in cell.stages if (seed, stage) not in have]


def _sort_rows(cells: Sequence[Cell], rows: Sequence[Row]) -> list[Row]:
    places = {cell.name: i for i, cell in enumerate(cells)}
    return sorted(rows, key=lambda row: (places[row["cell"]], row["seed"], row["stage"]))


def _label(row: Row) -> str:
    return f"{row['cell']}, seed {row['seed']}{'' if row['stage'] == 'final' else ', ' + row['stage']}"


def _abbreviate(labels: Sequence[str]) -> str:
    rest = len(labels) - _SHOWN
    return "; ".join(labels[:_SHOWN]) + (f"; and {rest} more" if rest > 0 else "")


def _difference(old: Any, new: str) -> str:
    """Describe the first two settings that differ."""
    now, stored = (dict(part.partition("=")[::2] for part in str(text).split("; ")) for text in (new, old))
    names = [name for name in {**now, **stored} if now.get(name) != stored.get(name)]
    return "; ".join(f"{name}: stored {stored.get(name)}, now {now.get(name)}" for name in names[:2]) or "nothing"
