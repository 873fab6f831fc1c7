"""What every method must do."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

import paretomtl as pm
from _helpers.coupled import Share
from paretomtl.methods import (
    MGDA,
    Auto,
    GradNorm,
    Linear,
    Method,
    ParetoMTL,
    PNorm,
    RandomSearch,
    Reachable,
    SingleTask,
    State,
    Step,
    TorchJD,
    Uncertainty,
    slice_state,
)
from paretomtl.methods.base import SafeStep
from paretomtl.training.probe import Measure

OPTIONS = {"rescale": True, "unit_rows": True, "scale": "first", "epsilon": 0.3, "initial_steps": 2, "release_steps": 2}
BATCHED = [
    ParetoMTL(),
    ParetoMTL(**OPTIONS),  # type: ignore[arg-type]
    ParetoMTL(return_share=None),
    ParetoMTL(return_share=0.5, initial_steps=1),
    MGDA(),
    MGDA(rescale=True),
    Linear(),
    Linear(layout="corners"),
    RandomSearch(),
    SingleTask(),
    GradNorm(),
    Uncertainty(),
    Uncertainty(kinds="regression", normalize=False),
    Measure(),
    PNorm(),
    PNorm(p=1, least=0.1),
    PNorm(scale="first"),
    Auto(),
    Reachable(ParetoMTL()),
]
TORCHJD = [TorchJD("UPGrad"), TorchJD("CAGrad", {"c": 0.5}), TorchJD("UW"), TorchJD("STCH", {"mu": 0.1})]
RANDOM = [TorchJD("PCGrad"), TorchJD("GradVac")]  # visit the tasks in random order
COUPLED = [
    Share(),
    Share(gramian=True),
]  # a row's weights depend on the other rows: no loop over them, and a break shows
ALL = [*BATCHED, *TORCHJD, *RANDOM, *COUPLED]
TASKS = 3

every_method = pytest.mark.parametrize("method", ALL, ids=repr)
every_uncoupled_method = pytest.mark.parametrize("method", [*BATCHED, *TORCHJD], ids=repr)
every_deterministic_method = pytest.mark.parametrize("method", [*BATCHED, *TORCHJD, *COUPLED], ids=repr)
every_batched_method = pytest.mark.parametrize("method", [*BATCHED, *COUPLED], ids=repr)


def steps(method: Method, number: int = 6, *, dtype: torch.dtype = torch.float64, seed: int = 0) -> list[Step]:
    """A few training steps of three subproblems with falling losses."""
    g = torch.Generator().manual_seed(seed)
    found = []
    for n in range(number):
        losses = torch.rand(3, TASKS, generator=g, dtype=dtype) + 1.0 / (n + 1)
        jacobian = torch.randn(3, TASKS, 7, generator=g, dtype=dtype)
        gramian = jacobian @ jacobian.mT if method.needs_gramian else None
        found.append(Step(losses, gramian, number=n, total=max(number, 6)))
    return found


def start(method: Method) -> State:
    return method.init(method.spread(3, TASKS, seed=0))


def run(method: Method, planned: list[Step], state: State) -> tuple[list[Tensor], State]:
    weights = []
    for step in planned:
        found, state = method.weigh(step, state)
        weights.append(found)
    return weights, state


def part(step: Step, rows: slice | list[int]) -> Step:
    gramian = None if step.gramian is None else step.gramian[rows]
    return Step(step.losses[rows], gramian, number=step.number, total=step.total)


@every_method
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_shapes_types_and_devices(method: Method, dtype: torch.dtype, device: str) -> None:
    state = {name: tensor.to(device) for name, tensor in start(method).items()}
    for step in steps(method, dtype=dtype):
        moved = Step(
            step.losses.to(device),
            None if step.gramian is None else step.gramian.to(device),
            None,
            step.number,
            step.total,
        )
        weights, after = method.weigh(moved, state)
        assert weights.shape == (3, TASKS)
        assert weights.dtype == dtype
        assert weights.device.type == device
        assert weights.isfinite().all()
        assert not weights.requires_grad
        assert {name: (t.shape, t.dtype) for name, t in after.items()} == {
            name: (t.shape, t.dtype) for name, t in state.items()
        }
        assert all(len(tensor) == 3 and tensor.device.type == device for tensor in after.values())
        state = after
    assert len(method.status(state)) == 3


@every_uncoupled_method
def test_a_batch_is_a_loop_over_its_subproblems(method: Method) -> None:
    """The state sliced by k, and each step's part for k, give what the whole gives."""
    planned = steps(method)
    together, whole = run(method, planned, start(method))
    for k in range(3):
        alone, state = run(method, [part(step, [k]) for step in planned], slice_state(start(method), [k]))
        for mine, ours in zip(alone, together, strict=True):
            torch.testing.assert_close(mine[0], ours[k], rtol=0, atol=1e-9)
        for name, tensor in slice_state(whole, [k]).items():
            torch.testing.assert_close(state[name], tensor, rtol=0, atol=1e-9)


@every_deterministic_method
def test_permuting_the_tasks_permutes_the_weights(method: Method) -> None:
    order = torch.tensor([2, 0, 1])
    rows = method.spread(3, TASKS, seed=0)
    planned = steps(method)
    permuted = [
        Step(
            step.losses[:, order],
            None if step.gramian is None else step.gramian[:, order][:, :, order],
            number=step.number,
            total=step.total,
        )
        for step in planned
    ]
    before, _ = run(method, planned, method.init(rows))
    after, _ = run(method, permuted, method.init(rows[:, order]))
    for one, other in zip(before, after, strict=True):
        torch.testing.assert_close(
            other, one[:, order], rtol=0, atol=1e-9 if method in BATCHED else 1e-4
        )  # solvers of TorchJD


@every_method
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [0.0, 1e-18, 1e18])
def test_zero_tiny_and_huge_gradients(method: Method, size: float, dtype: torch.dtype) -> None:
    state = start(method)
    for step in steps(method, dtype=dtype):
        gramian = None if step.gramian is None else step.gramian * (size * size if dtype == torch.float64 else size)
        weights, state = method.weigh(Step(step.losses, gramian, None, step.number, step.total), state)
        assert weights.isfinite().all()
        assert all(tensor.isfinite().all() for tensor in state.values())


@every_method
@pytest.mark.parametrize("size", [0.0, 1e-30, 1e30])
def test_zero_tiny_and_huge_losses(method: Method, size: float) -> None:
    state = start(method)
    for step in steps(method):
        weights, state = method.weigh(Step(step.losses * size, step.gramian, None, step.number, step.total), state)
        assert weights.isfinite().all()
        assert all(tensor.isfinite().all() for tensor in state.values())


@pytest.mark.parametrize(
    ("method", "where"),
    [
        (m, where)
        for m in [*BATCHED, *TORCHJD]
        for where in ("losses", "gramian")
        if m.needs_gramian or where == "losses"
    ],
    ids=repr,
)
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_broken_subproblem_stands_still_and_touches_no_other(method: Method, bad: float, where: str) -> None:
    first, second = steps(method, 2)
    _, state = method.weigh(first, start(method))
    clean, clean_after = method.weigh(second, state)
    losses, gramian = second.losses.clone(), None if second.gramian is None else second.gramian.clone()
    if where == "losses":
        losses[1, 0] = bad
    else:
        assert gramian is not None
        gramian[1, 0, 2] = bad
    weights, after = method.weigh(Step(losses, gramian, None, second.number, second.total), state)
    assert (weights[1] == 0).all()
    others = [0, 2]
    torch.testing.assert_close(weights[others], clean[others], rtol=0, atol=1e-12)
    for name in after:
        assert torch.equal(after[name][1], state[name][1]), "its state is as it was"
        torch.testing.assert_close(after[name][others], clean_after[name][others], rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", COUPLED, ids=repr)
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_broken_row_of_a_coupled_method_is_as_good_as_gone(method: Method, bad: float) -> None:
    """It stands still, and the others get the weights of a front without it."""
    first, second = steps(method, 2)
    _, state = method.weigh(first, start(method))
    losses = second.losses.clone()
    losses[1, 0] = bad
    weights, after = method.weigh(Step(losses, second.gramian, None, second.number, second.total), state)
    alone, _ = method.weigh(part(second, [0, 2]), slice_state(state, [0, 2]))
    assert (weights[1] == 0).all()
    torch.testing.assert_close(weights[[0, 2]], alone, rtol=0, atol=1e-12)
    assert all(torch.equal(after[name][1], state[name][1]) for name in after), "its state is as it was"


@every_method
def test_an_absent_task_gets_no_weight(method: Method) -> None:
    """Labels may be missing from a batch: the loss is NaN, and what its gradient would be is NaN too."""
    state = start(method)
    for n, step in enumerate(steps(method)):
        present = torch.ones(3, TASKS, dtype=torch.bool)
        present[:, n % TASKS] = n == 3
        losses = torch.where(present, step.losses, torch.nan)
        pairs = present[:, :, None] & present[:, None, :]
        gramian = None if step.gramian is None else torch.where(pairs, step.gramian, torch.nan)
        weights, state = method.weigh(Step(losses, gramian, present, step.number, step.total), state)
        assert weights.isfinite().all()
        assert (weights[~present] == 0).all()
        assert all(tensor.isfinite().all() for tensor in state.values())


@pytest.mark.study
@every_batched_method
def test_no_branch_depends_on_a_tensor(method: Method) -> None:
    torch.compiler.reset()
    compiled = torch.compile(method.weigh, fullgraph=True, backend="eager")
    state = compiled_state = start(method)
    for step in steps(method, 3):
        counted = Step(step.losses, step.gramian, None, torch.tensor(step.number), step.total)
        weights, state = method.weigh(step, state)
        found, compiled_state = compiled(counted, compiled_state)
        torch.testing.assert_close(found, weights, rtol=0, atol=1e-12)
    for name, tensor in state.items():
        torch.testing.assert_close(compiled_state[name], tensor, rtol=0, atol=1e-12)


@every_method
def test_weighing_changes_nothing_it_was_given(method: Method) -> None:
    step, state = steps(method, 1)[0], start(method)
    losses, before = step.losses.clone(), {name: tensor.clone() for name, tensor in state.items()}
    method.weigh(step, state)
    assert torch.equal(step.losses, losses)
    assert all(torch.equal(state[name], before[name]) for name in before)


@every_method
def test_bad_input_is_named(method: Method) -> None:
    state, step = start(method), steps(method, 1)[0]
    with pytest.raises(TypeError, match=r"'losses' must be a floating-point tensor. Got torch.int64"):
        method.weigh(Step(torch.ones(3, TASKS, dtype=torch.long), step.gramian), state)
    with pytest.raises(ValueError, match=r"'losses' must have shape \[..., 3, m\]. Got \[3\]"):
        method.weigh(Step(torch.ones(3), step.gramian), state)
    with pytest.raises(ValueError, match=r"'losses' must have shape \[..., 3, m\]. Got \[2, 3\]"):
        method.weigh(Step(torch.ones(2, TASKS), None if step.gramian is None else step.gramian[:2]), state)
    if method.needs_gramian:
        with pytest.raises(ValueError, match=r"'gramian' must be given"):
            method.weigh(Step(step.losses), state)
        with pytest.raises(ValueError, match=r"'gramian' must have shape"):
            method.weigh(Step(step.losses, torch.eye(2).expand(3, 2, 2)), state)
    with pytest.raises(ValueError, match="must be at least 2: a trade-off needs two tasks"):
        method.spread(3, 1)


def test_a_method_of_ones_own_with_weights_of_another_shape_is_named() -> None:
    @dataclass(frozen=True)
    class Flat(Linear):
        name = "flat"

        def _weigh(self, step: SafeStep, state: State) -> tuple[Tensor, State]:
            return super()._weigh(step, state)[0].sum(-1), state

    with pytest.raises(ValueError, match=r"'_weigh' of Flat must return weights \[K, m\].*: \[1, 2\]. Got \[1\]"):
        pm.fit(pm.problems.quadratic(), Flat(), 2, epochs=1, strategy="sequential", device="cpu", progress="quiet")
