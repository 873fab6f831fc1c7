from __future__ import annotations

from typing import Annotated

import typer

from paretomtl._support.terminal import text_console
from paretomtl.cli._method_names import method_name
from paretomtl.cli._printing import print_json
from paretomtl.methods.registry import REGISTRY
from paretomtl.problems.registry import ENTRIES


def list_names(as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False) -> None:
    """List methods, problems and studies by name."""
    from rich.table import Table

    from paretomtl.paper import STUDY_TITLES

    methods = {name: method.title for name, method in REGISTRY.items()}
    methods["torchjd:NAME"] = "A weighting or scalarizer of TorchJD, such as torchjd:UPGrad."
    groups = {
        "method": methods,
        "problem": {name: entry.title for name, entry in ENTRIES.items()},
        "study": STUDY_TITLES,
    }
    if as_json:
        print_json(groups)
        return
    console = text_console()
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("kind", "name", "what it is"):
        table.add_column(column)
    for kind, entries in groups.items():
        for name, text in entries.items():
            table.add_row(kind, method_name(console, name) if kind == "method" else name, text)
    console.print(table)
