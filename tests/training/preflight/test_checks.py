"""What is wrong with a problem is named, and before anything is trained where that is possible."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import paretomtl as pm
from _helpers.networks import MLP, accuracy, classes, fit, problem, sgd
from paretomtl.engine.batches.structure import count_samples
from paretomtl.problems import cross_entropies

X, Y = classes()


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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: problem(train=DataLoader(TensorDataset(X[:0], Y[:0]))), "'train' must hold at least one batch"),
        (lambda: problem(train=(X[:0], Y[:0])), r"'train' must be tensors with the same first dimension, not empty"),
        (lambda: problem(train=(X, Y[:5])), r"same first dimension, not empty. Got \[\[96, 6\], \[5, 2\]\]"),
        (lambda: problem(train=TensorDataset(X[:0], Y[:0])), "'train' must not be empty. Got a TensorDataset"),
        (lambda: problem(Silent), "'model' must have parameters to train"),
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
        (lambda: problem(train="mnist"), "'train' must be tensors, arrays or tables of numbers, .*DataLoader. Got str"),
        (lambda: problem(train={"x": X, "y": Y}), r"a batch must be \(inputs, targets\).* Got a dict with keys"),
        (lambda: problem(losses=lambda o, t: 1.0), r"'losses' must return a tensor of shape \[2\]"),
        (lambda: problem(losses=lambda o, t: [1.0, 2.0]), "'losses' must return tensors .* leave out .item"),
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
    # The strategy "auto" would measure, and may differ.
    front = pm.fit(of, "pareto-mtl", device="cpu", progress="quiet", strategy="batched")
    assert len(front.history["losses"]) == 2
    same = fit(problem(), pm.ParetoMTL(epsilon=0.3), 5, epochs=2, batch_size=48, strategy="batched")
    assert torch.equal(front.losses["train"], same.losses["train"])


class Sparse(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5, 6, sparse=True)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.table(x[:, 0].abs().long().clamp_max(4)).split(3, -1))


@pytest.mark.parametrize("strategy", ["auto", "sequential"])
def test_sparse_gradients_are_refused(strategy: Any) -> None:
    with pytest.raises(TypeError, match=r"'model' must have dense gradients. Got a sparse one"):
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


class Lazy(MLP):
    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.LazyLinear(12), nn.Tanh())


def test_lazy_parameters_are_named() -> None:
    with pytest.raises(
        ValueError, match=r"'model' must make modules whose parameters have their shapes.*trunk\.0\.weight"
    ):
        fit(problem(Lazy))


class Uncopied(MLP):
    """As torch.nn.utils.weight_norm leaves a module: with a tensor that hangs on a graph."""

    def __init__(self) -> None:
        super().__init__()
        self.double = 2 * self.heads[0].weight


def test_a_module_that_cannot_be_copied_is_said_to_be() -> None:
    with pytest.raises(
        ValueError, match=r"'model' must make modules that can be copied .*parametrizations\.weight_norm"
    ):
        fit(problem(Uncopied))
