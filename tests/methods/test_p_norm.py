"""The p-norm along a ray: gradient of its objective, limits, invariance, minima on known fronts, bad input."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import paretomtl as pm
from paretomtl.methods import Linear, PNorm, Step


def vectors(seed: int, count: int = 4, tasks: int = 3) -> tuple[Tensor, Tensor]:
    """Positive losses and directions, far from equal."""
    g = torch.Generator().manual_seed(seed)
    return (torch.randn(2, count, tasks, generator=g, dtype=torch.float64)).exp().unbind()


def weigh(method: PNorm, losses: Tensor, directions: Tensor) -> Tensor:
    return method.weigh(Step(losses), method.init(directions))[0]


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10**6), st.floats(1.0, 30.0))
def test_weights_are_the_gradient_of_the_objective(seed: int, p: float) -> None:
    losses, directions = vectors(seed)
    unit = torch.nn.functional.normalize(directions, dim=-1)
    given_losses = losses.clone().requires_grad_()
    value = ((unit * (given_losses / unit) ** p).sum(-1) ** (1 / p)).sum()
    (gradient,) = torch.autograd.grad(value, given_losses)
    expected = gradient * (3 / gradient.sum(-1, keepdim=True))
    torch.testing.assert_close(weigh(PNorm(p=p), losses, directions), expected, rtol=1e-8, atol=1e-12)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.lists(st.floats(-2, 2), min_size=3, max_size=3), st.floats(1e-6, 1e6))
def test_units_and_size_of_the_losses_do_not_matter(seed: int, powers: list[float], size: float) -> None:
    losses, directions = vectors(seed, count=1)
    units = torch.tensor([10.0**power for power in powers], dtype=torch.float64)
    plain = weigh(PNorm(), losses, directions)
    torch.testing.assert_close(weigh(PNorm(), size * losses, directions), plain)
    torch.testing.assert_close(weigh(PNorm(), losses * units, directions * units), plain)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.floats(1.0, 500.0))
def test_on_the_ray_the_weights_are_the_importances(seed: int, p: float) -> None:
    _, directions = vectors(seed)
    importances = (0.2, 0.3, 0.5)
    weights = weigh(PNorm(p=p, importances=importances), 7.0 * directions, directions)
    torch.testing.assert_close(weights, 3 * torch.tensor(importances).double().expand(4, 3))


def test_its_limits_are_linear_scalarization_and_tchebycheff() -> None:
    losses, directions = vectors(3)
    importances = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64).expand(4, 3)
    linear = Linear().weigh(Step(losses), Linear().init(importances))[0]
    assert torch.equal(weigh(PNorm(p=1, importances=(0.2, 0.3, 0.5)), losses, directions), linear)
    unit = torch.nn.functional.normalize(directions, dim=-1)
    worst = torch.nn.functional.one_hot((losses / unit).argmax(-1), 3).double()
    torch.testing.assert_close(weigh(PNorm(p=1e5), losses, directions), 3 * worst, atol=1e-6, rtol=0)


@pytest.mark.parametrize("p", [2.0, 6.0, 1e6])
def test_weights_stay_finite_and_at_the_floor(p: float) -> None:
    losses = torch.tensor([[1e-300, 1e300], [0.0, 1.0], [0.0, 0.0]], dtype=torch.float64)
    weights = weigh(PNorm(p=p, least=0.1), losses, torch.eye(3, 2, dtype=torch.float64) * 0.5 + 0.3)
    assert bool(weights.isfinite().all())
    torch.testing.assert_close(weights.sum(-1), torch.full((3,), 2.0, dtype=torch.float64))
    assert float(weights.min()) >= 0.2 - 1e-12


def test_a_task_without_labels_keeps_its_last_loss() -> None:
    method, directions = PNorm(p=3), torch.tensor([[1.0, 1.0], [1.0, 2.0]])
    _, state = method.weigh(Step(torch.tensor([[1.0, 2.0], [1.0, 2.0]])), method.init(directions))
    missing = Step(torch.tensor([[1.0, math.nan], [1.0, math.nan]]), present=torch.tensor([True, False]))
    weights, _ = method.weigh(missing, state)
    torch.testing.assert_close(weights, torch.tensor([[0.4, 0.0], [1.0, 0.0]]))


@pytest.mark.parametrize("p", ["medium", "strict"])
@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
def test_models_end_on_a_concave_front_in_their_regions(p: Any, optimizer: str) -> None:
    make = {
        "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.3),
        "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.03, momentum=0.9),
        "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.02),
    }[optimizer]
    problem = pm.problems.synthetic()
    assert problem.truth is not None
    options: dict[str, Any] = {"epochs": 600, "optimizer": make, "device": "cpu", "progress": "quiet"}
    options |= {
        "scheduler": lambda made, total: torch.optim.lr_scheduler.CosineAnnealingLR(made, total),
        "schedule": "step",
    }
    front = pm.fit(problem, PNorm(p=p), 6, **options)
    assert front.region_hits() == 6
    assert float(problem.truth.distance(front.losses["train"]).max()) < 0.01
    assert float(front.angle().max()) < (9.0 if p == "medium" else 5.0)


@pytest.mark.study
def test_on_a_convex_front_it_holds_the_ratio_that_linear_scalarization_ignores() -> None:
    problem = pm.problems.quadratic()
    options: dict[str, Any] = {"epochs": 1500, "device": "cpu", "progress": "quiet"}
    options["optimizer"] = lambda parameters: torch.optim.SGD(parameters, lr=0.02)
    directions = torch.tensor([[1.0, 3.0], [1.0, 1.0], [3.0, 1.0]])
    loose, strict = (pm.fit(problem, PNorm(p=p), directions, **options).angle().max() for p in (2, 21))
    assert float(strict) < float(loose)
    assert float(strict) < 3.0


@pytest.mark.parametrize(("count", "tasks"), [(100, 2), (500, 2), (125, 5)])
def test_many_rows_stay_distinct(count: int, tasks: int) -> None:
    method = PNorm()
    assert len(method.init(method.spread(count, tasks))["p"]) == count


def test_words_stand_for_exponents() -> None:
    assert [PNorm(p=word).exponent for word in ("loose", "medium", "strict")] == [3.0, 6.0, 11.0]


@pytest.mark.parametrize("p", [0.5, math.nan, math.inf, -1, "very", None, True])
def test_bad_exponents_are_refused(p: Any) -> None:
    with pytest.raises(ValueError, match=r"'p' must be finite and at least 1"):
        PNorm(p=p)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"least": 0.5}, r"'least' must be at least 0 and under 1 / m"),
        ({"least": math.nan}, r"'least' must be at least 0"),
        ({"importances": (1.0, 0.0)}, r"'importances' must be positive"),
        ({"importances": (1.0, 1.0, 1.0)}, r"'importances' must have one number per task \(2\)"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        PNorm(**options).init(torch.tensor([[1.0, 2.0]]))


def test_a_direction_with_a_zero_is_refused_with_a_remedy() -> None:
    with pytest.raises(ValueError, match=r"must be positive in every task for 'p-norm'.* row 1 instead: write a small"):
        PNorm().init(torch.tensor([[1.0, 1.0], [1.0, 0.0]]))
