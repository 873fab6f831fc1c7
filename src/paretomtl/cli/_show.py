from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from paretomtl._terminal import text_console
from paretomtl.cli._common import RunArgument, clean_errors, print_front, print_json
from paretomtl.cli._places import check_target, load_front
from paretomtl.front import Front, quick_hypervolume
from paretomtl.training import plain_numbers


@clean_errors
def show(
    run: RunArgument,
    split: Annotated[
        str | None, typer.Option(help="train, val or test; test, val or train if left out.", show_default=False)
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the front into this file, such as front.pdf, .svg or .png.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show a stored front: solutions, status, hypervolume, spread, regions, how it was trained."""
    check_target("--plot", plot)
    front = load_front(run)
    shown = split or front.shown_split
    if shown not in front.losses:
        raise ValueError(f"'--split' must be one of {list(front.losses)}. Got {shown!r} instead.")
    facts = summary(front, shown, run)
    if plot is not None:
        front.plot(plot, split=shown)
    if as_json:
        print_json(facts)
        return
    console = text_console()
    stopped = "" if front.complete else ", stopped early"
    told = f", {front.method}, seed {front.seed}{stopped}; losses on {shown}"
    console.print(Text.assemble((front.problem, "bold"), told))
    print_front(console, front, shown)
    if facts["hypervolume"] is not None:
        reference = tuple(round(value, 3) for value in facts["reference"])
        console.print(f"hypervolume {facts['hypervolume']:.4g} at {reference}", highlight=False)
    console.print(
        f"spread {facts['spread']:.4g}; {facts['nondominated']} of {len(front)} not dominated", highlight=False
    )
    if facts["in_region"] is not None:
        angles = ", ".join(f"{angle:.1f}" for angle in facts["angles"])
        console.print(
            f"{facts['in_region']} of {len(front)} in their own region; degrees from their preferences: {angles}",
            highlight=False,
            soft_wrap=True,
        )
    console.print(f"trained in {front.seconds:.1f} s; {front.strategy}", highlight=False, soft_wrap=True)
    for remark in front.remarks:
        console.print(f"remark: {remark}", highlight=False, soft_wrap=True)
    if front.made_by:
        made = ", ".join(f"{name} {value}" for name, value in front.made_by.items())
        console.print(f"made by {made}", highlight=False, soft_wrap=True)


def summary(front: Front, split: str, folder: Path) -> dict[str, Any]:
    """A front in numbers, for people and for JSON."""
    directions = front.reading == "direction"
    return {
        "folder": str(folder),
        "problem": front.problem,
        "method": front.method,
        "seed": front.seed,
        "complete": front.complete,
        "split": split,
        "tasks": list(front.tasks),
        "reading": front.reading,
        "subproblems": list(front.subproblems),
        "preferences": front.preferences[list(front.subproblems)].tolist(),
        "losses": plain_numbers(front.losses[split]),
        "metrics": {name: plain_numbers(values) for name, values in front.metrics.get(split, {}).items()},
        "status": list(front.status),
        "epochs": list(front.epochs),
        "hypervolume": quick_hypervolume(front, split=split),
        "reference": None if front.reference is None else list(front.reference),
        "spread": front.spread(split),
        "nondominated": int(front.nondominated(split).sum()),
        "in_region": front.region_hits(split) if directions else None,
        "angles": plain_numbers(front.angle(split)) if directions else None,
        "strategy": front.strategy,
        "seconds": front.seconds,
        "remarks": list(front.remarks),
        "made_by": dict(front.made_by),
    }
