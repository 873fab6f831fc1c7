from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import paretomtl as pm
from paretomtl.engine import gradients as _gradients
from paretomtl.engine.gradients import Gathered, combine, gramian, task_gradients
from paretomtl.engine.models.modules import make_modules
from paretomtl.engine.models.stack import Stack


class Net(nn.Module):
    """A trunk and two heads; the second task does not use the first head, nor the first task the second."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Linear(4, 3)
        self.heads = nn.ModuleList([nn.Linear(3, 2), nn.Linear(3, 1)])

    def forward(self) -> Tensor:
        hidden = torch.tanh(self.trunk(torch.linspace(-1, 1, 4).to(self.trunk.weight)))
        return torch.stack([head(hidden).square().sum() for head in self.heads])


def make_stack(dtype: torch.dtype) -> Stack:
    problem = pm.Problem(Net, lambda outputs: outputs, ["a", "b"])
    return Stack(problem, make_modules(problem, range(3), torch.device("cpu"), dtype))


def test_a_stack_gives_what_its_models_give_alone() -> None:
    stack = make_stack(torch.float64)
    losses = stack.losses(None)
    parameters = list(stack.parameters.values())
    gradients = task_gradients(losses, parameters)
    c = gramian(gradients, 3)
    weights = torch.rand(3, 2, dtype=torch.float64)
    updates = combine(weights, gradients)
    for k in range(3):
        with torch.random.fork_rng():
            torch.manual_seed(k)
            alone = Net().double()
        mine = alone()
        torch.testing.assert_close(mine, losses[k])
        rows = []
        for i in range(2):
            found = torch.autograd.grad(mine[i], list(alone.parameters()), retain_graph=True, materialize_grads=True)
            rows.append(torch.cat([g.flatten() for g in found]))
        jacobian = torch.stack(rows)
        torch.testing.assert_close(c[k], jacobian @ jacobian.T)
        flat = torch.cat(
            [
                torch.zeros_like(p[k]).flatten() if u is None else u[k].flatten()
                for u, p in zip(updates, parameters, strict=True)
            ]
        )
        torch.testing.assert_close(flat, weights[k] @ jacobian)


def test_half_precision_gradients_are_multiplied_in_float32() -> None:
    """A dot product of 10,000 ones in bfloat16 would stop growing at 256."""
    rows: list[tuple[Tensor | None, ...]] = [(torch.ones(1, 10_000, dtype=torch.bfloat16),)] * 2
    assert torch.equal(gramian(rows, 1), torch.full((1, 2, 2), 10_000.0, dtype=torch.float64))


def test_a_weight_of_zero_leaves_nan_out() -> None:
    rows: list[tuple[Tensor | None, ...]] = [(torch.tensor([[torch.nan]]),), (torch.tensor([[3.0]]),)]
    (found,) = combine(torch.tensor([[0.0, 2.0]]), rows)
    assert found is not None
    assert found.item() == 6.0


def test_restore_puts_back_some_models() -> None:
    stack = make_stack(torch.float32)
    before = stack.copy()
    with torch.no_grad():
        for tensor in stack.parameters.values():
            tensor += 1.0
    stack.restore(torch.tensor([False, True, False]), before)
    for name, tensor in stack.parameters.items():
        assert torch.equal(tensor[1], before[name][1])
        assert not torch.equal(tensor[0], before[name][0])


@pytest.mark.parametrize("tasks", [2, 3, 5])
def test_gramians_of_one_model_and_of_a_stack_agree(tasks: int) -> None:
    """Single products for few tasks, gathered ones for more, with gaps where a task does not use a parameter."""
    g = torch.Generator().manual_seed(0)
    shapes = [(3, 4), (), (2000,), (7,)]
    rows: list[tuple[Tensor | None, ...]] = [
        tuple(None if (i + j) % 4 == 3 else torch.randn(shape, generator=g) for j, shape in enumerate(shapes))
        for i in range(tasks)
    ]
    alone = gramian(rows, 1)
    assert alone.dtype == torch.float32
    flat = torch.stack(
        [
            torch.cat([(torch.zeros(s) if p is None else p).flatten() for p, s in zip(row, shapes, strict=True)])
            for row in rows
        ]
    )
    torch.testing.assert_close(alone[0], flat @ flat.T, rtol=1e-5, atol=1e-4)
    doubled: list[tuple[Tensor | None, ...]] = [
        tuple(None if p is None else torch.stack([p, 2 * p]) for p in row) for row in rows
    ]
    torch.testing.assert_close(gramian(doubled, 2), torch.cat([alone, 4 * alone]), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("together", [1 << 24, 0])
def test_gathered_gradients_give_the_same(together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    g = torch.Generator().manual_seed(0)
    shapes = [(3, 4, 2), (3, 5), (3, 1, 2, 2)]
    rows: list[Any] = [tuple(torch.randn(shape, generator=g) for shape in shapes) for _ in range(3)]
    rows[1] = (rows[1][0], None, rows[1][2])
    rows[2] = (*rows[2][:2], None)
    rows = [(*row, None) for row in rows]
    weights = torch.rand(3, 3, generator=g)
    weights[1, 2] = 0.0
    monkeypatch.setattr(_gradients, "_PAIRS", together)
    known = [*shapes, None]
    flat = torch.stack(
        [
            torch.cat(
                [
                    torch.zeros(3, torch.Size(shape).numel() // 3) if part is None else part.reshape(3, -1)
                    for part, shape in zip(row, shapes, strict=False)
                ],
                1,
            )
            for row in rows
        ],
        1,
    )
    gathered = Gathered(flat, [None if shape is None else torch.Size(shape) for shape in known])
    torch.testing.assert_close(gathered.gramian(), gramian(rows, 3))
    for mine, theirs in zip(gathered.combine(weights), combine(weights, rows), strict=True):
        assert (mine is None) == (theirs is None)
        if mine is not None:
            torch.testing.assert_close(mine, theirs)
    flat[1, 2] = torch.nan
    assert all(part is None or part.isfinite().all() for part in gathered.combine(weights)), "a weight of 0 leaves out"


def test_gradients_are_gathered_on_a_gpu_alone() -> None:
    rows = [(torch.ones(2, 3),), (torch.ones(2, 3),)]
    assert Gathered.of(rows, 2) is None  # type: ignore[arg-type]
