"""Weight averaging: a running mean of each model's weights is evaluated and stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

import paretomtl as pm
from _helpers.networks import MLP, Normed, classes, fit, problem
from _helpers.streams import pretended  # noqa: F401
from paretomtl.engine.average import WeightAverage
from paretomtl.engine.models.flat_memory import ModelState, make_blocks

VAL = classes(40, seed=1)
EXACT: dict[str, Any] = {"epochs": 4, "precision": "float64", "strategy": "sequential"}


def adam(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=0.05)


def same(one: pm.Front, other: pm.Front) -> bool:
    weights, others = one.models.stacked(), other.models.stacked()
    losses = all(torch.equal(values, other.losses[split]) for split, values in one.losses.items())
    return losses and all(torch.equal(tensor, others[name]) for name, tensor in weights.items())


def agree(one: pm.Front, other: pm.Front) -> None:
    others = other.models.stacked()
    for name, tensor in one.models.stacked().items():
        torch.testing.assert_close(tensor, others[name], rtol=0, atol=1e-8)
    torch.testing.assert_close(one.losses["train"], other.losses["train"], rtol=0, atol=1e-8)


@given(share=st.floats(0.02, 0.98), steps=st.integers(1, 60), blocked=st.booleans())
def test_it_is_the_mean_that_the_docs_promise(share: float, steps: int, blocked: bool) -> None:
    """An oracle: the weights of all steps, written out; and their mean age for many steps."""
    tensors = {"a": torch.zeros(2, 3, dtype=torch.float64), "b": torch.zeros(2, 1, dtype=torch.float64)}
    blocks = make_blocks(tensors) if blocked else []
    views = {name: view for block in blocks for name, view in block.views().items()}
    state = ModelState(blocks, views or tensors)
    average = WeightAverage(share, state.copy())
    values = torch.randn(steps, 2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(steps))
    weights = torch.zeros(steps, dtype=torch.float64)
    average.add(state)
    for t in range(steps):
        state.write({"a": values[t], "b": values[t][:, :1]})
        newest = average.up_to(state)
        average.add(state)
        torch.testing.assert_close(newest["a"], average.values["a"])
        rate = min(1.0, 1.0 / (share * (t + 1)))
        weights *= 1.0 - rate
        weights[t] += rate
    torch.testing.assert_close(float(weights.sum()), 1.0)
    torch.testing.assert_close(average.values["a"], (weights[:, None, None] * values).sum(0))
    torch.testing.assert_close(average.values["b"], average.values["a"][:, :1])


def test_its_reach_is_a_share_of_the_run() -> None:
    count, share = 5000, 0.2
    average = WeightAverage(share, ModelState([], {"age": torch.zeros(1, 1, dtype=torch.float64)}))
    for t in range(count + 1):
        average.add(ModelState([], {"age": torch.full((1, 1), float(t), dtype=torch.float64)}))
    assert count - float(average.values["age"]) == pytest.approx(count * share / (1 + share), rel=0.01)


def loop(problem: pm.Problem, row: Tensor, steps: int, share: float) -> list[Tensor]:
    """An oracle: a bare loop of torch, all samples at once, with the mean as the documentation writes it."""
    still = lambda parameters: torch.optim.SGD(parameters, lr=0.0)  # noqa: E731
    model = fit(problem, "linear", row[None], **{**EXACT, "epochs": 1}, batch_size=None, optimizer=still).model(0)
    optimizer, (x, y) = adam(model.train().parameters()), classes()
    mean = [p.detach().clone() for p in model.parameters()]
    for t in range(1, steps + 1):
        losses = torch.stack([nn.functional.cross_entropy(out, y[:, i]) for i, out in enumerate(model(x.double()))])
        optimizer.zero_grad()
        (2 * losses * row).sum().backward()  # weights sum to the number of tasks
        optimizer.step()
        rate = min(1.0, 1.0 / (share * t))
        mean = [old + rate * (p.detach() - old) for old, p in zip(mean, model.parameters(), strict=True)]
    return mean


@pytest.mark.parametrize("model", [MLP, Normed])
@pytest.mark.parametrize("steps", [1, 2, 9])
@pytest.mark.parametrize("strategy", ["sequential", "batched", "graphed"])
def test_the_front_has_the_means_of_its_steps(
    model: Any, steps: int, strategy: str, request: pytest.FixtureRequest
) -> None:
    """After one step the mean is that step. The losses are those of the mean; training itself does not change."""
    if strategy == "graphed":
        request.getfixturevalue("pretended")
    made, row = problem(model, val=VAL), torch.tensor([0.3, 0.7], dtype=torch.float64)
    options: dict[str, Any] = {**EXACT, "optimizer": adam, "epochs": steps, "strategy": strategy, "batch_size": None}
    front = fit(made, "linear", torch.stack([row, row.flip(0)]), average=0.3, **options)
    for parameter, mean in zip(front.model(0).parameters(), loop(made, row, steps, 0.3), strict=True):
        torch.testing.assert_close(parameter.detach(), mean, rtol=0, atol=1e-9)
    plain = fit(made, "linear", torch.stack([row, row.flip(0)]), **options)
    torch.testing.assert_close(front.history["losses"], plain.history["losses"])
    assert (steps < 4) == torch.allclose(front.model(0).heads[0].weight, plain.model(0).heads[0].weight)
    again = pm.Front.from_models([front.model(k) for k in (0, 1)], made, device="cpu")
    for split in ("train", "val"):
        torch.testing.assert_close(front.losses[split].float(), again.losses[split].float(), rtol=0, atol=1e-5)
    torch.testing.assert_close(front.history["val"][-1], front.losses["val"])
    assert "average=0.3" in front.decisions[0]


def test_statistics_of_batch_normalisation_are_those_of_the_mean_weights() -> None:
    """On one batch of all samples, they are exactly its statistics."""
    made = problem(Normed)
    front = fit(made, "linear", 2, average=0.5, batch_size=96, optimizer=adam, **{**EXACT, "epochs": 20})
    for k in range(2):
        trunk = front.model(k).trunk
        hidden = trunk[0](classes()[0].double())
        torch.testing.assert_close(trunk[1].running_mean, hidden.mean(0).detach())
        torch.testing.assert_close(trunk[1].running_var, hidden.var(0).detach())
        assert int(trunk[1].num_batches_tracked) > 0


def test_a_frozen_layer_keeps_its_statistics() -> None:
    class Frozen(Normed):
        def __init__(self) -> None:
            super().__init__()
            self.trunk[1].eval()

    front = fit(problem(Frozen), "linear", 2, average=0.5)
    assert torch.equal(front.model(0).trunk[1].running_mean, torch.zeros(12))


@pytest.mark.parametrize("model", [MLP, Normed])
@pytest.mark.parametrize("options", [{}, {"branch": 0.4}, {"accumulate": 2}], ids=str)
def test_strategies_agree(model: Any, options: dict[str, Any]) -> None:
    options = {**EXACT, "average": 0.2, "optimizer": adam, **options}
    one = fit(problem(model), "pareto-mtl", 3, **options)
    agree(one, fit(problem(model), "pareto-mtl", 3, **{**options, "strategy": "batched"}))
    agree(one, fit(problem(model), "pareto-mtl", 3, **options, workers=2))


@pytest.mark.usefixtures("pretended")
@pytest.mark.parametrize("branch", [None, 0.4])
def test_captured_steps_agree(branch: float | None) -> None:
    """With fake streams."""
    options: dict[str, Any] = {**EXACT, "average": 0.2, "optimizer": adam, "branch": branch}
    captured, launched = (fit(problem(), "linear", 3, **{**options, "strategy": s}) for s in ("graphed", "batched"))
    assert captured.strategy.startswith("graphed")
    agree(captured, launched)


@pytest.mark.parametrize("keep", ["last", "best"])
@pytest.mark.parametrize("strategy", ["sequential", "batched"])
@pytest.mark.parametrize("stop", [1, 3])
def test_a_resumed_run_is_the_same_to_the_bit(stop: int, strategy: str, keep: str, tmp_path: Path) -> None:
    made = problem(Normed, val=VAL)
    options: dict[str, Any] = {"average": 0.2, "branch": 0.4, "optimizer": adam, "keep": keep, "strategy": strategy}
    straight = fit(made, "linear", 3, epochs=5, **options)
    stopping = [lambda report: report.epoch == stop]
    fit(made, "linear", 3, epochs=5, out=tmp_path, callbacks=stopping, **options)
    assert same(fit(made, "linear", 3, epochs=5, out=tmp_path, resume=True, **options), straight)


def test_the_best_epoch_is_that_of_the_means() -> None:
    """Labels of validation are of other data, so that losses on it soon rise."""
    made = problem(Normed, val=(VAL[0], VAL[1].flip(0)))
    front = fit(made, "linear", 2, average=0.3, keep="best", epochs=12, optimizer=adam, precision="float64")
    assert max(front.epochs) < 12
    for k, epoch in enumerate(front.epochs):
        torch.testing.assert_close(front.losses["val"][k], front.history["val"][epoch - 1, k])


def test_integer_buffers_are_copied() -> None:
    class Counted(MLP):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros((), dtype=torch.long))
            self.register_buffer("used", torch.zeros(2, dtype=torch.bool))

        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            if self.training:
                self.calls += 1
            return super().forward(x)

    front = fit(problem(Counted), "linear", 2, average=0.5, strategy="sequential")
    assert front.models.stacked()["calls"].dtype == torch.long
    assert int(front.models.stacked()["calls"][0]) >= 10


@pytest.mark.parametrize("strategy", ["sequential", "batched"])
def test_a_model_that_breaks_leaves_no_mark_in_its_mean(strategy: str) -> None:
    class Fragile(nn.Module):
        """Its square root breaks when a parameter turns negative."""

        def __init__(self) -> None:
            super().__init__()
            self.x = nn.Parameter(torch.tensor([0.5, 0.5]))

        def forward(self, batch: Tensor) -> Tensor:
            return self.x.sqrt() + 0.0 * batch.mean()

    data = torch.ones(8, 1), torch.ones(8, 1)
    made = pm.Problem(Fragile, lambda out, y: torch.stack([out[0] ** 2, (out[1] - 1) ** 2]), ["a", "b"], train=data)
    rows = [[0.999, 0.001], [0.001, 0.999]]
    with pytest.warns(UserWarning, match="not finite"):
        front = fit(
            made,
            "linear",
            rows,
            average=0.5,
            epochs=40,
            batch_size=8,
            strategy=strategy,
            optimizer=lambda p: torch.optim.SGD(p, lr=0.02),
        )
    assert front.status == ["non-finite", "trained"]
    assert bool(front.models.stacked()["x"].isfinite().all())
    assert bool(front.losses["train"].isfinite().all())


def test_a_run_with_another_average_is_not_resumed(tmp_path: Path) -> None:
    fit(problem(), "linear", 2, average=0.5, out=tmp_path)
    with pytest.raises(ValueError, match="average"):
        fit(problem(), "linear", 2, out=tmp_path, resume=True)


@pytest.mark.parametrize("average", [0.0, 1.0, -1, float("nan"), "ema"])
def test_bad_averages_are_refused(average: Any) -> None:
    with pytest.raises(ValueError, match="'average' must be over 0 and under 1, a share"):
        fit(problem(), "linear", 2, average=average)


@pytest.mark.parametrize("share", [0.1, 0.5])
@pytest.mark.parametrize("values", [VAL, None])
def test_a_stack_that_fails_while_statistics_are_estimated_goes_on_alone(share: float, values: Any) -> None:
    """Statistics are those of training without gradients, which no other pass is."""

    class Asks(Normed):
        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            outputs = super().forward(x)
            if self.training and not torch.is_grad_enabled():
                outputs[0].sum().item()  # a stack has no single value
            return outputs

    options: dict[str, Any] = {"average": share, "epochs": 2, "precision": "float64"}
    with pytest.warns(UserWarning, match="failed with the models as a stack, but succeeded one after another"):
        stacked = fit(problem(Asks, val=values), "linear", strategy="batched", **options)
    agree(stacked, fit(problem(Normed, val=values), "linear", strategy="sequential", **options))
