"""The page of errors: each message on it is one that its trigger raises today."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

import paretomtl as pm
from _helpers.fronts import front_of
from _helpers.places import DOCS
from paretomtl._support.imports.optional_packages import require
from paretomtl.cli._lookup import find_method, find_problem
from paretomtl.cli._paths import check_run

PAGE = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(.+?)` \| (.+) \| (.+) \|$", PAGE, re.MULTILINE)
X = torch.linspace(-1, 1, 8)[:, None]
Y = torch.cat([X.sin(), X.cos()], 1)
MODULE, HOOKED = nn.Linear(1, 2), nn.Linear(1, 2)
HOOKED.weight.register_hook(lambda gradient: gradient)
FRONT = front_of([[0.5, 0.5], [0.4, 0.7]])
GIVEN = pm.Front.from_losses([[0.5, 0.5], [0.4, 0.7]], tasks=["a", "b"])


def losses(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs - targets).square().mean(0)


def classes(outputs: Tensor, targets: Tensor) -> Tensor:
    return torch.stack([nn.functional.cross_entropy(outputs, column) for column in targets.unbind(1)])


def accuracy(outputs: Tensor, targets: Tensor) -> Tensor:
    return torch.stack([losses(outputs, targets)[0], (outputs.argmax(1) == 0).float().mean()])


def in_place(outputs: Tensor, targets: Tensor) -> Tensor:
    targets /= 255
    return losses(outputs, targets)


class Ragged(Dataset[Any]):
    """Samples are lists of different lengths."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, i: int) -> Any:
        if i >= len(self):
            raise IndexError
        return [0.0] * (1 + i % 2), [0.0, 0.0]


class Once(IterableDataset[Any]):
    """A pass that has batches twice: when it is checked, and no more."""

    def __init__(self) -> None:
        self.passes = 0

    def __iter__(self) -> Iterator[Any]:
        self.passes += 1
        yield from zip(X, Y, strict=True) if self.passes < 2 else ()


def problem(**changes: Any) -> pm.Problem:
    usual = {"model": lambda: nn.Linear(1, 2), "losses": losses, "tasks": ["sine", "cosine"], "train": (X, Y)}
    return pm.Problem(**{**usual, **changes})


def fit(given: Any = None, **changes: Any) -> pm.Front:
    usual = {"preferences": 2, "epochs": 1, "device": "cpu", "progress": "quiet", "strategy": "sequential"}
    return pm.fit(problem() if given is None else given, **{**usual, **changes})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("errors") / "run"
    fit(out=folder)
    return folder


def in_use(run: Path) -> None:
    folder = run.with_name("in-use")
    fit(out=folder, callbacks=[lambda report: fit(out=folder) and None])


def damaged(run: Path, old: str, new: str) -> None:
    folder = run.with_name("damaged")
    pm.Front.load(run).save(folder)
    path = folder / "front.json"
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    pm.Front.load(folder)


def of_pixels(*, bias: bool) -> pm.Problem:
    images = torch.zeros(8, 3, 8, 8, dtype=torch.uint8)
    return problem(model=lambda: nn.Sequential(nn.Conv2d(3, 2, 8, bias=bias), nn.Flatten()), train=(images, Y))


TRIGGERS: dict[str, Callable[[Path], Any]] = {
    # Making a problem.
    "'model' must be a function or class that makes a module.": lambda _: problem(model=MODULE),
    "'model' must need no arguments": lambda _: problem(model=nn.Linear),
    "'losses' must take (outputs, targets), or (model, batch).": lambda _: problem(losses=lambda outputs: outputs),
    "'tasks' must be a list of names.": lambda _: problem(tasks="sine"),
    "'tasks' must have at least 2 names": lambda _: problem(tasks=["sine"]),
    "'metrics' must be Metric objects": lambda _: problem(metrics={"error": losses}),
    "'train' must be tensors, arrays or tables of numbers, a Dataset or a DataLoader.": lambda _: problem(
        train="a.csv"
    ),
    "'train[0]' must hold numbers.": lambda _: problem(train=(np.array([["a"]] * 8, dtype=object), Y)),
    "'train[0]' must have rows of one length.": lambda _: problem(train=([[1.0], [1.0, 2.0]] * 4, Y)),
    "'train' must not be empty.": lambda _: problem(train=([], [])),
    # The first batch.
    "'train' must be tensors with the same first dimension, not empty.": lambda _: fit(problem(train=(X, Y[:5]))),
    "mat1 and mat2 shapes cannot be multiplied": lambda _: fit(problem(model=lambda: nn.Linear(3, 2))),
    "mat1 and mat2 must have the same dtype": lambda _: fit(problem(train=(X.long(), Y))),
    "Input type (unsigned char) and bias type (float) should be the same": lambda _: fit(of_pixels(bias=True)),
    "expected scalar type Byte but found Float": lambda _: fit(of_pixels(bias=False)),
    "each element in list of batch should be of equal size": lambda _: fit(problem(train=Ragged())),
    "Target … is out of bounds": lambda _: fit(problem(losses=classes, train=(X, torch.full((8, 2), 5)))),
    "index out of range in self": lambda _: fit(
        problem(model=lambda: nn.Sequential(nn.Embedding(4, 2), nn.Flatten()), train=(torch.full((8, 1), 9), Y))
    ),
    "a batch must be (inputs, targets)": lambda _: fit(problem(train=X)),
    "'losses' must return shape […], one per task.": lambda _: fit(problem(losses=lambda o, t: (o - t) ** 2)),
    "'losses' must return tensors of one number each.": lambda _: fit(problem(losses=lambda o, t: [0.1, 0.2])),
    "'losses' must depend on the model's parameters. Got": lambda _: fit(
        problem(losses=lambda o, t: losses(o.detach(), t))
    ),
    "'losses' must depend on the model's parameters for every task.": lambda _: fit(problem(losses=accuracy)),
    "'model' must make new parameters at each call where gradients go through hooks.": lambda _: fit(
        problem(model=lambda: HOOKED)
    ),
    "'model' must have parameters to train.": lambda _: fit(problem(model=nn.Identity)),
    "'model' must make a module in train mode.": lambda _: fit(problem(model=lambda: nn.Linear(1, 2).eval())),
    "'model' and 'losses' must not change a batch in place": lambda _: fit(problem(losses=in_place)),
    # Calling fit.
    "'problem' must be a Problem": lambda _: fit("multi-digits"),
    "'epochs' must be given": lambda _: fit(epochs=None),
    "'preferences' must be a number or have shape […, …].": lambda _: fit(preferences=[[1, 0, 0]]),
    "'method' must be one of": lambda _: fit(method="pareto"),
    "'optimizer' must be a function that makes one.": lambda _: fit(optimizer="adam"),
    "'scheduler' must depend on the epoch alone.": lambda _: fit(
        scheduler=lambda optimizer: torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    ),
    "'keep' must be \"last\" for a problem without a validation split.": lambda _: fit(keep="best"),
    "'patience' must be None for a problem without a validation split": lambda _: fit(patience=3),
    "'device' must be available.": lambda _: fit(device="nowhere"),
    "'start' must be a front of the tasks": lambda _: fit(start=FRONT),
    # During training.
    "'train' must have batches in every pass.": lambda _: fit(problem(train=DataLoader(Once(), batch_size=8))),
    "'callbacks' must return None, or True to stop": lambda _: fit(callbacks=[lambda report: 0.5]),
    # Runs and files.
    "'out' must be a new folder, or come with resume=True": lambda run: fit(out=run),
    "'out' is locked by process": in_use,
    "'…' must be that of the run in": lambda run: fit(out=run, resume=True, batch_size=2),
    "'path' must be the folder of a front.": lambda run: pm.Front.load(run.parent),
    "'path' must not be the folder of a run": lambda run: FRONT.save(run),
    "'problem' must be given to Front.load for models to be made.": lambda run: pm.Front.load(run).model(0),
    "'…' must be a JSON file. It is damaged": lambda run: damaged(run, "{", ""),
    "'…' must be as it was written.": lambda run: damaged(run, "sine", "sinx"),
    "'…' is needed for this and is not installed": lambda _: require("no_such_module", "all"),
    # Choosing.
    "one of direction, importance, knee, max_regret, best must be given": lambda _: FRONT.select(),
    "bounds and 'best' must name one of": lambda _: FRONT.select(best="speed"),
    "'k' must be one of the models trained": lambda _: FRONT.model(7),
    "'k' must be of a front that has weights.": lambda _: GIVEN.model(0),
    "'reference' must be given: this front has no default.": lambda _: GIVEN.hypervolume(),
    "'losses' must be finite.": lambda _: pm.Front.from_losses([[0.1, torch.nan]], tasks=["a", "b"]),
    # Command line.
    "'PROBLEM' must be one of": lambda _: find_problem("multi-digit"),
    "'PROBLEM' must name an attribute of": lambda _: find_problem(f"{__file__}:nothing"),
    "'PROBLEM' must name a module that can be imported.": lambda _: find_problem("no_such_module:problem"),
    "'RUN' must be the folder of a front or run.": lambda run: check_run(run / "no"),
    "'--set' must be NAME=VALUE": lambda _: find_method("pareto-mtl", ["epsilom=0.1"], problem()),
}


def test_the_page_has_the_errors_that_are_triggered_here() -> None:
    assert [text for text, _, _ in ROWS] == list(TRIGGERS), "in the order in which new users meet them"
    assert len(ROWS) >= 30


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", [text for text, _, _ in ROWS])
def test_messages_begin_as_the_page_says(text: str, run: Path) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011 (errors of torch are among them)
        TRIGGERS[text](run)
    assert re.match(re.escape(text).replace("…", ".+?"), str(caught.value)), str(caught.value)


def test_its_example_raises_what_is_written() -> None:
    code, shown = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL).groups()  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="'losses' must return shape") as caught:
        exec(compile(code, "errors.md", "exec"), {"__name__": "__main__"})
    assert shown == "\n".join([f"ValueError: {caught.value}", *caught.value.__notes__, ""])
