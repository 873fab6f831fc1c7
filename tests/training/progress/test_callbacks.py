"""Reports, and callbacks that are called with them."""

from __future__ import annotations

import math

import pytest
import torch

import paretomtl as pm
from _helpers.networks import accuracy, classes, fit, problem
from _helpers.reports import report
from paretomtl.training import Report


def test_numbers_are_json() -> None:
    assert report().numbers()["split"] == "train"
    found = report(val_losses=torch.ones(2, 2), val_metrics={"m": torch.tensor([1.0, math.nan])}).numbers()
    assert found["split"] == "val"
    assert found["losses"] == [[1.0, 2.0], [3.0, None]]
    assert found["val_metrics"] == {"m": [1.0, None]}


def test_reports_of_a_run() -> None:
    seen: list[Report] = []
    of = problem(val=classes(30, seed=1), metrics={"accuracy": pm.Metric(accuracy)})
    front = fit(of, callbacks=[seen.append])
    assert [r.epoch for r in seen] == [1, 2, 3, 4]
    assert [r.step for r in seen] == [3, 6, 9, 12]
    for i, each in enumerate(seen):
        torch.testing.assert_close(each.losses.float(), front.history["losses"][i])
        torch.testing.assert_close(each.val_losses, front.history["val"][i])
        assert each.hypervolume is not None
        assert each.reference == pytest.approx(front.reference)
    assert torch.equal(seen[-1].val_metrics["accuracy"], front.metrics["val"]["accuracy"])


def test_a_callback_that_is_none_is_named() -> None:
    with pytest.raises(TypeError, match=r"'callbacks' must be functions of a report. Got str"):
        fit(callbacks=["tensorboard"])
