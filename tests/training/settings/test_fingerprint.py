"""A run is resumed only as the run that it is: whatever changed is noticed, and named."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

import paretomtl as pm
from _helpers.networks import MLP, accuracy, classes, fit, problem
from paretomtl.problems import cross_entropies
from paretomtl.training.settings.fingerprint import identify_problem

X, Y = classes(200)
VAL = classes(40, seed=1)


class Crash(Exception):
    pass


def stop_at_two(report: Any) -> None:
    if report.epoch == 2:
        raise Crash


def milestones(*epochs: int) -> Any:
    return lambda optimizer: torch.optim.lr_scheduler.MultiStepLR(optimizer, list(epochs))


def decay(factor: float) -> Any:
    return lambda optimizer: torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: factor**epoch)


def make(**changes: Any) -> pm.Problem:
    options = {"train": (X, Y), "val": VAL, "metrics": {"first": pm.Metric(accuracy)}, **changes}
    return problem(options.pop("model", MLP), **options)


def relabelled(i: int) -> Tensor:
    labels = Y.clone()
    labels[i, 0] = (labels[i, 0] + 1) % 3
    return labels


class Gelu(MLP):
    """The same parameters and the same modules, another activation in between."""

    def _get_name(self) -> str:
        return "MLP"

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        hidden = nn.functional.gelu(self.trunk(x))
        return tuple(head(hidden) for head in self.heads)


class Relu(MLP):
    def _get_name(self) -> str:
        return "MLP"

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(6, 12), nn.ReLU())


def softer(outputs: Any, targets: Tensor) -> Tensor:
    return torch.stack(
        [nn.functional.cross_entropy(y, targets[:, i], label_smoothing=0.1) for i, y in enumerate(outputs)]
    )


def second(outputs: Any, targets: Tensor) -> Tensor:
    return (outputs[1].argmax(-1) == targets[:, 1]).double().mean()


CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "losses": ({"losses": softer}, {}, "'problem' must .*losses of the untrained first model"),
    "one label": ({"train": (X, relabelled(77))}, {}, "'data.train' must be that of the run"),
    "one input": ({"train": (X + 1e-3 * (torch.arange(200) == 131)[:, None], Y)}, {}, "'data.train' must be"),
    "activation": ({"model": Gelu}, {}, "'problem' must .*losses of the untrained first model"),
    "activation module": ({"model": Relu}, {}, "'model' must be .*Tanh.*ReLU"),
    "validation": ({"val": (VAL[0], VAL[1].flip(0))}, {}, "'data.val' must be that of the run"),
    "no validation": ({"val": None}, {}, "'data.val' must be given"),
    "test": ({"test": VAL}, {}, "'data.test' must be that of the run"),
    "shared": ({"shared": ["trunk"]}, {}, "'shared' must be .*trunk.0.weight"),
    "metric": ({"metrics": {"first": pm.Metric(second)}}, {}, "the metric 'first' of the untrained first model was"),
    "direction of a metric": ({"metrics": {"first": pm.Metric(accuracy, "lower")}}, {}, "'metrics.first' must be"),
    "scheduler's settings": ({}, {"scheduler": milestones(1, 3)}, "'scheduler.settings' must be"),
    "no metric": ({"metrics": {}}, {}, "'metrics.* must be"),
}


@pytest.mark.parametrize("finished", [False, True], ids=["interrupted", "finished"])
@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_noticed_and_named(change: str, finished: bool, tmp_path: Path) -> None:
    options: dict[str, Any] = {"epochs": 3, "strategy": "sequential", "out": tmp_path, "scheduler": milestones(1, 2)}
    if finished:
        fit(make(), **options)
    else:
        with pytest.raises(Crash):
            fit(make(), callbacks=[stop_at_two], **options)
    changed, others, message = CHANGES[change]
    with pytest.raises(ValueError, match=message):
        fit(make(**changed), resume=True, **{**options, **others})
    assert fit(make(), resume=True, **options).complete, "the run itself goes on"


def test_lambdas_of_a_schedule_are_told_apart_by_their_rates(tmp_path: Path) -> None:
    fit(make(), out=tmp_path, epochs=2, scheduler=decay(0.9))
    with pytest.raises(ValueError, match=r"'scheduler\.rates' must be that of the run"):
        fit(make(), out=tmp_path, epochs=2, scheduler=decay(0.8), resume=True)
    assert fit(make(), out=tmp_path, epochs=2, scheduler=decay(0.9), resume=True).complete


class Items(Dataset[tuple[Tensor, Tensor]]):
    def __init__(self, x: Tensor, y: Tensor, *, drawing: bool = False) -> None:
        self.x, self.y = x, y
        self.generator = torch.Generator() if drawing else None

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, i: int) -> tuple[Tensor, Tensor]:
        noise = 0.1 * torch.randn(6, generator=self.generator)
        return self.x[i] + noise, self.y[i]


def loader(x: Tensor, y: Tensor) -> Any:
    return DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True, generator=torch.Generator())


@pytest.mark.parametrize("wrap", [Items, loader])
def test_datasets_and_loaders_are_sampled(wrap: Any, tmp_path: Path) -> None:
    """Augmentation by the global random state is no difference; other labels are."""
    fit(make(train=wrap(X, Y)), out=tmp_path)
    assert fit(make(train=wrap(X, Y)), out=tmp_path, resume=True).complete
    with pytest.raises(ValueError, match=r"'data\.train' must be that of the run"):
        fit(make(train=wrap(X, (Y + 1) % 3)), out=tmp_path, resume=True)


def test_data_that_differ_from_draw_to_draw_cannot_be_told_apart_and_resume(tmp_path: Path) -> None:
    fit(make(train=Items(X, Y, drawing=True)), out=tmp_path)
    assert fit(make(train=Items(X, Y, drawing=True)), out=tmp_path, resume=True).complete


class Stream(IterableDataset[tuple[Tensor, Tensor]]):
    def __iter__(self) -> Any:
        yield from zip(X, Y, strict=True)


def test_a_stream_resumes(tmp_path: Path) -> None:
    fit(make(train=Stream()), out=tmp_path)
    assert fit(make(train=Stream()), out=tmp_path, resume=True).complete


def test_what_is_looked_at_changes_nothing(tmp_path: Path) -> None:
    """A run that is stored, and looked at for it, is the run that is not."""
    of = make(train=Items(X, Y))
    stored, alone = (fit(of, out=out, strategy="sequential") for out in (tmp_path, None))
    assert torch.equal(stored.losses["train"], alone.losses["train"])


def test_a_problem_is_recognised_and_told_from_others() -> None:
    whole = make()
    assert identify_problem(whole) == identify_problem(make())
    for name, (changed, others, _) in CHANGES.items():
        if not others:
            assert identify_problem(make(**changed)) != identify_problem(whole), name
    assert identify_problem(dataclasses.replace(whole, losses=cross_entropies)) == identify_problem(whole)
