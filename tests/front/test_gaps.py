"""Gaps of a front: what to train next, from where, and what it is worth."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch

import paretomtl as pm
from _helpers.fronts import front_of
from paretomtl.front.models import LOSSES_ALONE

EXACT = {
    "epochs": 600,
    "optimizer": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "progress": "quiet",
    "device": "cpu",
    "strategy": "sequential",
    "precision": "float64",
}


def fill(problem: pm.Problem, method: Any, front: pm.Front, count: int, **options: Any) -> tuple[Any, pm.Front]:
    gaps = front.gaps(count)
    only = {"preferences": gaps.preferences, "only": gaps.subproblems, "start": gaps.start}
    return gaps, pm.fit(problem, method, **only, **{**EXACT, **options})


@pytest.mark.study
@pytest.mark.parametrize("tasks", [2, 3, 5])
def test_a_new_model_lands_between_its_neighbours_and_the_front_grows(tasks: int) -> None:
    """A convex front that is known: linear scalarization reaches it exactly."""
    problem = pm.problems.quadratic(tasks, tasks, condition=3.0)
    assert problem.truth is not None
    front = pm.fit(problem, "linear", tasks + 1, **EXACT)
    gaps, new = fill(problem, "linear", front, 2)
    assert new.subproblems == gaps.subproblems == (tasks + 1, tasks + 2)
    old, losses = front.losses["train"].double(), new.losses["train"].double()
    for k, (a, b) in enumerate(gaps.neighbours[:1]):
        step = old[b] - old[a]
        row = gaps.rows[k]
        assert abs(float(row @ step)) < 1e-9, "normal to the gap"
        share = float((losses[k] - old[a]) @ step / (step @ step))
        assert 0.0 < share < 1.0
        fall = float(row @ (old[a] - losses[k])) / float((row * (old.amax(0) - old.amin(0))).sum())
        assert 0.0 < fall <= gaps.gains[k] + 1e-9, "no more than the bound, in units of the ranges"
        torch.testing.assert_close(losses[k], problem.truth.point(row[None])[0], rtol=1e-6, atol=1e-9)
    joined = front.joined(new)
    reference = [2.0] * tasks
    assert joined.hypervolume(reference) > front.hypervolume(reference)
    assert joined.nondominated().all()


def test_two_tasks_have_the_normal_of_the_segment() -> None:
    losses = [[0.2, 2.0], [0.5, 1.0], [1.5, 0.6]]
    front = front_of(losses, reading="importance", method="linear")
    weights = torch.tensor([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]], dtype=torch.float64)
    front = dataclasses.replace(front, preferences=weights)
    gaps = front.gaps(2)
    assert gaps.neighbours == ((1, 2), (0, 1))
    torch.testing.assert_close(gaps.rows[0], torch.tensor([0.4 / 1.4, 1.0 / 1.4], dtype=torch.float64))
    torch.testing.assert_close(gaps.rows[1], torch.tensor([1.0 / 1.3, 0.3 / 1.3], dtype=torch.float64))
    torch.testing.assert_close(gaps.importances, gaps.preferences)
    assert gaps.remarks == ()


def test_weights_are_those_of_losses_as_scaled_in_training() -> None:
    """In the units of training, the front and its normals are those of an unscaled one."""
    losses, weights = [[0.2, 2.0], [0.5, 1.0], [1.5, 0.6]], [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]]
    plain = dataclasses.replace(
        front_of(losses, reading="importance", method="linear"), preferences=torch.tensor(weights).double()
    )
    units = torch.tensor([1.0, 1000.0], dtype=torch.float64)
    scaled = dataclasses.replace(
        plain,
        losses={"train": plain.losses["train"] * units + 7.0},
        ideal=(7.0, 7.0),
        scale=(1.0 / units).expand(3, 2),
    )
    torch.testing.assert_close(scaled.gaps(3).preferences, plain.gaps(3).preferences)
    torch.testing.assert_close(scaled.gaps(1).scale, 1.0 / units)
    own = torch.tensor([[0.5, 1.5], [1.0, 1.0], [1.5, 0.5]], dtype=torch.float64)  # each model its own, with mean 1
    first = dataclasses.replace(plain, scale=own, preferences=plain.preferences / own)
    torch.testing.assert_close(first.gaps(2).rows, plain.gaps(2).rows)


def test_a_direction_points_to_the_middle_of_its_gap() -> None:
    front = front_of([[1.0, 4.0], [2.0, 3.0], [6.0, 1.0]])
    gaps = front.gaps()
    assert gaps.neighbours == ((1, 2),)
    torch.testing.assert_close(gaps.rows[0], torch.tensor([4.0, 2.0]).double() / 20**0.5)
    assert gaps.subproblems == (3,)
    assert torch.equal(gaps.preferences[:3], front.preferences)


@pytest.mark.study
@pytest.mark.parametrize("method", ["p-norm", "pareto-mtl"])
def test_directions_fill_a_gap_of_a_concave_front(method: str) -> None:
    problem = pm.problems.synthetic()
    assert problem.truth is not None
    rows = torch.tensor([[0.9, 0.45], [0.6, 0.8], [0.5, 0.87]], dtype=torch.float64)
    steep = {"epochs": 800, "optimizer": lambda parameters: torch.optim.SGD(parameters, lr=0.3)}
    front = pm.fit(problem, method, rows, **{**EXACT, **steep})
    gaps, new = fill(problem, method, front, 1, **steep)
    assert gaps.neighbours == ((0, 1),)
    joined = front.joined(new)
    assert joined.in_region()[3]
    assert float(problem.truth.distance(new.losses["train"].double()).max()) < 0.02
    if method == "pareto-mtl":  # anywhere in its region is good enough for it, and so is the place where it began
        return
    old, losses = front.losses["train"].double(), new.losses["train"].double()[0]
    assert bool((losses > old[:2].amin(0)).all())
    assert bool((losses < old[:2].amax(0)).all())
    assert joined.hypervolume([1.0, 1.0]) > front.hypervolume([1.0, 1.0]) + 0.001


def test_models_begin_with_the_nearer_neighbour_of_their_gap() -> None:
    """Not with the solution whose preference is nearest, which here is dominated and far away."""
    front = front_of([[0.0, 1.0], [0.9, 1.1], [1.0, 0.0]], reading="importance", method="linear")
    front = dataclasses.replace(
        front,
        preferences=torch.tensor([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]], dtype=torch.float64),
        models=type(front.models)({"x": torch.tensor([[0.0], [1.0], [2.0]])}),
    )
    gaps = front.gaps(1)
    assert (gaps.neighbours, gaps.begins) == (((0, 2),), (2,))
    start = gaps.start
    assert start.subproblems == (3,)
    assert start.state_dict(3)["x"].tolist() == [2.0]


def test_a_run_begins_with_exactly_those_weights() -> None:
    problem = pm.problems.quadratic()
    front = pm.fit(problem, "linear", 3, **EXACT)
    gaps = front.gaps(4)
    stand = {"optimizer": lambda parameters: torch.optim.SGD(parameters, lr=0.0), "epochs": 1}
    _, new = fill(problem, "linear", front, 4, **stand)
    for k, begin in zip(gaps.subproblems, gaps.begins, strict=True):
        for name, tensor in front.state_dict(begin).items():
            assert torch.equal(new.state_dict(k)[name], tensor)


def test_losses_on_validation_decide() -> None:
    train, val = [[0.1, 1.0], [0.2, 0.9], [1.0, 0.3]], [[0.1, 1.0], [0.9, 0.35], [1.0, 0.3]]
    front = front_of(train, splits={"val": torch.tensor(val, dtype=torch.float64)})
    front = dataclasses.replace(front, preferences=pm.preferences.validate(train))
    assert (front.gaps().split, front.gaps().neighbours) == ("val", ((0, 1),))
    assert front.gaps(split="train").neighbours == ((1, 2),)


def test_broken_models_do_not_count() -> None:
    front = front_of([[0.1, 1.0], [0.5, 0.5], [1.0, 0.4]])
    frozen = dataclasses.replace(front, status=["feasible", "non-finite", "feasible"])
    assert frozen.gaps().neighbours == ((0, 2),)
    wrong = torch.tensor([[0.1, 1.0], [torch.nan, 0.5], [1.0, 0.4]], dtype=torch.float64)
    assert dataclasses.replace(front, losses={"train": wrong}).gaps().neighbours == ((0, 2),)


def test_a_task_without_weight_gets_the_least_share() -> None:
    front = front_of([[0.0, 0.5, 1.0], [0.5, 0.0, 1.0], [0.9, 0.9, 0.0]], reading="importance", method="linear")
    rows = dataclasses.replace(front, preferences=torch.eye(3, dtype=torch.float64)).gaps(3).rows
    torch.testing.assert_close(rows.sum(-1), torch.ones(3, dtype=torch.float64))
    assert float(rows.min()) == pytest.approx(0.05)


def test_fewer_gaps_than_asked_for_are_told() -> None:
    front = front_of([[0.0, 1.0], [1.0, 0.0]], reading="importance", method="linear")
    front = dataclasses.replace(front, preferences=torch.tensor([[0.5, 0.5], [0.4, 0.6]], dtype=torch.float64))
    gaps = front.gaps(3)
    assert (len(gaps), gaps.subproblems, gaps.asked) == (0, (), 3)
    assert gaps.rows.shape == (0, 2)
    assert gaps.remarks[0] == (
        "None of 3 gaps are worth a model. Nothing is to be gained between models 0 and 1: weights between theirs "
        "lead to one of them again."
    )
    asked = front_of([[0.0, 1.0], [5.0, 5.0], [1.0, 0.0]])
    assert "already asked for the loss ratio between them" in asked.gaps().remarks[0]


def test_gaps_next_to_beaten_models_are_kept_and_told() -> None:
    """By its own weights, model 1 has a larger sum than model 0, in the losses as scaled in training."""
    front = front_of([[0.0, 10.0], [1.0, 0.0]], reading="importance", method="linear")
    weights = torch.tensor([[0.5, 0.5], [0.8, 0.2]], dtype=torch.float64)
    front = dataclasses.replace(front, preferences=weights, scale=torch.tensor([[1.0, 0.1]] * 2).double())
    gaps = front.gaps()
    assert gaps.neighbours == ((0, 1),)
    torch.testing.assert_close(gaps.rows, torch.tensor([[0.65, 0.35]]).double())
    assert gaps.remarks == (
        "Model 1 is beaten at its own weights by model 0: training did not lead to where these weights are best, so "
        "that weights between those of neighbours may still fill a gap.",
    )
    turned = dataclasses.replace(front, preferences=torch.tensor([[0.2, 0.8], [0.6, 0.4]]).double()).gaps()
    assert "Model 0 is beaten at its own weights by model 1, model 1 is beaten at its" in turned.remarks[0]
    filled = torch.cat([weights, torch.stack([t := torch.linspace(0.5, 0.8, 9).double(), 1 - t], -1)])
    many = front_of([[0.0, 10.0], [1.0, 0.0], *[[1.1, 11.0]] * 9], reading="importance", method="linear")
    many = dataclasses.replace(many, preferences=filled, scale=torch.tensor([[1.0, 0.1]] * 11).double())
    assert many.gaps().remarks[0] == (
        "None of 1 gaps are worth a model. Nothing is to be gained between models 0 and 1: models with weights between "
        "theirs are there already."
    )


@pytest.mark.filterwarnings("ignore:most models lie close together")
def test_solutions_that_clump_are_told() -> None:
    problem = pm.problems.synthetic()
    front = pm.fit(problem, "linear", 6, **EXACT)
    remarks = front.gaps(1).remarks
    assert "fixed weights cannot fill such a gap" in remarks[-1]
    assert "'auto' or 'p-norm'" in remarks[-1]


def test_fronts_without_gaps_are_refused() -> None:
    one = front_of([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    rule = "'front' must have at least two models with different losses that no other dominates.* Got 1 of 3 on"
    with pytest.raises(ValueError, match=rule):
        one.gaps()
    with pytest.raises(ValueError, match=r"Got 0 of 2 on train"):
        dataclasses.replace(front_of([[0.0, 1.0], [1.0, 0.0]]), status=["non-finite"] * 2).gaps()
    front = front_of([[0.0, 1.0], [1.0, 0.0]])
    for count in (0, -1, 1.5, True, "2"):
        with pytest.raises(ValueError, match="'count' must be a whole number of at least 1"):
            front.gaps(count)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'count' must leave at most 10,000 models"):
        front.gaps(9_999)
    with pytest.raises(ValueError, match="'split' must be one of"):
        front.gaps(split="val")
    for reading, method, words in (
        ("start", "mgda", "Those of 'mgda' are starts"),
        ("importance", "single-task", "Those of 'single-task' are one task each"),
        ("none", "given", "This one has none"),
    ):
        with pytest.raises(ValueError, match=f"'front' must have preferences that can be chosen.*{words}"):
            dataclasses.replace(front, reading=reading, method=method).gaps()
    with pytest.raises(ValueError, match="'start' must be of a front with weights"):
        _ = dataclasses.replace(front, models=LOSSES_ALONE).gaps().start
