"""Models of stored fronts: what another problem would make of them, and fronts of other data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

import paretomtl as pm
from _helpers.networks import MLP, Dropped, Normed, classes
from _helpers.short_runs import fit, small
from paretomtl.problems import cross_entropies

X, Y = classes(30, seed=3)
DATA = TensorDataset(X, Y)


class Rectified(MLP):
    """Other activations, which no parameter and no description shows."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        hidden = self.trunk[0](x).relu()
        return tuple(head(hidden) for head in self.heads)


class Scaled(MLP):
    """Inputs in other units."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return super().forward(x / 1.1)


def smoothed(outputs: Any, targets: Tensor) -> Tensor:
    cross = nn.functional.cross_entropy
    return torch.stack([cross(out, targets[:, i], label_smoothing=0.1) for i, out in enumerate(outputs)])


def of(train: Any, val: Any = None, model: Any = MLP) -> pm.Problem:
    return pm.Problem(model, cross_entropies, ["a", "b"], train=train, val=val)


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Any:
        return iter(zip(X, Y, strict=True))


class Augmented(Dataset[Any]):
    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, i: int) -> Any:
        return X[i] + 0.1 * torch.randn(6), Y[i]


@pytest.mark.parametrize("other", [{"model": Rectified}, {"model": Scaled}, {"losses": smoothed}], ids=range(3))
@pytest.mark.parametrize("given", [False, True])
def test_a_problem_that_computes_something_else_is_refused(other: dict[str, Any], given: bool, tmp_path: Path) -> None:
    front = pm.Front.from_models([MLP(), MLP()], small()) if given else fit()
    front.save(tmp_path)
    other_front = pm.Front.load(tmp_path, small(**other))
    with pytest.raises(ValueError, match="'problem' must make the models that were trained, and have their losses"):
        other_front.model(1)
    assert isinstance(pm.Front.load(tmp_path, small()).model(1), MLP)


@pytest.mark.parametrize(
    "options",
    [
        {"precision": "bfloat16"},
        {"precision": "float64"},
        {"strategy": "batched", "of": small(model=Dropped)},
        {"strategy": "batched", "of": small(model=Normed), "average": 0.5},
        {"of": of(DATA, DataLoader(DATA, 7, shuffle=True))},
        {"of": of(Stream()), "batch_size": 7},
        {"of": of(Augmented())},
        {"of": pm.problems.quadratic()},
        {"method": pm.ParetoMTL(release_steps=4)},
    ],
    ids=range(9),
)
def test_the_same_problem_raises_no_alarm(options: dict[str, Any], tmp_path: Path) -> None:
    front = fit(**options)
    front.save(tmp_path)
    loaded = pm.Front.load(tmp_path, options.get("of", small()))
    for k in range(len(front)):
        for name, tensor in loaded.model(k).state_dict().items():
            assert torch.equal(tensor, front.model(k).state_dict()[name])


def test_losses_that_are_nothing_but_rounding_raise_no_alarm(tmp_path: Path) -> None:
    x = torch.linspace(-1.0, 1.0, 40)[:, None]

    def factory() -> nn.Module:
        return nn.Sequential(nn.Linear(1, 8, bias=False), nn.Linear(8, 2, bias=False))

    def squares(outputs: Tensor, targets: Tensor) -> Tensor:
        return (outputs - targets).square().mean(0)

    problem = pm.Problem(factory, squares, ["a", "b"], train=(x, torch.cat([2.0 * x, -x], 1)))
    front = fit(problem, epochs=500, batch_size=40, strategy="batched", optimizer=lambda p: torch.optim.SGD(p, lr=0.2))
    assert float(front.losses["train"].max()) < 1e-10
    front.save(tmp_path)
    assert pm.Front.load(tmp_path, problem).model(0)


def test_other_data_are_said(tmp_path: Path) -> None:
    """As a new data set, or the same in other units; models are compared on the splits that are left."""
    fit().save(tmp_path)
    front = pm.Front.load(tmp_path, of(classes(24), (2.0 * X, Y)))
    with pytest.warns(UserWarning, match=r"'problem' has other data on \['val'\] .* of its models there\."):
        front.model(0)
    front.model(1)  # said once
    wrong = pm.Front.load(tmp_path, of(classes(24), (X, Y), Rectified))
    with pytest.warns(UserWarning, match="other data"), pytest.raises(ValueError, match="must make the models"):
        wrong.model(0)
    with pytest.warns(UserWarning, match="nor can its models be checked"):
        pm.Front.load(tmp_path, of((X, Y))).model(0)


def test_fronts_of_other_data_are_neither_joined_nor_compared(tmp_path: Path) -> None:
    one, same, other = fit(), fit(seed=1), fit(of(classes(24), (X, Y)))
    other.save(tmp_path)
    for front in (other, pm.Front.load(tmp_path)):
        with pytest.raises(ValueError, match="another 'val' split"):
            one.joined(front)
        with pytest.raises(ValueError, match="another 'val' split"):
            one.tight_reference(front)
        assert one.tight_reference(front, split="train") == front.tight_reference(one, split="train")
    one.joined(same).save(tmp_path / "joined")
    assert pm.Front.load(tmp_path / "joined", small()).model(3)
    with pytest.raises(ValueError, match="must make the models"):
        pm.Front.load(tmp_path / "joined", small(model=Rectified)).model(3)


@pytest.mark.parametrize(
    ("loader", "partial"),
    [
        (DataLoader(DATA, 7, shuffle=True, drop_last=True), True),
        (DataLoader(DATA, 7, sampler=WeightedRandomSampler([1.0] * 30, 30)), True),
        (DataLoader(DATA, sampler=RandomSampler(DATA, num_samples=8, generator=torch.Generator())), True),
        (DataLoader(DATA, 10, shuffle=True, drop_last=True), False),
        (DataLoader(DATA, 7, shuffle=True), False),
        (DataLoader(DATA, 7, sampler=SubsetRandomSampler(range(9))), False),
    ],
    ids=range(6),
)
@pytest.mark.parametrize("by_task", [False, True])
def test_a_random_part_to_evaluate_on_is_said(loader: Any, partial: bool, by_task: bool) -> None:
    problem = of(DATA, loader)
    if by_task:
        losses = {
            "a": lambda model, batch: smoothed(model(batch[0]), batch[1])[0],
            "b": lambda model, batch: smoothed(model(batch[0]), batch[1])[1],
        }
        problem = pm.Problem(MLP, losses, ["a", "b"], train={"a": DATA, "b": DATA}, val={"a": loader, "b": loader})
    model = MLP()
    if not partial:
        fit(problem, epochs=1)
        pm.Front.from_models([model], problem)
        return
    with pytest.warns(UserWarning, match=r"'val.* takes other samples in each pass"):
        fit(problem, epochs=1)
    with pytest.warns(UserWarning, match="takes other samples"):
        front = pm.Front.from_models([model, model], problem)
    assert torch.equal(*front.losses["val"]), "both were measured on the same samples"
