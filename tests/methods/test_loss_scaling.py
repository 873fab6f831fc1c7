"""Tasks of different units: every way to scale solves the same problem in other units, and balancing hands over."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import pytest
import torch
from torch import Tensor

import paretomtl as pm
from paretomtl.methods import METHODS, MGDA, GradNorm, Linear, Method, ParetoMTL, Step, TorchJD, Uncertainty

VECTORS = pm.preferences.even(3, 2)
BALANCING = ("running", "gradnorm", "uncertainty")


def steps(count: int, seed: int = 0, unit: Tensor | None = None) -> list[Step]:
    """Losses that fall, and gradients of their size, for three models, in some units."""
    generator = torch.Generator().manual_seed(seed)
    unit = torch.ones(2, dtype=torch.float64) if unit is None else unit
    found = []
    for number in range(count):
        losses = (0.3 + torch.rand(3, 2, generator=generator, dtype=torch.float64)) / (1 + 0.1 * number) * unit
        rows = torch.randn(3, 2, 6, generator=generator, dtype=torch.float64) * unit[:, None]
        found.append(Step(losses, rows @ rows.mT, number=number, total=count))
    return found


def run(method: pm.methods.Method, sequence: list[Step]) -> tuple[list[Tensor], list[dict[str, Tensor]]]:
    state, weights, states = method.init(VECTORS), [], []
    for step in sequence:
        found, state = method.weigh(step, state)
        weights.append(found)
        states.append(state)
    return weights, states


def test_an_ideal_and_a_worst_point_give_the_problem_counted_from_the_one_in_units_of_the_other() -> None:
    ideal, worst = torch.tensor([0.05, 0.1]).double(), torch.tensor([2.0, 30.0]).double()
    c = 1 / (worst - ideal)
    method = ParetoMTL(scale=(tuple(ideal.tolist()), tuple(worst.tolist())), initial_steps=5)
    given = steps(20)
    plain = [dataclasses.replace(s, losses=c * (s.losses - ideal), gramian=c[:, None] * s.gramian * c) for s in given]
    found, states = run(method, given)
    expected, others = run(ParetoMTL(initial_steps=5), plain)
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, c * theirs)
    assert method.status(states[-1]) == ParetoMTL().status(others[-1])
    losses = given[-1].losses
    torch.testing.assert_close(
        method.violation(states[-1], losses), ParetoMTL().violation(others[-1], c * (losses - ideal))
    )


def test_what_is_better_than_the_ideal_point_counts_as_zero() -> None:
    method = ParetoMTL(scale=((0.5, 0.5), (1.0, 1.0)))
    step = Step(torch.tensor([[0.4, 0.7]] * 3).double(), torch.eye(2).double().expand(3, 2, 2))
    _, state = method.weigh(step, method.init(VECTORS))
    assert method.status(state) == ["infeasible", "infeasible", "feasible"]  # all of it on the axis of the second loss
    assert method.status(state, step.losses) == ["infeasible", "infeasible", "feasible"]


@pytest.mark.parametrize(("kind", "balancer"), [("gradnorm", GradNorm()), ("uncertainty", Uncertainty())])
def test_tasks_are_balanced_first_by_the_method_itself(kind: Any, balancer: pm.methods.Method) -> None:
    """It sees losses over their first values; its weights of these are the factors, each time for half a step."""
    given = steps(30)
    found, states = run(ParetoMTL(scale=kind, scale_steps=10), given)
    unit = 1 / given[0].losses
    seen = [
        dataclasses.replace(s, losses=unit * s.losses, gramian=unit[..., :, None] * s.gramian * unit[..., None, :])
        for s in given[:10]
    ]
    expected, _ = run(balancer, seen)
    for mine, theirs in zip(found[:10], expected, strict=True):
        torch.testing.assert_close(mine, unit * theirs / 2, rtol=0, atol=0)
    for state in states[9:]:
        torch.testing.assert_close(state["scale"], unit * expected[-1], rtol=0, atol=0)


@pytest.mark.parametrize("kind", BALANCING)
def test_tasks_are_trained_together_by_the_factors(kind: Any) -> None:
    """The weights sum to one in units of the factors, as those of the main phase do; to m where these do."""
    for rescale in (False, True):
        found, states = run(ParetoMTL(scale=kind, scale_steps=10, rescale=rescale), steps(30))
        for weights, state in zip(found[:10], states, strict=False):
            factors = state["scale"]
            expected = factors * 2 / factors.sum(-1, keepdim=True) if rescale else factors / 2
            torch.testing.assert_close(weights, expected)


@pytest.mark.parametrize("kind", BALANCING)
def test_after_that_it_is_pareto_mtl_with_factors_that_stay(kind: Any) -> None:
    given = steps(40)
    found, states = run(ParetoMTL(scale=kind, scale_steps=10, initial_steps=7, rescale=True), given)
    for k in range(3):
        factors = tuple(states[9]["scale"][k].tolist())
        later = [dataclasses.replace(s, number=s.number - 10) for s in given[10:]]  # type: ignore[operator]
        expected, _ = run(ParetoMTL(scale=factors, initial_steps=7, rescale=True), later)
        for mine, theirs in zip(found[10:], expected, strict=True):
            torch.testing.assert_close(mine[k], theirs[k])
    assert (states[9]["phase"] == 0).all()


def test_running_divides_by_the_running_mean() -> None:
    losses = torch.tensor([[4.0, 0.5]] * 3).double()
    same = [Step(losses, torch.eye(2).double().expand(3, 2, 2), number=i, total=100) for i in range(8)]
    found, states = run(ParetoMTL(scale="running"), same)
    torch.testing.assert_close(states[-1]["scale"], 1 / losses)
    assert [w.tolist() for w in found[:5]] == [[[0.125, 1.0]] * 3] * 5  # a twentieth of 100 steps
    assert found[5].tolist() != [[0.125, 1.0]] * 3
    assert ParetoMTL(scale="running").status(states[-1]) == ["infeasible", "feasible", "infeasible"]


@pytest.mark.parametrize("scale", ["first", *BALANCING])
def test_units_do_not_matter(scale: Any) -> None:
    """Metres or millimetres: the same steps from the first on, in weights of the inverse unit."""
    unit = torch.tensor([1000.0, 0.01]).double()
    method = ParetoMTL(scale=scale, initial_steps=5)
    plain, _ = run(method, steps(60))
    other, _ = run(method, steps(60, unit=unit))
    for mine, theirs in zip(plain, other, strict=True):
        torch.testing.assert_close(mine, unit * theirs)


@pytest.mark.parametrize("kind", BALANCING)
def test_a_task_without_labels_does_not_move_its_factor(kind: Any) -> None:
    method = ParetoMTL(scale=kind, scale_steps=4)
    given = steps(4)
    present = torch.tensor([True, False])
    absent = [dataclasses.replace(s, present=present, losses=s.losses.where(present, torch.nan)) for s in given[1:]]
    weights, states = run(method, [given[0], *absent])
    assert (weights[-1][:, 1] == 0).all()
    assert states[-1]["scale"].isfinite().all()
    if kind == "running":
        torch.testing.assert_close(states[-1]["scale"][:, 1], 1 / given[0].losses[:, 1])


@pytest.mark.parametrize("kind", BALANCING)
def test_a_task_that_has_its_first_labels_later_is_scaled_by_its_first_loss(kind: Any) -> None:
    """During the steps that balance, and after them."""
    late = torch.tensor([True, False])
    for first in (2, 7):
        given = steps(10, unit=torch.tensor([1.0, 4000.0]).double())
        given = [
            s if s.number >= first else dataclasses.replace(s, present=late, losses=s.losses.where(late, torch.nan))
            for s in given
        ]
        _, states = run(ParetoMTL(scale=kind, scale_steps=4), given)
        assert (states[first - 1]["scale"][:, 1] == 0).all(), "not known yet"
        factors = states[first]["scale"][:, 1] * given[first].losses[:, 1]
        torch.testing.assert_close(factors, torch.ones(3).double(), atol=0.1 if first < 4 else 0.0, rtol=0)


def test_a_loop_without_a_plan_must_say_how_long_tasks_are_balanced() -> None:
    method = ParetoMTL(scale="gradnorm")
    with pytest.raises(ValueError, match="'scale_steps' must be given if the number of steps is unknown"):
        method.weigh(dataclasses.replace(steps(1)[0], total=0), method.init(VECTORS))


@pytest.mark.parametrize("scale", [*BALANCING, ((0.0, 0.0), (5.0, 5.0))])
@pytest.mark.parametrize("strategy", ["sequential", "batched"])
def test_fronts_are_judged_and_stored_in_the_units_of_training(tmp_path: Any, scale: Any, strategy: Any) -> None:
    problem = pm.problems.quadratic()
    sgd = {"optimizer": lambda parameters: torch.optim.SGD(parameters, lr=0.05), "device": "cpu"}
    front = pm.fit(
        problem, ParetoMTL(scale=scale), 3, epochs=40, strategy=strategy, progress="quiet", precision="float64", **sgd
    )
    assert front.scale is not None
    assert front.ideal == (None if isinstance(scale, str) else (0.0, 0.0))
    front.save(tmp_path)
    again = pm.Front.load(tmp_path, problem)
    assert again.ideal == front.ideal
    assert torch.equal(again.in_region(), front.in_region())
    assert torch.equal(again.angle(), front.angle())


def test_regions_of_a_front_are_counted_from_the_ideal_point() -> None:
    """A loss vector on the diagonal is off it when counted from a point that is not."""
    problem = pm.problems.quadratic()
    front = pm.fit(problem, ParetoMTL(), 3, epochs=3, device="cpu", progress="quiet")
    losses = {"train": torch.tensor([[1.0, 1.0]] * 3)}
    ones = torch.ones(3, 2, dtype=torch.float64)
    assert dataclasses.replace(front, losses=losses, scale=ones).in_region().tolist() == [False, True, False]
    moved = dataclasses.replace(front, losses=losses, scale=ones, ideal=(0.0, 1.0))
    assert moved.in_region().tolist() == [True, False, False]


TORCHJD: list[tuple[str, dict[str, Any]]] = [("UPGrad", {}), ("UW", {}), ("STCH", {"mu": 0.1}), ("PBI", {"theta": 5.0})]
MAKERS: list[Any] = [*METHODS.values(), *(functools.partial(TorchJD, name, options) for name, options in TORCHJD)]


def weights_of(method: Method, sequence: list[Step]) -> list[Tensor]:
    """Of two models, which "single-task" has for two tasks."""
    state = method.init(torch.eye(2, dtype=torch.float64) if method.name == "single-task" else VECTORS[:2] + 0.1)
    found = []
    for step in sequence:
        assert step.gramian is not None
        two = dataclasses.replace(step, losses=step.losses[:2], gramian=step.gramian[:2])
        weights, state = method.weigh(two, state)
        found.append(weights)
    return found


@pytest.mark.parametrize("make", MAKERS)
def test_given_factors_give_the_steps_of_scaled_losses(make: Any) -> None:
    """The weights of L are c times those of c L: the same step, for every method."""
    c = torch.tensor([0.25, 30.0]).double()
    found = weights_of(make(scale=tuple(c.tolist())), steps(6))
    expected = weights_of(make(scale=None), steps(6, unit=c))
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, c * theirs)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("scale", ["first", "auto"])
def test_units_do_not_matter_to_any_method(make: Any, scale: str) -> None:
    """Nor to "auto", where losses differ by much in both units."""
    units = torch.tensor([[1000.0, 0.01], [0.001, 500.0]]).double()
    first, second = (weights_of(make(scale=scale), steps(6, unit=unit)) for unit in units)
    for mine, theirs in zip(first, second, strict=True):
        torch.testing.assert_close(units[0] * mine, units[1] * theirs)


@pytest.mark.parametrize("make", MAKERS)
def test_without_different_units_automatic_is_the_method_itself(make: Any) -> None:
    for mine, theirs in zip(
        weights_of(make(scale="auto"), steps(6)), weights_of(make(scale=None), steps(6)), strict=True
    ):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("make", MAKERS)
def test_every_method_counts_from_an_ideal_point(make: Any) -> None:
    ideal, worst = torch.tensor([0.05, 0.1]).double(), torch.tensor([2.0, 30.0]).double()
    c = 1 / (worst - ideal)
    method, given = make(scale=(tuple(ideal.tolist()), tuple(worst.tolist()))), steps(4)
    plain = [dataclasses.replace(s, losses=c * (s.losses - ideal), gramian=c[:, None] * s.gramian * c) for s in given]
    assert method.ideal == tuple(ideal.tolist())
    for mine, theirs in zip(weights_of(method, given), weights_of(make(scale=None), plain), strict=True):
        torch.testing.assert_close(mine, c * theirs)


@pytest.mark.parametrize("method", [ParetoMTL(scale="auto"), MGDA(scale="auto"), Linear(scale="auto")])
def test_automatic_waits_for_tasks_without_labels(method: Method) -> None:
    """Factors stay 1 until losses are known that differ; then they are those of all first losses."""
    late = torch.tensor([True, False])
    given = steps(4, unit=torch.tensor([1.0, 4000.0]).double())
    given[:2] = [dataclasses.replace(s, present=late, losses=s.losses.where(late, torch.nan)) for s in given[:2]]
    state, factors = method.init(VECTORS), list[Tensor]()
    for step in given:
        _, state = method.weigh(step, state)
        scale = method.scale_of(state)
        assert scale is not None
        factors.append(scale)
    assert (factors[1] == 1).all()
    torch.testing.assert_close(factors[-1], 1 / torch.stack([given[0].losses[:, 0], given[2].losses[:, 1]], -1))


@pytest.mark.parametrize("name", [name for name in METHODS if name != "pareto-mtl"])
def test_balancing_first_is_refused_where_nothing_is_spread_then(name: str) -> None:
    for kind in BALANCING:
        with pytest.raises(ValueError, match=rf"'scale' of '{name}' must be one of .*only 'pareto-mtl' does"):
            METHODS[name](scale=kind)  # type: ignore[call-arg]


def test_an_option_that_is_off_does_not_show() -> None:
    """Stored rows name methods by their text."""
    assert repr(MGDA()) == "MGDA(rescale=False)"
    assert repr(MGDA(scale="auto")) == "MGDA(rescale=False, scale='auto')"
    assert pm.methods.describe(Linear(layout="corners")) == "Linear()"
    assert pm.methods.describe(Linear(layout="corners", scale="auto")) == "Linear(scale='auto')"
