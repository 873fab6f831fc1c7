from __future__ import annotations

import math
from typing import Any

import pytest

from paretomtl.compare import Summary, common_reference, summaries, verdict


def row(method: str, losses: Any, seed: int = 0, **fields: Any) -> dict[str, Any]:
    return {
        "method": method,
        "seed": seed,
        "preferences": len(losses),
        "losses": losses,
        "reference": [2.0, 2.0],
        "spread": 1.0,
        "nondominated": len(losses),
        "seconds": 1.0,
        **fields,
    }


def of(method: str, mean: float, deviation: float, seeds: int = 5, *, ideal: bool = False) -> Summary:
    """A summary whose hypervolumes have this mean and this deviation."""
    steps = [i - (seeds - 1) / 2 for i in range(seeds)]
    unit = math.sqrt(sum(step**2 for step in steps) / (seeds - 1)) if seeds > 1 else 1.0
    volumes = tuple(mean + deviation * step / unit for step in steps)
    return Summary(method, 5, volumes, ideal, 1.0, [0.1, 0.1], 5.0, 1.0)


def test_hypervolumes_share_one_reference() -> None:
    rows = [row("linear", [[1.0, 1.0]]), row("mgda", [[1.0, 1.0]], reference=[3.0, 1.5])]
    assert common_reference(rows) == [3.0, 2.0]
    assert [s.hypervolume[0] for s in summaries(rows)] == [2.0, 2.0]


def test_single_task_is_the_ideal_point_of_its_networks() -> None:
    rows = [row("single-task", [[0.5, 9.0], [9.0, 0.5]]), row("linear", [[0.5, 1.0], [1.0, 0.5]])]
    found = {s.method: s for s in summaries(rows)}
    assert found["single-task"].ideal
    assert found["single-task"].hypervolume[0] == pytest.approx(2.25)
    assert found["linear"].hypervolume[0] == pytest.approx(2.0)
    assert found["single-task"].best == [0.5, 0.5]


def test_solutions_that_are_not_finite_do_not_count() -> None:
    (found,) = summaries([row("linear", [[None, 1.0], [1.0, 1.0]])])
    assert found.hypervolume[0] == pytest.approx(1.0)
    (none,) = summaries([row("linear", [[None, 1.0]])])
    assert none.hypervolume[0] == 0.0


def test_deviation_over_seeds() -> None:
    rows = [row("linear", [[1.0, 1.0]], 0), row("linear", [[1.0, 0.0]], 1)]
    (found,) = summaries(rows)
    assert found.hypervolume == pytest.approx((1.5, math.sqrt(0.5)))


def test_the_verdict_is_plain() -> None:
    close = verdict([of("pareto-mtl", 2.0, 0.1), of("linear", 1.98, 0.1)])
    wanted = "pareto-mtl has the largest mean hypervolume on train. linear cannot be told apart from it with 5 seeds."
    assert close == wanted
    far = verdict([of("linear", 2.0, 0.1), of("pareto-mtl", 1.98, 0.1), of("mgda", 1.0, 0.1), of("gradnorm", 0.9, 0.1)])
    assert "pareto-mtl cannot be told apart from it with 5 seeds." in far
    assert far.endswith("mgda and gradnorm are behind by more than seeds explain (once in twenty, Welch's test).")


@pytest.mark.parametrize(("seeds", "behind"), [(2, False), (3, False), (4, True), (5, True)])
def test_the_fewer_the_seeds_the_less_a_difference_says(seeds: int, behind: bool) -> None:
    """A gap of two and a half standard errors at any number of seeds."""
    gap = 2.5 * 0.1 * math.sqrt(2 / seeds)
    text = verdict([of("linear", 2.0, 0.1, seeds), of("mgda", 2.0 - gap, 0.1, seeds)])
    assert ("mgda is behind" in text) == behind
    assert (f"mgda cannot be told apart from it with {seeds} seeds" in text) == (not behind)


def test_separate_networks_win_nothing() -> None:
    assert verdict([of("single-task", 3.0, 0.1, ideal=True), of("linear", 2.0, 0.1), of("mgda", 1.0, 0.1)]).startswith(
        "linear"
    )
    assert verdict([of("linear", 2.0, 0.1)]) == "There is nothing to compare."


def test_one_seed_proves_nothing() -> None:
    text = verdict([of("linear", 2.0, 0.0, 1), of("mgda", 1.0, 0.0, 1)])
    assert "100.0 % above mgda. One seed cannot tell" in text
    assert "above" not in verdict([of("linear", 2.0, 0.0, 1), of("mgda", 0.0, 0.0, 1)])
