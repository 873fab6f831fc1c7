"""Splits without labels of a task are named before training, once."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import paretomtl as pm


def test_a_split_without_labels_of_a_task_is_named_before_training() -> None:
    g = torch.Generator().manual_seed(0)
    x, y = torch.randn(64, 4, generator=g), torch.randn(64, 2, generator=g)
    empty = torch.stack([torch.full((8,), torch.nan), y[:8, 1]], -1)

    def losses(outputs: Tensor, targets: Tensor) -> list[Tensor]:
        known = ~targets.isnan()
        return [(outputs[known[:, i], i] - targets[known[:, i], i]).square().mean() for i in range(2)]

    made = pm.Problem(lambda: torch.nn.Linear(4, 2), losses, ["a", "b"], train=(x, y), val=(x[:8], empty))
    for epochs in (1, 40):  # too short to measure untrained models, and long enough
        with pytest.warns(UserWarning, match=r"'val' has no labels for tasks \['a'\]") as caught:
            front = pm.fit(made, "linear", 2, epochs=epochs, batch_size=16, device="cpu", progress="quiet")
        assert sum("no labels for tasks" in str(each.message) for each in caught) == 1
        assert "a: NaN in every model" in front.select(knee=True).reason
    found = pm.diagnose(made, epochs=2, seeds=2, device="cpu", progress="quiet")
    assert found.verdict.word == "unclear"
    assert "No labels on 'val': a." in found.verdict.text


def test_what_was_warned_of_before_is_a_remark_but_no_second_warning() -> None:
    g = torch.Generator().manual_seed(0)
    x, y = torch.randn(64, 4, generator=g), torch.randn(64, 2, generator=g)

    def losses(outputs: Tensor, targets: Tensor) -> list[Tensor]:
        known = ~targets.isnan()
        return [(outputs[known[:, i], i] - targets[known[:, i], i]).square().mean() for i in range(2)]

    empty = torch.stack([torch.full((8,), torch.nan), y[:8, 1]], -1)
    made = pm.Problem(lambda: torch.nn.Linear(4, 2), losses, ["a", "b"], train=(x, y), val=(x[:8], empty))
    with pytest.warns(UserWarning, match="'val' has no labels for tasks"):
        front = pm.fit(made, "linear", 2, epochs=40, batch_size=16, device="cpu", progress="quiet")
    assert any("'val' has no labels for tasks ['a']" in remark for remark in front.remarks)
