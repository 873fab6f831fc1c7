from __future__ import annotations

import math

import pytest

from paretomtl.paper.rows import direction_rank_correlation, favouring, has, pick, pick_by_seed

ROWS = [
    {"method": "linear", "stage": "final", "note": "", "value": 1.0},
    {"method": "linear", "stage": "snapshot", "note": "", "value": 2.0},
    {"method": "linear", "stage": "final", "note": "released", "value": 3.0},
]


def test_final_rows_without_a_note_are_meant_unless_something_else_is_said() -> None:
    assert [row["value"] for row in pick(ROWS, method="linear")] == [1.0]
    assert [row["value"] for row in pick(ROWS, stage="snapshot")] == [2.0]
    assert [row["value"] for row in pick(ROWS, note="released")] == [3.0]
    assert has(ROWS, note="released")
    assert not has(ROWS, method="mgda")
    with pytest.raises(ValueError, match="must hold some of method 'mgda'"):
        pick(ROWS, method="mgda")


def test_rows_by_seed_may_be_none() -> None:
    rows = [{**ROWS[0], "seed": seed} for seed in (2, 0, 1)]
    assert [row["seed"] for row in pick_by_seed(rows, method="linear")] == [0, 1, 2]
    assert pick_by_seed(rows, method="mgda") == []


def test_a_direction_favours_the_task_of_its_smallest_number_and_a_weight_that_of_its_largest() -> None:
    vectors = [[0.0, 1.0], [0.7, 0.7], [1.0, 0.0]]
    assert [favouring({"reading": "direction", "vectors": vectors}, task) for task in (0, 1)] == [0, 2]
    assert [favouring({"reading": "importance", "vectors": vectors}, task) for task in (0, 1)] == [2, 0]


def test_order_compares_directions_and_leaves_out_what_is_not_finite() -> None:
    row = {"vectors": [[1.0, 0.0], [0.7, 0.7], [0.0, 1.0]], "losses": [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]]}
    assert direction_rank_correlation(row) == pytest.approx(1.0)
    assert direction_rank_correlation({**row, "losses": row["losses"][::-1]}) == pytest.approx(-1.0)
    assert direction_rank_correlation({**row, "losses": [[None, 0.1], [0.5, 0.5], [0.1, 0.9]]}) == pytest.approx(1.0)
    assert math.isnan(direction_rank_correlation({**row, "losses": [[None, 0.1], [None, 0.5], [0.1, 0.9]]}))
