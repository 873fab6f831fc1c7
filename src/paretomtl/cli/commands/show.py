from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from paretomtl._support.terminal import print_text, text_console
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
    dark: Annotated[bool, typer.Option("--dark", help="With --plot: draw for a dark background.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show a stored front: its models, their status and regions, its indicators, and how it was trained."""
    from rich.text import Text

    from paretomtl.cli._method_names import method_name
    from paretomtl.cli._next_steps import choosing_steps, print_next
    from paretomtl.cli._paths import check_target, load_front
    from paretomtl.cli._summary import quality_lines, ranked_words, region_lines, summary
    from paretomtl.cli._tables import print_front
    from paretomtl.front.text_table import early_end

    check_target("--plot", plot)
    if dark and plot is None:
        raise ValueError("'--dark' must go with '--plot'. Got no file to draw to.")
    front = load_front(run)
    if split is not None and split not in front.losses:
        raise ValueError(f"'--split' must be one of {list(front.losses)}. Got {split!r} instead.")
    facts = summary(front, run, split)
    if plot is not None:
        front.plot(plot, split=split, dark=dark)
    if as_json:
        print_json(facts)
        return
    console = text_console()
    seed = "" if front.seed is None else f", seed {front.seed}"
    title = f"{seed}{early_end(front)}; {ranked_words(front, split)}"
    print_text(console, Text.assemble((front.problem, "bold"), ", ", method_name(console, front.method), title))
    print_front(console, front, front.shown_splits if split is None else [split])
    for line in (*quality_lines(facts), *region_lines(facts)):
        print_text(console, line)
    if front.seed is not None:
        print_text(console, f"trained in {front.seconds:.1f} s; {front.strategy}")
    for decision in front.decisions:
        print_text(console, f"decision: {decision}")
    for remark in front.remarks:
        print_text(console, f"remark: {remark}")
    if plot is not None:
        print_text(console, f"Figure: {plot}")
    if front.made_by:
        made = ", ".join(f"{name} {value}" for name, value in front.made_by.items())
        print_text(console, f"made by {made}")
    print_next(console, choosing_steps(shlex.quote(str(run))))
