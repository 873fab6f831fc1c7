from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import paretomtl as pm
from _helpers.fronts import front_of
from paretomtl.core import nondominated

CONVEX = [[0.0, 1.0], [0.2, 0.4], [0.5, 0.3], [1.0, 0.0], [0.9, 0.9]]
CONCAVE = [[0.0, 1.0], [0.6, 0.7], [1.0, 0.0]]


def test_by_direction() -> None:
    found = front_of(CONVEX)
    choice = found.select(direction=[2.0, 4.0])
    assert choice.k == 1
    assert "0.0° from the direction (2, 4); the next is model" in choice.reason
    assert choice.losses == {"a": 0.2, "b": 0.4}
    assert found.select(direction=[0, 1]).k == 0
    assert found.select(direction=[1, 1]).k != 4, "a dominated model is never chosen"


def test_by_importance_reads_the_other_way() -> None:
    found = front_of(CONVEX)
    assert found.select(importance=[1, 0]).k == 0
    assert found.select(importance=[0, 1]).k == 3
    assert found.select(importance=[1, 1]).k == 1


def test_importances_weigh_losses_as_scaled_in_training() -> None:
    metres, found = front_of([[a, 1000 * b] for a, b in CONVEX]), front_of(CONVEX)
    assert metres.select(importance=[1, 1]).k == 3, "the larger unit decides everything"
    metres = replace(metres, scale=torch.tensor([[1.0, 0.001]]).repeat(len(CONVEX), 1))
    for wish in ([1, 1], [4, 1], [1, 4], [1, 0]):
        assert metres.select(importance=wish).k == found.select(importance=wish).k
    assert (
        "losses on training, scaled as in training and weighted by (1, 1), 0.3;"
        in metres.select(importance=[1, 1]).reason
    )


def test_the_knee_is_farthest_below_the_chord() -> None:
    choice = front_of(CONVEX).select(knee=True)
    assert choice.k == 1
    assert "by 0.283 of losses" in choice.reason
    assert front_of([[10 * a, b] for a, b in CONVEX]).select(knee=True).k == 1, "units do not matter"


def test_a_concave_front_has_no_knee() -> None:
    for losses in (CONCAVE, [[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]]):
        choice = front_of(losses).select(knee=True)
        assert choice.k is None
        assert "concave or straight" in choice.reason
    assert front_of([[0.5, 0.5]]).select(knee=True).k is None


def test_a_knee_of_three_tasks() -> None:
    corners = [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
    assert front_of([*corners, [0.5, 0.5, 0.5]]).select(knee=True).k == 3
    assert front_of([*corners, [0.8, 0.8, 0.8]]).select(knee=True).k is None


def test_within_bounds() -> None:
    metrics = {"train": {"race": torch.tensor([0.7, 0.8, 0.9, 0.75, 0.95]), "age": torch.tensor([9.0, 8, 7, 6, 5])}}
    found = front_of(CONVEX, metrics=metrics, better={"race": "higher", "age": "lower"})
    choice = found.select(bounds={"race": 0.78}, best="age")
    assert choice.k == 4
    assert "of 3 models with race at least 0.78 on training, it has the best age, 5" in choice.reason
    assert found.select(bounds={"race": 0.78, "b": 0.35}, best="age").k == 2
    assert found.select(bounds={"age": 7.5}, best="race").k == 4
    none = found.select(bounds={"race": 0.99}, best="age")
    assert none.k is None
    assert none.reason == (
        "No model on training has race at least 0.99. Model 4 comes nearest: its race is 0.95, 0.04 too low."
    )
    assert none.nearest == 4
    assert none.misses == pytest.approx({"race": 0.04})
    with pytest.raises(
        ValueError, match=r"bounds and 'best' must name one of \['a', 'b', 'race', 'age'\].* Got 'height'"
    ):
        found.select(bounds={"height": 1.0}, best="age")
    with pytest.raises(ValueError, match="with bounds or without"):
        found.select(bounds={"race": 0.5})


def test_validation_decides_where_there_is_one() -> None:
    other = torch.tensor(CONVEX, dtype=torch.float64).flip(0)
    found = front_of(CONVEX, splits={"val": other, "test": other})
    assert found.select(importance=[1, 0]).k == 4
    assert found.select(importance=[1, 0], split="train").k == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {},
            "one of direction, importance, knee, max_regret, best must be given, with bounds or without. Got none",
        ),
        ({"knee": True, "direction": [1, 1]}, r"with bounds or without. Got \['direction', 'knee'\]"),
        ({"at_most": {"a": 1.0}}, "Got bounds alone, which several models may satisfy instead: write best="),
        ({"knee": True, "best": "a", "at_most": {"a": 1.0}}, r"Got \['knee', 'bounds', 'best'\]"),
        ({"direction": [1.0]}, r"'direction' must be 2 numbers, not negative and not all zero. Got \[1.0\]"),
        ({"importance": [0, 0]}, "'importance' must be 2 numbers"),
        ({"direction": [1, -1]}, "'direction' must be 2 numbers"),
        ({"knee": True, "best": "a"}, r"Got \['knee', 'best'\]"),
        ({"knee": True, "split": "dev"}, "'split' must be one of"),
    ],
)
def test_bad_questions_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        front_of(CONVEX).select(**options)


def test_a_loss_is_hardly_ever_meant_to_be_large() -> None:
    plain = front_of(CONVEX)
    metrics = {"train": {"a accuracy": plain.losses["train"][:, 0]}}
    accurate = replace(plain, metrics=metrics, better={"a accuracy": "higher"})
    with pytest.warns(
        UserWarning, match="'at_least' bounds the loss of 'a' from below.* Its metrics are 'a accuracy';"
    ):
        accurate.select(at_least={"a": 0.1}, best="b")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        accurate.select(at_least={"a accuracy": 0.1, "loss:a": 0.1}, best="b")
        accurate.select(at_least={"a": 0.1}, at_most={"a": 10.0}, best="b")


def test_the_best_of_one_name_needs_no_bounds() -> None:
    choice = front_of(CONVEX).select(best="b")
    assert choice.k == min(range(len(CONVEX)), key=lambda row: CONVEX[row][1])
    assert choice.reason.startswith(f"Model {choice.k}: of {len(CONVEX)} models on training, it has the best b")
    assert front_of([[torch.nan, 1.0], [torch.inf, 1.0]]).select(best="a").k is None


def test_nothing_finite_to_choose_from() -> None:
    broken = front_of([[torch.nan, 1.0], [torch.inf, 1.0]])
    for options in ({"direction": [1, 1]}, {"importance": [1, 1]}, {"knee": True}, {"max_regret": True}):
        choice = broken.select(**options)
        assert choice.k is None
        assert choice.reason == "No model has finite losses on training: 0 (nan, 1), 1 (inf, 1)."


@given(st.lists(st.lists(st.floats(0.01, 10.0), min_size=3, max_size=3), min_size=1, max_size=12), st.data())
def test_choices_are_never_dominated_and_scale_free(rows: list[list[float]], data: st.DataObject) -> None:
    found = front_of(rows)
    kept = nondominated(torch.tensor(rows, dtype=torch.float64)).tolist()
    wish = data.draw(st.lists(st.floats(0.1, 1.0), min_size=3, max_size=3))
    for options in ({"direction": wish}, {"importance": wish}, {"knee": True}, {"max_regret": True}):
        k = found.select(**options).k
        assert k is None or kept[k]
        larger = {name: [3 * v for v in value] if isinstance(value, list) else value for name, value in options.items()}
        again = found.select(**larger).k
        same: Tensor = torch.tensor(rows, dtype=torch.float64)
        assert again == k or (k is not None and again is not None and torch.allclose(same[k], same[again], rtol=1e-6))


def test_a_plane_that_is_tilted_has_no_knee() -> None:
    """The normal through the best of each task has a negative entry: below it a larger loss would count as better."""
    losses = [[0.9, 0.1, 0.3], [0.4, 0.3, 0.1], [0.0, 0.8, 0.5], [0.3, 0.2, 0.3]]
    choice = front_of(losses).select(knee=True)
    assert choice.k is None
    assert "tilted" in choice.reason


def test_wishes_by_name() -> None:
    found = front_of(CONVEX)
    assert found.select(importance={"a": 1.0}).k == 0
    assert found.select(direction={"b": 1, "a": 0}).k == 0
    with pytest.raises(ValueError, match=r"'importance' must name tasks of \['a', 'b'\]. Got 'c'"):
        found.select(importance={"c": 1.0})
    with pytest.raises(TypeError, match=r"'bounds' must be numbers. Got 'x' for 'a'"):
        found.select(bounds={"a": "x"}, best="b")  # type: ignore[dict-item]


# Regret.


def test_the_largest_regret_is_the_smallest() -> None:
    """By the formula, one by one."""
    rows = [[0.0, 10.0, 3.0], [4.0, 2.0, 3.0], [3.0, 6.0, 3.0], [8.0, 0.0, 3.0], [9.0, 9.0, 9.0]]
    found = front_of(rows)
    kept = rows[:4]  # the last one is dominated
    regrets = []
    for row in kept:
        parts = []
        for i, value in enumerate(row):
            low, high = min(other[i] for other in kept), max(other[i] for other in kept)
            parts.append((value - low) / (high - low) if high > low else 0.0)
        regrets.append(max(parts))
    choice = found.select(max_regret=True)
    assert choice.k == regrets.index(min(regrets)) == 1
    assert "in a, is the smallest: 0.5 of the way" in choice.reason
    assert "the next is model 2 with 0.6" in choice.reason


def test_regret_does_not_depend_on_units_and_breaks_ties_by_the_sum() -> None:
    scaled = [[100 * a - 3, 0.1 * b + 7] for a, b in CONVEX]
    assert front_of(scaled).select(max_regret=True).k == front_of(CONVEX).select(max_regret=True).k
    tied = front_of([[0.0, 1.0, 0.5], [1.0, 0.0, 0.0], [0.5, 1.0, 0.0]])
    assert tied.select(max_regret=True).k == 1
    alone = front_of([[1.0, 1.0], [2.0, 2.0]]).select(max_regret=True)
    assert alone.k == 0
    assert "the only model on training that no other one dominates" in alone.reason


def test_a_concave_front_has_a_middle_by_regret() -> None:
    assert front_of(CONCAVE).select(max_regret=True).k == 1


REFERENCE = (2.0, 3.0)
REASONABLE = st.lists(
    st.tuples(st.floats(0.01, REFERENCE[0]), st.floats(0.01, REFERENCE[1])), min_size=1, max_size=8, unique=True
)
TERRIBLE = st.one_of(
    st.tuples(st.floats(-5.0, 5.0), st.floats(3.01, 1e9)),  # never asked for the second task, and great in the first
    st.tuples(st.floats(2.01, 1e9), st.floats(-5.0, 5.0)),
    st.tuples(st.just(torch.inf), st.floats(0.0, 1.0)),
    st.tuples(st.just(torch.nan), st.floats(0.0, 1.0)),
    st.tuples(st.floats(2.01, 1e9), st.floats(3.01, 1e9)),
)


@given(REASONABLE, st.lists(TERRIBLE, min_size=1, max_size=3))
def test_terrible_models_change_no_choice_by_range(rows: list[Any], terrible: list[Any]) -> None:
    """What lies beyond the reference point in a task is no end of a range, and is not chosen for its balance."""
    alone, among = (front_of(part, reference=REFERENCE) for part in (rows, [*rows, *terrible]))
    assert among.select(max_regret=True).k == alone.select(max_regret=True).k
    assert among.select(knee=True).k == alone.select(knee=True).k
    bounds = {"bounds": {"a": -9.0, "b": -9.0}, "best": "a"}
    if bool((torch.tensor(terrible) > 10.0).any(-1).all()):  # too far away to come nearest
        assert among.select(**bounds).nearest == alone.select(**bounds).nearest


def test_what_is_beyond_the_reference_is_said_to_be_left_out() -> None:
    rows = [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9], [0.05, 1000.0]]
    assert front_of(rows).select(max_regret=True).k == 2, "of a range of 1000, all others have next to nothing"
    choice = front_of(rows, reference=(1.5, 1.5)).select(max_regret=True)
    assert choice.k == 1
    assert choice.reason.endswith("Beyond the reference point (1.5, 1.5), and left out: model 3.")
    alone = front_of(rows[2:], reference=(1.5, 1.5)).select(max_regret=True)
    assert "the only model on training within the reference point that no other one dominates. Beyond" in alone.reason


def test_a_reference_that_nothing_reaches_leaves_nothing_out() -> None:
    for reference in (None, (0.0, 0.0), (torch.nan, 1.0)):
        choice = front_of(CONVEX, reference=reference).select(max_regret=True)
        assert choice == front_of(CONVEX).select(max_regret=True)


# Names and bounds.

MEASURED: dict[str, Any] = {
    "metrics": {"train": {"a accuracy": torch.tensor([0.9, 0.8, 0.7]), "b accuracy": torch.tensor([0.5, 0.6, 0.95])}},
    "better": {"a accuracy": "higher", "b accuracy": "higher"},
}


def test_a_name_has_one_reading() -> None:
    found = front_of(CONCAVE, **MEASURED)
    for name in ("a accuracy", "accuracy:a"):
        choice = found.select(at_least={name: 0.75}, best="accuracy:b")
        assert choice.k == 1
        assert "with a accuracy at least 0.75 on training, it has the best b accuracy, 0.6" in choice.reason
    for name in ("b", "loss:b"):
        assert found.select(at_most={name: 0.8}, best="a").k == 1
    for name in ("accuracy", "accuracy:c", "loss:c", "a:accuracy", ":a"):
        with pytest.raises(ValueError, match=r"must name one of \['a', 'b', 'a accuracy', 'b accuracy'\]"):
            found.select(at_least={name: 0.5}, best="a")
    own = front_of(CONCAVE, metrics={"train": {"accuracy:a": torch.tensor([1.0, 2.0, 3.0])}})
    assert own.select(at_least={"accuracy:a": 3.0}, best="a").k == 2, "a metric's own name comes first"


def test_bounds_from_both_sides_and_of_all_kinds() -> None:
    found = front_of(CONCAVE, **MEASURED)
    assert found.select(at_least={"a": 0.1}, at_most={"a": 0.9}, best="a").k == 1
    assert found.select(bounds={"b accuracy": 0.55}, at_most={"a accuracy": 0.75}, best="a").k == 2
    with pytest.raises(ValueError, match=r"bounds must leave room between them. Got a at least 2 and a at most 1"):
        found.select(at_least={"a": 2.0}, at_most={"loss:a": 1.0}, best="a")
    with pytest.raises(ValueError, match=r"'at_most' must be finite numbers. Got nan for 'a'"):
        found.select(at_most={"a": float("nan")}, best="a")


RULES: list[dict[str, Any]] = [
    {"max_regret": True},
    {"knee": True},
    {"direction": [1.0, 2.0]},
    {"importance": [2.0, 1.0]},
    {"best": "b"},
]


@given(REASONABLE, st.floats(0.01, 2.0), st.sampled_from(RULES))
def test_a_rule_within_bounds_is_that_rule_on_what_is_left(rows: list[Any], limit: float, rule: dict[str, Any]) -> None:
    """Also where all that is left is dominated by what is not."""
    left = [k for k, row in enumerate(rows) if float(f"{row[0]:.6g}") >= limit]
    choice = front_of(rows).select(at_least={"a": limit}, **rule)
    if not left:
        assert choice.k is None
        assert choice.nearest == max(range(len(rows)), key=lambda k: (float(f"{rows[k][0]:.6g}"), -k))
        return
    alone = front_of([rows[k] for k in left]).select(**rule)
    assert choice.k == (None if alone.k is None else left[alone.k])
    if choice.k is not None:
        assert f"{len(left)} model" in choice.reason


def test_a_bound_counts_to_the_digits_that_are_shown() -> None:
    """0.7 in float32 is below 0.7 by 1e-8."""
    accuracy = torch.tensor([0.7, 0.69999], dtype=torch.float32)
    found = front_of([[0.5, 1.0], [1.0, 0.5]], metrics={"train": {"a accuracy": accuracy}})
    assert found.select(at_least={"a accuracy": 0.7}, best="b").k == 0
    assert found.select(at_least={"a accuracy": 0.699995}, best="b").k == 0


def test_the_nearest_to_bounds_misses_least_of_the_range() -> None:
    """Ranges are 0.2 and 0.45; the misses of the rows are (0, 0.45), (0.1, 0.35) and (0.2, 0), largest relative one."""
    none = front_of(CONCAVE, **MEASURED).select(at_least={"accuracy:a": 0.9, "accuracy:b": 0.95}, best="a")
    assert none.k is None
    assert none.nearest == 1
    assert none.misses == pytest.approx({"a accuracy": 0.1, "b accuracy": 0.35})
    assert "its a accuracy is 0.8, 0.1 too low and its b accuracy is 0.6, 0.35 too low" in none.reason
    high = front_of(CONCAVE, **MEASURED).select(at_most={"a accuracy": 0.6}, best="a")
    assert "its a accuracy is 0.7, 0.1 too high" in high.reason


def test_bounds_on_what_nobody_knows() -> None:
    unknown = front_of(CONCAVE, metrics={"train": {"x": torch.full((3,), torch.nan)}}, better={"x": "higher"})
    choice = unknown.select(at_least={"x": 0.5}, best="a")
    assert choice.k is None
    assert choice.nearest is None
    assert choice.reason == "No model on training has x at least 0.5. No model has a known x."
    assert "with a at most 2 has a known x" in unknown.select(at_most={"a": 2}, best="x").reason


def test_what_dominates_all_others_is_no_knee() -> None:
    choice = front_of([[1.0, 1.0], [2.0, 1.0], [1.0, 3.0]]).select(knee=True)
    assert choice.k is None
    assert "model 0 dominates all other models on training" in choice.reason


def test_zero_losses_have_no_direction() -> None:
    choice = front_of([[0.0, 0.0], [1.0, 2.0]]).select(direction=[1, 1])
    assert choice.k is None
    assert "which has no direction" in choice.reason


# The truth.


def test_on_the_synthetic_problem_the_nearest_possible_solution_is_chosen() -> None:
    problem = pm.problems.synthetic()
    front = pm.fit(
        problem, "pareto-mtl", 9, epochs=200, optimizer=lambda p: torch.optim.SGD(p, lr=1.0), device="cpu",
        progress="quiet",
    )  # fmt: skip
    losses = front.losses["train"].double()
    kept = nondominated(losses)
    assert problem.truth is not None
    assert problem.truth.distance(losses).max() < 0.02, "the models lie on the true front"
    for degrees in range(0, 91, 3):
        wish = torch.tensor([degrees * torch.pi / 180]).double()
        direction = torch.cat([wish.cos(), wish.sin()]).clamp_min(0.0)
        cosines = (losses @ direction) / losses.norm(dim=-1)
        best = torch.where(kept, cosines, -1.0).max()
        k = front.select(direction=direction.tolist()).k
        assert k is not None
        assert cosines[k] == pytest.approx(float(best), abs=1e-12)
    for k, direction in enumerate(front.preferences):
        assert front.select(direction=direction.tolist()).k == k, "each is the nearest to its own preference"


def test_the_knee_of_the_convex_problem_is_found_and_the_concave_one_has_none() -> None:
    """The true knee of the parabolas is where x is half way: there both losses are 1/2."""
    convex = pm.problems.quadratic().truth
    assert convex is not None
    points = convex.front(201)
    choice = front_of(points.tolist()).select(knee=True)
    assert list(choice.losses.values()) == pytest.approx([0.5, 0.5], abs=0.02)
    concave = pm.problems.synthetic().truth
    assert concave is not None
    none = front_of(concave.front(201).tolist()).select(knee=True)
    assert none.k is None
    assert "concave or straight" in none.reason
    trained = pm.fit(pm.problems.quadratic(), "pareto-mtl", 5, epochs=300, progress="quiet", device="cpu")
    assert trained.select(knee=True).k == 2


@pytest.mark.parametrize("best", ["a", "score"])
def test_of_equally_good_models_one_that_no_other_dominates_is_chosen(best: str) -> None:
    metrics = {"train": {"score": torch.tensor([0.9, 0.2, 0.9, 0.9])}}
    found = front_of([[0.2, 0.9], [0.9, 0.8], [0.2, 0.5], [0.2, 0.5]], metrics=metrics, better={"score": "higher"})
    assert found.select(best=best).k == 2
    broken = front_of([[0.2, torch.nan], [0.9, 0.8], [0.2, 0.5]])
    assert broken.select(best="a").k == 2
    assert found.select(at_most={"a": 0.1}, best="b").nearest == 2, "the same for the nearest miss"
