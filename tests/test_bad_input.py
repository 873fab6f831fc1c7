"""Calls of somebody who has read the README in haste: each is refused before training, by name, with what was found."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

import paretomtl as pm
from _helpers.fronts import front_of
from paretomtl.compare import compare

X = torch.linspace(-1, 1, 8)[:, None]
Y = torch.cat([X.sin(), X.cos()], 1)
VECTORS = pm.preferences.even(3, tasks=2)
FRONT = front_of([[0.5, 0.5], [0.4, 0.7]])


def losses(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs - targets).square().mean(0)


def problem(**changes: Any) -> pm.Problem:
    usual = {"model": lambda: nn.Linear(1, 1), "losses": losses, "tasks": ["sine", "cosine"], "train": (X, Y)}
    return pm.Problem(**{**usual, **changes})


def fit(given: Any = None, **changes: Any) -> pm.Front:
    usual = {"preferences": 3, "epochs": 2, "device": "cpu", "progress": "quiet", "strategy": "sequential"}
    return pm.fit(problem() if given is None else given, **{**usual, **changes})


def sgd(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.1)


class Rated(torch.optim.SGD):
    def __init__(self, params: Any, lr: float) -> None:
        super().__init__(params, lr=lr)


def refused(call: Callable[[], Any], message: str) -> None:
    """The rule and the value, in an error of one of three kinds whose last frame is in the library."""
    with pytest.raises((TypeError, ValueError, IndexError), match=re.escape(message)) as caught:
        call()
    assert "paretomtl" in str(caught.traceback[-1].path), "raised by the library, not by what it calls"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": nn.Linear}, "'model' must need no arguments, such as lambda: Network(3, 2). Got Linear(in_features"),
        ({"losses": lambda outputs: outputs}, "'losses' must take (outputs, targets), or (model, batch). Got <lambda>"),
        ({"train": None}, "'losses' must take (outputs) where 'train' is None. Got losses(outputs, targets) instead"),
        ({"tasks": 2}, "'tasks' must be a list of names. Got int instead."),
        ({"tasks": {"sine", "cosine"}}, "'tasks' must be a list of names. Got set instead."),
        ({"tasks": [1, 2]}, "'tasks' must be names. Got 1 instead."),
        ({"name": None}, "'name' must be a string. Got None instead."),
        ({"metrics": losses}, "'metrics' must be Metric objects by name. Got function instead."),
        ({"metrics": {1: pm.Metric(losses)}}, "'metrics' must have names. Got 1 instead."),
        ({"shared": 3}, "'shared' must be names of parameters or their beginnings, or a function of a name. Got int"),
        ({"shared": [nn.Linear(1, 1)]}, "or a function of a name. Got Linear instead."),
        ({"reference": 1.0}, "'reference' must be 2 finite numbers. Got 1.0 instead."),
        ({"reference": ["a", "b"]}, "'reference' must be 2 finite numbers. Got ['a', 'b'] instead."),
        ({"recipe": {"epochs": 3}}, "'recipe' must be a Recipe. Got dict instead."),
    ],
)
def test_problems_are_refused_where_they_are_made(changes: dict[str, Any], message: str) -> None:
    refused(lambda: problem(**changes), message)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pm.Recipe(batch_size="32"), "'batch_size' must be a whole number of at least 1. Got '32' instead."),  # type: ignore[arg-type]
        (lambda: pm.Recipe(optimizer=sgd([X])), "'optimizer' must be a function that makes one. Got SGD instead: "),  # type: ignore[arg-type]
        (lambda: pm.Recipe(scheduler=torch.optim.lr_scheduler.StepLR), "'scheduler' must be a function of (optimizer)"),
        (lambda: pm.Recipe(scheduler=lambda: None), "be a function of (optimizer) or (optimizer, total), such as"),
        (lambda: pm.Recipe(schedule="batch"), "'schedule' must be \"epoch\" or \"step\". Got 'batch' instead."),  # type: ignore[arg-type]
        (lambda: pm.Recipe(methods=["linear"]), "'methods' must be configured methods by name. Got list instead."),  # type: ignore[arg-type]
        (lambda: pm.Metric(lambda outputs: 1.0), "'function' must take (outputs, targets), or (model, batches). Got"),  # type: ignore[arg-type,misc]
        (lambda: pm.ParetoMTL(epsilon="0.1"), "'epsilon' must be at least 0 and under 1. Got '0.1' instead."),  # type: ignore[arg-type]
        (lambda: pm.ParetoMTL(rescale="false"), "'rescale' must be True or False. Got 'false' instead."),  # type: ignore[arg-type]
        (lambda: pm.ParetoMTL(unit_rows=1), "'unit_rows' must be True or False. Got 1 instead."),  # type: ignore[arg-type]
        (lambda: pm.MGDA(rescale="no"), "'rescale' must be True or False. Got 'no' instead."),  # type: ignore[arg-type]
        (lambda: pm.GradNorm(asymmetry=float("nan")), "'asymmetry' must be a finite number. Got nan instead."),
        (lambda: pm.GradNorm(learning_rate="1"), "'learning_rate' must be positive. Got '1' instead."),  # type: ignore[arg-type]
        (lambda: pm.Uncertainty(kinds=2), '\'kinds\' must be "classification" or "regression". Got 2 instead.'),  # type: ignore[arg-type]
        (lambda: pm.Uncertainty(normalize="no"), "'normalize' must be True or False. Got 'no' instead."),  # type: ignore[arg-type]
        (lambda: pm.TorchJD("UPGrad", learning_rate=-1), "'learning_rate' must be positive. Got -1 instead."),
        (lambda: pm.TorchJD("UPGrad", None), "'options' must be a dictionary of arguments of UPGrad. Got NoneType"),  # type: ignore[arg-type]
    ],
)
def test_settings_are_refused_where_they_are_made(make: Callable[[], Any], message: str) -> None:
    refused(make, message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"given": "multi-digits"},
            "'problem' must be a Problem, such as paretomtl.problems.synthetic(). Got 'multi-dig",
        ),
        ({"given": pm.problems.synthetic}, "Got the function synthetic instead."),
        ({"clip_norm": "1"}, "'clip_norm' must be positive. Got '1' instead."),
        ({"checkpoint_seconds": "30"}, "'checkpoint_seconds' must not be negative. Got '30' instead."),
        ({"preferences": 2.5}, "'preferences' must be a whole number of at least 1. Got 2.5 instead."),
        ({"preferences": [[1j]]}, "'preferences' must be real numbers in rows of equal length. Got [[1j]] instead."),
        ({"only": 1}, "'only' must be distinct models from 0 to 2. Got 1 instead."),
        ({"only": [True]}, "'only' must be distinct models from 0 to 2. Got [True] instead."),
        ({"optimizer": Rated}, "'optimizer' must be a function of (parameters), such as a lambda that sets all else."),
        ({"optimizer": lambda p: sgd(nn.Linear(1, 1).parameters())}, "Got one of others, which would train nothing."),
        ({"scheduler": torch.optim.lr_scheduler.StepLR}, "'scheduler' must be a function of (optimizer) or (opt"),
        ({"scheduler": lambda o: None}, "'scheduler' must make a learning rate scheduler of torch.optim. Got NoneType"),
        (
            {"optimizer": sgd, "scheduler": lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, 3), "epochs": 4},
            "'scheduler' must have room for the 4 times that it is going to step. Got OneCycleLR with total_steps=3",
        ),
        ({"device": ["cpu"]}, "'device' must be available. Got ['cpu']: "),
        ({"device": "meta"}, "'device' must be available. Got 'meta': tensors have no values there."),
        ({"compile": "default"}, "'compile' must be True, False or a dictionary. Got 'default' instead."),
        ({"compile": {"modes": 1}}, "'compile' must be arguments of torch.compile: ["),
        ({"executor": "ray"}, "'executor' must be one, such as RayExecutor(). Got 'ray' instead."),
        ({"out": ""}, "'out' must be a non-empty path. Got '' instead."),
        ({"out": 3}, "'out' must be a non-empty path. Got 3 instead."),
        ({"resume": "runs/first"}, "'resume' must be True or False. Got 'runs/first' instead."),
        ({"callbacks": print}, "'callbacks' must be a list of functions of a report. Got <built-in"),
        ({"callbacks": [pm.TensorBoard]}, "'callbacks' must be functions of a report. Got the class TensorBoard"),
        ({"callbacks": [lambda: None]}, "'callbacks' must be functions of a report. Got <lambda>() instead"),
    ],
)
def test_fit_refuses_before_it_trains(changes: dict[str, Any], message: str) -> None:
    refused(lambda: fit(**changes, **({} if "callbacks" in changes else {"callbacks": [_trained]})), message)


def _trained(report: Any) -> None:
    raise AssertionError("an epoch was trained")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train": ([], [])}, "'train' must not be empty. Got ([], []) instead."),
        ({"val": ()}, "'val' must not be empty. Got () instead."),
        ({"train": "data.csv"}, "Got str instead. Read the file first, such as by pandas.read_csv."),
        (
            {"train": (X, Y[:5])},
            "instead. These are 8 inputs, 5 targets: row i of each is one sample, so leave out the",
        ),
        ({"val": (X[:0], Y[:0])}, "It has no rows: check the filter or the split that made it."),
        ({"model": lambda: nn.Linear(1, 1).requires_grad_(False)}, "to train. Got none: all 2 are frozen. Call requ"),
        ({"model": lambda: nn.Linear(1, int(torch.randint(1, 99, ())))}, "different shapes: 'weight' is ["),
        (
            {"representation": "body"},
            "'representation' must name a submodule of the model. Got 'body' instead: it has [].",
        ),
    ],
)
def test_problems_that_cannot_be_trained_say_what_to_do(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    """They leave a run in the folder as it is."""
    fit(out=tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    refused(lambda: fit(problem(**changes), out=tmp_path, resume=True), message)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_run_and_a_saved_front_do_not_share_a_folder(tmp_path: Path) -> None:
    """A folder is read by its front.json first, so a front that is saved into a run would hide the run's own."""
    fit(out=tmp_path / "run")
    refused(lambda: FRONT.save(tmp_path / "run"), "'path' must not be the folder of a run, which stores its front")
    FRONT.save(tmp_path / "front")
    refused(lambda: fit(out=tmp_path / "front"), "has a 'front.json': take another.")
    assert pm.Front.load(tmp_path / "run").tasks == ("sine", "cosine")
    assert len(pm.Front.load(tmp_path / "front")) == len(FRONT)


def test_damaged_files_point_to_the_doctor(tmp_path: Path) -> None:
    fit(out=tmp_path)
    for name, read in (
        ("front/front.json", lambda: pm.Front.load(tmp_path)),
        ("config.json", lambda: fit(out=tmp_path, resume=True)),
    ):
        (tmp_path / name).write_text("{")
        with pytest.raises(ValueError, match=rf"{name}' must be a JSON file. It is damaged") as caught:
            read()
        said = f"'paretomtl doctor {tmp_path}' says which files are damaged and what can be saved."
        assert caught.value.__notes__ == [said]


def test_a_device_of_number_zero_is_not_taken_for_none() -> None:
    if torch.accelerator.is_available():
        pytest.skip("there is a device of this number")
    refused(lambda: fit(device=0), "'device' must be available. Got 0: ")


@pytest.mark.parametrize("seeds", [3, 1.5])
def test_seeds_are_more_than_a_number(seeds: Any) -> None:
    message = f"'seeds' must be one or more numbers, such as range(3). Got {seeds} instead."
    refused(lambda: pm.fit_seeds(problem(), seeds=seeds, epochs=1), message)


def test_numbers_of_numpy_and_torch_are_whole_numbers(tmp_path: Path) -> None:
    """They can be stored as well: a configuration is JSON."""
    one, three = np.int64(1), torch.tensor(3)
    changes = {"epochs": one, "batch_size": three, "seed": one, "preferences": three, "clip_norm": np.float32(1)}
    plain = fit(epochs=1, batch_size=3, seed=1, preferences=3, clip_norm=1.0, only=[1, 2])
    found = fit(**changes, only=np.arange(1, 3), out=tmp_path)
    assert torch.equal(found.losses["train"], plain.losses["train"])
    assert found.subproblems == (1, 2)
    assert torch.equal(found.model(one).weight, plain.model(1).weight)  # type: ignore[arg-type]
    assert [front.seed for front in pm.fit_seeds(problem(), seeds=np.arange(2), epochs=1, device="cpu")] == [0, 1]  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [np.int64, np.uint8, torch.tensor])
def test_all_counts_may_be_numbers_of_numpy_and_torch(kind: Any, tmp_path: Path) -> None:
    one, two = kind(1), kind(2)
    recipe = pm.Recipe(epochs=two, batch_size=two)
    plain = pm.fit(problem(), pm.ParetoMTL(initial_steps=1, release_steps=1), 2, epochs=2, batch_size=2, device="cpu")
    given = pm.ParetoMTL(initial_steps=one, release_steps=one)
    found = pm.fit(problem(recipe=recipe), given, two, device="cpu", out=tmp_path)
    assert torch.equal(found.losses["train"], plain.losses["train"])
    again = pm.fit(
        problem(),
        pm.ParetoMTL(initial_steps=1, release_steps=1),
        2,
        epochs=2,
        batch_size=2,
        device="cpu",
        out=tmp_path,
        resume=True,
    )
    assert again.complete
    assert found.around(one, two).shape == (2, 2)
    assert len(found.gaps(one)) <= 1
    for draw in (pm.preferences.even, pm.preferences.random, pm.preferences.interior):
        assert torch.equal(draw(kind(3), two), draw(3, 2))
    assert len(pm.diagnose(problem(), seeds=one, epochs=one, device="cpu").seeds) == 1
    assert len(compare(problem(), ["linear"], seeds=one, epochs=one, device="cpu", preferences=two).rows) == 1
    assert found.explore(height=kind(200))


@pytest.mark.parametrize("number", [np.float64(0.25), np.float32(0.25)])
def test_a_run_goes_on_with_the_same_number_of_python(number: Any, tmp_path: Path) -> None:
    fit(method=pm.ParetoMTL(epsilon=number), out=tmp_path)
    assert fit(method=pm.ParetoMTL(epsilon=0.25), out=tmp_path, resume=True).complete


LONG: list[Any] = [
    pd.DataFrame({f"feature {i}": range(60) for i in range(12)}),
    list(range(5_000)),
    "x" * 5_000,
    {"a": list(range(5_000))},
    torch.rand(40, 40),
    np.random.default_rng(0).random((50, 9)),
    [SimpleNamespace(text="many lines\n" * 400)] * 3,
]


@pytest.mark.parametrize("value", LONG, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize(
    "call",
    [
        pm.fit,
        lambda x: fit(preferences=x),
        lambda x: fit(method=x),
        lambda x: fit(epochs=x),
        lambda x: fit(only=x),
        lambda x: fit(strategy=x),
        lambda x: fit(device=x),
        lambda x: problem(name=[x]),
        lambda x: problem(tasks=[x, x]),
        lambda x: problem(reference=x),
        lambda x: pm.ParetoMTL(epsilon=x),
        lambda x: pm.Linear(scale=x).bind(VECTORS, 0),
        lambda x: pm.preferences.even(x),
        lambda x: pm.preferences.biased(3, x),
        lambda x: FRONT.model(x),
        lambda x: FRONT.select(importance=x),
        lambda x: FRONT.hypervolume(x),
        lambda x: FRONT.spread(x),
        lambda x: FRONT.regret(FRONT, x),
        lambda x: compare(problem(), ["linear"], seeds=x),
        lambda x: pm.Front.from_losses([x], tasks=["a", "b"]),
    ],
)
def test_errors_do_not_show_whole_data(call: Callable[[Any], Any], value: Any) -> None:
    with pytest.raises((TypeError, ValueError, IndexError)) as caught:
        call(value)
    assert len(str(caught.value)) < 700
    assert str(caught.value).count("\n") < 4


class Broken(torch.utils.data.Dataset[Any]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, i: int) -> None:
        return None


def doubled(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD([each / 0.5 for each in parameters])


def stumble(report: Any) -> None:
    raise KeyError("accuracy")


@pytest.mark.parametrize(
    ("made", "changes", "note"),
    [
        ({"losses": lambda net, batch: net(batch)}, {}, "its first parameter must be called 'model'."),
        ({"train": (X.long(), Y)}, {}, "Its tensors: [8, 1] torch.int64, [8, 2] torch.float32."),
        ({"train": Broken()}, {}, "This came from reading the first batch of 'train'."),
        ({"val": Broken()}, {}, "This came from reading the first batch of 'val'."),
        ({}, {"optimizer": doubled}, "This came from 'optimizer', which gets named parameters: pairs of a name and"),
        ({}, {"callbacks": [stumble]}, "This came from a callback at the end of epoch 1."),
    ],
)
def test_errors_of_a_users_code_say_what_called_it(made: dict[str, Any], changes: dict[str, Any], note: str) -> None:
    """They stay what they are: a debugger stops where they were raised."""
    with pytest.raises(Exception) as caught:  # noqa: PT011
        fit(problem(**made), **changes)
    assert note in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (torch.ones(2), "metric 'a' raised ValueError: it must return one number. Got shape [2] instead. Its value is"),
        (None, "metric 'a' raised TypeError: it must return one number. Got None instead. Its value is NaN."),
    ],
)
def test_metrics_that_are_no_number_say_what_they_are(returned: Any, message: str) -> None:
    made = problem(metrics={"a": pm.Metric(lambda outputs, targets: returned)})
    with pytest.warns(UserWarning, match=re.escape(message)):
        fit(made)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: FRONT.model("0"), "'k' must be one of the models trained, [0, 1]. Got '0' instead."),  # type: ignore[arg-type]
        (lambda: FRONT.state_dict(True), "'k' must be one of the models trained, [0, 1]. Got True instead."),
        (lambda: FRONT.around(0, angle="5"), "'angle' must be over 0 and at most 90 degrees. Got '5' instead."),  # type: ignore[arg-type]
        (lambda: FRONT.hypervolume(1.0), "'reference' must have one finite number per task (2). Got 1.0 instead."),  # type: ignore[arg-type]
        (lambda: FRONT.spread(["train"]), "'split' must be one of ['train']. Got ['train'] instead."),  # type: ignore[arg-type]
        (
            lambda: FRONT.igd_plus([[1, 2], [1]]),
            "'points' must be real numbers in rows of equal length. Got [[1, 2], [1]]",
        ),  # type: ignore[arg-type]
        (lambda: FRONT.igd_plus(torch.full((1, 2), torch.nan)), "'points' must be finite. Got [nan, nan] in row 0"),
        (lambda: FRONT.plot(3), "'path' must be a non-empty path. Got 3 instead."),  # type: ignore[arg-type]
        (lambda: FRONT.save(""), "'path' must be a non-empty path. Got '' instead."),
        (lambda: FRONT.save(__file__), "'path' must be a folder. Got the file '"),
        (lambda: pm.Front.load(None), "'path' must be a non-empty path. Got None instead."),  # type: ignore[arg-type]
        (lambda: pm.Front.load("x", "multi-digits"), "'problem' must be a Problem. Got str instead."),  # type: ignore[arg-type]
        (lambda: FRONT.select(direction=3), "'direction' must be 2 numbers, not negative and not all zero. Got 3"),  # type: ignore[arg-type]
        (lambda: FRONT.select(importance=["a", "b"]), "'importance' must be 2 numbers, not negative and not all zero."),  # type: ignore[list-item]
        (lambda: FRONT.select(at_most=0.3, best="a"), "'at_most' must be a dictionary of numbers by name. Got 0.3"),  # type: ignore[arg-type]
        (lambda: FRONT.select(best=0), "bounds and 'best' must have names of tasks or metrics. Got 0 instead."),  # type: ignore[arg-type]
        (lambda: FRONT.select(knee=True, split=""), "'split' must be one of ['train']. Got '' instead."),
    ],
)
def test_fronts_name_what_is_wrong(call: Callable[[], Any], message: str) -> None:
    refused(call, message)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pm.preferences.random(3, 2, seed=None), "'seed' must be a whole number. Got None instead."),  # type: ignore[arg-type]
        (
            lambda: pm.preferences.biased(3, "left"),
            "'direction' must be real numbers in rows of equal length. Got 'left'",
        ),  # type: ignore[arg-type]
        (lambda: pm.preferences.biased(3, [1, 1], concentration="1"), "'concentration' must be at least 0 and under 1"),  # type: ignore[arg-type]
        (lambda: pm.preferences.validate([[1, 0], [1]]), "'preferences' must be real numbers in rows of equal length."),
        (lambda: pm.preferences.validate(1j * torch.ones(2, 2)), "'preferences' must be real numbers"),
        (lambda: pm.core.min_norm(np.eye(2)), "'gramian' must be a tensor. Got ndarray instead."),  # type: ignore[arg-type]
        (lambda: pm.core.nondominated([[1.0, 2.0]]), "'losses' must be a tensor. Got list instead."),  # type: ignore[arg-type]
        (lambda: pm.core.dominates(None, X), "'a' must be a tensor. Got NoneType instead."),  # type: ignore[arg-type]
        (lambda: pm.MGDA().bind(3, 0), "'preferences' must have shape [K, m]. Got [] instead."),  # type: ignore[arg-type]
        (lambda: pm.MGDA().bind(VECTORS, "1"), "'index' must be a row of the 3 preferences. Got '1' instead."),  # type: ignore[arg-type]
        (lambda: pm.MGDA().bind(VECTORS, 1).load_state_dict(None), "'saved' must be what state_dict() returned"),  # type: ignore[arg-type]
    ],
)
def test_vectors_and_weighers_name_what_is_wrong(call: Callable[[], Any], message: str) -> None:
    refused(call, message)


@pytest.mark.parametrize("method", [pm.MGDA(), pm.Linear()])
def test_backward_names_what_is_wrong(method: pm.methods.Method) -> None:
    model, weigher = nn.Linear(1, 1), method.bind(VECTORS, 1)
    found = losses(model(X), Y)
    for changes, message in (
        ({"samples": "8"}, "'samples' must be a number, or one for each task. Got '8' instead."),
        ({"scaler": 2.0}, "'scaler' must be a torch.amp.GradScaler. Got float instead."),
    ):
        refused(lambda changes=changes: pm.backward(found, weigher, model.parameters(), **changes), message)
    pm.backward(found, weigher, model.parameters())
    refused(lambda: pm.backward(found, weigher, model.parameters()), "'losses' must come from a new forward pass: each")


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([], 2), {}, "'methods' must be a list of names. Got [] instead."),
        (("linear", 2), {}, "'methods' must be a list of names. Got 'linear' instead."),
        ((["linear"], "2"), {}, "'seeds' must be a whole number of at least 1. Got '2' instead."),
        ((["linear"], 1), {"epoch": 1}, "'options' must be arguments of fit. Got 'epoch' instead."),
    ],
)
def test_comparisons_name_what_is_wrong(arguments: Any, options: Any, message: str) -> None:
    refused(lambda: compare(problem(), *arguments, **options), message)
