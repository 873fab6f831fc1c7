"""Several methods on one problem: the same recipe, seeds and budget for each, and what the rows say."""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from paretomtl._support.checks import check_count
from paretomtl._support.files import check_writable, file_name
from paretomtl._support.optional import require
from paretomtl._support.paths import as_path
from paretomtl._support.splits import ranking_split
from paretomtl._support.statistics import half_width_of
from paretomtl.compare._choices import FIT_OPTIONS, choose_methods, option_text, other_than_default
from paretomtl.compare._runs import Runs
from paretomtl.compare.failed_runs import FailedRun, noting_kept, warn_of_failure
from paretomtl.compare.indicators import volume
from paretomtl.compare.row_store import Row, load_rows, seconds_here, update_rows
from paretomtl.compare.rows import best_losses, check_ranked, finite_points, read_row, row_of, rows_split
from paretomtl.core import preferences as vectors
from paretomtl.front import Front
from paretomtl.methods import Method
from paretomtl.methods.description import describe_definition
from paretomtl.problems import Problem
from paretomtl.training import Executor, SerialExecutor
from paretomtl.training.fingerprint import differing_start, identify_problem
from paretomtl.training.progress.progress import ProgressStyle, choose_style
from paretomtl.training.progress.study import StudyProgress
from paretomtl.training.progress.time_left import Tally
from paretomtl.training.settings import check_problem

RESULTS = "compare.json"


def compare(
    problem: Problem,
    methods: Sequence[str | Method],
    seeds: int,
    *,
    preferences: int | None = None,
    scale: Any = None,
    method_settings: Mapping[str, Any] | None = None,
    problem_settings: Sequence[str] = (),
    folder: Path | None = None,
    command: str = "",
    log: Callable[[str], None] = lambda text: None,
    keep_fronts: bool = False,
    executor: Executor | None = None,
    progress: ProgressStyle = "auto",
    failed: Callable[[FailedRun], None] = warn_of_failure,
    **options: Any,
) -> tuple[list[Row], dict[str, Front]]:
    """Train every method with every seed.

    Args:
        problem: what to train; methods are ranked on its validation split, or on training where there is none.
        methods: their names, as :func:`paretomtl.methods.lookup_method` takes them, or methods.
        seeds: how many, from 0 on.
        preferences: how many models each, by default 5 for two tasks, 15 for three and 25 for more; those of
            "single-task" are one per task.
        scale: that of every method, such as "auto", in place of the recipe's; see :class:`~paretomtl.ParetoMTL`.
        method_settings: further options by name, for every method that has them; ``log`` says which have not.
        problem_settings: what the problem was made with, so that results of another one are told apart.
        folder: where rows are kept; a method and seed that is there already is not trained again. Rows of another
            problem are refused, though it has the same name: data, model, metrics and first losses are compared. So are
            rows of a method of the same name that is configured or defined otherwise, and of other options.
        command: what to write down as the command that made the results.
        log: called with a line before each run.
        keep_fronts: whether fronts are stored, too, in ``folder/fronts/METHOD-SEED``.
        executor: where to train, each method and seed as a whole; None for one after another, here.
        progress: "rich", "plain" or "quiet", of all runs together, with the time left; "auto" as in
            :func:`paretomtl.fit`. With an executor, runs that are under way do not say how far they are.
        failed: called with each run that raised an error; a warning if left out. The other runs go on. A method whose
            first run fails is not tried with other seeds. Where no run succeeds, the first error is raised.
        options: further arguments of :func:`paretomtl.fit`, the same for all.

    Returns:
        One row per method and seed, but for runs that failed, and the fronts of the first seed that were trained now.

    Stopped by Ctrl-C, SIGTERM or an error, it says in a note on the exception how many runs are stored. The same call
    with the same ``folder`` trains the others.
    """
    check_problem(problem)
    check_count("seeds", seeds)
    if isinstance(methods, str) or not isinstance(methods, Iterable) or not methods:
        raise TypeError(f"'methods' must be a list of names. Got {methods!r} instead.")
    settings = {**({} if scale is None else {"scale": scale}), **(method_settings or {})}
    chosen = choose_methods(methods, problem, settings, log)
    names, descriptions = list(chosen), {name: describe_definition(method) for name, method in chosen.items()}
    strangers = [name for name in options if name not in FIT_OPTIONS]
    if strangers:
        raise TypeError(f"'options' must be arguments of fit. Got {strangers[0]!r} instead.")
    choose_style(progress)
    folder = None if folder is None else as_path("folder", folder)
    require("moocore", "indicators")
    if folder is not None:
        check_writable("out", folder)
    elif keep_fronts:
        raise ValueError("'folder' must be given for fronts to be kept. Got None instead.")
    path = None if folder is None else folder / RESULTS
    asked = {
        "preferences_asked": preferences,
        "problem_settings": sorted(problem_settings),
        "method_settings": sorted(f"{name}={value!r}" for name, value in settings.items()),
        "options": {name: option_text(v) for name, v in sorted(options.items())},
    }
    rows = [read_row(row) for row in load_rows(path)] if path is not None and path.exists() else []
    identity = None
    if path is not None:
        factories = options.get("optimizer"), options.get("scheduler")
        identity = identify_problem(problem, *factories, device=options.get("device"))
    for row in rows:
        wrong = _difference(row, problem, asked, identity, descriptions)
        if wrong is not None:
            raise ValueError(
                f"'out' must hold results of the same problem and options. '{path}' holds others: {wrong}. Take "
                "another folder, or delete that file."
            )
    check_ranked(rows, ranking_split(["train"] if problem.val is None else ["train", "val"]), f"'{path}'")
    if any("identity" not in row for row in rows):
        warnings.warn(
            f"some rows of '{path}' are of a version that did not store what the problem consists of: that they are of "
            "this one is known by its name and tasks alone. Delete the file to train them again.",
            stacklevel=2,
        )
    have = {(row["method"], row["seed"]) for row in rows}
    wanted = [(name, seed) for name in names for seed in range(seeds)]
    runs = [run for run in wanted if run not in have]
    if preferences is None:  # the same number for all, those included that would take fewer
        preferences = vectors.usual_count(len(problem.tasks))
    fronts: dict[str, Front] = {}
    errors: list[FailedRun] = []
    done = len(wanted) - len(runs)
    with executor or SerialExecutor() as place:
        jobs = Runs(problem, chosen, runs, preferences, options, place, log)
        known = seconds_here(rows, lambda row: str(row["method"]))
        tally = Tally(jobs.names, [method for method, _ in runs], stored=done, known=known, slots=jobs.slots)
        with noting_kept(lambda: done, len(wanted), "run", path), StudyProgress(tally, progress) as jobs.display:
            for i, (front, where) in place.map(jobs):
                method, seed = runs[i]
                if isinstance(front, Front) and not front.complete:
                    raise KeyboardInterrupt  # half a run is no result
                jobs.display.end(i, failed=not isinstance(front, Front))
                if front is None:
                    continue
                if not isinstance(front, Front):
                    succeeded = method in {known for known, _ in have}
                    errors.append(FailedRun(method, seed, front, 0 if succeeded else jobs.leave_out(method)))
                    failed(errors[-1])
                    continue
                if seed == 0:
                    fronts[method] = front
                if folder is not None and keep_fronts:
                    front.save(folder / "fronts" / f"{file_name(method.replace(':', '-'))}-{seed}")
                known_as = {"method": method, "method_in_words": descriptions[method]}
                made = {**row_of(front), **known_as, **asked, **where, "identity": identity}
                rows = sorted([*rows, made], key=lambda row: _place(row, names))
                if path is not None:
                    rows = update_rows(path, "compare", command, partial(_merged, mine=rows))
                have.add((method, seed))
                done += 1
    if errors and not done:
        errors[0].raise_()
    return [row for row in rows if row["method"] in chosen and row["seed"] < seeds], fronts


def _difference(
    row: Row,
    problem: Problem,
    asked: Mapping[str, Any],
    identity: Mapping[str, Any] | None,
    descriptions: Mapping[str, str],
) -> str | None:
    """In what a stored row is one of another problem, method, or of other options; None where it is not."""
    found = {"problem": problem.name, **asked}
    row = {**row, "options": other_than_default(row.get("options") or {})}
    found["options"] = other_than_default(asked["options"])
    if "method_in_words" in row:  # older rows are without
        found["method_in_words"] = descriptions.get(row["method"], row["method_in_words"])
    if "tasks" in row:
        found["tasks"] = list(problem.tasks)
    for name, value in found.items():
        if row.get(name, []) != value:
            return f"{name} {row.get(name, [])!r}, and not {value!r}"
    stored = row.get("identity")
    if not isinstance(stored, dict) or identity is None:
        return None
    for name, value in identity.items():
        if name not in ("start", "data") and stored.get(name) != value:
            return f"its {name} differs, {stored.get(name)!r} and not {value!r}"
    for split in {**stored.get("data", {}), **identity["data"]}:
        one, other = (part.get("data", {}).get(split, "absent") for part in (stored, identity))
        if one != other and None not in (one, other):
            return f"its data differ in {split!r}"
    return differing_start(stored.get("start"), identity["start"])


def _merged(stored: Sequence[Row], mine: Sequence[Row]) -> list[Row]:
    """With the rows that another process has stored meanwhile."""
    known = {(row["method"], row["seed"]) for row in mine}
    return [*mine, *(read_row(row) for row in stored if (row["method"], row["seed"]) not in known)]


def _place(row: Row, methods: Sequence[str]) -> tuple[int, int]:
    """Runs may end in any order, and are stored in this one."""
    return methods.index(row["method"]) if row["method"] in methods else len(methods), row["seed"]


@dataclass(frozen=True)
class Summary:
    """One method over all seeds, on one split.

    Attributes:
        method: its name.
        seeds: how many.
        models: how many it trains for each seed.
        hypervolume: mean and standard deviation over seeds, against the common reference.
        ideal: whether the hypervolume is that of one point, made of the best losses of separate networks.
        spread: mean over seeds.
        best: for each task the best loss of a front, mean over seeds; on test, the loss there of the solution that is
            best on the split that ranks.
        nondominated: mean over seeds.
        seconds: mean over seeds.
        split: whose losses these are.
        test: the same on test, to be shown beside it; None where there is no such split.
    """

    method: str
    seeds: int
    models: int
    hypervolume: tuple[float, float]
    ideal: bool
    spread: float
    best: list[float]
    nondominated: float
    seconds: float
    split: str = "train"
    test: Summary | None = None


def common_reference(rows: Sequence[Row]) -> list[float]:
    """The reference for all: for each task the largest of the fronts' own.

    Without any, the largest loss of all on the split that ranks.
    """
    rows = [read_row(row) for row in rows]
    known = [row["reference"] for row in rows if row["reference"] is not None]
    known = known or [point for row in rows for point in finite_points(row, rows_split(rows))]
    if not known:
        raise ValueError("'rows' must have a reference point, or finite losses. Got neither.")
    return [max(column) for column in zip(*known, strict=True)]


def summaries(rows: Sequence[Row]) -> list[Summary]:
    """The methods, best hypervolume on the split that ranks first, with what they have on test."""
    rows = [read_row(row) for row in rows]
    ranking, reference = rows_split(rows), common_reference(rows)
    tested = all("test" in row["losses"] for row in rows)
    found = []
    for method in dict.fromkeys(row["method"] for row in rows):
        mine = [row for row in rows if row["method"] == method]
        test = _summary(mine, "test", reference) if tested else None
        found.append(replace(_summary(mine, ranking, reference), test=test))
    return sorted(found, key=lambda summary: -summary.hypervolume[0])


def _summary(rows: Sequence[Row], split: str, reference: Sequence[float]) -> Summary:
    """One method on a split; what is best is decided on the split that ranks."""
    ideal = rows[0]["method"] == "single-task"
    best = [best_losses(row, split) for row in rows]
    fronts = [[point] if point else [] for point in best] if ideal else [finite_points(row, split) for row in rows]
    volumes = [volume(points, reference, ideal=False) for points in fronts]
    return Summary(
        method=rows[0]["method"],
        seeds=len(rows),
        models=rows[0]["preferences"],
        hypervolume=(statistics.fmean(volumes), statistics.stdev(volumes) if len(volumes) > 1 else math.nan),
        ideal=ideal,
        spread=statistics.fmean(row["spread"][split] for row in rows),
        best=[statistics.fmean(column) for column in zip(*filter(None, best), strict=True)]
        or [math.nan] * len(reference),
        nondominated=statistics.fmean(row["nondominated"][split] for row in rows),
        seconds=statistics.fmean(row["seconds"] for row in rows),
        split=split,
    )


def verdict(found: Sequence[Summary]) -> str:
    """In plain words, which method does best here, and whether that can be told from these seeds.

    Two methods differ if seeds alone would move their mean hypervolumes that far apart only once in twenty, by Welch's
    t-test. Methods that cannot be told apart need not be equal: more seeds may tell. Separate networks for each task
    are no front, and are left out.
    """
    fronts = [summary for summary in found if not summary.ideal]
    if len(fronts) < 2:
        return "There is nothing to compare."
    first, others = fronts[0], fronts[1:]
    if first.seeds < 2:
        second = others[0].hypervolume[0]
        gap = f", {100 * (first.hypervolume[0] / second - 1):.1f} % above {others[0].method}" if second else ""
        return (
            f"{first.method} has the largest hypervolume on {first.split}{gap}. One seed cannot tell whether that is "
            "luck: compare with more of them."
        )
    alike = [other.method for other in others if not _differ(first, other)]
    worse = [other.method for other in others if _differ(first, other)]
    text = f"{first.method} has the largest mean hypervolume on {first.split}."
    if alike:
        text += f" {_listed(alike)} cannot be told apart from it with {first.seeds} seeds."
    if worse:
        verb = "is" if len(worse) == 1 else "are"
        text += f" {_listed(worse)} {verb} behind by more than seeds explain (once in twenty, Welch's test)."
    return text


def _differ(one: Summary, other: Summary) -> bool:
    found = (one, other)
    far = half_width_of([summary.hypervolume[1] ** 2 for summary in found], [summary.seeds for summary in found])
    return abs(one.hypervolume[0] - other.hypervolume[0]) > far


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
