from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

import paretomtl as pm
from paretomtl.methods import METHODS
from paretomtl.problems import cross_entropies
from paretomtl.training._batches import count_samples, make_batches
from training.networks import MLP, accuracy, classes, fit, problem, sgd

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
    first, again = fit(problem(train=loader), epochs=12), fit(problem(train=loader), epochs=12)
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


def test_metrics_see_the_whole_split() -> None:
    def sizes(outputs: Any, targets: Tensor) -> float:
        return float(len(targets)) + len(outputs[1]) / 1000

    of = problem(
        val=classes(50, seed=1),
        test=classes(40, seed=2),
        metrics={"accuracy": pm.Metric(accuracy), "size": pm.Metric(sizes, "lower")},
    )
    for strategy in ("sequential", "batched"):
        front = fit(of, strategy=strategy, epochs=10)
        assert front.metrics["train"]["size"].tolist() == [96.096] * 3
        assert front.metrics["val"]["size"].tolist() == [50.05] * 3
        assert front.metrics["test"]["size"].tolist() == [40.04] * 3
        assert front.better == {"accuracy": "higher", "size": "lower"}
        x, y = classes(40, seed=2)
        for k in range(3):
            outputs = front.model(k)(x)
            assert float(accuracy(outputs, y)) == pytest.approx(float(front.metrics["test"]["accuracy"][k]))
            torch.testing.assert_close(cross_entropies(outputs, y).detach(), front.losses["test"][k])


def test_metrics_of_the_general_form_get_model_and_batches() -> None:
    def share(model: Any, batches: list[Any]) -> Tensor:
        right = [model(batch["x"])[0].argmax(-1) == batch["a"] for batch in batches]
        assert hasattr(model, "trunk")
        return torch.cat(right).double().mean()

    of = problem(train=Samples(), losses=dictionary, metrics={"share": pm.Metric(share)})
    one, both = (fit(of, strategy=name, epochs=5) for name in ("sequential", "batched"))
    torch.testing.assert_close(one.metrics["train"]["share"], both.metrics["train"]["share"])
    assert one.metrics["train"]["share"].max() > 0.7


def test_a_metric_that_raises_costs_nothing_but_itself() -> None:
    def broken(outputs: Any, targets: Any) -> float:
        raise KeyError("typo")

    of = problem(metrics={"broken": pm.Metric(broken), "accuracy": pm.Metric(accuracy)})
    with pytest.warns(UserWarning, match="metric 'broken' raised KeyError: 'typo'. Its value is NaN"):
        front = fit(of)
    assert front.metrics["train"]["broken"].isnan().all()
    assert front.metrics["train"]["accuracy"].isfinite().all()


class Noisy(Dataset[tuple[Tensor, Tensor]]):
    """Augments with all three random generators."""

    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, i: int) -> tuple[Tensor, Tensor]:
        return X[i] + 0.1 * torch.randn(6) + 0.1 * np.random.rand() + 0.1 * random.random(), Y[i]  # noqa: NPY002


def test_training_draws_apart_from_the_callers_randomness() -> None:
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    random.seed(3)
    first = fit(problem(train=Noisy()))
    drawn = (float(torch.rand(())), float(np.random.rand()), random.random())  # noqa: NPY002
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    random.seed(3)
    assert drawn == (float(torch.rand(())), float(np.random.rand()), random.random())  # noqa: NPY002
    assert torch.equal(first.losses["train"], fit(problem(train=Noisy())).losses["train"])


# Missing labels.


def masked(outputs: Any, targets: Tensor) -> Tensor:
    """The cross-entropy over labelled samples: 0/0 where there are none; labels of −1 are missing."""
    found = []
    for i, y in enumerate(outputs):
        known = targets[:, i] >= 0
        each = nn.functional.cross_entropy(y, targets[:, i].clamp_min(0), reduction="none")
        found.append((each * known).sum() / known.sum())
    return torch.stack(found)


@pytest.mark.parametrize("method", METHODS)
def test_a_task_without_labels_is_left_out_of_the_step(method: str) -> None:
    """Batches where one task or the other has no label; both strategies take the same steps, and nothing breaks."""
    labels = Y.clone()
    labels[:32, 0] = -1
    labels[32:64, 1] = -1
    batches = [(X[i : i + 32], labels[i : i + 32]) for i in (0, 32, 64)]
    loader: Any = DataLoader(batches, batch_size=None)
    of = problem(train=loader, losses=masked)
    count = 2 if method == "single-task" else 3
    one, both = (fit(of, method, count, strategy=name, precision="float64") for name in ("sequential", "batched"))
    for name, tensor in one.parameters.items():
        assert tensor.isfinite().all()
        torch.testing.assert_close(tensor, both.parameters[name], rtol=0, atol=1e-6)
    assert "non-finite" not in one.status
    assert one.losses["train"].isfinite().all()


def test_an_absent_task_gets_no_gradient() -> None:
    labels = Y.clone()
    labels[:, 1] = -1
    with pytest.warns(UserWarning, match=r"tasks \['b'\] had no labels in any batch of 'train'"):
        front = fit(problem(train=(X, labels), losses=masked), "linear", [[1.0, 1.0]], epochs=3)
    assert front.status == ["trained"]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        start = MLP()
    assert torch.equal(front.model(0).heads[1].weight, start.heads[1].weight)
    assert not torch.equal(front.model(0).heads[0].weight, start.heads[0].weight)
    assert front.losses["train"][0, 1].isnan()
    assert front.history["weights"][:, 0, 1].tolist() == [0.0] * 3


class Cliff(MLP):
    """The first loss of one model turns NaN; its parameter runs over an edge when it is trained on task a alone."""

    def __init__(self) -> None:
        super().__init__()
        self.x = nn.Parameter(torch.full((), 0.5))

    def forward(self, x: Tensor) -> Tensor:
        nothing = 0 * self.heads[0](self.trunk(x)).sum()
        return torch.stack([torch.sqrt(1 - self.x) + nothing, self.x.square() + nothing])


@pytest.mark.parametrize("strategy", ["sequential", "batched"])
def test_a_loss_that_is_nan_for_one_model_alone_is_not_a_missing_label(strategy: Any) -> None:
    of = problem(Cliff, losses=lambda outputs, targets: outputs)
    slow = lambda p: torch.optim.SGD(p, lr=0.05)  # noqa: E731
    with pytest.warns(UserWarning, match=r"losses or gradients of subproblems \[0\] were not finite"):
        front = fit(of, "linear", epochs=20, optimizer=slow, strategy=strategy, batch_size=96)
    assert front.status == ["non-finite", "trained", "trained"]
    assert front.losses["train"].isfinite().all(), "it is back at its last finite step"
    steps = front.history["losses"][:, 0, 0]
    assert torch.equal(front.losses["train"][0, 0], steps[~steps.isnan()][-1]), "and not one before it"


# Which epoch is kept.


def test_the_best_epoch_on_validation_is_kept() -> None:
    """Each model is the one with the least weighted validation loss of all epochs, as the history shows."""
    of = problem(val=classes(30, seed=5), test=classes(30, seed=6))
    front = fit(of, "linear", epochs=25, keep="best", optimizer=lambda p: torch.optim.SGD(p, lr=2.0))
    values = (front.history["val"] * front.preferences).sum(-1)
    assert front.epochs == [int(k) + 1 for k in values.argmin(0)]
    assert any(epoch < 25 for epoch in front.epochs)
    for k in range(3):
        torch.testing.assert_close(front.losses["val"][k], front.history["val"][front.epochs[k] - 1, k])


def test_being_in_its_own_region_comes_first() -> None:
    """Inside, the least mean loss; a lower one outside does not count. Never inside: the least violation."""
    of = problem(train=(X[:60], Y[:60]), val=(X[60:], Y[60:]))
    outside_was_better = never_inside = 0
    for seed in range(3):
        options: dict[str, Any] = {"epochs": 25, "keep": "best", "seed": seed}
        front = fit(of, pm.ParetoMTL(initial_steps=5), 5, optimizer=lambda p: torch.optim.SGD(p, lr=0.5), **options)
        history = front.history["val"].double()
        rows = pm.core.region_rows(front.preferences)
        violation = torch.stack([pm.core.constraint_values(rows, losses).amax(-1) for losses in history])
        means = history.mean(-1)
        for k in range(5):
            inside = violation[:, k] <= pm.core.FEASIBLE_TOLERANCE
            found = front.epochs[k] - 1
            if inside.any():
                assert found == int(torch.where(inside, means[:, k], torch.inf).argmin())
                outside_was_better += int(means[:, k].argmin()) != found
            else:
                assert found == int(violation[:, k].argmin())
                never_inside += 1
    assert outside_was_better
    assert never_inside


def test_a_model_that_broke_later_is_kept_from_when_it_was_sound() -> None:
    of = problem(Cliff, losses=lambda outputs, targets: outputs, val=(X, Y))
    slow = lambda p: torch.optim.SGD(p, lr=0.05)  # noqa: E731
    front = fit(of, "linear", epochs=20, optimizer=slow, keep="best", batch_size=96)
    assert front.status == ["trained"] * 3
    assert front.epochs[0] < 20
    assert front.losses["val"].isfinite().all()


def test_one_model_that_breaks_in_one_task_is_not_taken_for_unlabelled() -> None:
    of = problem(Cliff, losses=lambda outputs, targets: outputs)
    with pytest.warns(UserWarning, match=r"losses or gradients of subproblems \[0\] were not finite"):
        front = fit(of, "linear", [[1.0, 0.0]], epochs=20, optimizer=lambda p: torch.optim.SGD(p, lr=0.05))
    assert front.status == ["non-finite"]


def test_the_test_split_decides_nothing() -> None:
    fronts = [fit(problem(val=classes(30, seed=5), test=classes(30, seed=s)), keep="best") for s in (6, 7)]
    assert fronts[0].epochs == fronts[1].epochs
    for name, tensor in fronts[0].parameters.items():
        assert torch.equal(tensor, fronts[1].parameters[name])


# Schedulers.


@pytest.mark.parametrize(("schedule", "decays"), [("epoch", 4), ("step", 12)])
def test_the_scheduler_steps_as_told(schedule: str, decays: int) -> None:
    seen: list[torch.optim.Optimizer] = []

    def halve(optimizer: torch.optim.Optimizer) -> Any:
        seen.append(optimizer)
        return torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    fit(scheduler=halve, schedule=schedule, strategy="sequential")
    assert [o.param_groups[0]["lr"] for o in seen] == pytest.approx([0.1 * 0.5**decays] * 3)


# Bad input.


def half(outputs: Any, targets: Tensor) -> dict[str, Tensor]:
    return {"a": outputs[0].square().mean(), "b": outputs[1].detach().square().mean()}


class Stemmed(nn.Module):
    """Something trained lies before the representation."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.trunk, self.head = nn.Linear(6, 6), nn.Linear(6, 4), nn.Linear(4, 6)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.head(self.trunk(self.stem(x))).split(3, -1))


class Around(nn.Module):
    """The encoder's weight is used a second time, around its output."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.head = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return tuple((self.head(self.trunk(x)) + x @ self.trunk.weight).split(3, -1))


class Plain(nn.Module):
    """The representation has nothing to train."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.head = nn.Tanh(), nn.Linear(6, 6)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.head(self.trunk(x)).split(3, -1))


class Silent(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[:, :2]


def plateau(optimizer: torch.optim.Optimizer) -> Any:
    return torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)


ONE = MLP()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: problem(train=DataLoader(TensorDataset(X[:0], Y[:0]))), "'train' must hold at least one batch"),
        (lambda: problem(train=(X[:0], Y[:0])), r"'train' must be tensors with the same first dimension, not empty"),
        (lambda: problem(train=(X, Y[:5])), r"same first dimension, not empty. Got \[\[96, 6\], \[5, 2\]\]"),
        (lambda: problem(train=TensorDataset(X[:0], Y[:0])), "'train' must not be empty. Got a TensorDataset"),
        (lambda: problem(Silent), "'model' must have parameters to train"),
        (lambda: problem(lambda: ONE), "'model' must make a new module at each call. Got the same one twice"),
        (lambda: problem(losses=lambda o, t: torch.ones(3)), r"'losses' must return shape \[2\].* Got \[3\]"),
        (lambda: problem(losses=lambda o, t: torch.ones(2)), "'losses' must depend on the model's parameters"),
        (lambda: problem(losses=lambda o, t: {"a": o[0].sum()}), r"one loss for each of the tasks.*Got \['a'\]"),
        (lambda: pm.Problem(MLP, cross_entropies, ["a", "b"], val=(X, Y)), "'val' and 'test' must come with 'train'"),
        (lambda: pm.Problem(MLP, cross_entropies, ["a", "a"], train=(X, Y)), r"'tasks' must be distinct names"),
        (lambda: problem(metrics={"a": pm.Metric(accuracy)}), "'metrics' must not have names of tasks"),
        (lambda: problem(reference=[1.0]), "'reference' must be 2 finite numbers"),
        (lambda: problem(shared=["trunkk"]), r"'shared' must fit the names of some parameters.* Got \['trunkk'\]"),
        (lambda: problem(losses=half), "for every task. Got 'b', attached to none"),
        (lambda: problem(test=DataLoader(TensorDataset(X, Y), 200, drop_last=True)), "'test' must hold at least one"),
        (lambda: problem(Stemmed, representation="trunk"), r"'stem.weight' lies before 'trunk'"),
        (lambda: problem(Around, representation="trunk"), r"'trunk.weight' also acts around it"),
        (lambda: problem(Plain, representation="trunk"), "'representation' must name a submodule with parameters"),
    ],
)  # fmt: skip
def test_bad_problems_are_named(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(make())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: problem(train="mnist"), "'train' must be tensors, a Dataset or a DataLoader. Got str"),
        (lambda: problem(train={"x": X, "y": Y}), r"a batch must be \(inputs, targets\).* Got dict"),
        (lambda: problem(losses=lambda o, t: [1.0, 2.0]), r"'losses' must return a tensor of shape \[2\]"),
        (lambda: problem(losses=lambda o, t: {"a": 1.0, "b": o[1].sum()}), "'losses' must return tensors"),
        (lambda: problem(losses=lambda o, t: torch.ones(2, dtype=torch.long)), "'losses' must return a floating-point"),
        (lambda: problem(metrics={"m": accuracy}), "'metrics' must be Metric objects. Got function for 'm'"),
        (lambda: problem(lambda: "model"), "'model' must make an nn.Module. Got str"),
        (lambda: pm.Problem(MLP, cross_entropies, "ab", train=(X, Y)), "'tasks' must be a list of names"),
    ],
)  # fmt: skip
def test_bad_types_are_named(make: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        fit(make())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": None}, "'epochs' must be given: this problem has no recipe"),
        ({"batch_size": 0}, "'batch_size' must be a whole number of at least 1"),
        ({"keep": "best"}, "'keep' must be \"last\" for a problem without a validation split"),
        ({"keep": "first"}, r"'keep' must be one of \['last', 'best'\]. Got 'first'"),
        ({"strategy": "fast"}, "'strategy' must be one of"),
        ({"schedule": "day"}, "'schedule' must be one of"),
        ({"clip_norm": -1.0}, "'clip_norm' must be positive. Got -1.0"),
        ({"progress": "loud"}, "'progress' must be one of"),
        ({"scheduler": plateau}, "'scheduler' must depend on the epoch alone. Got ReduceLROnPlateau"),
        ({"resume": True}, "'resume' must come with 'out'"),
        ({"method": pm.ParetoMTL(release_steps=12)}, "'release_steps' must be fewer than the steps planned"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(**options)


def test_a_recipe_stands_in_for_what_is_left_out() -> None:
    recipe = pm.Recipe(epochs=2, batch_size=48, optimizer=sgd, methods={"pareto-mtl": pm.ParetoMTL(epsilon=0.3)})
    of = problem(recipe=recipe)
    front = pm.fit(of, device="cpu", progress="quiet")
    assert len(front.history["losses"]) == 2
    same = fit(problem(), pm.ParetoMTL(epsilon=0.3), 5, epochs=2, batch_size=48)
    assert torch.equal(front.losses["train"], same.losses["train"])


class Sparse(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5, 6, sparse=True)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.table(x[:, 0].abs().long().clamp_max(4)).split(3, -1))


@pytest.mark.parametrize("strategy", ["auto", "sequential"])
def test_sparse_gradients_are_refused(strategy: Any) -> None:
    with pytest.raises(TypeError, match=r"gradients must be dense. Got a sparse one"):
        fit(problem(Sparse), strategy=strategy)


def test_splits_are_tried_out_before_training() -> None:
    trained: list[Any] = []
    with pytest.raises(RuntimeError) as raised:
        fit(problem(test=(X[:, :5], Y)), callbacks=[trained.append])
    assert "first batch of 'test'" in raised.value.__notes__[0]
    assert not trained


def test_metrics_that_cannot_be_put_together_cost_nothing_but_themselves() -> None:
    sizes = DataLoader([(X[:8], Y[:8]), (X[:8], Y[:8])], batch_size=None)  # type: ignore[arg-type,var-annotated]
    wide = lambda: Ragged()  # noqa: E731
    with pytest.warns(UserWarning, match="metric 'accuracy' raised RuntimeError"):
        front = fit(problem(wide, train=sizes, metrics={"accuracy": pm.Metric(accuracy)}), strategy="sequential")
    assert front.losses["train"].isfinite().all()


class Ragged(MLP):
    """Its outputs have another width at every call."""

    calls = 0

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        Ragged.calls += 1
        return tuple(nn.functional.pad(y, (0, Ragged.calls % 5)) for y in super().forward(x))


class Positions(MLP):
    """A random buffer that is not in the state dictionary, one made in the first pass, and a plain random tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("shift", torch.randn(6), persistent=False)
        self.register_buffer("cache", None)
        self.order = torch.randperm(6)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        if self.cache is None:
            self.cache = torch.ones(1)
        return super().forward((x + self.shift)[:, self.order] * self.cache)


def test_odd_buffers_and_plain_tensors_come_back() -> None:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        return cross_entropies(model(batch[0]), batch[1])

    def again(model: nn.Module, batches: list[Any]) -> Tensor:
        return torch.stack([loss(model, batch)[0] for batch in batches]).mean()

    front = fit(problem(Positions, losses=loss, metrics={"again": pm.Metric(again)}))
    torch.testing.assert_close(front.metrics["train"]["again"].float(), front.losses["train"][:, 0])
    for k in range(3):
        torch.testing.assert_close(cross_entropies(front.model(k)(X), Y).detach(), front.losses["train"][k])


def test_bfloat16_losses_with_missing_labels() -> None:
    def squares(outputs: Any, targets: Tensor) -> Tensor:
        known = (targets >= 0).to(outputs[0].dtype)
        return torch.stack([(y[:, 0].square() * known[:, i]).sum() / known[:, i].sum() for i, y in enumerate(outputs)])

    labels = Y.clone()
    labels[:48, 0] = -1
    loader: Any = DataLoader([(X[:48], labels[:48]), (X[48:], labels[48:])], batch_size=None)
    for method in ("linear", "pareto-mtl"):
        front = fit(problem(train=loader, losses=squares), method, precision="bfloat16")
        assert "non-finite" not in front.status


def test_samples_of_a_batch_are_counted_by_its_first_tensor() -> None:
    assert count_samples({"id": ["x", "y", "z"], "x": torch.ones(3, 2)}) == 3
    assert count_samples(({"n": torch.tensor(1)}, torch.ones(5))) == 5
    assert count_samples(None) == 1
