"""Obstacles to a capture, as far as they can be seen without a GPU; tests/gpu has the rest."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from _helpers.regression import CPU, Remembers, X, group
from paretomtl.engine.autotune.capture import _changes_more_than_rates, _python_numbers, try_capture
from paretomtl.engine.batches.make import make_batches
from paretomtl.engine.model_group import Group


def test_schedulers_that_change_momentum_are_found() -> None:
    rates = torch.optim.lr_scheduler
    assert not _changes_more_than_rates(group(lambda o: rates.CosineAnnealingLR(o, 10)))
    assert _changes_more_than_rates(group(lambda o: rates.OneCycleLR(o, 0.1, total_steps=10)))


def test_numbers_that_a_model_keeps_in_python_are_found() -> None:
    class Anneals(Remembers):
        beta = 0.0

        def forward(self, x: Tensor) -> Tensor:
            self.beta += 1e-4
            return super().forward(x)

    class Counts(Remembers):
        calls = 0

        def forward(self, x: Tensor) -> Tensor:
            Counts.calls += 1
            return super().forward(x)

    for kind in (Anneals, Counts):
        made = group(factory=kind)
        before = _python_numbers([made])
        assert _python_numbers([made]) == before
        made.models.losses((X, torch.zeros(64, 2)))
        assert _python_numbers([made]) != before


def test_reasons_against_a_capture() -> None:
    def never() -> list[Group]:
        raise AssertionError("nothing is made to find that out")

    def why(data: Any) -> str | None:
        batches = make_batches("train", data, batch_size=4, device=CPU, dtype=torch.float32)
        return try_capture(never, batches, 10, schedule="epoch").why_not

    assert why(None) == "the problem has no data"
    assert why((X, X)) == "there is no CUDA device"
    assert "not tensors that lie on the device" in str(why(torch.utils.data.TensorDataset(X, X)))
