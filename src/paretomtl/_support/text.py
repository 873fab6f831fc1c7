"""Text for messages: names cut to length, the name that was probably meant, and where two texts differ."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def cut_to_difference(one: str, other: str, around: int = 50) -> tuple[str, str]:
    """Both texts, cut to where they differ."""
    first = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start = max(0, first - around)

    def cut(text: str) -> str:
        end = first + around
        return ("..." if start else "") + text[start:end] + ("..." if len(text) > end else "")

    return cut(one), cut(other)


def shorten(name: str, most: int) -> str:
    """A name that a table or a figure has room for.

    Example:
        >>> shorten("cost in euros", 8)
        'cost in…'
    """
    return name if len(name) <= most else f"{name[: most - 1]}…"


def suggest_name(name: str, known: Iterable[str]) -> str:
    """A question after a typo, to be appended to an error; nothing where no known name is near.

    Example:
        >>> suggest_name("multi-digit", ["multi-digits", "census"])
        " Did you mean 'multi-digits'?"
    """
    close = difflib.get_close_matches(str(name), list(known), n=1, cutoff=0.6)
    return f" Did you mean {close[0]!r}?" if close else ""
