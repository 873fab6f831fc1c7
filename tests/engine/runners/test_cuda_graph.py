"""Captured steps, as far as they can be seen without a GPU; tests/gpu/test_cuda_training.py has the rest."""

from __future__ import annotations

import pytest

from _helpers.normed_regression import fit


def test_graphed_needs_a_gpu_and_says_so() -> None:
    with pytest.raises(ValueError, match=r"'strategy' must be .*: there is no CUDA device"):
        fit(strategy="graphed", device="cpu")
    assert not fit(strategy="auto", device="cpu").strategy.startswith("graphed")
