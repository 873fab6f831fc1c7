"""The studies by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from paretomtl.experiments import _synthetic
from paretomtl.experiments._store import Row


@dataclass(frozen=True)
class Study:
    """A list of cells, how to run one, and what the rows say.

    Attributes:
        title: one line on what the study is.
        cells: the work, cut into cells; smaller with ``smoke=True``.
        run: one cell to its rows.
        claims: the paper's claims, judged by the rows.
        facts: what else was measured, as pairs of words and figures.
    """

    title: str
    cells: Callable[..., Sequence[Any]]
    run: Callable[[Any], list[Row]]
    claims: Callable[[Sequence[Row]], list[_synthetic.Claim]]
    facts: Callable[[Sequence[Row]], list[tuple[str, str]]]


STUDIES = {
    "synthetic": Study(
        "The paper's synthetic example: convergence, initial phase, difficulty, preference sets, three objectives.",
        _synthetic.cells,
        _synthetic.run,
        _synthetic.claims,
        _synthetic.facts,
    )
}
"""What ``paretomtl reproduce`` can run."""
