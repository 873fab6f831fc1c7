"""Binary tasks and parity: the losses and metrics are those of their definitions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paretomtl.problems import area_under_curve, binary_accuracy, binary_cross_entropies, parity_gap, parity_losses

SAMPLES = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=30)


def area(logits: torch.Tensor, yes: torch.Tensor) -> float:
    return float(area_under_curve(0).function((logits,), yes[:, None]))


@given(samples=SAMPLES)
def test_the_area_is_the_share_of_pairs_in_the_right_order(samples: list[tuple[int, bool]]) -> None:
    logits, yes = torch.tensor([float(x) for x, _ in samples]), torch.tensor([float(y) for _, y in samples])
    above = [x for x, y in samples if y]
    below = [x for x, y in samples if not y]
    found = area(logits, yes)
    if not above or not below:
        assert math.isnan(found)
        return
    right = sum((a > b) + 0.5 * (a == b) for a, b in itertools.product(above, below))
    assert found == right / (len(above) * len(below))
    assert area(-logits, yes) == pytest.approx(1 - found)
    assert area(torch.exp(logits), yes) == found, "only the order counts"
    assert area(torch.zeros(len(samples)), yes) == 0.5


def test_many_samples_are_counted_exactly() -> None:
    """All yes above all no but one pair: p q - 1 of p q."""
    n = 200_000
    logits = torch.arange(n, dtype=torch.float64)
    yes = (logits >= n // 2).double()
    yes[n // 2 - 1], yes[n // 2] = 1.0, 0.0
    assert area(logits, yes) == 1 - 1 / (n // 2) ** 2


def test_a_logit_that_is_no_number_has_no_area() -> None:
    assert math.isnan(area(torch.tensor([0.0, torch.nan, 1.0]), torch.tensor([0.0, 1.0, 1.0])))


@given(samples=SAMPLES)
def test_accuracy_counts_the_right_signs(samples: list[tuple[int, bool]]) -> None:
    logits, yes = torch.tensor([float(x) for x, _ in samples]), torch.tensor([[0.0, y] for _, y in samples])
    expected = sum((x > 0) == y for x, y in samples) / len(samples)
    assert float(binary_accuracy(1).function((logits, logits), yes)) == pytest.approx(expected)


def test_losses_are_minus_the_mean_log_likelihood() -> None:
    g = torch.Generator().manual_seed(0)
    outputs = tuple(torch.randn(50, generator=g, dtype=torch.float64) for _ in range(3))
    targets = torch.randint(2, (50, 3), generator=g)
    likelihood = [torch.where(targets[:, i] == 1, y.sigmoid(), 1 - y.sigmoid()) for i, y in enumerate(outputs)]
    expected = torch.stack([-p.log().mean() for p in likelihood])
    torch.testing.assert_close(binary_cross_entropies(outputs, targets), expected)
    zeros = binary_cross_entropies([torch.zeros(50)] * 3, targets.to(torch.uint8))
    torch.testing.assert_close(zeros, torch.full((3,), math.log(2.0)))


def test_a_task_without_labels_is_nan_alone() -> None:
    found = binary_cross_entropies((torch.zeros(2), torch.zeros(2)), torch.tensor([[1.0, torch.nan], [0.0, torch.nan]]))
    assert found.isnan().tolist() == [False, True]


PEOPLE = st.lists(
    st.tuples(st.floats(-20, 20), st.booleans(), st.sampled_from([0.0, 1.0, math.nan])), min_size=1, max_size=40
)


def people(samples: list[tuple[float, bool, float]]) -> tuple[torch.Tensor, torch.Tensor]:
    logits = torch.tensor([x for x, _, _ in samples], dtype=torch.float64)
    return logits, torch.tensor([[float(y), s] for _, y, s in samples], dtype=torch.float64)


@given(samples=PEOPLE)
def test_parity_is_the_gap_of_mean_probabilities(samples: list[tuple[float, bool, float]]) -> None:
    logits, targets = people(samples)
    logits.requires_grad_()
    income, parity = parity_losses(logits, targets)
    y, label, group = logits.detach().numpy(), targets[:, 0].numpy(), targets[:, 1].numpy()
    p = 1.0 / (1.0 + np.exp(-y))
    expected = np.where(label == 1, np.logaddexp(0.0, -y), np.logaddexp(0.0, y)).mean()
    np.testing.assert_allclose(income.detach(), expected, rtol=1e-9, atol=1e-12)
    gradient = torch.autograd.grad(parity, logits, retain_graph=True)[0]
    assert gradient.isfinite().all()
    soft, hard = (float(parity_gap(soft=kind).function(logits.detach(), targets)) for kind in (True, False))
    if not ((group == 0).any() and (group == 1).any()):
        assert parity.isnan()
        assert math.isnan(soft)
        assert math.isnan(hard)
        assert (gradient == 0).all()
        assert torch.autograd.grad(income, logits)[0].isfinite().all(), "the other loss does not notice"
        return
    gap = p[group == 0].mean() - p[group == 1].mean()
    np.testing.assert_allclose(parity.detach(), np.sqrt(gap**2 + 0.01**2), rtol=1e-9)
    np.testing.assert_allclose(soft, abs(gap), atol=1e-12)
    np.testing.assert_allclose(hard, abs((y[group == 0] > 0).mean() - (y[group == 1] > 0).mean()), atol=1e-12)
    slope = p * (1 - p) * ((group == 0) / (group == 0).sum() - 1.0 * (group == 1) / (group == 1).sum())
    np.testing.assert_allclose(gradient, gap / parity.detach().numpy() * slope, atol=1e-12)


@given(
    logit=st.floats(-30, 30), women=st.integers(1, 500), men=st.integers(1, 500), dtype=st.sampled_from(["32", "64"])
)
def test_the_parity_loss_of_a_constant_is_exactly_its_floor(logit: float, women: int, men: int, dtype: str) -> None:
    kind = getattr(torch, f"float{dtype}")
    targets = torch.zeros(women + men, 2, dtype=kind)
    targets[women:, 1] = 1.0
    parity = parity_losses((torch.full((women + men,), logit, dtype=kind),), targets)[1]
    assert parity == torch.tensor(0.01, dtype=kind)


@given(samples=PEOPLE)
def test_parity_does_not_depend_on_which_group_is_which(samples: list[tuple[float, bool, float]]) -> None:
    logits, targets = people(samples)
    swapped = torch.stack([targets[:, 0], 1.0 - targets[:, 1]], -1)
    torch.testing.assert_close(parity_losses(logits, swapped), parity_losses(logits, targets), equal_nan=True)


def test_a_logit_that_is_no_number_has_no_gap() -> None:
    """A broken model would be perfectly fair otherwise: NaN is above no threshold."""
    logits, targets = torch.tensor([torch.nan, torch.nan]), torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    assert all(parity_gap(soft=soft).function(logits, targets).isnan() for soft in (False, True))
    assert parity_losses(logits, targets).isnan().all()


@pytest.mark.parametrize(
    ("outputs", "targets", "message"),
    [
        (torch.zeros(3, 1), torch.zeros(3, 2), r"'outputs' must be .* of shape \[3\]. Got \[3, 1\] instead"),
        ((torch.zeros(3), torch.zeros(3)), torch.zeros(3, 2), r"'outputs' must be one .* Got \[3\], \[3\] instead"),
        (torch.zeros(3), torch.zeros(3, 3), r"'targets' must have shape \[n, 2\], .* Got \[3, 3\] instead"),
        (torch.zeros(3), torch.zeros(3), r"'targets' must have shape \[n, 2\], .* Got \[3\] instead"),
    ],
)
def test_shapes_of_parity_are_checked(outputs: object, targets: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parity_losses(outputs, targets)  # type: ignore[arg-type]
