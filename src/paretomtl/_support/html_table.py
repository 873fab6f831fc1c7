"""Small HTML tables for notebooks: every cell is text, never markup."""

from __future__ import annotations

import html
from collections.abc import Sequence

MOST_ROWS = 30
"""More rows than this are counted, not shown."""

_CELL = "padding:2px 10px 2px 0;text-align:{align};{weight}"


def paragraph(*parts: str) -> str:
    """A paragraph of texts; those that begin with ``*`` are bold.

    Example:
        >>> paragraph("*a < b", ", and more")
        '<p style="margin:4px 0"><b>a &lt; b</b>, and more</p>'
    """
    texts = [f"<b>{html.escape(part[1:])}</b>" if part.startswith("*") else html.escape(part) for part in parts]
    return f'<p style="margin:4px 0">{"".join(texts)}</p>'


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, text: int = 1, marked: int | None = None) -> str:
    """A table of texts.

    Args:
        head: names of the columns.
        rows: their cells.
        text: how many columns, from the left, are text; others are numbers, and aligned to the right.
        marked: the row that is bold.

    Example:
        >>> "&lt;b&gt;" in html_table(["name"], [["<b>"]])
        True
    """

    def cell(tag: str, value: str, place: int, bold: bool) -> str:
        align, weight = "left" if place < text else "right", "font-weight:600" if bold else ""
        return f'<{tag} style="{_CELL.format(align=align, weight=weight)}">{html.escape(value)}</{tag}>'

    lines = ["".join(cell("th", name, place, True) for place, name in enumerate(head))]
    for number, row in enumerate(rows[:MOST_ROWS]):
        lines.append("".join(cell("td", value, place, number == marked) for place, value in enumerate(row)))
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    more = paragraph(f"… and {len(rows) - MOST_ROWS} more rows.") if len(rows) > MOST_ROWS else ""
    return f'<table style="border-collapse:collapse">{body}</table>{more}'
