"""Regret, R2 and IGD+ against the union of fronts: slow loops, closed forms, and what must not change them."""

from __future__ import annotations

import dataclasses
import math
import sys
from typing import Any

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

import paretomtl as pm
from _helpers.fronts import front_of
from paretomtl._support.random_state import host_random_state
from paretomtl.front.union_indicators import r2_weights, union_numbers
from paretomtl.front.utilities import draw_utilities, scale_of

DRAWS = 60  # utilities in tests that draw fronts


@st.composite
def unions(draw: st.DrawFn, least: int = 1, most: int = 3) -> list[list[tuple[list[float], list[float]]]]:
    """Fronts of the same tasks: of each solution the losses on validation and on test, on a coarse grid with ties."""
    tasks = draw(st.integers(2, 4))
    losses = st.lists(st.integers(-4, 8).map(float), min_size=tasks, max_size=tasks)
    front = st.lists(st.tuples(losses, losses), min_size=1, max_size=5)
    return draw(st.lists(front, min_size=least, max_size=most))


def alone(losses: Any, **fields: Any) -> pm.Front:
    """A front of finite losses on validation."""
    return pm.Front.from_losses(losses, tasks=list("abcd"[: len(losses[0])]), **fields)


def made(solutions: Any, **fields: Any) -> pm.Front:
    """A front with validation and test, which need not be finite."""
    val, test = ([pair[i] for pair in solutions] for i in (0, 1))
    if all(math.isfinite(value) for point in (*val, *test) for value in point):
        return pm.Front.from_losses({"val": val, "test": test}, tasks=list("abcd"[: len(val[0])]), **fields)
    return front_of(val, splits={"val": torch.tensor(val), "test": torch.tensor(test)}, **fields)


def scaled_slowly(union: list[list[float]]) -> Any:
    """The scale of points by its definition, without a reference point."""

    def dominated(point: list[float]) -> bool:
        return any(other != point and all(a <= b for a, b in zip(other, point, strict=True)) for other in union)

    tasks = range(len(union[0]))
    best = [point for point in union if not dominated(point)]
    low = [min(point[i] for point in union) for i in tasks]
    high = [max(point[i] for point in best) for i in tasks]
    high = [high[i] if high[i] > low[i] else max(point[i] for point in union) for i in tasks]
    return lambda point: [(point[i] - low[i]) / (high[i] - low[i]) if high[i] > low[i] else 0.0 for i in tasks]


# Regret.


@given(unions())
def test_regret_is_what_a_slow_loop_finds(union: Any) -> None:
    scale = scaled_slowly([val for front in union for val, _ in front])
    drawn = draw_utilities(DRAWS, len(union[0][0][0]))
    total = 0.0
    for weights, linear in zip(drawn.weights.tolist(), drawn.linear.tolist(), strict=True):

        def cost(losses: list[float], weights: Any = weights, linear: bool = linear) -> float:
            parts = [w * value for w, value in zip(weights, scale(losses), strict=True)]
            return float(sum(parts) if linear else max(parts) / max(weights))

        least = min(cost(val) for val, _ in union[0])
        chosen = [cost(test) for val, test in union[0] if cost(val) <= least + 1e-9]
        total += sum(chosen) / len(chosen) - min(cost(test) for front in union for _, test in front)
    found = made(union[0]).regret(*map(made, union[1:]), utilities=DRAWS)
    assert found == pytest.approx(total / DRAWS, abs=1e-8)
    assert found >= 0.0


@given(unions(least=2))
def test_regret_is_zero_for_whoever_has_everything(union: Any) -> None:
    """The choice is made where it is measured, so it cannot be wrong."""
    fronts = [alone([val for val, _ in each]) for each in union]
    whole = alone([val for each in union for val, _ in each])
    assert whole.regret(*fronts, utilities=DRAWS) == pytest.approx(0.0, abs=1e-8)
    assert all(front.regret(utilities=DRAWS) == pytest.approx(0.0, abs=1e-8) for front in fronts)


@given(
    unions(), st.lists(st.floats(1e-2, 1e2), min_size=4, max_size=4), st.lists(st.floats(-5, 5), min_size=4, max_size=4)
)
def test_units_and_origins_change_none_of_the_three(union: Any, units: Any, shifts: Any) -> None:
    tasks = len(union[0][0][0])
    reference = (7.5,) * tasks

    def changed(point: Any) -> list[float]:
        return [unit * value + shift for value, unit, shift in zip(point, units, shifts, strict=False)]

    one, *others = (made(each, reference=reference) for each in union)
    other, *rest = (
        made([(changed(val), changed(test)) for val, test in each], reference=tuple(changed(reference)))
        for each in union
    )
    assert other.regret(*rest, utilities=DRAWS) == pytest.approx(one.regret(*others, utilities=DRAWS), abs=1e-6)
    for split in ("val", "test"):
        assert other.r2(*rest, split=split) == pytest.approx(one.r2(*others, split=split), abs=1e-6)
        expected = one.igd_plus(others or one, split, scaled=True)
        assert other.igd_plus(rest or other, split, scaled=True) == pytest.approx(expected, abs=1e-6)


@given(unions(least=2), st.randoms(use_true_random=False))
def test_the_order_of_models_and_of_fronts_says_nothing(union: Any, random: Any) -> None:
    shuffled = [random.sample(each, len(each)) for each in union]
    one, others = made(union[0]), list(map(made, union[1:]))
    again, rest = made(shuffled[0]), list(map(made, reversed(shuffled[1:])))
    assert again.regret(*rest, utilities=DRAWS) == pytest.approx(one.regret(*others, utilities=DRAWS), abs=1e-9)
    assert again.r2(*rest) == pytest.approx(one.r2(*others), abs=1e-9)
    assert again.igd_plus(rest) == pytest.approx(one.igd_plus(others), abs=1e-9)


@given(unions(least=2), st.floats(0.0, 3.0), st.data())
def test_dominated_models_of_others_change_nothing(union: Any, by: float, data: Any) -> None:
    """Worse than some model on both splits; a union with one non-dominated model takes its scale from all, though."""
    everyone = torch.tensor([val for each in union for val, _ in each], dtype=torch.float64)
    best = everyone[alone(everyone.tolist()).nondominated()]
    assume(bool((best.amax(0) > best.amin(0)).all()))
    val, test = data.draw(st.sampled_from([solution for each in union for solution in each]))
    worse = ([value + by for value in val], [value + by for value in test])
    one, others = made(union[0]), list(map(made, union[1:]))
    more = [*others[:-1], made([*union[-1], worse])]
    assert one.regret(*more, utilities=DRAWS) == pytest.approx(one.regret(*others, utilities=DRAWS), abs=1e-9)
    assert one.r2(*more, split="val") == pytest.approx(one.r2(*others, split="val"), abs=1e-9)
    assert one.igd_plus(more, "val", scaled=True) == pytest.approx(one.igd_plus(others, "val", scaled=True), abs=1e-9)


def test_tchebycheff_sees_what_sums_do_not() -> None:
    """By hand: with r = w2 / w1 in (0, 1), the ends cost r and the model between them 0.6; w is uniform."""
    ends, between = alone([[0.0, 1.0], [1.0, 0.0]]), alone([[0.6, 0.6]])
    assert ends.regret(between, kind="linear") == 0.0
    expected = 2 * (math.log(2) + 1.6 / 2 - math.log(1.6) - 1)
    assert ends.regret(between, kind="tchebycheff", utilities=200_000) == pytest.approx(expected, abs=1e-3)
    both = ends.regret(between, utilities=200_000)
    assert both == pytest.approx(expected / 2, abs=1e-3), "half of the utilities are sums"
    middle = between.regret(ends, kind="linear", utilities=200_000)
    assert middle == pytest.approx(0.6 - 0.25, abs=1e-3), "the mean of min(w1, w2) is 1/4"


def test_a_choice_that_does_not_generalise_costs() -> None:
    """One front: the model that is best on validation is the worse one on test, by a fifth of the range."""
    val, test = [[0.0, 0.0], [0.5, 0.5], [1.0, 1.0]], [[0.4, 0.4], [0.2, 0.2], [0.8, 0.8]]
    front = made(list(zip(val, test, strict=True)))
    assert front.regret() == pytest.approx(0.2)
    assert front.regret(split="val") == 0.0
    assert made([(val[1], test[1])]).regret(front) == pytest.approx(0.0), "the best model alone has no regret"
    assert made([(val[2], test[2])]).regret(front) == pytest.approx(0.6)


def test_solutions_that_are_not_finite_are_never_chosen() -> None:
    val = [[0.0, 1.0], [1.0, 0.0], [math.nan, 0.1], [0.1, 0.1]]
    test = [[0.0, 1.0], [1.0, 0.0], [0.0, 0.0], [0.0, math.inf]]
    front = made(list(zip(val, test, strict=True)))
    assert front.regret() == 0.0
    broken = made([([math.nan, 1.0], [1.0, 1.0])])
    assert front.regret(broken) == 0.0, "it offers nothing"
    with pytest.raises(ValueError, match=r"'split' must have a model with finite losses. Got none on 'val' and 'te"):
        broken.regret(front)
    with pytest.raises(ValueError, match=r"'split' must have a model with finite losses. Got none on 'val'"):
        broken.r2(front)
    with pytest.raises(ValueError, match=r"'split' must have a model with finite losses. Got none on 'val'"):
        broken.igd_plus(torch.ones(1, 2))


def test_a_task_that_is_the_same_everywhere_does_not_count() -> None:
    one, other = alone([[0.0, 5.0, 1.0], [1.0, 5.0, 0.0]]), alone([[0.0, 5.0, 0.5]])
    two, less = alone([[0.0, 1.0], [1.0, 0.0]]), alone([[0.0, 0.5]])
    assert one.regret(other, kind="linear") > 0.0
    assert one.r2(other) < two.r2(less), "its weights are lost, as those of a task without any loss"
    same = alone([[3.0, 3.0], [3.0, 3.0]])
    assert (same.regret(), same.r2(), same.igd_plus(same, scaled=True)) == (0.0, 0.0, 0.0)


def test_a_front_that_one_model_dominates_still_has_a_scale() -> None:
    best, worse = alone([[1.0, 2.0]]), alone([[2.0, 6.0], [3.0, 4.0]])
    assert best.regret(worse) == best.r2(worse) == best.igd_plus(worse) == 0.0
    expected = _mean_of_minimum((0.5, 1.0), (1.0, 0.5))
    assert worse.regret(best, kind="linear", utilities=200_000) == pytest.approx(expected, abs=2e-3)


def _mean_of_minimum(one: tuple[float, float], other: tuple[float, float]) -> float:
    """The mean over w = (t, 1 - t), t uniform, of the smaller of two weighted sums, on a fine grid."""
    t = (torch.arange(100_000, dtype=torch.float64) + 0.5) / 100_000
    return float(torch.minimum(t * one[0] + (1 - t) * one[1], t * other[0] + (1 - t) * other[1]).mean())


def test_models_beyond_the_reference_do_not_stretch_the_scale() -> None:
    rows = torch.tensor([[0.0, 1.0], [1.0, 0.0], [-0.5, 900.0]], dtype=torch.float64)
    tight = scale_of(rows, torch.tensor([2.0, 2.0], dtype=torch.float64))
    assert (tight.ideal.tolist(), tight.sides.tolist()) == ([-0.5, 0.0], [1.5, 1.0])
    assert scale_of(rows).sides.tolist() == [1.5, 900.0]
    assert scale_of(rows, torch.tensor([-9.0, -9.0]).double()).sides.tolist() == [1.5, 900.0], "all are beyond it"
    stray = alone([[0.5, 0.5], [-0.01, 900.0]], reference=(2.0, 2.0))
    ends = alone([[0.0, 1.0], [1.0, 0.0]], reference=(2.0, 2.0))
    assert stray.regret(ends) == pytest.approx(alone([[0.5, 0.5]]).regret(ends), abs=0.03)


def test_separate_networks_are_no_choice() -> None:
    front = front_of([[0.2, 0.4], [0.4, 0.2]])
    separate = front_of([[0.1, 7.0], [7.0, 0.1]], method="single-task", reading="importance")
    assert front.regret(separate) == 0.0
    assert front.r2(separate) == front.r2()
    assert front.igd_plus([separate]) == 0.0


def test_regret_of_metrics_knows_what_is_better() -> None:
    better = {"a accuracy": "higher", "b accuracy": "higher"}

    def of(accuracy: list[list[float]]) -> pm.Front:
        columns = torch.tensor(accuracy, dtype=torch.float64).T
        names = {"a accuracy": columns[0], "b accuracy": columns[1]}
        return front_of([[1.0, 1.0]] * len(accuracy), metrics={"train": names}, better=better)

    good, bad = of([[0.9, 0.5], [0.5, 0.9]]), of([[0.5, 0.5]])
    assert good.regret(bad, metric="accuracy") == 0.0
    mirrored = front_of([[0.5, 0.5]]).regret(front_of([[0.1, 0.5], [0.5, 0.1]]))
    assert bad.regret(good, metric="accuracy") == pytest.approx(mirrored)
    assert mirrored > 0.1
    assert good.regret(bad) == 0.0, "the losses are the same"


def test_utilities_are_uniform_on_the_simplex_and_disturb_nobody() -> None:
    before = host_random_state()
    drawn = draw_utilities(20_000, 3, seed=5)
    assert host_random_state() == before
    assert torch.equal(drawn.weights, draw_utilities(20_000, 3, seed=5).weights)
    assert not torch.equal(drawn.weights, draw_utilities(20_000, 3, seed=6).weights)
    torch.testing.assert_close(drawn.weights.sum(-1), torch.ones(20_000, dtype=torch.float64))
    # Dirichlet(1, 1, 1): mean 1/3, variance 1/18, and P(w_1 > x) = (1 - x)^2.
    torch.testing.assert_close(drawn.weights.mean(0), torch.full((3,), 1 / 3).double(), atol=0.01, rtol=0.0)
    torch.testing.assert_close(drawn.weights.var(0), torch.full((3,), 1 / 18).double(), atol=0.002, rtol=0.0)
    assert float((drawn.weights[:, 0] > 0.5).double().mean()) == pytest.approx(0.25, abs=0.01)
    assert int(drawn.linear.sum()) == 10_000


@given(st.integers(2, 5), st.data())
def test_a_utility_never_prefers_what_is_dominated(tasks: int, data: Any) -> None:
    numbers = st.lists(st.floats(-10, 10), min_size=tasks, max_size=tasks)
    losses = torch.tensor([data.draw(numbers)], dtype=torch.float64)
    worse = losses + torch.tensor([data.draw(st.lists(st.floats(0, 5), min_size=tasks, max_size=tasks))]).double()
    drawn = draw_utilities(DRAWS, tasks)
    assert bool((drawn.of(worse) >= drawn.of(losses) - 1e-12).all())


# R2.


@given(unions(), st.integers(1, 30))
def test_r2_is_what_a_slow_loop_finds(union: Any, count: int) -> None:
    points = [[val for val, _ in each] for each in union]
    scale = scaled_slowly([point for each in points for point in each])
    weights = r2_weights(count, len(points[0][0])).tolist()
    total = 0.0
    for weight in weights:
        total += min(max(w * x for w, x in zip(weight, scale(point), strict=True)) for point in points[0])
    found = made(union[0]).r2(*map(made, union[1:]), weights=count)
    assert found == pytest.approx(total / len(weights), abs=1e-12)
    assert len(weights) >= count


@given(unions(least=2, most=2), st.data())
def test_who_weakly_dominates_has_no_larger_indicator(union: Any, data: Any) -> None:
    """R2 and IGD+ to the union are weakly Pareto compliant, and so is regret where the choice is measured."""
    second = [val for val, _ in union[1]]
    tasks = len(second[0])
    gains = st.lists(st.floats(0, 4), min_size=tasks, max_size=tasks)
    first = [[a - b for a, b in zip(point, data.draw(gains), strict=True)] for point in second]
    first += [val for val, _ in union[0]]
    one, other = alone(first), alone(second)
    assert one.r2(other) <= other.r2(one) + 1e-12
    assert one.igd_plus(other) <= other.igd_plus(one) + 1e-12
    assert one.igd_plus(other, scaled=True) <= other.igd_plus(one, scaled=True) + 1e-12
    assert one.regret(other, utilities=DRAWS) <= other.regret(one, utilities=DRAWS) + 1e-8


def test_r2_of_one_point_at_the_ideal_is_zero_and_of_known_points_known() -> None:
    """Two weights, the axes, see the ends alone; three also the middle."""
    ends, middle = alone([[0.0, 1.0], [1.0, 0.0]]), alone([[0.5, 0.5]])
    assert ends.r2(middle, weights=2) == 0.0
    assert middle.r2(ends, weights=2) == 0.5
    assert ends.r2(middle, weights=3) == pytest.approx(0.5 / 3)
    assert middle.r2(ends, weights=3) == pytest.approx((0.5 + 0.25 + 0.5) / 3)


# IGD+ to the union.


@given(unions(least=2))
def test_igd_plus_to_fronts_is_that_to_their_best_points(union: Any) -> None:
    fronts = [alone([val for val, _ in each]) for each in union]
    everyone = torch.tensor([val for each in union for val, _ in each], dtype=torch.float64)
    points = everyone[alone(everyone.tolist()).nondominated()].unique(dim=0)
    slow = 0.0
    for point in points:
        slow += min(float((row - point).clamp_min(0.0).norm()) for row in fronts[0].losses["val"])
    assert fronts[0].igd_plus(fronts[1:]) == pytest.approx(slow / len(points), abs=1e-9)
    assert fronts[0].igd_plus(fronts[1:]) == pytest.approx(fronts[0].igd_plus(points), abs=1e-12)
    whole = alone(everyone.tolist())
    assert whole.igd_plus(tuple(fronts)) == 0.0


# All fronts of a page at once.


@given(unions(least=2), st.sampled_from([("val", "test"), ("val",)]))
def test_the_numbers_of_a_page_are_those_of_its_fronts(union: Any, splits: Any) -> None:
    fronts = [made(each, reference=(5.0,) * len(union[0][0][0])) for each in union]
    fronts = [dataclasses.replace(each, losses={name: each.losses[name] for name in splits}) for each in fronts]
    for place, found in enumerate(union_numbers(fronts)):
        one, others = fronts[place], [*fronts[:place], *fronts[place + 1 :]]
        assert found is not None
        assert (found["split"], found["chosen_on"]) == (splits[-1], "val")
        assert found["regret"] == pytest.approx(one.regret(*others), abs=1e-9)
        assert found["r2"] == pytest.approx(one.r2(*others, split=splits[-1]), abs=1e-9)
        assert found["igd_plus"] == pytest.approx(one.igd_plus(others, splits[-1], scaled=True), abs=1e-9)


def test_what_has_no_number_on_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    front, other = front_of([[0.2, 0.4], [0.4, 0.2]]), front_of([[0.3, 0.3]])
    separate = front_of([[0.1, 7.0], [7.0, 0.1]], method="single-task", reading="importance")
    lost = front_of([[math.nan, 1.0]])
    assert union_numbers([front]) == [None]
    assert union_numbers([front, separate]) == [None, None], "one front is no union"
    assert union_numbers([lost, lost]) == [None, None]
    assert union_numbers([front, made([([1.0, 1.0], [1.0, 1.0])])]) == [None, None], "ranked on different splits"
    first, none, second, third = union_numbers([front, separate, lost, other])
    assert (none, second) == (None, None)
    assert first is not None
    assert third is not None
    assert (first["regret"], third["regret"]) == (front.regret(other), other.regret(front))
    monkeypatch.setitem(sys.modules, "moocore", None)
    assert [each["igd_plus"] for each in union_numbers([front, other]) if each] == [None, None]


# What says nothing is refused.


def test_what_cannot_be_compared_is_refused() -> None:
    front = front_of([[0.2, 0.4]])
    for measure in (front.regret, front.r2, lambda *others: front.igd_plus([front, *others])):
        with pytest.raises(TypeError, match=r"'others' must be fronts. Got list"):
            measure([0.2, 0.4])  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"'others' must have the tasks \['a', 'b'\]. Got \['a', 'b', 'c'\]"):
            measure(front_of([[1.0, 1.0, 1.0]]))
    both = made([([1.0, 1.0], [1.0, 1.0])])
    with pytest.raises(ValueError, match=r"'others' must have losses on 'val'. Got \['train'\] in number 1 instead"):
        both.regret(front)
    with pytest.raises(ValueError, match=r"'split' must be one of \['train'\]. Got 'test' instead"):
        front.regret(split="test")
    with pytest.raises(ValueError, match=r"'split' must be one of \['train'\]. Got 'test' instead"):
        front.r2(split="test")
    with pytest.raises(ValueError, match=r"'kind' must be one of both, linear, tchebycheff. Got 'sum' instead"):
        front.regret(kind="sum")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"'utilities' must be a whole number of at least 1. Got 0"):
        front.regret(utilities=0)
    with pytest.raises(ValueError, match=r"'seed' must be a whole number. Got 0.5"):
        front.regret(seed=0.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"'weights' must be a whole number of at least 1. Got -3"):
        front.r2(weights=-3)
    with pytest.raises(ValueError, match=r"'scaled' must be False for points"):
        front.igd_plus(torch.ones(1, 2), scaled=True)
    with pytest.raises(ValueError, match=r"'scaled' must be True or False. Got 'test'"):
        front.igd_plus(front, scaled="test")  # type: ignore[arg-type]
