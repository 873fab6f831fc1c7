"""The command line: ``paretomtl COMMAND``. One file per command.

A command's file declares its arguments with light imports at its top. Everything that does the work, torch included,
is imported lazily inside functions, so that ``--help``, ``--version``, completion and wrong arguments answer at once.
"""

from __future__ import annotations

import sys

from paretomtl._support.imports.optional_packages import install_hint


def main() -> None:
    """Run the command line, or print what to install if its own dependencies are missing."""
    try:
        import rich  # noqa: F401  # fails now rather than in a command that prints

        from paretomtl.cli._app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        print(f"paretomtl: '{error.name}' is not installed: {install_hint('cli')}", file=sys.stderr)
        sys.exit(2)
    app()
