from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from paretomtl._support.terminal import escaped, text_console
from paretomtl.cli._common import LOST, MENDABLE, RunArgument, clean_errors, print_json
from paretomtl.runs.doctor import inspect_run, repair_run, worst

_STYLES = {"sound": "green", "note": "dim", "mendable": "yellow", "lost": "red"}
_CODES = {"sound": 0, "note": 0, "mendable": MENDABLE, "lost": LOST}
_SUMS = {
    "sound": "The run is sound.",
    "note": "The run is sound.",
    "mendable": "Something is wrong, and can be mended.",
    "lost": "Something is lost.",
}


@clean_errors
def doctor(
    run: RunArgument,
    fix: Annotated[
        bool,
        typer.Option(
            "--fix",
            help="Do what is safe: sweep leftovers, restore the previous checkpoint, write the manifest anew.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Check the folder of a run: say file by file what is wrong, and what can be saved.

    Exit codes: 0 sound, 1 something is wrong and can be mended, 2 bad input, 4 something is lost.
    """
    done = repair_run(run) if fix else []
    found = inspect_run(run)
    state = worst(found)
    if as_json:
        listed = [{"file": each.file, "state": each.state, "text": each.text} for each in found]
        print_json({"run": str(run), "state": state, "findings": listed, "mended": done})
    else:
        console = text_console()
        for line in done:
            console.print(escaped(line, lines=False), highlight=False, soft_wrap=True)
        for each in found:
            text = escaped(f"{each.file}: {each.text}", lines=False)  # a name with an end of line is no second finding
            console.print(Text.assemble((f"{each.state:<9}", _STYLES[each.state]), text), soft_wrap=True)
        hint = " --fix does what is safe." if any(each.mend is not None for each in found) else ""
        console.print(_SUMS[state] + hint, highlight=False)
    if _CODES[state]:
        raise typer.Exit(_CODES[state])
