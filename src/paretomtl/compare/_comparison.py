"""The result of a comparison: rows and fronts, with a verdict and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from paretomtl._support.html_table import html_table, paragraph
from paretomtl._support.imports import facade
from paretomtl.compare._verdict import Summary, summaries, verdict
from paretomtl.compare.row_store import Row
from paretomtl.front import Front
from paretomtl.methods.registry import label_of


class Comparison(NamedTuple):
    """The result of :func:`paretomtl.compare.compare`, which also unpacks as ``rows, fronts``.

    Attributes:
        rows: one for each method and seed.
        fronts: the fronts of seed 0 that the call trained, by method.

    Example:
        >>> import paretomtl as pm
        >>> options = {"preferences": 3, "epochs": 50, "device": "cpu", "progress": "quiet"}
        >>> comparison = pm.compare.compare(pm.problems.synthetic(), ["linear", "p-norm"], 2, **options)
        >>> len(comparison.rows), sorted(comparison.fronts)
        (4, ['linear', 'p-norm'])
        >>> comparison.summaries()[0].method
        'p-norm'
    """

    rows: list[Row]
    fronts: dict[str, Front]

    def summaries(self) -> list[Summary]:
        """One summary for each method, the largest mean hypervolume first."""
        return summaries(self.rows)

    def verdict(self) -> str:
        """Which method is best, and whether seeds can tell."""
        return verdict(self.summaries())

    def plot(self, path: str | Path | None = None, *, dark: bool = False) -> Any:
        """Plot the models of each method, and the hypervolumes of all seeds (extra ``figures``).

        Args:
            path: the file to write; its suffix, such as ``.pdf``, ``.svg`` or ``.png``, sets the format.
            dark: whether to plot for a dark background.

        Returns:
            A matplotlib figure; closed if it was written to ``path``.
        """
        return facade.draw_comparison(self.rows, path, dark=dark)

    def figure(self) -> Any:
        """Draw the same for a screen, as a plotly figure (extra ``report``)."""
        return facade.interactive_comparison(self.rows)

    def _repr_html_(self) -> str:
        """The verdict and a line for each method, as notebooks show them."""
        table = self.summaries()
        splits = [table[0].split, *(["test"] if table[0].test is not None else [])]
        rows = [
            [
                label_of(each.method),
                str(each.models),
                *(_volume(part) for part in (each, each.test) if part is not None),
            ]
            for each in table
        ]
        return paragraph(self.verdict()) + html_table(
            ["method", "models", *(f"hypervolume, {split}" for split in splits)], rows
        )


def _volume(summary: Summary) -> str:
    if summary.hypervolume is None:
        return "-"
    mean, deviation = summary.hypervolume
    return f"{mean:.4g}" + ("" if deviation != deviation else f" ± {deviation:.2g}")
