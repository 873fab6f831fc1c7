from __future__ import annotations

import pytest

from paretomtl.compare.row_indicators import error_points, fill_indicators, spread_within


def test_spread_is_that_of_solutions_somebody_could_take() -> None:
    front = [[0.0, 0.4], [0.3, 0.0]]
    assert spread_within(front, [2.0, 2.0]) == pytest.approx(0.5)
    assert spread_within([*front, [0.3, 0.4]], [2.0, 2.0]) == pytest.approx(0.5)  # dominated
    assert spread_within([*front, [-1.0, 9.0]], [2.0, 2.0]) == pytest.approx(0.5)  # beyond the reference
    assert spread_within([[9.0, 9.0]], [2.0, 2.0]) == 0.0


def test_indicators_are_filled_in_once() -> None:
    row = {
        "method": "linear",
        "tasks": ["a", "b"],
        "reference": [2.0, 2.0],
        "losses": [[1.0, 1.0], [None, 0.5]],
        "metrics": {"a accuracy": [0.9, 0.5], "b accuracy": [0.8, None]},
        "hypervolume": None,
        "error_hypervolume": None,
    }
    assert error_points(row) == [[pytest.approx(0.1), pytest.approx(0.2)]]
    (filled,) = fill_indicators([row])
    assert (filled["hypervolume"], filled["error_hypervolume"]) == (1.0, 0.72)
    assert fill_indicators([{**filled, "hypervolume": 7.0}])[0]["hypervolume"] == 7.0
    assert row["hypervolume"] is None
    ideal = {**row, "method": "single-task", "losses": [[0.5, 9.0], [9.0, 0.5]]}
    assert fill_indicators([ideal])[0]["hypervolume"] == 2.25
    assert "hypervolume" not in fill_indicators([{"method": "linear"}])[0]
