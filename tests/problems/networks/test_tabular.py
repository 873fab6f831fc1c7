"""Networks for records: their sizes, what they compute, and stacks of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import paretomtl as pm
from paretomtl.problems import MLP, MixtureOfExperts, binary_accuracy, binary_cross_entropies

MODELS: dict[str, Callable[[int], nn.Module]] = {
    "mlp": lambda tasks: MLP(6, tasks, hidden=(8, 4)),
    "mixture": lambda tasks: MixtureOfExperts(6, tasks, experts=3, hidden=(5,), tower=(4,)),
    "deep mixture": lambda tasks: MixtureOfExperts(6, tasks, experts=2, hidden=(5, 4), tower=()),
}


def features(count: int = 40) -> Tensor:
    return torch.randn(count, 6, generator=torch.Generator().manual_seed(0))


def test_the_sizes_are_those_of_the_papers() -> None:
    assert sum(p.numel() for p in MLP(482, 3).parameters()) == 483 * 1024 + 1025 * 128 + 3 * 129
    found = sum(p.numel() for p in MixtureOfExperts(482, 3).parameters())
    assert found == 8 * 483 * 128 + 3 * (482 * 8 + 129 * 32 + 33)


@pytest.mark.parametrize("tasks", [1, 2, 5])
@pytest.mark.parametrize("name", MODELS)
def test_any_number_of_tasks_and_kind_of_number(name: str, tasks: int) -> None:
    model = MODELS[name](tasks)
    bytes_in = torch.randint(256, (7, 6), dtype=torch.uint8)
    outputs = model(bytes_in)
    assert [tuple(y.shape) for y in outputs] == [(7,)] * tasks
    torch.testing.assert_close(outputs, model(bytes_in.float()))
    assert model.double()(bytes_in)[0].dtype == torch.float64


@pytest.mark.parametrize("name", MODELS)
def test_a_record_is_told_without_the_others(name: str) -> None:
    model, x = MODELS[name](2), features()
    whole = torch.stack(model(x))
    alone = torch.cat([torch.stack(model(row[None])) for row in x], -1)
    torch.testing.assert_close(whole, alone)


def test_a_mixture_is_the_weighted_sum_of_its_experts() -> None:
    model, x = MixtureOfExperts(6, 2, experts=3, hidden=(5,), tower=(4,)), features()
    for i, (gate, tower) in enumerate(zip(model.gates, model.towers, strict=True)):
        shares = model.shares(gate, x)
        assert (shares > 0).all()
        torch.testing.assert_close(shares.sum(-1), torch.ones(40))
        mixture = sum(shares[:, j, None] * expert(x) for j, expert in enumerate(model.experts))
        torch.testing.assert_close(model(x)[i], tower(mixture)[:, 0])


def test_one_expert_is_a_shared_trunk() -> None:
    mixture, shared = MixtureOfExperts(6, 2, experts=1, hidden=(8, 4), tower=()), MLP(6, 2, hidden=(8, 4))
    shared.trunk.load_state_dict(mixture.experts[0].state_dict())
    for head, tower in zip(shared.heads, mixture.towers, strict=True):
        head.load_state_dict({name.removeprefix("0."): value for name, value in tower.state_dict().items()})
    torch.testing.assert_close(mixture(features()), shared(features()))


def test_like_experts_make_gates_useless() -> None:
    model, x = MixtureOfExperts(6, 2, experts=3, hidden=(5,)), features()
    for expert in model.experts[1:]:
        expert.load_state_dict(model.experts[0].state_dict())
    before = model(x)
    for gate in model.gates:
        nn.init.normal_(gate.weight)  # type: ignore[arg-type]
    torch.testing.assert_close(model(x), before)


def test_tasks_share_experts_and_nothing_else() -> None:
    model = MixtureOfExperts(6, 2, experts=3, hidden=(5,))
    model(features())[0].sum().backward()
    touched = {name for name, p in model.named_parameters() if p.grad is not None}
    assert {name.split(".")[0] for name in touched} == {"experts", "gates", "towers"}
    assert {name.split(".")[1] for name in touched if not name.startswith("experts")} == {"0"}


@pytest.mark.parametrize("name", MODELS)
def test_a_stack_trains_as_one_after_another(name: str) -> None:
    x = features()
    y = torch.stack([x[:, 0] > 0, x[:, 1] > 0, x[:, :2].sum(-1) > 0], -1).float()
    problem = pm.Problem(
        lambda: MODELS[name](3),
        binary_cross_entropies,
        ["a", "b", "c"],
        train=(x, y),
        metrics={"a accuracy": binary_accuracy(0)},
    )
    options: dict[str, Any] = {"preferences": 4, "epochs": 3, "batch_size": 16, "device": "cpu", "progress": "quiet"}
    alone, stack = (pm.fit(problem, strategy=way, **options) for way in ("sequential", "batched"))
    torch.testing.assert_close(stack.losses["train"], alone.losses["train"], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(stack.metrics["train"]["a accuracy"], alone.metrics["train"]["a accuracy"])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MLP(0, 3), "'inputs' must be a whole number of at least 1. Got 0"),
        (lambda: MLP(6, 0), "'tasks' must be a whole number of at least 1. Got 0"),
        (lambda: MLP(6, 3, hidden=()), r"'hidden' must be a list of at least 1 width of layers. Got \(\)"),
        (lambda: MLP(6, 3, hidden=5), "'hidden' must be a list of at least 1 width of layers. Got 5"),  # type: ignore[arg-type]
        (lambda: MLP(6, 3, hidden=(5, 0)), r"'hidden\[1\]' must be a whole number of at least 1. Got 0"),
        (lambda: MixtureOfExperts(6, 3, experts=0), "'experts' must be a whole number of at least 1. Got 0"),
        (lambda: MixtureOfExperts(6, 3, hidden=()), "'hidden' must be a list of at least 1 width"),
        (lambda: MixtureOfExperts(6, 3, tower=5), "'tower' must be a list of widths of layers. Got 5"),  # type: ignore[arg-type]
    ],
)
def test_bad_numbers_are_named(make: Callable[[], nn.Module], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
