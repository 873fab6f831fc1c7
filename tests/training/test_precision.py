"""How numbers are multiplied during a run."""

from __future__ import annotations

import warnings

import pytest
import torch

from _helpers.normed_regression import fit
from paretomtl.training.torch_modes import library_modes


def test_how_numbers_are_multiplied_is_put_back() -> None:
    before = torch.backends.cuda.matmul.fp32_precision
    for name, expected in (("float32", "ieee"), ("tf32", "tf32"), ("bfloat16", "ieee")):
        with library_modes(name):
            assert torch.backends.cuda.matmul.fp32_precision == expected
            assert torch.backends.cudnn.conv.fp32_precision == expected  # type: ignore[attr-defined]
        assert torch.backends.cuda.matmul.fp32_precision == before
    with pytest.raises(KeyError), library_modes("tf32"):
        raise KeyError
    assert torch.backends.cuda.matmul.fp32_precision == before


def test_tf32_changes_nothing_on_a_cpu() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fronts = [fit(precision=precision, strategy="batched") for precision in ("float32", "tf32")]
    for name, tensor in fronts[0].models.stacked().items():
        assert torch.equal(tensor, fronts[1].models.stacked()[name])
