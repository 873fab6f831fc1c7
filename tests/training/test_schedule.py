"""Schedules of learning rates."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from _helpers.networks import fit


@pytest.mark.parametrize(("schedule", "decays"), [("epoch", 4), ("step", 12)])
def test_the_scheduler_steps_as_told(schedule: str, decays: int) -> None:
    seen: list[torch.optim.Optimizer] = []

    def halve(optimizer: torch.optim.Optimizer) -> Any:
        seen.append(optimizer)
        return torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    fit(scheduler=halve, schedule=schedule, strategy="sequential")
    assert [o.param_groups[0]["lr"] for o in seen] == pytest.approx([0.1 * 0.5**decays] * 3)
