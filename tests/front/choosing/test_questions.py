from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import paretomtl as pm
from _helpers.fronts import front_of
from paretomtl.front.choosing.candidates import CandidateTable, build_table
from paretomtl.front.choosing.questions import begin, differences

CONCAVE = [[0.0, 1.0], [0.6, 0.7], [1.0, 0.0]]


def asked(table: CandidateTable, utility: Callable[[int], float]) -> tuple[int, int]:
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


def quadratic(count: int) -> CandidateTable:
    truth = pm.problems.quadratic().truth
    assert truth is not None
    return build_table(front_of(truth.front(count).tolist()), None)


@pytest.mark.parametrize(("count", "most"), [(2, 1), (3, 2), (5, 3), (8, 3), (25, 6), (33, 6), (125, 9)])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.37, 0.5, 0.81, 1.0])
def test_a_convex_front_takes_few_questions(count: int, most: int, share: float) -> None:
    """As many as halving takes, or one or two more."""
    table = quadratic(count)
    sums = table.losses @ torch.tensor([share, 1 - share], dtype=torch.float64)
    row, questions = asked(table, lambda row: -float(sums[row]))
    assert float(sums[row]) == pytest.approx(float(sums.min()), abs=1e-12)
    assert questions <= most


def fronts(tasks: int) -> st.SearchStrategy[list[list[float]]]:
    return st.lists(st.lists(st.floats(0.01, 9.0), min_size=tasks, max_size=tasks), min_size=1, max_size=14)


@given(fronts(2), st.floats(0.0, 1.0))
def test_whoever_weighs_two_losses_ends_at_the_best_of_any_front(rows: list[list[float]], share: float) -> None:
    table = build_table(front_of(rows), None)
    sums = table.losses @ torch.tensor([share, 1 - share], dtype=torch.float64)
    row, _ = asked(table, lambda row: -float(sums[row]))
    assert float(sums[row]) == pytest.approx(float(sums.min()), rel=1e-9, abs=1e-12)


@given(st.integers(2, 5).flatmap(fronts), st.data())
def test_any_solution_can_be_chosen(rows: list[list[float]], data: st.DataObject) -> None:
    """By whoever goes by the largest of the losses, each divided by that of the solution."""
    table = build_table(front_of(rows), None)
    wanted = data.draw(st.sampled_from(begin(table).rows))
    points = table.losses[table.candidates()]
    low, high = points.min(0).values, points.max(0).values
    values = (table.losses - low) / (high - low).clamp_min(1e-300)
    least = (values / values[wanted].clamp_min(1e-9)).amax(-1)
    assert asked(table, lambda row: -float(least[row]))[0] == wanted


@pytest.mark.study
@pytest.mark.parametrize(("tasks", "most", "hits"), [(3, 9, 40), (5, 12, 36)])
def test_few_questions_about_many_solutions(tasks: int, most: int, hits: int) -> None:
    """25 solutions of a convex front of several tasks, and 40 users who weigh the losses."""
    g = torch.Generator().manual_seed(0)
    points = torch.nn.functional.normalize(torch.rand(25, tasks, generator=g, dtype=torch.float64), dim=-1)
    table = build_table(front_of((1 - points).tolist()), None)
    assert len(begin(table).rows) == 25
    found = 0
    for _ in range(40):
        sums = table.losses @ torch.rand(tasks, generator=g, dtype=torch.float64)
        row, questions = asked(table, lambda row, sums=sums: -float(sums[row]))
        found += bool(sums[row] == sums.min())
        assert questions <= most
        assert sums[row] - sums.min() < 0.15 * (sums.max() - sums.min())
    assert found >= hits


@given(st.permutations(range(9)))
def test_what_is_chosen_was_preferred_whenever_it_was_shown(order: list[int]) -> None:
    truth = pm.problems.synthetic().truth
    assert truth is not None
    table = build_table(front_of(truth.front(9).tolist()), None)
    beaten: set[int] = set()
    search = begin(table)
    while search.pair is not None:
        one, other = search.pair
        assert not beaten & {one, other}
        beaten.add(min(search.pair, key=order.__getitem__))
        search = search.after(first=order[one] > order[other])
    assert search.rows[0] not in beaten


def test_what_is_asked_for() -> None:
    """Neither what another one dominates, nor what is not finite, nor copies."""
    table = build_table(front_of([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [torch.nan, 0.1], [1.0, 0.0]]), None)
    search = begin(table)
    assert search.rows == (0, 1)
    assert search.pair == (0, 1)
    assert search.after(first=False).rows == (1,)
    assert begin(build_table(front_of([[torch.nan, 1.0]]), None)).pair is None
    assert begin(build_table(front_of([[1.0, 1.0]]), None)).most == 0


def test_a_difference_in_words() -> None:
    metrics = {"train": {"a accuracy": torch.tensor([0.9, 0.8, 0.7]), "x": torch.full((3,), torch.nan)}}
    table = build_table(front_of(CONCAVE, metrics=metrics, better={"a accuracy": "higher"}), None)
    said = {each.name: (each.values, each.text, each.better) for each in differences(table, 1, 2)}
    assert said == {
        "a accuracy": (("80.0 %", "70.0 %"), "10.0 points worse", False),
        "x": (("-", "-"), "", None),
        "b loss": (("0.7", "0"), "0.7 (100 %) better", True),
    }, "the accuracy stands for its task"
    assert {each.text for each in differences(table, 1, 1)} == {"equal", ""}


@given(st.integers(2, 4).flatmap(fronts), st.data())
def test_ties_bring_the_end_nearer_too(rows: list[list[float]], data: st.DataObject) -> None:
    """Whatever is answered, what was not preferred, and the second of a tie, are never shown again."""
    search = begin(build_table(front_of(rows), None))
    gone: set[int] = set()
    while search.pair is not None:
        first, second = search.pair
        assert not gone & {first, second}
        before, answer = search.most, data.draw(st.sampled_from(["first", "second", "tie"]))
        search = search.after_tie() if answer == "tie" else search.after(first=answer == "first")
        gone.add(first if answer == "second" else second)
        assert search.most < before
    assert len(search.rows) == 1 or not rows
    assert not gone & set(search.rows)


def test_a_tie_leaves_the_first_of_the_two() -> None:
    """It stays a candidate, so that nothing wins that was never shown against it."""
    search = begin(build_table(front_of(CONCAVE), None))
    assert search.pair is not None
    first, second = search.pair
    after = search.after_tie()
    assert first in after.rows
    assert second not in after.rows


def test_many_solutions_take_little_memory_and_too_many_are_refused() -> None:
    def front(count: int) -> CandidateTable:
        first = torch.linspace(0.0, 1.0, count, dtype=torch.float64)
        return build_table(front_of(torch.stack([first, (1 - first).square()], -1).tolist()), None)

    assert begin(front(200)).scores.numel() <= 2 * 16_200 * 200
    with pytest.raises(ValueError, match=r"questions must be about at most 1,000 models .* Got 1,001 on 'train'"):
        begin(front(1001))
