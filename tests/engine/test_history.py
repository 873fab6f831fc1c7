"""Sums and means of losses and weights over epochs."""

from __future__ import annotations

import torch

from _helpers.normed_regression import CPU
from paretomtl.engine.history import EpochHistory, GrowingTensor
from paretomtl.engine.step import StepRecord


def test_sums_stay_where_they_are() -> None:
    """A captured step writes to where the sums were when it was captured."""
    epochs = EpochHistory(2, 2, CPU)
    places = [tensor.data_ptr() for tensor in (epochs._losses, epochs._weights, epochs._present)]
    present = torch.tensor([[True, True], [True, False]])
    for k in range(4):
        losses = torch.tensor([[1.0, 2.0], [3.0, torch.nan]]) * (k + 1)
        epochs.add([StepRecord(losses, torch.ones(2, 2), present, present)])
        epochs.count()
        if k % 2:
            epochs.end_epoch()
    assert [tensor.data_ptr() for tensor in (epochs._losses, epochs._weights, epochs._present)] == places
    history = epochs.part(slice(None), torch.float64)
    torch.testing.assert_close(history["losses"][:, 0, 0], torch.tensor([1.5, 3.5], dtype=torch.float64))
    assert history["losses"][0, 1, 1].isnan()
    assert epochs.labelled().tolist() == [True, True]
    assert not epochs.complete()
    present = torch.ones(2, 2, dtype=torch.bool)
    epochs.add([StepRecord(torch.ones(2, 2), torch.ones(2, 2), present, present)])
    epochs.count()
    epochs.end_epoch()
    assert epochs.complete()
    other = EpochHistory(2, 2, CPU)
    other.load(epochs.state())
    assert other.labelled().tolist() == [True, True]


def test_losses_on_validation_stay_on_the_cpu() -> None:
    """They are stacked with those of later epochs for the next checkpoint."""
    epochs = EpochHistory(2, 2, CPU)
    present = torch.ones(2, 2, dtype=torch.bool)
    epochs.add([StepRecord(torch.ones(2, 2), torch.ones(2, 2), present, present)])
    epochs.end_epoch()
    epochs.add_validation(torch.ones(2, 2))
    other = EpochHistory(2, 2, torch.device("meta"))
    other.load(epochs.state())
    assert other._history["losses"].rows().device.type == "meta"
    other.add_validation(torch.zeros(2, 2))
    assert other.state()["history"]["val"][:, 0, 0].tolist() == [1.0, 0.0]


def test_epochs_take_the_memory_of_their_numbers_whatever_they_began_with() -> None:
    rows = torch.arange(200.0).reshape(100, 2)
    for begin in (0, 1, 16, 17):
        table = GrowingTensor(rows[:begin].clone() if begin else None)
        for row in rows[begin:]:
            table.add(row)
        assert len(table) == 100
        assert torch.equal(table.rows(), rows)
        assert table.rows().untyped_storage().nbytes() <= 2 * rows.nbytes + 8 * 32
