"""The tests that are skipped on this machine, in one line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

KINDS = (
    (r"Chromium|Playwright", "in a browser (no Chromium)"),
    (r"^Ray ", "on Ray (not installed)"),
    (r"CUDA", "on a GPU (none here)"),
    (r"\.\./shared/data", "on ../shared/data (not there)"),
)
"""A pattern of reasons, and their text in the line; other reasons stay as they are."""


def kind_of(reason: str) -> str:
    return next((said for pattern, said in KINDS if re.search(pattern, reason)), f"({reason})")


def not_run(reasons: Iterable[str]) -> str:
    """The line that says how many tests were skipped, and why; empty if there are none."""
    counts = Counter(kind_of(reason.removeprefix("Skipped: ")) for reason in reasons)
    parts = [f"{count} {kind}" for kind, count in counts.most_common()]
    if not parts:
        return ""
    first, *rest = parts
    count, _, kind = first.partition(" ")
    return ", ".join([f"Not run here: {count} {'test' if count == '1' else 'tests'} {kind}", *rest])
