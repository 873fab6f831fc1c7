"""Runs with a probe on a GPU: captured steps read what was settled, and resume to the same bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import paretomtl as pm
from _helpers.cuda_images import images, train
from paretomtl.methods import Auto, ParetoMTL, PNorm, Reachable, Step

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

METHODS = [Auto(), Reachable(PNorm()), Reachable(ParetoMTL())]


def same(one: pm.Front, other: pm.Front, atol: float = 0.0) -> None:
    for name, tensor in one.models.stacked().items():
        torch.testing.assert_close(tensor, other.models.stacked()[name], rtol=0, atol=atol)
    torch.testing.assert_close(one.preferences, other.preferences, rtol=0, atol=atol)


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_captured_and_launched_steps_settle_alike(method: Any) -> None:
    captured, launched = (
        train(images(), method=method, epochs=8, strategy=s, precision="float64") for s in ("graphed", "batched")
    )
    same(captured, launched, atol=1e-7)


@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize("stop", [1, 2, 5])
def test_a_captured_run_that_stops_resumes_to_the_same_bits(method: Any, stop: int, tmp_path: Path) -> None:
    options: dict[str, Any] = {"method": method, "epochs": 8, "strategy": "graphed"}
    straight = train(images(), **options)
    train(images(), out=tmp_path, callbacks=[lambda report: report.epoch == stop], **options)
    same(straight, train(images(), out=tmp_path, resume=True, **options))


def test_a_step_of_auto_waits_for_nothing() -> None:
    method = Auto()
    state = {name: tensor.cuda() for name, tensor in method.init(method.spread(4, 2)).items()}

    losses, number = torch.rand(4, 2, device="cuda"), torch.zeros((), dtype=torch.long, device="cuda")
    method.weigh(Step(losses, number=number, total=10), state)
    torch.cuda.set_sync_debug_mode("error")
    try:
        method.weigh(Step(losses, number=number, total=10), state)
    finally:
        torch.cuda.set_sync_debug_mode("default")
