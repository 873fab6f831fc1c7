from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from paretomtl._support.splits import training_split
from paretomtl._support.tensor_json import to_numbers
from paretomtl._support.terminal import text_console
from paretomtl.cli._common import FrontArgument, clean_errors, print_json
from paretomtl.cli._places import check_target, load_front
from paretomtl.cli._tables import print_front
from paretomtl.front import Front
from paretomtl.front.indicators import quick_hypervolume
from paretomtl.front.text_table import early_end


@clean_errors
def show(
    run: FrontArgument,
    split: Annotated[
        str | None,
        typer.Option(help="train, val or test; val, or train where there is none, if left out, with test beside it."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the front into this file, such as front.pdf, .svg or .png.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show a stored front: solutions, status, hypervolume, spread, regions, how it was trained."""
    check_target("--plot", plot)
    front = load_front(run)
    if split is not None and split not in front.losses:
        raise ValueError(f"'--split' must be one of {list(front.losses)}. Got {split!r} instead.")
    facts = summary(front, run, split)
    if plot is not None:
        front.plot(plot, split=split)
    if as_json:
        print_json(facts)
        return
    console = text_console()
    seed = "" if front.seed is None else f", seed {front.seed}"
    told = f", {front.method}{seed}{early_end(front)}; {ranked_words(front, split)}"
    console.print(Text.assemble((front.problem, "bold"), told))
    print_front(console, front, front.shown_splits if split is None else [split])
    for line in quality_lines(facts):
        console.print(line, highlight=False, soft_wrap=True)
    if facts["in_region"] is not None:
        angles = ", ".join("-" if angle is None else f"{angle:.1f}" for angle in facts["angles"])
        where = f"on {facts['regions_split']}"
        console.print(
            f"{facts['in_region']} of {len(front)} in their own region {where}; degrees from their preferences {where}:"
            f" {angles}",
            highlight=False,
            soft_wrap=True,
        )
    if front.seed is not None:
        console.print(f"trained in {front.seconds:.1f} s; {front.strategy}", highlight=False, soft_wrap=True)
    for remark in front.remarks:
        console.print(f"remark: {remark}", highlight=False, soft_wrap=True)
    if front.made_by:
        made = ", ".join(f"{name} {value}" for name, value in front.made_by.items())
        console.print(f"made by {made}", highlight=False, soft_wrap=True)


def ranked_words(front: Front, split: str | None = None) -> str:
    """Which splits are shown, and what for."""
    if split is not None:
        return f"losses on {split}"
    ranking, *beside = front.shown_splits
    return f"ranked by losses on {ranking}" + (", test beside it" if beside else "")


def quality_lines(facts: dict[str, Any]) -> list[str]:
    """Hypervolume, spread and the number of solutions that no other one dominates, for each split that is shown."""
    lines = []
    for part in (facts, facts["test"]):
        if part is None:
            continue
        told = f"spread {part['spread']:.4g}; {part['nondominated']} of {len(part['losses'])} not dominated"
        broken = sum(any(value is None for value in row) for row in part["losses"])
        told += f", {broken} with losses that are not finite" if broken else ""
        if part["hypervolume"] is not None:
            reference = tuple(round(value, 3) for value in facts["reference"])
            told = f"hypervolume {part['hypervolume']:.4g} at {reference}; {told}"
        lines.append(f"on {part['split']}: {told}")
    return lines


def summary(front: Front, folder: Path, split: str | None = None) -> dict[str, Any]:
    """A front in numbers, for people and for JSON.

    Numbers are on ``split``, those under "test" on test; regions are those of training. A split that is asked for is
    the only one.
    """
    directions = front.reading == "direction"
    regions = split or training_split(front.losses)
    beside = [] if split is not None else front.shown_splits[1:]
    return {
        "folder": str(folder),
        "problem": front.problem,
        "method": front.method,
        "seed": front.seed,
        "complete": front.complete,
        "ended": front.ended,
        "tasks": list(front.tasks),
        "reading": front.reading,
        "subproblems": list(front.subproblems),
        "names": list(front.names) or None,
        "preferences": front.preferences[list(front.subproblems)].tolist(),
        **_numbers(front, split or front.ranking_split),
        "test": _numbers(front, "test") if beside else None,
        "status": list(front.status),
        "epochs": list(front.epochs),
        "reference": None if front.reference is None else list(front.reference),
        "regions_split": regions if directions else None,
        "in_region": front.region_hits(regions) if directions else None,
        "angles": to_numbers(front.angle(regions)) if directions else None,
        "strategy": front.strategy,
        "seconds": front.seconds,
        "remarks": list(front.remarks),
        "made_by": dict(front.made_by),
    }


def _numbers(front: Front, split: str) -> dict[str, Any]:
    """Everything that is measured on one split, with its name."""
    return {
        "split": split,
        "losses": to_numbers(front.losses[split]),
        "metrics": {name: to_numbers(values) for name, values in front.metrics.get(split, {}).items()},
        "hypervolume": quick_hypervolume(front, split=split),
        "spread": front.spread(split),
        "nondominated": int(front.nondominated(split).sum()),
    }
