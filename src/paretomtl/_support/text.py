"""Text for messages: names cut to length, the name that was probably meant, where two texts differ, and numbers."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def cut_to_difference(one: str, other: str, around: int = 50) -> tuple[str, str]:
    """Cut both texts to where they differ."""
    first = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start = max(0, first - around)

    def cut(text: str) -> str:
        end = first + around
        return ("..." if start else "") + text[start:end] + ("..." if len(text) > end else "")

    return cut(one), cut(other)


def shorten(name: str, most: int) -> str:
    """Shorten a name to fit into a table or a figure.

    Example:
        >>> shorten("cost in euros", 8)
        'cost in…'
    """
    return name if len(name) <= most else f"{name[: most - 1]}…"


def short_number(value: float, digits: int = 4) -> str:
    """Write a number with some significant digits, and without an exponent below a million: losses may be in euros.

    Example:
        >>> short_number(0.123456), short_number(54461.7), short_number(9999.8), short_number(2.5e7)
        ('0.1235', '54462', '10000', '2.5e+07')
    """
    return f"{value:.0f}" if 10**digits - 0.5 <= abs(value) < 1e6 else f"{value:.{digits}g}"


def join_names(names: Sequence[str]) -> str:
    """Names in a sentence.

    Example:
        >>> join_names(["a"]), join_names(["a", "b", "c"])
        ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Suggest a known name after a typo, for the end of an error; empty if none is similar.

    Example:
        >>> suggest_name("multi-digit", ["multi-digits", "census"])
        " Did you mean 'multi-digits'?"
    """
    close = difflib.get_close_matches(str(name), list(known), n=1, cutoff=0.6)
    return f" Did you mean {close[0]!r}?" if close else ""
