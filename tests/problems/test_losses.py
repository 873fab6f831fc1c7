"""Binary tasks: the losses and metrics are those of their definitions."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paretomtl.problems import area_under_curve, binary_accuracy, binary_cross_entropies

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
