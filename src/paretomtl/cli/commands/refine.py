from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paretomtl._support.imports.import_path import absolute_name
from paretomtl._support.splits import split_word
from paretomtl._support.terminal import print_text, text_console
from paretomtl.cli._errors import clean_errors
from paretomtl.cli._options import ProblemSettings, ProgressName, Resume, RunArgument, complete_problem
from paretomtl.cli._trust import Trust, method_needs_trust, needs_trust, refusal

if TYPE_CHECKING:
    from paretomtl.cli._run_options import RunOptions
    from paretomtl.front import Front, Gaps
    from paretomtl.methods import Method

_COUNT = 5
_JOINED = "joined"  # the folder of the front of old and new models, in that of the new run


@clean_errors
def refine(
    run: RunArgument,
    around: Annotated[int | None, typer.Option(help="Model whose trade-off you like.", show_default=False)] = None,
    gaps: Annotated[
        int | None, typer.Option(help="Number of new models for the largest gaps of the front.", show_default=False)
    ] = None,
    count: Annotated[
        int | None, typer.Option(help="With --around: number of new preferences; default: 5.", show_default=False)
    ] = None,
    angle: Annotated[
        float | None,
        typer.Option(
            help="With --around: largest angle from it, in degrees; default: half way to the nearest other model."
        ),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Number of epochs; default: as in the run, and half of them with --gaps.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Random seed; default: as in the run.")] = None,
    problem: Annotated[
        str | None,
        typer.Option(
            help="Problem, as for run; default: that of the run, if it is built in.", autocompletion=complete_problem
        ),
    ] = None,
    with_: ProblemSettings = None,
    trust: Trust = False,
    out: Annotated[Path | None, typer.Option(help="Folder of the new run; default: RUN-around-K, or RUN-gaps.")] = None,
    resume: Resume = False,
    propose: Annotated[bool, typer.Option("--propose", help="Print the preferences without training.")] = False,
    progress: ProgressName = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train more models, with the options of a run: around one that you like, or in the gaps of its front.

    With --around, the new preferences lie around the direction of that model's losses on validation (on training if
    there is no such split), or around its importances, up to half way to the nearest other model.

    With --gaps, they lie where neighbours on the front are farthest apart by the same losses. Each new model begins
    with the weights of the nearer neighbour, and the folder 'joined' of the new run has the front of all models.
    """
    from paretomtl.cli._paths import load_front
    from paretomtl.cli._printing import print_json
    from paretomtl.cli._train import print_result, train

    _check_choice(around, gaps, count, angle)
    front = load_front(run)
    if around is not None:
        rows = front.around(around, _COUNT if count is None else count, angle=angle)
        _print_rows(rows.tolist(), front, f"around model {around} of {run}")
        plan: dict[str, Any] = {"preferences": rows}
        found, name = None, f"-around-{around}"
    else:
        found, name = front.gaps(1 if gaps is None else gaps), "-gaps"
        _print_gaps(found, run)
        if not propose and not len(found):
            if as_json:
                print_json({"folder": None, "gaps": [], "remarks": list(found.remarks)})
            return
    if propose:
        return
    own = _folder_of_options(run)
    options = _trusted_options(own, problem, with_, trust, ["--around", str(around)] if found is None else ["--gaps"])
    if found is not None:
        plan = {"preferences": found.preferences, "only": found.subproblems, "start": found.start, "branch": None}
        epochs = _fewer_epochs(front, options) if epochs is None else epochs
    if found is not None or _had_probe(front):  # after a probe, a method does not read these rows as it read its own
        row = front.subproblems.index(around if found is None else found.begins[0])
        options = replace(options, **_settled(options, front, row, found))
    training = replace(
        options.training,
        **plan,
        epochs=(options.training.epochs or _epochs_of(front)) if epochs is None else epochs,
        minutes=None,
        seed=options.training.seed if seed is None else seed,
        resume=resume,
        progress=progress,  # type: ignore[arg-type]
    )
    refined, folder = train(replace(options, training=training), out=out or own.with_name(own.name + name))
    more = None if found is None else _join(front, refined, folder)
    print_result(refined, folder, as_json=as_json, joined=more)


def _check_choice(around: int | None, gaps: int | None, count: int | None, angle: float | None) -> None:
    given = [name for name, value in (("--around", around), ("--gaps", gaps)) if value is not None]
    if len(given) != 1:
        got = " and ".join(given) or "neither"
        raise ValueError(f"one of '--around' and '--gaps' must be given. Got {got}: write --gaps 3, for example.")
    for name, value in (("--count", count), ("--angle", angle)):
        if gaps is not None and value is not None:
            raise ValueError(f"'{name}' must go with '--around'. Got {value} with '--gaps'.")
    if gaps is not None and gaps < 1:
        raise ValueError(f"'--gaps' must be at least 1. Got {gaps} instead.")


def _print_rows(rows: list[list[float]], front: Front, where: str) -> None:
    console = text_console(stderr=True)
    by = f", by its losses on {split_word(front.ranking_split)}" if front.reading == "direction" else ""
    console.print(f"{front.reading.capitalize()}s {where}{by}:", highlight=False)
    for row in rows:
        console.print("  " + "  ".join(f"{value:.4f}" for value in row), highlight=False)


def _print_gaps(gaps: Gaps[Front], run: Path) -> None:
    console = text_console(stderr=True)
    if len(gaps):
        what = f"{gaps.front.reading.capitalize()}s"
        console.print(
            f"{what} for the largest gaps of {run}, by its losses on {split_word(gaps.split)}:", highlight=False
        )
    for row, (a, b), begin, size in zip(gaps.rows.tolist(), gaps.neighbours, gaps.begins, gaps.sizes, strict=True):
        values = "  ".join(f"{value:.4f}" for value in row)
        text = f"  {values}  between {a} and {b}, {size:.2f} of the range apart; begins with the weights of {begin}"
        print_text(console, text)
    for remark in gaps.remarks:
        print_text(console, remark)
    if not len(gaps):
        console.print("Nothing to train.", highlight=False)


def _folder_of_options(run: Path) -> Path:
    """The run's folder; for a joined front that of the run that it was stored with."""
    from paretomtl._support.files.safe_open import exists
    from paretomtl.runs.options import OPTIONS

    parent = run.absolute().parent
    stored = run.name == _JOINED and not exists(run / OPTIONS) and exists(parent / OPTIONS)
    return (run.parent if run.parent.name else parent) if stored else run


def _trusted_options(
    run: Path, problem: str | None, with_: list[str] | None, trust: bool, words: list[str]
) -> RunOptions:
    """The options of a run; an error if they name code that is not trusted."""
    from paretomtl.cli._run_options import RunOptions
    from paretomtl.runs.options import OPTIONS

    options = RunOptions.load(run)
    command = ["paretomtl", "refine", str(run), *words]
    if problem is not None:
        options = replace(options, problem=absolute_name(problem), with_=with_ or [])
    elif with_:
        raise ValueError("'--with' must go with '--problem': otherwise the problem of the run keeps its own arguments.")
    elif not trust and needs_trust(options.problem, options.with_):
        raise refusal(run / OPTIONS, options.problem, options.with_, command)
    if not trust and method_needs_trust(options.method):
        raise refusal(run / OPTIONS, options.method, options.set_, command, "method")
    return options


def _fewer_epochs(front: Front, options: RunOptions) -> int | None:
    """Half of the epochs of the front: models that begin with trained weights need no more (benchmarks/gaps.py)."""
    known = _epochs_of(front) or options.training.epochs
    return None if known is None else max(1, (known + 1) // 2)


def _epochs_of(front: Front) -> int | None:
    """The epochs that a front was trained for; None if it does not say."""
    return len(front.history["losses"]) or None if "losses" in front.history else None


def _had_probe(front: Front) -> bool:
    """Whether the run began with a probe, after which a method does not read rows as it read its own."""
    return "probe" in front.measured


def _settled(options: RunOptions, front: Front, row: int, gaps: Gaps[Front] | None) -> dict[str, Any]:
    """The method, by its name and settings, that trains further rows as the front has them.

    After a probe that is the method of its directions, or of the importances before.
    """
    from paretomtl.cli._lookup import find_method, find_problem
    from paretomtl.methods.lookup import changed_options, option_names, reach_first

    problem = find_problem(options.problem, options.with_)
    own = find_method(options.method, options.set_, problem)
    own_rays = own.reading == "direction" and own.probe_share is None
    method = reach_first(own) if _had_probe(front) and own_rays else own
    scale, importances = front.scale, None
    if gaps is not None:
        scale = None if gaps.scale is None else gaps.scale.expand(len(front), -1)
        importances = gaps.importances
    method = method.for_refining(front.reading, front.measured, scale, row, importances)
    if type(method) is not type(own):
        return {"method": method.name, "set_": changed_options(method)}
    changes = _changes(own, method)
    settable = option_names(problem.recipe.methods.get(options.method, options.method))
    missing = [name for name in changes if name not in settable]
    if missing:  # measured on trained models, factors of losses would be others
        rule = f"'RUN' must have a method that takes '{missing[0]}', which the new models need as the front has it"
        raise ValueError(f"{rule}. Got {options.method!r}, which takes {settable or 'no options'}.")
    kept = [setting for setting in options.set_ if setting.partition("=")[0].strip() not in changes]
    return {"set_": [*kept, *(f"{name}={value!r}" for name, value in changes.items())]}


def _changes(before: Method, after: Method) -> dict[str, Any]:
    """The options by which a method differs from another of its kind."""
    if after is before or not is_dataclass(after):
        return {}
    found = {each.name: getattr(after, each.name) for each in fields(after)}
    return {name: value for name, value in found.items() if value != getattr(before, name)}


def _join(front: Front, new: Front, folder: Path) -> dict[str, Any] | None:
    """Store the front of old and new models with the new run, and say what it gained; None for a stopped run."""
    from paretomtl.cli._summary import joined_facts
    from paretomtl.engine.processes import is_main_process
    from paretomtl.front.storage.front_folder import write_front

    if not new.complete or not is_main_process():
        return None
    joined = front.joined(new)
    write_front(joined, folder / _JOINED, follow=False)
    return joined_facts(front, new, joined, folder / _JOINED)
