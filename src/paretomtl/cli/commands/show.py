from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from paretomtl._support.terminal import text_console
from paretomtl.cli._errors import clean_errors
from paretomtl.cli._options import FrontArgument
from paretomtl.cli._printing import print_json


@clean_errors
def show(
    run: FrontArgument,
    split: Annotated[
        str | None,
        typer.Option(help="train, val or test; default: val (train if there is none), with test next to it."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the front to this file, such as front.pdf, .svg or .png.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show a stored front: its solutions, their status and regions, its indicators, and how it was trained."""
    from rich.text import Text

    from paretomtl.cli._method_names import method_name
    from paretomtl.cli._paths import check_target, load_front
    from paretomtl.cli._summary import quality_lines, ranked_words, region_lines, summary
    from paretomtl.cli._tables import print_front
    from paretomtl.front.text_table import early_end

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
    title = f"{seed}{early_end(front)}; {ranked_words(front, split)}"
    console.print(Text.assemble((front.problem, "bold"), ", ", method_name(console, front.method), title))
    print_front(console, front, front.shown_splits if split is None else [split])
    for line in (*quality_lines(facts), *region_lines(facts)):
        console.print(line, highlight=False, soft_wrap=True)
    if front.seed is not None:
        console.print(f"trained in {front.seconds:.1f} s; {front.strategy}", highlight=False, soft_wrap=True)
    for decision in front.decisions:
        console.print(f"choice: {decision}", highlight=False, markup=False)
    for remark in front.remarks:
        console.print(f"remark: {remark}", highlight=False, soft_wrap=True)
    if front.made_by:
        made = ", ".join(f"{name} {value}" for name, value in front.made_by.items())
        console.print(f"made by {made}", highlight=False, soft_wrap=True)
