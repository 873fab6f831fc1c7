"""Coupled methods on a GPU: launched, stacked, captured, and captured on streams, all rows are weighed together."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from _helpers.coupled import Share, expected_weights
from _helpers.cuda_images import images, train
from paretomtl.engine.autotune import choose
from paretomtl.engine.autotune.trial import Trial

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
OPTIONS: dict[str, Any] = {"precision": "float64", "epochs": 12, "batch_size": 96}  # one batch an epoch


@pytest.mark.parametrize("gramian", [False, True])
def test_strategies_give_the_same_weights(gramian: bool) -> None:
    fronts = [
        train(images(), Share(gramian), strategy=name, **OPTIONS) for name in ("sequential", "batched", "graphed")
    ]
    for other in fronts[1:]:
        torch.testing.assert_close(fronts[0].history["weights"], other.history["weights"], rtol=0, atol=1e-8)


@pytest.mark.parametrize("on_streams", [False, True])
def test_captured_weights_are_those_of_the_formula(on_streams: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if on_streams:
        monkeypatch.setattr(choose, "try_stack", lambda *_, **__: Trial("not this time"))
    front = train(images(), Share(), strategy="graphed", **OPTIONS)
    for losses, weights in zip(front.history["losses"], front.history["weights"], strict=True):
        torch.testing.assert_close(weights, expected_weights(losses))
