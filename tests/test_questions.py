from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import paretomtl as pm
from fronts import front_of
from paretomtl._questions import begin, difference
from paretomtl._selection import Table, table_of

CONCAVE = [[0.0, 1.0], [0.6, 0.7], [1.0, 0.0]]


def asked(table: Table, utility: Callable[[int], float]) -> tuple[int, int]:
    """The row that somebody with this utility ends at, and the number of questions."""
    search, questions = begin(table), 0
    limit = search.most
    while search.pair is not None:
        one, other = search.pair
        left = search.most
        search = search.after(first=utility(one) >= utility(other))
        questions += 1
        assert search.most < left, "every answer brings the end nearer"
    assert questions <= limit
    return search.rows[0], questions


def quadratic(count: int) -> Table:
    truth = pm.problems.quadratic().truth
    assert truth is not None
    return table_of(front_of(truth.front(count).tolist()), None)


@pytest.mark.parametrize("count", [2, 3, 5, 8, 33])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.37, 0.5, 0.81, 1.0])
def test_whoever_weighs_the_losses_ends_at_the_best_of_a_convex_front(count: int, share: float) -> None:
    table = quadratic(count)
    assert begin(table).halving
    sums = table.losses @ torch.tensor([share, 1 - share], dtype=torch.float64)
    row, questions = asked(table, lambda row: -float(sums[row]))
    assert float(sums[row]) == pytest.approx(float(sums.min()), abs=1e-12)
    assert questions <= math.ceil(math.log2(len(table.losses)))


@given(
    st.integers(2, 4).flatmap(
        lambda tasks: st.tuples(
            st.lists(st.lists(st.floats(0.01, 9.0), min_size=tasks, max_size=tasks), min_size=1, max_size=14),
            st.lists(st.floats(0.05, 1.0), min_size=tasks, max_size=tasks),
        )
    )
)
def test_whoever_weighs_the_losses_ends_at_the_best_of_any_front(case: tuple[list[list[float]], list[float]]) -> None:
    rows, weights = case
    table = table_of(front_of(rows), None)
    sums = table.losses @ torch.tensor(weights, dtype=torch.float64)
    row, questions = asked(table, lambda row: -float(sums[row]))
    assert float(sums[row]) == pytest.approx(float(sums.min()), rel=1e-9)
    assert questions <= len(table.candidates()) - 1


@given(st.permutations(range(9)))
def test_on_other_fronts_any_consistent_liking_gets_its_best(order: list[int]) -> None:
    truth = pm.problems.synthetic().truth
    assert truth is not None
    table = table_of(front_of(truth.front(9).tolist()), None)
    assert not begin(table).halving
    row, questions = asked(table, lambda row: order[row])
    assert order[row] == max(order)
    assert questions == 8


def test_what_is_asked_for() -> None:
    """Neither what another one dominates, nor what is not finite, nor copies."""
    table = table_of(front_of([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [torch.nan, 0.1], [1.0, 0.0]]), None)
    search = begin(table)
    assert search.rows == (0, 1)
    assert search.pair == (0, 1)
    assert search.after(first=False).rows == (1,)
    assert begin(table_of(front_of([[torch.nan, 1.0]]), None)).pair is None
    assert begin(table_of(front_of([[1.0, 1.0]]), None)).most == 0


def test_a_difference_in_words() -> None:
    metrics = {"train": {"a accuracy": torch.tensor([0.9, 0.8, 0.7]), "x": torch.full((3,), torch.nan)}}
    table = table_of(front_of(CONCAVE, metrics=metrics, better={"a accuracy": "higher"}), None)
    said = difference(table, 1, 2)
    assert said == "gains 0.7 in b (-100 %); gives up 0.4 in a (+67 %), 0.1 in a accuracy (-13 %)"
    assert difference(table, 0, 1) == "gains 0.3 in b (-30 %); gives up 0.6 in a, 0.1 in a accuracy (-11 %)"
    assert difference(table, 1, 1) == "makes no difference"
