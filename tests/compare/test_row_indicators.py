from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from paretomtl.compare.row_indicators import (
    best_delta_m,
    error_points,
    fill_indicators,
    points_box_share,
    separate_losses,
    spread_within,
    tight_point,
)


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


# Indicators that depend on all rows, recomputed when they are read.


def stored(method: str, losses: Any, **fields: Any) -> dict[str, Any]:
    """A row on training alone, with what these indicators read."""
    return {"method": method, "losses": {"train": losses}, "split": "train", "seed": 0, **fields}


def test_the_tight_point_is_that_of_all_fronts_together() -> None:
    rows = [
        stored("linear", [[0.2, 1.0], [1.0, 0.4], [None, 0.1]]),
        stored("mgda", [[0.4, 0.6], [1.5, 0.2], [1.9, 1.9], [0.1, 9.0]]),
        stored("single-task", [[0.01, 7.0], [7.0, 0.01]]),
    ]
    assert tight_point(rows, "train", [2.0, 2.0]) == pytest.approx([1.65, 1.1])
    assert tight_point(rows[:1], "train", [2.0, 2.0]) == pytest.approx([1.1, 1.1])
    assert tight_point(rows[2:], "train", [2.0, 2.0]) is None
    assert tight_point([stored("linear", [[None, 1.0]])], "train", [2.0, 2.0]) is None


def test_the_share_of_the_box_of_stored_points() -> None:
    assert points_box_share([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]], [2.0, 2.0]) == pytest.approx(3.25 / 4)
    assert math.isnan(points_box_share([], [2.0, 2.0]))
    many = torch.rand(200, 12, generator=torch.Generator().manual_seed(0)).tolist()
    assert math.isnan(points_box_share(many, [2.0] * 12)), "hours"


def test_separate_networks_count_in_their_own_task() -> None:
    """The second network happens to be better in both tasks; it was trained for the first one."""
    row = stored("single-task", [[5.0, 0.5], [0.4, 0.3]], vectors=[[0.0, 1.0], [1.0, 0.0]])
    assert separate_losses([row, stored("linear", [[0.1, 0.1]])], "train") == [0.4, 0.5]
    again = stored("single-task", [[5.0, 0.3], [0.6, 0.3]], vectors=[[0.0, 1.0], [1.0, 0.0]], seed=1)
    assert separate_losses([row, again], "train") == pytest.approx([0.5, 0.4])
    earlier = stored("single-task", [[5.0, 0.5], [0.4, 0.3]])
    assert separate_losses([earlier], "train") == [0.4, 0.3], "rows without preferences: the best of each task"
    assert separate_losses([stored("linear", [[0.1, 0.1]])], "train") is None
    broken = stored("single-task", [[5.0, None], [0.4, 0.3]], vectors=[[0.0, 1.0], [1.0, 0.0]])
    assert separate_losses([broken], "train") is None
    assert separate_losses([broken, row], "train") == [0.4, 0.5]
    zero = stored("single-task", [[5.0, 0.0], [0.4, 0.3]], vectors=[[0.0, 1.0], [1.0, 0.0]])
    assert separate_losses([zero], "train") is None


def test_the_best_delta_m_is_chosen_where_methods_are_ranked() -> None:
    """On validation the first is better by 25 points; on test its own number is shown, not the best one there."""
    losses = {"val": [[1.0, 1.0], [1.0, 1.5], [None, 0.1]], "test": [[3.0, 1.0], [1.0, 1.0], [0.1, 0.1]]}
    row = {"method": "linear", "losses": losses, "split": "val"}
    baselines: dict[str, Any] = {"val": [1.0, 1.0], "test": [2.0, 2.0]}
    assert best_delta_m(row, "val", baselines) == 0.0
    assert best_delta_m(row, "test", baselines) == pytest.approx((50 - 50) / 2)
    assert math.isnan(best_delta_m(row, "test", {**baselines, "test": None}))
    assert math.isnan(best_delta_m({**row, "losses": {"val": [[None, 1.0]]}}, "val", baselines))
