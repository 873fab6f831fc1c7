"""Output to a terminal: control sequences in text from files are escaped."""

from __future__ import annotations

import functools
import json
import re
import shutil
import sys
import textwrap
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from paretomtl._support.files.paths import is_in_package
from paretomtl._support.imports.optional_packages import require
from paretomtl._support.tensor_json import to_numbers

if TYPE_CHECKING:
    from rich.console import Console


def escaped(text: str, *, lines: bool = True) -> str:
    r"""Escape non-printable characters as Python does: those that move the cursor, hide text or reverse it.

    Args:
        text: any text.
        lines: whether newlines stay.

    Example:
        >>> print(escaped("left \x1b[31m right \u202e"))
        left \x1b[31m right \u202e
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or (lines and letter == "\n") else letter.encode("unicode_escape").decode()
        for letter in text
    )


def json_text(content: Any) -> str:
    r"""JSON for a terminal: always valid, and without non-printable characters.

    Non-finite numbers are null, because JSON has no value for them.

    Example:
        >>> json_text({"loss": float("nan"), "name": "\u202e"}).split()
        ['{', '"loss":', 'null,', '"name":', '"\\u202e"', '}']
    """
    text = json.dumps(to_numbers(content), indent=2, ensure_ascii=False, allow_nan=False)
    if text.replace("\n", "").isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter == "\n" else json.dumps(letter)[1:-1] for letter in text)


def text_console(*, stderr: bool = False, quiet: bool = False) -> Console:
    """A rich console that prints text literally, with control characters escaped.

    Names and paths of users may look like markup or emoji to rich. Names from files may contain control sequences.
    """
    console: Console = _console_type()(stderr=stderr, quiet=quiet, markup=False, emoji=False)
    return console


def print_text(console: Console, text: Any, *, style: str = "", indent: int = 0) -> None:
    """Print a message: wrapped between words on a terminal; on one line elsewhere, where programs read it.

    A word that is longer than a line, such as a path, stays whole, so that it can be copied.

    Args:
        console: where to print.
        text: text of a user, or of rich.
        style: of the whole text.
        indent: letters before all lines but the first.
    """
    rich_text = require("rich.text", "cli").Text
    text = rich_text(escaped(text), style) if isinstance(text, str) else text
    lines = [text]
    if console.is_terminal:
        lines = [line for part in text.split("\n") for line in _wrapped(part, console.width, indent)]
    for number, line in enumerate(lines):
        console.print(rich_text(" " * indent if number else "") + line, highlight=False, soft_wrap=True)


def _wrapped(text: Any, width: int, indent: int) -> list[Any]:
    """Break styled text between words; further lines leave room for an indent."""
    cell_len = require("rich.cells", "cli").cell_len
    breaks: list[int] = []
    line_start = 0
    for word in re.finditer(r"\S+", text.plain):
        room = width - (indent if breaks else 0)
        if word.start() > line_start and cell_len(text.plain[line_start : word.end()]) > room:
            line_start = word.start()
            breaks.append(line_start)
    lines = text.divide(breaks)
    for line in lines:
        line.rstrip()
    return list(lines)


def print_command(console: Console, text: str) -> None:
    """Print a line that ends with a command: never wrapped, so that the command can be copied."""
    console.print(text, highlight=False, soft_wrap=True)


@functools.cache
def _console_type() -> Any:
    segment = require("rich.segment", "cli").Segment
    base: Any = require("rich.console", "cli").Console

    class TextConsole(base):  # type: ignore[misc]
        def render_str(self, text: str, **options: Any) -> Any:
            """Escape before the layout, so that columns are wide enough."""
            return super().render_str(escaped(text), **options)

        def render(self, renderable: Any, options: Any = None) -> Iterable[Any]:
            """Escape all other text; control sequences of rich itself are marked as such."""
            for each in super().render(renderable, options):
                yield each if each.control else segment(escaped(each.text), each.style)

    return TextConsole


@contextmanager
def shown_warnings() -> Iterator[None]:
    """Escape warnings for a terminal, because they may contain names from files.

    Locations inside this library are left out: they tell users of a command nothing.
    """
    before = warnings.formatwarning

    def formatted(message: Any, category: type[Warning], filename: str, *rest: Any, **more: Any) -> str:
        if is_in_package(filename):
            return _wrapped_on_terminal(escaped(f"Warning: {message}")) + "\n"
        return escaped(before(message, category, filename, *rest, **more))

    warnings.formatwarning = formatted
    try:
        yield
    finally:
        warnings.formatwarning = before


def _wrapped_on_terminal(text: str) -> str:
    """Wrap lines between words if standard error is a terminal."""
    if not sys.stderr.isatty():
        return text
    width = shutil.get_terminal_size().columns
    return "\n".join(
        textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False) for line in text.splitlines()
    )
