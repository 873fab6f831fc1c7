from __future__ import annotations

import io
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import paretomtl as pm
from paretomtl.methods import Method, TorchJD

METHODS: list[Method] = [pm.ParetoMTL(), pm.MGDA(), pm.Linear(), pm.GradNorm(), pm.Uncertainty(), TorchJD("UPGrad")]
every_method = pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
X = torch.linspace(-1, 1, 32).reshape(8, 4)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.trunk = nn.Linear(4, 6)
        self.heads = nn.ModuleList([nn.Linear(6, 1) for _ in range(3)])
        self.unused = nn.Linear(2, 2)

    def losses(self, x: Tensor) -> Tensor:
        hidden = torch.tanh(self.trunk(x))
        return torch.stack([(head(hidden) - i).square().mean() for i, head in enumerate(self.heads)])


def bound(method: Method, index: int = 1, total: int = 0) -> pm.Weigher:
    return method.bind(method.spread(3, 3), index, total=total)


def rows(model: Net, losses: Tensor) -> Tensor:
    """The Jacobian ``[m, n]`` over all parameters, flat."""
    found = []
    for loss in losses:
        parts = torch.autograd.grad(
            loss, list(model.parameters()), retain_graph=True, materialize_grads=True, allow_unused=True
        )
        found.append(torch.cat([part.flatten() for part in parts]))
    return torch.stack(found)


def grads(model: nn.Module) -> Tensor:
    return torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in model.parameters()])


@every_method
def test_grad_is_the_weighted_sum_and_adds_up(method: Method) -> None:
    model = Net().double()
    losses = model.losses(X.double())
    jacobian = rows(model, losses)
    weigher = bound(method)
    weights = pm.backward(losses, weigher, model.parameters())
    expected, _ = method.weigh(
        pm.methods.Step(losses.detach()[None], (jacobian @ jacobian.T)[None]), bound(method).state
    )
    torch.testing.assert_close(weights, expected[0])
    torch.testing.assert_close(grads(model), weights @ jacobian)
    assert model.unused.weight.grad is None, "what no loss reaches keeps None"
    again = pm.backward(model.losses(X.double()), bound(method), model.parameters())
    torch.testing.assert_close(grads(model), (weights + again) @ jacobian)
    assert int(weigher.number) == 1


@every_method
def test_shared_parameters_are_weighed_and_heads_are_not(method: Method) -> None:
    model = Net().double()
    losses = model.losses(X.double())
    jacobian = rows(model, losses)
    shared = sum(p.numel() for p in model.trunk.parameters())
    trunk = jacobian[:, :shared]
    weights = pm.backward(losses, bound(method), model.parameters(), shared=model.trunk.parameters())
    expected, _ = method.weigh(pm.methods.Step(losses.detach()[None], (trunk @ trunk.T)[None]), bound(method).state)
    torch.testing.assert_close(weights, expected[0])
    found = grads(model)
    torch.testing.assert_close(found[:shared], weights @ trunk)
    torch.testing.assert_close(found[shared:], jacobian[:, shared:].sum(0))


@every_method
def test_accumulation_equals_the_large_batch(method: Method) -> None:
    large, small = Net().double(), Net().double()
    one, four = bound(method), bound(method)
    for _ in range(2):
        expected = pm.backward(large.losses(X.double()), one, large.parameters())
        for i, part in enumerate(X.double().chunk(4)):
            weights = pm.backward(small.losses(part) / 4, four, small.parameters(), last=i == 3)
            if i < 3:
                assert (weights == 0).all()
        torch.testing.assert_close(weights, expected, rtol=1e-6, atol=1e-9)
        torch.testing.assert_close(grads(small), grads(large), rtol=1e-6, atol=1e-9)
    assert int(four.number) == 2


@every_method
def test_a_task_without_labels_gets_no_gradient(method: Method) -> None:
    """A masked mean over no label is 0/0: NaN in the loss and, through it, in every gradient that it would send."""
    model = Net().double()
    mask = torch.zeros(8, 1, dtype=torch.float64)
    losses = model.losses(X.double())
    hidden = torch.tanh(model.trunk(X.double()))
    broken = (mask * model.heads[1](hidden)).sum() / mask.sum()
    weights = pm.backward(torch.stack([losses[0], broken, losses[2]]), bound(method, index=0), model.parameters())
    assert weights[1] == 0
    assert weights[[0, 2]].abs().sum() > 0
    assert grads(model).isfinite().all()
    assert (grads(model.heads[1]) == 0).all()


@every_method
def test_labels_missing_from_some_calls_are_averaged_over_the_others(method: Method) -> None:
    """Task 1 has labels in two of four parts: its loss and gradient are those of these two parts."""
    model, expected = Net().double(), Net().double()
    weigher = bound(method, index=0)
    parts = X.double().chunk(4)
    for i, part in enumerate(parts):
        losses = list(expected_losses := model.losses(part) / 4)
        if i in (1, 2):
            losses[1] = torch.tensor(torch.nan, dtype=torch.float64)
        weights = pm.backward(torch.stack(losses), weigher, model.parameters(), last=i == 3)
    assert expected_losses.isfinite().all()
    whole = torch.stack([expected.losses(part) for part in parts])
    mean = torch.stack([whole[:, 0].mean(), whole[[0, 3], 1].mean(), whole[:, 2].mean()])
    wanted = pm.backward(mean, bound(method, index=0), expected.parameters())
    torch.testing.assert_close(weights, wanted, rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(grads(model), grads(expected), rtol=1e-6, atol=1e-9)


@every_method
def test_a_nan_that_cannot_be_kept_apart_shows_in_grad_with_a_reason(method: Method) -> None:
    model, weigher = Net(), bound(method)
    losses = torch.stack([*model.losses(X)[:2], model.losses(X)[2] * torch.nan]) / 4
    with pytest.warns(UserWarning, match="a loss is NaN, and torch.stack was not the last operation"):
        weights = pm.backward(losses, weigher, model.parameters())
    assert weights.isnan().all()
    assert int(weigher.number) == 0


@every_method
def test_a_part_without_any_finite_loss_spoils_its_whole_step(method: Method) -> None:
    model, weigher = Net(), bound(method)
    pm.backward(model.losses(X), weigher, model.parameters(), last=False)
    pm.backward(model.losses(X) * torch.nan, weigher, model.parameters(), last=False)
    weights = pm.backward(model.losses(X), weigher, model.parameters())
    assert weights.isnan().all()
    assert int(weigher.number) == 0


def test_a_half_finished_step_can_be_dropped() -> None:
    model, weigher = Net(), bound(pm.MGDA())
    pm.backward(model.losses(X), weigher, model.parameters(), last=False)
    with pytest.raises(
        ValueError, match=r"'parameters' must be the same in all calls of one step. Got 2 tensors after"
    ):
        pm.backward(model.losses(X), weigher, model.trunk.parameters())
    weigher.pending = None
    dropped = pm.backward(model.losses(X), weigher, model.parameters())
    torch.testing.assert_close(dropped, pm.backward(model.losses(X), bound(pm.MGDA()), model.parameters()))


@every_method
@pytest.mark.parametrize("bad", ["all nan", "inf", "gradient"])
def test_a_broken_step_shows_in_grad_and_leaves_the_weigher(method: Method, bad: str) -> None:
    model = Net().double()
    weigher = bound(method)
    pm.backward(model.losses(X.double()), weigher, model.parameters())
    model.zero_grad()
    before = weigher.state_dict()
    losses = model.losses(X.double())
    if bad == "all nan":
        losses = losses * torch.nan
    elif bad == "inf":
        losses = losses + torch.tensor([torch.inf, 0.0, 0.0])
    else:
        losses = losses + torch.sqrt((0.0 * model.trunk.weight).sum())  # slope 1/0
    weights = pm.backward(losses, weigher, model.parameters())
    assert weights.isnan().all()
    assert grads(model)[:20].isnan().all()
    assert all(torch.equal(tensor, before[name]) for name, tensor in weigher.state_dict().items())


@every_method
def test_a_scaler_changes_nothing_but_the_scale(method: Method) -> None:
    plain, scaled = Net(), Net()
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    expected = pm.backward(plain.losses(X), bound(method), plain.parameters())
    weights = pm.backward(scaled.losses(X), bound(method), scaled.parameters(), scaler=scaler)
    torch.testing.assert_close(weights, expected, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(grads(scaled), 1024.0 * grads(plain), rtol=1e-2, atol=0.05)


def test_the_weigher_sees_the_unscaled_gramian() -> None:
    """A method that depends on the scale of the gradients gets that of the unscaled losses."""

    class Watching(pm.MGDA):
        def _weigh(self, step: Any, state: Any) -> Any:
            seen.append(step.gramian)
            return super()._weigh(step, state)

    seen: list[Tensor] = []
    for scaler in (None, torch.amp.GradScaler("cpu", init_scale=1024.0)):
        model = Net()
        pm.backward(model.losses(X), bound(Watching()), model.parameters(), scaler=scaler)
    torch.testing.assert_close(seen[0], seen[1], rtol=1e-3, atol=1e-5)


def test_a_scaler_skips_the_step_that_overflows() -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
    weigher = bound(pm.ParetoMTL())
    before = [p.detach().clone() for p in model.parameters()]
    pm.backward(model.losses(100 * X), weigher, model.parameters(), scaler=scaler)
    scaler.step(optimizer)
    scaler.update()
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), before, strict=True))
    assert int(weigher.number) == 0
    assert scaler.get_scale() < 2.0**127


def test_the_gramian_keeps_its_precision_inside_autocast() -> None:
    """Two nearly parallel gradients, told apart only beyond the digits of bfloat16."""
    x = torch.nn.Parameter(torch.zeros(2))
    towards = torch.tensor([[1.0, 0.02], [1.0, -0.01]])
    weigher = pm.MGDA().bind(torch.ones(1, 2), index=0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = pm.backward(torch.stack([(t * x).sum() + 1 for t in towards]), weigher, [x])
    torch.testing.assert_close(found, torch.tensor([1 / 3, 2 / 3]), rtol=0, atol=1e-3)


@every_method
def test_autocast(method: Method) -> None:
    model = Net()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        losses = model.losses(X)
    weights = pm.backward(losses, bound(method), model.parameters())
    assert weights.isfinite().all()
    assert all(p.grad is None or p.grad.dtype == torch.float32 for p in model.parameters())


@every_method
def test_a_stored_weigher_goes_on_as_if_nothing_had_happened(method: Method) -> None:
    model, weigher = Net().double(), bound(method, total=10)
    for _ in range(3):
        pm.backward(model.losses(X.double()), weigher, model.parameters())
    other = bound(method, total=10)
    other.pending = "half of a step"
    with io.BytesIO() as file:
        torch.save(weigher.state_dict(), file)
        file.seek(0)
        other.load_state_dict(torch.load(file, weights_only=True))
    assert other.pending is None
    for _ in range(2):
        expected = pm.backward(model.losses(X.double()), weigher, model.parameters())
        torch.testing.assert_close(pm.backward(model.losses(X.double()), other, model.parameters()), expected)
    with pytest.raises(ValueError, match="'saved' must have 'preferences'"):
        other.load_state_dict({"number": torch.zeros(())})
    with pytest.raises(ValueError, match=r"'saved' must be of the same index: 2. Got 1"):
        bound(method, index=2).load_state_dict(weigher.state_dict())
    assert weigher.status == method.status(weigher.state)[0]
    assert "step 5" in repr(weigher)


ROWS = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]], dtype=torch.float64)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda s: pm.ParetoMTL(epsilon=0.2).bind(ROWS, 1).state_dict(), r"same method: .*0\.1.*Got .*epsilon=0\.2"),
        (lambda s: pm.ParetoMTL(initial_steps=3).bind(ROWS, 1).state_dict(), "same method: .*Got .*initial_steps=3"),
        (lambda s: pm.MGDA().bind(ROWS, 1).state_dict(), r"same method: ParetoMTL.*Got MGDA\(\)"),
        (lambda s: pm.ParetoMTL().bind(ROWS.flip(0), 1).state_dict(), r"preferences: \[1.0, 0.0\] in row 0. Got"),
        (lambda s: pm.ParetoMTL().bind(ROWS[:2], 1).state_dict(), r"'preferences' of shape \[3, 2\]. Got \[2, 2\]"),
        (lambda s: pm.ParetoMTL().bind(torch.eye(3), 1).state_dict(), r"shape \[3, 2\]. Got \[3, 3\]"),
        (lambda s: pm.ParetoMTL().bind(ROWS, 2).state_dict(), "index: 1. Got 2"),
        (lambda s: {name: t for name, t in s.items() if name != "number"}, "'saved' must have 'number'"),
        (lambda s: s | {"more": torch.zeros(1)}, "Got 'more' too"),
        (lambda s: s | {"number": torch.zeros(2)}, r"'number' of shape \[\] of torch.int64. Got \[2\]"),
        (lambda s: s | {"number": torch.zeros(())}, "torch.int64. Got .* of torch.float32"),
    ],
)
def test_a_state_of_another_configuration_is_refused(change: Any, said: str) -> None:
    """And the weigher stays as it was."""
    weigher = pm.ParetoMTL().bind(ROWS, 1)
    before = weigher.state_dict()
    with pytest.raises(ValueError, match=said):
        weigher.load_state_dict(change(weigher.state_dict()))
    assert all(torch.equal(tensor, before[name]) for name, tensor in weigher.state_dict().items())


def test_a_state_that_does_not_say_its_method_is_taken_with_a_warning() -> None:
    """Earlier versions saved none."""
    weigher = pm.MGDA().bind(ROWS, 1)
    old = {name: tensor for name, tensor in weigher.state_dict().items() if name != "method"}
    with pytest.warns(UserWarning, match=r"does not name its method.*MGDA\(\)"):
        weigher.load_state_dict(old)


def test_a_loop_of_ones_own_reaches_its_region() -> None:
    vectors = pm.preferences.even(5, tasks=2)
    problem = pm.problems.synthetic(dimension=5)
    for k in range(5):
        torch.manual_seed(k)
        model = problem.model()
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        weigher = pm.ParetoMTL(initial_steps=100).bind(vectors, index=k)
        for _ in range(200):
            optimizer.zero_grad()
            pm.backward(problem.losses(model()), weigher, model.parameters())
            optimizer.step()
        losses = problem.losses(model()).detach()
        assert pm.core.in_region(vectors, losses.expand(5, 2))[k]


def test_a_parameter_given_twice_counts_once() -> None:
    once, twice = Net(), Net()
    pm.backward(once.losses(X), bound(pm.MGDA()), once.parameters())
    pm.backward(twice.losses(X), bound(pm.MGDA()), [*twice.parameters(), *twice.parameters()])
    assert torch.equal(grads(once), grads(twice))


def test_frozen_parameters_are_left_alone() -> None:
    model = Net()
    model.heads[0].weight.requires_grad_(False)
    pm.backward(model.losses(X), bound(pm.MGDA()), model.parameters())
    assert model.heads[0].weight.grad is None
    assert model.heads[0].bias.grad is not None


def test_bad_input_is_named() -> None:
    model, weigher = Net(), bound(pm.MGDA())

    def losses() -> Tensor:
        return model.losses(X)

    with pytest.raises(ValueError, match=r"'losses' must have shape \[3\], one per task. Got \[2\]"):
        pm.backward(losses()[:2], weigher, model.parameters())
    with pytest.raises(TypeError, match=r"'losses' must be a tensor of one loss per task.* Got list"):
        pm.backward(list(losses()), weigher, model.parameters())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"'losses' must be a floating-point tensor"):
        pm.backward(torch.ones(3, dtype=torch.long), weigher, model.parameters())
    with pytest.raises(ValueError, match=r"'losses' must be attached to the graph"):
        pm.backward(losses().detach(), weigher, model.parameters())
    with pytest.raises(ValueError, match=r"'parameters' must hold at least one tensor that requires a gradient"):
        pm.backward(losses(), weigher, [])
    with pytest.raises(ValueError, match=r"'shared' must be some of 'parameters'. Got 2 tensors, 2 of them strangers"):
        pm.backward(losses(), weigher, model.parameters(), shared=nn.Linear(2, 2).parameters())
    with pytest.raises(ValueError, match=r"'losses' must depend on the parameters, each of them. Got a loss 0"):
        pm.backward(losses(), weigher, model.unused.parameters())
    with pytest.raises(ValueError, match=r"Got a loss 1 that reaches none; a task without labels is NaN"):
        pm.backward(torch.stack([losses()[0], torch.tensor(1.0), losses()[2]]), weigher, model.parameters())
    with pytest.raises(ValueError, match=r"'losses' must depend on the parameters"):
        pm.backward(losses(), bound(pm.Linear()), model.unused.parameters())
    with pytest.raises(TypeError, match=r"'parameters' must be tensors: write model.parameters\(\). Got Net"):
        pm.backward(losses(), weigher, model)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"'parameters' must be tensors: write model.parameters\(\). Got tuple"):
        pm.backward(losses(), weigher, model.named_parameters())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"'weigher' must be a method bound to a model: see bind\(\). Got MGDA"):
        pm.backward(losses(), pm.MGDA(), model.parameters())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"'total' must be a whole number that is not negative. Got -3"):
        bound(pm.MGDA(), total=-3)
    with pytest.raises(IndexError, match=r"'index' must be a row of the 3 preferences. Got 3"):
        bound(pm.MGDA(), index=3)
