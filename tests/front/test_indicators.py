"""Indicators against brute force on grids, their theorems, and Δm by hand."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
import sys
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import paretomtl as pm
from _helpers.fronts import front_of
from _helpers.places import DOCS
from paretomtl.front.indicators import (
    box_share,
    quick_box_share,
    quick_tight_hypervolume,
    tight_reference,
    widen_reference,
)

_SIDE = 5  # losses are whole numbers below it, so that volumes are counts of unit cells

tables = st.integers(2, 4).flatmap(
    lambda tasks: st.lists(st.lists(st.integers(0, _SIDE - 1), min_size=tasks, max_size=tasks), min_size=1, max_size=6)
)
factors = st.lists(st.floats(1e-3, 1e3), min_size=4, max_size=4)
signed_tables = st.integers(2, 4).flatmap(
    lambda tasks: st.lists(st.lists(st.floats(-1e3, 1e3), min_size=tasks, max_size=tasks), min_size=1, max_size=6)
)


def tensor(rows: Any) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def cells(rows: list[list[int]]) -> int:
    """The hypervolume at (5, ..., 5): unit cells whose lower corner is not better than some row in any task."""
    corners = itertools.product(range(_SIDE), repeat=len(rows[0]))
    return sum(any(all(a <= c for a, c in zip(row, corner, strict=True)) for row in rows) for corner in corners)


# The share of the box.


@given(tables)
def test_the_share_of_the_box_is_that_of_its_cells(rows: list[list[int]]) -> None:
    ideal = [min(column) for column in zip(*rows, strict=True)]
    share = box_share(tensor(rows), [_SIDE] * len(ideal))
    assert share == pytest.approx(cells(rows) / math.prod(_SIDE - best for best in ideal))
    assert 0.0 < share <= 1.0
    assert (share == 1.0) == (ideal in rows), "one model is best in every task"


@given(tables, factors, st.lists(st.floats(-10, 10), min_size=4, max_size=4))
def test_units_and_origins_do_not_change_the_share(rows: Any, units: Any, shifts: Any) -> None:
    tasks = len(rows[0])
    unit, shift = tensor(units[:tasks]), tensor(shifts[:tasks])
    reference = tensor([_SIDE] * tasks)
    changed = box_share(tensor(rows) * unit + shift, (reference * unit + shift).tolist())
    assert changed == pytest.approx(box_share(tensor(rows), reference.tolist()), rel=1e-6)


@pytest.mark.study
@given(tables, st.lists(st.integers(0, _SIDE - 1), min_size=4, max_size=4))
def test_one_more_solution_never_lowers_the_hypervolume(rows: Any, more: Any) -> None:
    reference = [float(_SIDE)] * len(rows[0])
    front = front_of(rows, reference=tuple(reference))
    larger = front_of([*rows, more[: len(rows[0])]], reference=tuple(reference))
    assert larger.hypervolume() >= front.hypervolume() - 1e-9
    assert front.hypervolume() == pytest.approx(cells(rows))


def test_the_share_of_known_points() -> None:
    front = front_of([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]], reference=(2.0, 2.0))
    assert front.box_share() == pytest.approx(3.25 / 4)
    assert front.box_share([1.5, 1.5]) == pytest.approx((1.5**2 - 1.25 + 0.25 + 0.25) / 1.5**2)
    copies = front_of([[0.3, 0.3], [0.2, 0.2], [0.4, 0.4]], reference=(1.0, 1.0))
    assert copies.box_share() == 1.0, "tasks that are copies have nothing to trade"


def test_many_tasks_in_huge_units_do_not_overflow() -> None:
    """The products of thirty sides of 1e12 are beyond float64; their ratio is not."""
    rows = torch.ones(2, 30, dtype=torch.float64)
    rows[0, 0] = rows[1, 1] = 2.0
    assert box_share(rows * 1e12, [3e12] * 30) == pytest.approx(0.75)


def test_where_the_box_is_empty() -> None:
    assert math.isnan(box_share(tensor([[1.0, 1.0]]), [1.0, 2.0]))
    assert math.isnan(box_share(torch.zeros(0, 2, dtype=torch.float64), [1.0, 1.0]))
    assert box_share(tensor([[0.0, 3.0], [3.0, 0.0]]), [2.0, 2.0]) == 0.0, "no model is inside"
    front = front_of([[0.5, 3.0], [3.0, 0.5]], reference=(2.0, 2.0))
    with pytest.raises(ValueError, match=r"'reference' must be above the losses of at least one model"):
        front.box_share()
    assert quick_box_share(front, "train") is None
    with pytest.raises(ValueError, match=r"'reference' must be given: this front has no default"):
        front_of([[1.0, 1.0]]).box_share()
    assert quick_box_share(front_of([[1.0, 1.0]]), "train") is None


def test_without_moocore_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "moocore", None)
    front = front_of([[1.0, 1.0]], reference=(2.0, 2.0))
    with pytest.raises(ModuleNotFoundError, match="indicators"):
        front.box_share()
    assert quick_tight_hypervolume(front, "train") == ([1.1, 1.1], None)
    assert front.tight_reference() == (1.1, 1.1), "a point needs no package"


# The tight reference.


@given(st.lists(signed_tables, min_size=1, max_size=3))
def test_the_tight_reference_is_beyond_every_solution_that_counts(parts: list[Any]) -> None:
    tasks = min(len(part[0]) for part in parts)
    fronts = [front_of([row[:tasks] for row in part]) for part in parts]
    union = torch.cat([front.losses["train"] for front in fronts])
    best = union[front_of(union.tolist()).nondominated()]
    point = fronts[0].tight_reference(*fronts[1:])
    assert bool((tensor(point) > best).all())
    assert fronts[-1].tight_reference(*fronts[:-1]) == point, "whichever front is asked"
    others = union[~front_of(union.tolist()).nondominated()]
    assert tight_reference(torch.cat([best, others + 1e4])) == list(point), "dominated models do not count"


@given(signed_tables, st.lists(st.floats(-1e3, 1e3), min_size=4, max_size=4))
def test_a_wide_reference_cuts_off_at_most_half_of_a_front_in_each_task(rows: Any, point: list[float]) -> None:
    losses, given = tensor(rows), point[: len(rows[0])]
    wide = tensor(widen_reference(given, losses))
    best = losses[front_of(rows).nondominated()]
    assert bool(((best > wide).double().mean(0) <= 0.5).all())
    moved = wide != tensor(given)
    assert bool((wide >= tensor(given)).all())
    assert bool((best[:, moved] < wide[moved]).all()), "where it moves, nothing is cut off"
    assert widen_reference(wide.tolist(), losses) == wide.tolist()


def test_a_fairness_gap_begins_at_its_best() -> None:
    """Untrained models have nearly none, and a front that ends there would be a single model."""
    rows = [[0.34, 0.33], [0.4, 0.2], [0.5, 0.1], [0.69, 0.0]]
    assert widen_reference([0.7, 0.01], tensor(rows)) == [0.7, pytest.approx(0.363)]
    assert widen_reference([0.7, 0.25], tensor(rows)) == [0.7, 0.25], "one end may be useless"
    assert widen_reference([0.7, 0.01], tensor([[float("nan")] * 2])) == [0.7, 0.01]


@given(tables, factors)
def test_a_change_of_units_changes_the_tight_reference_alike(rows: Any, units: Any) -> None:
    unit, shifted = tensor(units[: len(rows[0])]), tensor(rows) - 1.5  # of both signs, and never zero
    expected = (tensor(tight_reference(shifted)) * unit).tolist()
    assert tight_reference(shifted * unit) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("rows", "within", "point"),
    [
        ([[1.0, 2.0], [2.0, 1.0], [9.0, 9.0]], None, [2.2, 2.2]),
        ([[-5.0, 0.0], [0.0, -5.0]], None, [0.5, 0.5]),
        ([[-5.0, 1.0], [-4.0, -1.0]], None, [-3.6, 1.2]),
        ([[0.0, 1.0]], None, [0.1, 1.1]),
        ([[1.0, 9.0], [1.5, 1.5], [1.9, 1.0]], [2.0, 2.0], [2.0, 1.65]),
        ([[3.0, 4.0], [4.0, 3.0]], [2.0, 2.0], [4.4, 4.4]),
    ],
)
def test_tight_references_by_hand(rows: Any, within: Any, point: list[float]) -> None:
    assert tight_reference(tensor(rows), within) == pytest.approx(point)
    front = front_of(rows, reference=None if within is None else tuple(within))
    assert front.tight_reference() == pytest.approx(tuple(point))


def test_separate_networks_are_no_part_of_the_union() -> None:
    """Their losses in tasks of others can be anything: such a point would make a tight reference loose."""
    front = front_of([[0.2, 0.4], [0.4, 0.2]])
    separate = front_of([[0.1, 7.0], [7.0, 0.1]], method="single-task", reading="importance")
    assert front.tight_reference(separate) == pytest.approx((0.44, 0.44))
    assert separate.tight_reference() == pytest.approx((7.7, 7.7))


def test_tight_references_that_say_nothing_are_refused() -> None:
    front = front_of([[0.2, 0.4]])
    with pytest.raises(TypeError, match=r"'others' must be fronts. Got list"):
        front.tight_reference([front])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"'others' must have the tasks \['a', 'b'\]. Got \['a', 'b', 'c'\]"):
        front.tight_reference(front_of([[1.0, 1.0, 1.0]]))
    with pytest.raises(ValueError, match=r"'split' must be one of \['train'\]. Got 'test'"):
        front.tight_reference(split="test")
    broken = front_of([[torch.nan, 1.0]])
    with pytest.raises(ValueError, match=r"'split' must have a model with finite losses. Got none on 'train'"):
        broken.tight_reference()
    assert quick_tight_hypervolume(broken, "train") == (None, None)


# Δm.


def separate(own: list[float], **fields: Any) -> pm.Front:
    """Separate networks whose losses in other tasks are 50; in another order than the tasks."""
    rows = torch.full((len(own), len(own)), 50.0, dtype=torch.float64)
    rows.diagonal().copy_(tensor(own))
    made = front_of(rows.flip(0).tolist(), method="single-task", reading="importance", **fields)
    return dataclasses.replace(made, preferences=torch.eye(len(own), dtype=torch.float64).flip(0))


def test_delta_m_by_hand() -> None:
    front = front_of([[0.3, 0.4], [0.2, 0.5], [0.1, 0.2], [math.nan, 0.1], [math.inf, 0.1]])
    found = front.delta_m([0.2, 0.4])
    assert found[:3].tolist() == pytest.approx([25.0, 12.5, -50.0])
    assert found[3:].isnan().all()
    assert front.delta_m(separate([0.2, 0.4]))[:3].tolist() == pytest.approx(found[:3].tolist())
    assert front.delta_m(front_of([[0.2, 0.4]]))[:3].tolist() == pytest.approx(found[:3].tolist())


@given(tables, factors, factors)
def test_delta_m_has_no_units_and_is_zero_at_the_baseline(rows: Any, units: Any, base: Any) -> None:
    tasks = len(rows[0])
    unit, baseline = tensor(units[:tasks]), tensor(base[:tasks])
    front, scaled = front_of(rows), front_of((tensor(rows) * unit).tolist())
    torch.testing.assert_close(scaled.delta_m((baseline * unit).tolist()), front.delta_m(baseline.tolist()))
    assert front_of([baseline.tolist()]).delta_m(baseline.tolist()).tolist() == [0.0]
    better = front.losses["train"] < baseline
    assert bool((front.delta_m(baseline.tolist())[better.all(-1)] < 0).all()), "below zero is better"


def test_delta_m_of_metrics_knows_what_is_better() -> None:
    metrics = {"a accuracy": tensor([0.9, 0.6]), "b accuracy": tensor([0.4, 0.5]), "b error": tensor([3.0, 1.0])}
    better = {"a accuracy": "higher", "b accuracy": "higher", "b error": "lower"}
    front = front_of([[1.0, 2.0], [2.0, 1.0]], metrics={"train": metrics}, better=better)
    assert front.delta_m([0.6, 0.5], "accuracy").tolist() == pytest.approx([(-50 + 20) / 2, 0.0])
    mixed = front.delta_m([0.6, 2.0], ["a accuracy", "b error"])
    assert mixed.tolist() == pytest.approx([(-50 + 50) / 2, (0 - 50) / 2])
    assert front.delta_m([2.0, 2.0], ["a", "b"]).tolist() == front.delta_m([2.0, 2.0]).tolist()
    own = {"a accuracy": tensor([0.1, 0.6]), "b accuracy": tensor([0.5, 0.1])}
    alone = separate([0.1, 0.1], metrics={"train": own}, better={"a accuracy": "higher", "b accuracy": "higher"})
    assert front.delta_m(alone, "accuracy").tolist() == pytest.approx([-15.0, 0.0])
    with pytest.raises(ValueError, match=r"'metric' must name metrics on 'train', .* Got 'a error' instead"):
        front.delta_m([1.0, 1.0], "error")
    with pytest.raises(ValueError, match=r"'metric' must be one name, or one for each task \(2\)"):
        front.delta_m([1.0, 1.0], ["a accuracy"])
    with pytest.raises(ValueError, match=r"'metric' must have a direction in 'better'. Got 'b error'"):
        dataclasses.replace(front, better={"a accuracy": "higher"}).delta_m([1.0, 1.0], ["a accuracy", "b error"])


@pytest.mark.parametrize("value", [0.0, -0.1, math.nan, math.inf])
def test_nothing_is_relative_to_zero(value: float) -> None:
    with pytest.raises(ValueError, match=r"'baseline' must be positive in every task, .* Got .* for 'b' instead"):
        front_of([[1.0, 1.0]]).delta_m([1.0, value])
    with pytest.raises(ValueError, match=r"'baseline' must be positive in every task, .* for 'b' instead"):
        front_of([[1.0, 1.0]]).delta_m(separate([1.0, value]))


def test_baselines_that_are_no_separate_networks_are_refused() -> None:
    front = front_of([[1.0, 1.0]])
    for baseline in (
        front_of([[1.0, 2.0], [2.0, 1.0]]),
        front_of([[1.0, 2.0], [2.0, 1.0]], method="linear", reading="importance", names=("x", "y")),
    ):
        rows = torch.full((2, 2), 0.5, dtype=torch.float64)
        with pytest.raises(ValueError, match=r"'baseline' must be a front of 'single-task' .* Got 2 models of"):
            front.delta_m(dataclasses.replace(baseline, preferences=rows))
    twice = dataclasses.replace(separate([1.0, 1.0]), preferences=tensor([[1.0, 0.0], [1.0, 0.0]]))
    with pytest.raises(ValueError, match=r"with a network for each of the 2 tasks"):
        front.delta_m(twice)
    with pytest.raises(ValueError, match=r"'baseline' must have the tasks \['a', 'b'\]"):
        front.delta_m(separate([1.0, 1.0, 1.0]))
    with pytest.raises(ValueError, match=r"'baseline' must be a front, or one number per task \(2\). Got \[1.0\]"):
        front.delta_m([1.0])
    with pytest.raises(TypeError, match=r"'baseline' must be a front, or one number per task \(2\). Got 'x'"):
        front.delta_m("x")


def test_trained_separate_networks_are_a_baseline() -> None:
    """Each minimises its own loss: no model of a shared front is better than all of them."""
    quadratic = pm.problems.quadratic()
    options: Any = {"epochs": 200, "progress": "quiet", "device": "cpu"}
    alone = pm.fit(quadratic, "single-task", **options)
    front = pm.fit(quadratic, "linear", torch.tensor([[0.7, 0.3], [0.3, 0.7]]), **options)
    found = front.delta_m(alone)
    own = alone.losses["train"].diagonal().double()
    assert bool((own > 0).all())
    assert found.tolist() == pytest.approx((100 * (front.losses["train"].double() / own - 1).mean(-1)).tolist())
    assert bool((found > 0).all())


def test_the_examples_of_the_page_print_what_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    page = (DOCS / "reference" / "indicators.md").read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", page, re.DOTALL)
    assert len(examples) == 2
    for code, printed in examples:
        exec(compile(code, "indicators.md", "exec"), {})
        assert capsys.readouterr().out == printed
