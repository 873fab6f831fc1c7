from __future__ import annotations

from typing import Any

import moocore
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch.utils._python_dispatch import TorchDispatchMode

from paretomtl._support import argument_checks as _shapes
from paretomtl.core import dominates, in_region, nondominated

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


class Sizes(TorchDispatchMode):
    """Notes the largest tensor that is made."""

    largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if isinstance(found, torch.Tensor):
            self.largest = max(self.largest, found.numel())
        return found


@given(losses, st.integers(1, 40))
def test_blocks_change_nothing(points: np.ndarray, size: int) -> None:
    a = torch.from_numpy(points).repeat(2, 1, 1)
    a[0, 0, 0], a[1, -1, -1] = NAN, INF
    with pytest.MonkeyPatch.context() as patch:
        whole = nondominated(a)
        patch.setattr(_shapes, "BLOCK", size)
        assert torch.equal(nondominated(a), whole)


def test_memory_grows_with_the_vectors_and_not_with_their_pairs() -> None:
    count = 3000
    a = torch.rand(count, 2, generator=torch.Generator().manual_seed(0))
    with Sizes() as sizes:
        kept = nondominated(a)
    assert sizes.largest <= _shapes.BLOCK < count * count
    assert (kept.numpy() == moocore.is_nondominated(a.double().numpy(), keep_weakly=True)).all()
    with Sizes() as sizes:
        in_region(torch.nn.functional.normalize(a.double(), dim=-1), a.double())
    assert sizes.largest <= _shapes.BLOCK
