"""Data are read again and again: what can be read only once is refused, and no loss is NaN because of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import paretomtl as pm

X = torch.linspace(-1, 1, 36).reshape(12, 3)
Y = torch.stack([X.sum(1), X[:, 0]], 1)
PAIRS = list(zip(X, Y, strict=True))


def losses(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs - targets).square().mean(0)


def fit(**splits: Any) -> pm.Front:
    problem = pm.Problem(lambda: nn.Linear(3, 2), losses, ["a", "b"], **{"train": (X, Y), **splits})
    options: dict[str, Any] = {"batch_size": 4, "device": "cpu", "progress": "quiet", "strategy": "sequential"}
    return pm.fit(problem, "linear", 2, epochs=2, **options)


class Stream(IterableDataset[Any]):
    """What a function makes at each pass."""

    def __init__(self, make: Callable[[], Iterator[Any]]) -> None:
        self.make = make

    def __iter__(self) -> Iterator[Any]:
        return self.make()


class Wrapped(IterableDataset[Any]):
    """A generator that is made once."""

    def __init__(self) -> None:
        self.samples = (pair for pair in PAIRS)

    def __iter__(self) -> Iterator[Any]:
        for pair in self.samples:  # noqa: UP028 (it would be closed with a pass that is left early)
            yield pair


class Itself(IterableDataset[Any]):
    """An iterator; one that begins again at each pass where it is told to."""

    def __init__(self, *, again: bool) -> None:
        self.again, self.place = again, 0

    def __iter__(self) -> Iterator[Any]:
        self.place = 0 if self.again else self.place
        return self

    def __next__(self) -> Any:
        self.place += 1
        if self.place > len(PAIRS):
            raise StopIteration
        return PAIRS[self.place - 1]


@pytest.mark.parametrize("split", ["train", "val", "test"])
@pytest.mark.parametrize("make", [Wrapped, lambda: DataLoader(Wrapped(), batch_size=4), lambda: Itself(again=False)])
def test_one_pass_is_not_enough(split: str, make: Any) -> None:
    rule = "(start from the beginning at each|have batches in every) pass. Got .*: data are read before training, "
    with pytest.raises(ValueError, match=f"'{split}' must {rule}"):
        fit(**{split: make()})


def test_an_iterator_that_begins_again_trains_as_a_loader_does() -> None:
    expected = fit(train=DataLoader(TensorDataset(X, Y), batch_size=4)).losses["train"]
    for stream in (Itself(again=True), Stream(lambda: iter(PAIRS))):
        assert torch.equal(fit(train=stream).losses["train"], expected)


@pytest.mark.parametrize("full", [1, 2, 3])
def test_a_pass_without_batches_ends_the_run(full: int) -> None:
    """However many passes had samples: to be checked, in each of two epochs. At the end the models are there."""
    left = [full]

    def make() -> Iterator[Any]:
        left[0] -= 1
        return iter(PAIRS if left[0] >= 0 else [])

    said = r"'train' must have batches in every pass. Got none after a pass with"
    with pytest.raises(ValueError, match=said) if full < 3 else pytest.warns(UserWarning, match=said):
        assert fit(train=Stream(make)).losses["train"].isnan().all()


def test_samplers_that_are_iterators_are_refused() -> None:
    loader = DataLoader(TensorDataset(X, Y), batch_sampler=iter([[0, 1], [2, 3], [4, 5], [6, 7]]))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"'train' must (start from the beginning|have batches in every pass)"):
        fit(train=loader)


def test_a_loader_that_drops_all_says_so() -> None:
    loader = DataLoader(TensorDataset(X, Y), batch_size=64, drop_last=True)
    with pytest.raises(ValueError, match=r"'val' must hold at least one batch. Got 12 samples with batch_size=64"):
        fit(val=loader)


def test_a_loader_shorter_than_its_length_is_said_to_be() -> None:
    class Short(Stream):
        def __len__(self) -> int:
            return 40

    with pytest.warns(UserWarning, match=r"'train' ended after 3 batches, but its length is 10"):
        assert fit(train=Short(lambda: iter(PAIRS))).losses["train"].isfinite().all()


def test_loaders_and_data_sets_of_other_libraries_train() -> None:
    class Loader:
        def __iter__(self) -> Iterator[Any]:
            return iter(DataLoader(TensorDataset(X, Y), batch_size=4))

    class Table:
        """Samples by number, as data sets of Hugging Face have them."""

        def __len__(self) -> int:
            return len(X)

        def __getitem__(self, number: int) -> Any:
            return PAIRS[number]

        def __iter__(self) -> Iterator[Any]:
            return iter(PAIRS)

    expected = fit(train=DataLoader(TensorDataset(X, Y), batch_size=4)).losses["train"]
    assert torch.equal(fit(train=Loader()).losses["train"], expected)
    assert torch.equal(fit(train=Table()).losses["train"], fit().losses["train"])
