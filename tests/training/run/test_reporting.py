"""The hypervolume in reports."""

from __future__ import annotations

import pytest
import torch

from paretomtl.training.run.reporting import mean_hypervolume


def test_ten_tasks_do_not_hold_up_reports() -> None:
    """The hypervolume of 50 solutions of ten tasks takes seconds, and there may be a report twice a second."""
    points = torch.rand(60, 10, generator=torch.Generator().manual_seed(0))
    assert mean_hypervolume(points, [1.1] * 10, 1) is None
    parts = [mean_hypervolume(points[i : i + 15], [1.1] * 10, 1) for i in (0, 15)]
    assert None not in parts
    assert mean_hypervolume(points[:30], [1.1] * 10, 2) == pytest.approx(sum(map(float, parts)) / 2)  # type: ignore[arg-type]
