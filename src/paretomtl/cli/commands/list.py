from __future__ import annotations

from typing import Annotated

import typer

from paretomtl._support.terminal import text_console
from paretomtl.cli._method_names import method_name
from paretomtl.cli._next_steps import print_next
from paretomtl.cli._printing import print_json
from paretomtl.methods.registry import REGISTRY
from paretomtl.problems.registry import ENTRIES

_TORCHJD = "torchjd:NAME"


def list_names(as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False) -> None:
    """List methods, problems and studies by name."""
    from paretomtl.paper import STUDY_BRIEFS, STUDY_TITLES

    if as_json:
        methods = {name: method.title for name, method in REGISTRY.items()}
        methods[_TORCHJD] = "A weighting or scalarizer of TorchJD, such as torchjd:UPGrad."
        print_json(
            {
                "method": methods,
                "problem": {name: entry.title for name, entry in ENTRIES.items()},
                "study": STUDY_TITLES,
            }
        )
        return
    console = text_console()
    groups = {
        "Methods": {name: method.brief for name, method in REGISTRY.items()}
        | {_TORCHJD: "methods of TorchJD, such as torchjd:UPGrad"},
        "Problems": {name: entry.brief for name, entry in ENTRIES.items()},
        "Studies": STUDY_BRIEFS,
    }
    wide = max(len(name) for entries in groups.values() for name in entries)
    for title, entries in groups.items():
        console.print(title, style="bold", highlight=False)
        for name, brief in entries.items():
            shown = method_name(console, name)
            shown.pad_right(wide + 2 - len(name))
            console.print("  ", shown, brief, sep="", highlight=False, soft_wrap=True)
    print_next(
        console,
        [
            ("paretomtl run multi-digits --method auto", "a problem, a method"),
            ("paretomtl reproduce synthetic --quick", "a study"),
        ],
    )
