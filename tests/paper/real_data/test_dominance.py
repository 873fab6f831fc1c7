from __future__ import annotations

import pytest

from paretomtl.paper.real_data.cells import SHARED
from paretomtl.paper.real_data.dominance import dominance_facts, dominated_share


def test_dominated_share() -> None:
    points = [[1.0, 1.0], [0.0, 2.0], [3.0, 3.0]]
    assert dominated_share(points, [[1.0, 1.0]]) == pytest.approx(1 / 3)  # an equal point does not dominate
    assert dominated_share(points, [[0.0, 0.0]]) == 1.0
    assert dominated_share(points, [[9.0, 9.0]]) == dominated_share(points, []) == 0.0


def test_what_dominates_what_is_said_with_what_counts() -> None:
    """One solution of the grid is beyond the reference; ours adds a corner of its own to what the others cover."""
    fields = {"part": SHARED, "stage": "final", "reference": [1.0, 1.0]}
    ours = {
        **fields,
        "method": "pareto-mtl",
        "note": "25 even",
        "losses": [[0.2, 0.8], [0.9, 0.9]],
        "hypervolume": 0.16,
    }
    theirs = {**fields, "method": "linear", "note": "", "losses": [[0.5, 0.5], [0.1, 2.0]], "hypervolume": 0.25}
    ((what, figure),) = dominance_facts([{**row, "seed": seed} for row in (ours, theirs) for seed in range(2)])
    assert what == "shared trunk: solutions of Pareto MTL, 25 even, beside as many of grid search, on test"
    assert figure == (
        "0% of theirs are dominated, and 50% of ours; 1.0 of theirs and 2.0 of ours are better than the reference; "
        "hypervolume -0.09000* (* more than seeds explain), both together 0.06000 more than theirs"
    )
