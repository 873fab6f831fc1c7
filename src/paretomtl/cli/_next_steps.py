"""Commands to type next, at the end of what a command prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from paretomtl._support.terminal import print_command

if TYPE_CHECKING:
    from rich.console import Console

Step = tuple[str, str]
"""A command for a shell, and what it does."""


def print_next(console: Console, steps: Sequence[Step]) -> None:
    """Print what to do next: a command a line, never wrapped, so that it can be copied whole."""
    if not steps:
        return
    console.print("\nNext:", style="bold", highlight=False)
    for line in command_lines(steps, console.width - 2):
        print_command(console, f"  {line}")


def given_options(options: Mapping[str, object]) -> list[str]:
    """The words of the options that were given, which are those that are not None."""
    return [word for name, value in options.items() if value is not None for word in (name, str(value))]


def rough_time(seconds: float) -> str:
    """Write an estimated time, rounded, in its usual unit.

    Example:
        >>> rough_time(3.2), rough_time(48), rough_time(160), rough_time(9000)
        ('5 s', '50 s', '3 min', '2.5 h')
    """
    if seconds < 100:
        return f"{max(5, 5 * round(seconds / 5))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def choosing_steps(folder: str) -> list[Step]:
    """The steps from a front to one model; the folder is quoted for a shell already."""
    return [
        (f"paretomtl select {folder}", "choose a model"),
        (f"paretomtl report {folder}", "explore all models in a browser"),
    ]


def command_lines(steps: Sequence[Step], width: int) -> list[str]:
    """Write each command with its comment behind it; above it, if one of the lines would be too long.

    Example:
        >>> command_lines([("ls", "list files"), ("pwd", "where am I?")], 30)
        ['ls   # list files', 'pwd  # where am I?']
        >>> command_lines([("ls --all", "list files")], 12)
        ['# list files', 'ls --all']
    """
    column = max(len(command) for command, _ in steps)
    lines = [f"{command:<{column}}  # {what}" for command, what in steps]
    if max(map(len, lines)) <= width:
        return lines
    return [line for command, what in steps for line in (f"# {what}", command)]
