"""``paretomtl doctor``: inspection and repair of a run's folder."""

from __future__ import annotations

from typing import Annotated

import typer

from paretomtl._support.terminal import escaped, text_console
from paretomtl.cli._errors import LOST, REPAIRABLE, clean_errors
from paretomtl.cli._options import RunArgument
from paretomtl.cli._printing import print_json

_STYLES = {"ok": "green", "info": "dim", "repairable": "yellow", "lost": "red"}
_CODES = {"ok": 0, "info": 0, "repairable": REPAIRABLE, "lost": LOST}
_SUMS = {
    "ok": "The run is ok.",
    "info": "The run is ok.",
    "repairable": "Something is wrong, and can be repaired.",
    "lost": "Something is lost.",
}


@clean_errors
def doctor(
    run: RunArgument,
    fix: Annotated[
        bool,
        typer.Option(
            "--fix",
            help="Do what is safe: remove leftovers, restore the previous checkpoint, rewrite the manifest.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check the folder of a run: report for each file what is wrong, and what can be saved.

    Exit codes: 0 ok, 1 something is wrong and can be repaired, 2 bad input, 4 something is lost.
    """
    from rich.text import Text

    from paretomtl.runs.doctor import inspect_run, repair_run, worst

    repaired = repair_run(run) if fix else []
    findings = inspect_run(run)
    state = worst(findings)
    if as_json:
        listed = [{"file": each.file, "state": each.state, "text": each.text} for each in findings]
        print_json({"run": str(run), "state": state, "findings": listed, "repaired": repaired})
    else:
        console = text_console()
        for line in repaired:
            console.print(escaped(line, lines=False), highlight=False, soft_wrap=True)
        for each in findings:
            text = escaped(f"{each.file}: {each.text}", lines=False)  # a newline in a name starts no new finding
            console.print(Text.assemble((f"{each.state:<11}", _STYLES[each.state]), text), soft_wrap=True)
        hint = " --fix does what is safe." if any(each.repair is not None for each in findings) else ""
        console.print(_SUMS[state] + hint, highlight=False)
    if _CODES[state]:
        raise typer.Exit(_CODES[state])
