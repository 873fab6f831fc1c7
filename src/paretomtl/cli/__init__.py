"""The command line: ``paretomtl COMMAND``. One file per command."""

from __future__ import annotations

import sys

from paretomtl._support.optional import install_hint


def main() -> None:
    """The entry point; says what to install where the command line's own dependencies are missing."""
    try:
        from paretomtl.cli._app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        print(f"paretomtl: '{error.name}' is not installed: {install_hint('cli')}", file=sys.stderr)
        sys.exit(2)
    app()
