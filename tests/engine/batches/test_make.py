"""Every form of data makes batches that train alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from _helpers.networks import classes, fit, problem
from paretomtl.engine.batches.make import make_batches
from paretomtl.problems import cross_entropies

X, Y = classes()


def dictionary(model: nn.Module, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    outputs = model(batch["x"])
    return {
        "b": nn.functional.cross_entropy(outputs[1], batch["b"]),
        "a": nn.functional.cross_entropy(outputs[0], batch["a"]),
    }


class Samples(Dataset[dict[str, Tensor]]):
    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, i: int) -> dict[str, Tensor]:
        return {"x": X[i], "a": Y[i, 0], "b": Y[i, 1]}


class Stream(IterableDataset[tuple[Tensor, Tensor]]):
    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return iter(zip(X, Y, strict=True))


def test_every_form_of_data_and_losses_trains_alike() -> None:
    """Tensors, a Dataset, and batches of dictionaries see the same samples in the same order."""
    expected = fit().losses["train"]
    columns = {"x": X, "a": Y[:, 0], "b": Y[:, 1]}
    apart = lambda outputs, targets: cross_entropies(outputs, torch.stack(targets, -1))  # noqa: E731
    forms = [
        problem(train=TensorDataset(X, Y)),
        problem(train=(X, Y[:, 0], Y[:, 1]), losses=apart),
        problem(train=columns, losses=dictionary),
        problem(train=Samples(), losses=dictionary),
    ]
    for form in forms:
        torch.testing.assert_close(fit(form).losses["train"], expected)


def test_loaders_and_streams_train() -> None:
    loader = DataLoader(TensorDataset(X, Y), batch_size=32, shuffle=True, generator=torch.Generator())
    first, again = (fit(problem(train=loader), epochs=12, strategy="batched") for _ in range(2))
    assert torch.equal(first.losses["train"], again.losses["train"]), "the seed decides the loader's order"
    assert first.history["losses"][-1].mean() < first.history["losses"][0].mean()
    other = fit(problem(train=loader), epochs=12, seed=1)
    assert not torch.equal(first.losses["train"], other.losses["train"])
    stream = fit(problem(train=Stream()), epochs=12)
    assert stream.history["losses"][-1].mean() < stream.history["losses"][0].mean()


def test_batches_cover_every_sample_once_and_differ_by_epoch() -> None:
    batches = make_batches("train", (torch.arange(70),), batch_size=32, device=torch.device("cpu"), dtype=torch.float32)
    epochs = [torch.cat([part[0] for part in batches.epoch(0, e)]) for e in (0, 0, 1)]
    assert torch.equal(epochs[0], epochs[1])
    assert not torch.equal(epochs[0], epochs[2])
    assert torch.equal(epochs[2].sort().values, torch.arange(70))
    late = torch.cat([part[0] for part in batches.epoch(0, 1, start=2)])
    assert torch.equal(late, epochs[2][64:])
    assert torch.equal(torch.cat([part[0] for part in batches.in_order()]), torch.arange(70))


@pytest.mark.parametrize(("samples", "size", "steps"), [(64, 32, 2), (65, 32, 2), (66, 32, 3), (1, 32, 1), (5, 1, 5)])
def test_a_last_batch_of_one_is_left_out_of_training(samples: int, size: int, steps: int) -> None:
    data = (torch.arange(samples),)
    batches = make_batches("train", data, batch_size=size, device=torch.device("cpu"), dtype=torch.float32)
    assert batches.steps == steps == len(list(batches.epoch(0, 0)))
    assert sum(len(part[0]) for part in batches.in_order()) == samples


def test_floating_data_take_the_precision_of_the_models() -> None:
    assert fit(precision="float64").losses["train"].dtype == torch.float64
