from __future__ import annotations

from typing import Annotated

import typer

from paretomtl._support.terminal import text_console
from paretomtl.cli._printing import print_json
from paretomtl.methods.registry import METHODS
from paretomtl.paper import STUDY_TITLES
from paretomtl.problems.registry import ENTRIES


def list_names(as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False) -> None:
    """List methods, problems and studies by name."""
    from rich.table import Table

    methods = {name: _summary(method.__doc__) for name, method in METHODS.items()}
    methods["torchjd:NAME"] = "A weighting or scalarizer of TorchJD, such as torchjd:UPGrad."
    groups = {
        "method": methods,
        "problem": {name: entry.title for name, entry in ENTRIES.items()},
        "study": STUDY_TITLES,
    }
    if as_json:
        print_json(groups)
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("kind", "name", "what it is"):
        table.add_column(column)
    for kind, entries in groups.items():
        for name, text in entries.items():
            table.add_row(kind, name, text)
    text_console().print(table)


def _summary(docstring: str | None) -> str:
    """The first sentence of a docstring."""
    return (docstring or "").strip().split("\n\n")[0].replace("\n", " ").replace("  ", "")
