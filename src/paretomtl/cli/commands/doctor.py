"""``paretomtl doctor``: inspection and repair of a run's folder."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paretomtl._support.terminal import escaped, print_text, text_console
from paretomtl.cli._errors import LOST, REPAIRABLE, clean_errors
from paretomtl.cli._options import RunArgument
from paretomtl.cli._printing import print_json

if TYPE_CHECKING:
    from paretomtl.cli._next_steps import Step

_STYLES = {"ok": "green", "info": "dim", "repairable": "yellow", "lost": "red"}
_CODES = {"ok": 0, "info": 0, "repairable": REPAIRABLE, "lost": LOST}
_WIDE = 12  # letters of the column of states
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

    from paretomtl.cli._next_steps import print_next
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
            print_text(console, escaped(line, lines=False))
        for each in findings:
            text = escaped(f"{each.file}: {each.text}", lines=False)  # a newline in a name starts no new finding
            print_text(console, Text.assemble((f"{each.state:<{_WIDE}}", _STYLES[each.state]), text), indent=_WIDE)
        console.print(_SUMS[state], highlight=False)
        print_next(console, _next_steps(run, state, repairable=any(each.repair is not None for each in findings)))
    if _CODES[state]:
        raise typer.Exit(_CODES[state])


def _next_steps(run: Path, state: str, *, repairable: bool) -> list[Step]:
    """The commands after an inspection: repair what can be repaired, or go on with the run."""
    from paretomtl.cli._next_steps import choosing_steps
    from paretomtl.cli._paths import has_front

    folder = shlex.quote(str(run))
    if repairable:
        return [(f"paretomtl doctor {folder} --fix", "do what is safe")]
    if state == "lost" or not has_front(run):
        return []
    return choosing_steps(folder)
