"""Texts side by side."""

from __future__ import annotations


def cut_to_difference(one: str, other: str, around: int = 50) -> tuple[str, str]:
    """Both texts, cut to where they differ."""
    first = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start = max(0, first - around)

    def cut(text: str) -> str:
        end = first + around
        return ("..." if start else "") + text[start:end] + ("..." if len(text) > end else "")

    return cut(one), cut(other)
