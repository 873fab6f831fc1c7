from __future__ import annotations

import moocore
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from paretomtl.core import dominates, nondominated

losses = hnp.arrays(
    np.float64, hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=12), elements=st.integers(0, 4)
)
NAN, INF = float("nan"), float("inf")


@given(losses.filter(lambda a: a.shape[1] >= 2))
def test_the_mask_agrees_with_moocore(points: np.ndarray) -> None:
    mine = nondominated(torch.from_numpy(points)).numpy()
    assert (mine == moocore.is_nondominated(points, keep_weakly=True)).all()


@given(losses)
def test_dominance_is_a_strict_order(points: np.ndarray) -> None:
    a = torch.from_numpy(points)
    table = dominates(a[:, None], a[None])
    assert not table.diagonal().any()
    assert not (table & table.T).any()
    chained = (table.double() @ table.double()) > 0
    assert (table | ~chained).all(), "if a dominates b and b dominates c, then a dominates c"
    assert nondominated(a).any()


def test_duplicates_stay_and_nan_never_does() -> None:
    a = torch.tensor([[1.0, 2.0], [1.0, 2.0], [NAN, 0.0], [2.0, 1.0], [INF, 3.0], [2.0, INF]])
    assert nondominated(a).tolist() == [True, True, False, True, False, False]
    assert dominates(a[0], a[2])
    assert not dominates(a[2], a[2])
    assert not nondominated(torch.tensor([[NAN, 1.0]])).any()


def test_batches() -> None:
    a = torch.rand(3, 4, 10, 2)
    assert nondominated(a).shape == (3, 4, 10)
    assert torch.equal(nondominated(a)[1, 2], nondominated(a[1, 2]))
    compiled = torch.compile(nondominated, fullgraph=True, backend="eager")
    assert torch.equal(compiled(a), nondominated(a))


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match=r"'losses' must have shape \[..., K, m\]. Got \[3\]"):
        nondominated(torch.ones(3))
    with pytest.raises(ValueError, match=r"'b' must have shape \[..., 2\]. Got \[3\]"):
        dominates(torch.ones(2), torch.ones(3))
