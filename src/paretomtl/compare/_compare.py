"""The comparison: several methods on one problem, with the same recipe, seeds and budget for each."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from paretomtl._support.argument_checks import check_count, quote
from paretomtl._support.files.atomic_files import check_writable, file_name
from paretomtl._support.files.paths import as_path
from paretomtl._support.imports.optional_packages import require
from paretomtl._support.splits import ranking_split
from paretomtl.compare._comparison import Comparison
from paretomtl.compare._configuration import choose_methods, option_text, other_than_default
from paretomtl.compare._runs import Runs
from paretomtl.compare.cost import cost_fields
from paretomtl.compare.failed_runs import FailedRun, noting_kept, warn_of_failure
from paretomtl.compare.row_store import Row, load_rows, seconds_here, update_rows
from paretomtl.compare.rows import check_ranked, read_row, row_of, unique_rows
from paretomtl.core import preferences as vectors
from paretomtl.front import Front
from paretomtl.methods import Method
from paretomtl.methods.description import describe_definition
from paretomtl.problems import Problem
from paretomtl.training import Executor, SerialExecutor
from paretomtl.training.options import DEFAULTS
from paretomtl.training.progress.display import ProgressStyle, choose_style
from paretomtl.training.progress.study import StudyProgress
from paretomtl.training.progress.time_left import Tally
from paretomtl.training.settings.fingerprint import differing_start, identify_problem
from paretomtl.training.settings.option_checks import check_problem

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
) -> Comparison:
    """Train every method with every seed.

    Args:
        problem: the problem; methods are ranked on its validation split, or on training if there is none.
        methods: methods, or their names as :func:`paretomtl.methods.resolve_method` takes them.
        seeds: the number of seeds, from 0 on.
        preferences: the number of models per method, by default 5 for two tasks, 15 for three and 25 for more.
            "single-task" trains one per task.
        scale: replaces the recipe's scale in every method, such as "auto"; see :class:`~paretomtl.ParetoMTL`.
        method_settings: further options by name, for every method that has them; ``log`` names those that do not.
        problem_settings: the settings that the problem was made with, to recognise results of a different one.
        folder: where rows are stored. A method and seed that is already there is not trained again. Rows of a different
            problem of the same name are rejected: data, model, metrics and first losses are compared. So are rows of a
            method of the same name that is configured or defined differently, and rows with different options.
        command: stored as the command that made the results.
        log: called with a line before each run.
        keep_fronts: whether to store the fronts, too, in ``folder/fronts/METHOD-SEED``.
        executor: where to train; a method and seed is one job. None trains one after another, in this process.
        progress: the display of all runs together, with the time left: "rich", "plain" or "quiet"; "auto" as in
            :func:`paretomtl.fit`. With an executor, runs do not report their progress while they train.
        failed: called with each run that raised an error; by default a warning. The other runs go on. A method whose
            first run fails is not tried with other seeds. If no run succeeds, the first error is raised.
        options: further arguments of :func:`paretomtl.fit`, the same for all.

    Returns:
        One row per method and seed, except for runs that failed, and the fronts of seed 0 that this call trained. It
        has a verdict and draws itself: see :class:`Comparison`.

    If Ctrl-C, SIGTERM or an error stops it, a note on the exception says how many runs are stored. The same call with
    the same ``folder`` trains the others.
    """
    check_problem(problem)
    seeds = check_count("seeds", seeds)
    if isinstance(methods, str) or not isinstance(methods, Iterable) or not methods:
        raise TypeError(f"'methods' must be a list of names. Got {quote(methods)} instead.")
    settings = {**({} if scale is None else {"scale": scale}), **(method_settings or {})}
    chosen = choose_methods(methods, problem, settings, log)
    names, descriptions = list(chosen), {name: describe_definition(method) for name, method in chosen.items()}
    strangers = [name for name in options if name not in DEFAULTS]
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
    identity = None
    if path is not None:
        factories = options.get("optimizer"), options.get("scheduler")
        identity = identify_problem(problem, *factories, device=options.get("device"))

    def merged(stored: Sequence[Row], own: Sequence[Row] = ()) -> list[Row]:
        """The rows of all processes, one for each method and seed; those of something else are refused."""
        for row in stored:
            wrong = _difference(read_row(row), problem, asked, identity, descriptions)
            if wrong is not None:
                raise ValueError(
                    f"'out' must hold results of the same problem and options. '{path}' holds others: {wrong}. Take "
                    "another folder, or delete that file."
                )
        return sorted(unique_rows([*stored, *own]), key=lambda row: _place(row, names))

    rows = merged(load_rows(path)) if path is not None and path.exists() else []
    check_ranked(rows, ranking_split(["train"] if problem.val is None else ["train", "val"]), f"'{path}'")
    if any("identity" not in row for row in rows):
        warnings.warn(
            f"some rows of '{path}' are from a version that did not store the identity of the problem: only its name "
            "and tasks show that they belong to this one. Delete the file to train them again.",
            stacklevel=2,
        )
    have = {(row["method"], row["seed"]) for row in rows}
    wanted = [(name, seed) for name in names for seed in range(seeds)]
    runs = [run for run in wanted if run not in have]
    if preferences is None:  # the same number for all, including methods whose own default is smaller
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
                    raise KeyboardInterrupt  # an interrupted run is not a result
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
                cost = cost_fields(front, chosen[method], options.get("weigh_every", 1))
                made = {**row_of(front), **cost, **known_as, **asked, **where, "identity": identity}
                rows = [*rows, made]
                if path is not None:
                    rows = update_rows(path, "compare", command, partial(merged, own=rows))
                have.add((method, seed))
                done += 1
    if errors and not done:
        errors[0].raise_()
    rows = [row for row in sorted(rows, key=lambda row: _place(row, names)) if row["method"] in chosen]
    return Comparison([row for row in rows if row["seed"] < seeds], fronts)


def _difference(
    row: Row,
    problem: Problem,
    asked: Mapping[str, Any],
    identity: Mapping[str, Any] | None,
    descriptions: Mapping[str, str],
) -> str | None:
    """Describe the first difference between a stored row and this problem, method and options; None if equal."""
    expected = {"problem": problem.name, **asked}
    row = {**row, "options": other_than_default(row.get("options") or {})}
    expected["options"] = other_than_default(asked["options"])
    if "method_in_words" in row:  # older rows do not have it
        expected["method_in_words"] = descriptions.get(row["method"], row["method_in_words"])
    if "tasks" in row:
        expected["tasks"] = list(problem.tasks)
    for name, value in expected.items():
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


def _place(row: Row, methods: Sequence[str]) -> tuple[int, int]:
    """The sort key of stored rows; runs may end in any order."""
    return methods.index(row["method"]) if row["method"] in methods else len(methods), row["seed"]
