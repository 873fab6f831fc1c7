"""Row by row, what docs/project/numerics.md promises: by `fit`, one model after another and stacked, and `backward`."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

import paretomtl as pm
from _helpers.oracle import daqp_point
from _helpers.places import DOCS
from paretomtl.methods import Method

BY_GRAMIAN: list[Method] = [pm.ParetoMTL(initial_steps=0), pm.MGDA(), pm.GradNorm()]
BY_LOSSES: list[Method] = [pm.Linear(), pm.Uncertainty()]
MIN_NORM: list[Method] = BY_GRAMIAN[:2]
every_method = pytest.mark.parametrize("method", [*BY_GRAMIAN, *BY_LOSSES], ids=lambda m: m.name)
both_strategies = pytest.mark.parametrize("strategy", ["sequential", "batched"])
both_precisions = pytest.mark.parametrize("precision", ["float32", "float64"])
RIGHT, UP = (1.0, 0.0), (0.0, 1.0)
Losses = Callable[[Tensor], Tensor]


class Point(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.x = nn.Parameter(torch.tensor([0.9, 0.4]))

    def forward(self) -> Tensor:
        return self.x


def near(x: Tensor, goal: tuple[float, float]) -> Tensor:
    return (x - x.new_tensor(goal)).square().sum()


def fit(losses: Losses, method: Any, tasks: int = 2, *, broken: bool = False, **options: Any) -> pm.Front:
    """A front of three models, or as many as there are tasks; ``broken`` expects the warning of frozen ones."""
    problem = pm.Problem(Point, losses, [f"t{i}" for i in range(tasks)])
    usual: dict[str, Any] = {"epochs": 12, "device": "cpu", "progress": "quiet", "strategy": "sequential"}
    usual["optimizer"] = lambda p: torch.optim.SGD(p, lr=0.05)
    usual["preferences"] = max(3, tasks)
    said = pytest.warns(UserWarning, match="were not finite") if broken else contextlib.nullcontext()
    with said:
        front = pm.fit(problem, method, **{**usual, **options})
    assert all(tensor.isfinite().all() for tensor in front.models.stacked().values())
    assert front.history["weights"].isfinite().all()
    return front


def step(losses: Losses, method: Method, dtype: torch.dtype = torch.float32, tasks: int = 2) -> tuple[Tensor, Tensor]:
    """Weights and gradient of one step by `backward`, of the subproblem in the middle."""
    x = nn.Parameter(torch.tensor([0.9, 0.4], dtype=dtype))
    weigher = method.bind(method.spread(max(3, tasks), tasks), 1, total=10)
    weights = pm.backward(losses(x), weigher, [x])
    assert x.grad is not None
    assert int(weigher.number) == int(bool(weights.isfinite().all())), "the weigher stays where a step broke"
    return weights, x.grad


def moved(front: pm.Front) -> float:
    return float((front.models.stacked()["x"] - torch.tensor([0.9, 0.4])).abs().max())


@every_method
@both_strategies
@both_precisions
def test_a_loss_that_is_not_finite(method: Method, strategy: str, precision: str) -> None:
    def losses(x: Tensor) -> Tensor:
        return torch.stack([near(x, UP) / (x[1] < 0.42), near(x, UP)])  # 1/0 after a step or two towards (0, 1)

    front = fit(losses, method, broken=True, strategy=strategy, precision=precision)
    assert front.status[1] == "non-finite"
    for bad in (math.nan, math.inf):
        weights, grad = step(lambda x, b=bad: torch.stack([b * near(x, RIGHT), b * near(x, UP)]), method)
        assert weights.isnan().all()
        assert grad.isnan().all()


@every_method
@both_strategies
def test_one_subproblem_does_not_touch_the_others(method: Method, strategy: str) -> None:
    class Numbered(Point):
        made = 0

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("bad", torch.tensor(float(Numbered.made % 3 == 1)))
            Numbered.made += 1

        def forward(self) -> Tensor:
            return torch.cat([self.x, self.bad[None]])  # type: ignore[index]

    def losses(x: Tensor, *, breaks: bool = True) -> Tensor:
        huge = torch.where(x[2] * breaks > 0, torch.inf, 1.0)
        return torch.stack([near(x[:2], RIGHT), near(x[:2], UP) * huge])

    fronts = []
    for breaks in (True, False):
        Numbered.made = 0
        problem = pm.Problem(Numbered, lambda x, b=breaks: losses(x, breaks=b), ["a", "b"])
        with pytest.warns(UserWarning, match=r"models \[1\]") if breaks else contextlib.nullcontext():
            fronts.append(pm.fit(problem, method, 3, epochs=8, strategy=strategy, progress="quiet", device="cpu"))
    for k in (0, 2):
        assert torch.equal(fronts[0].models.stacked()["x"][k], fronts[1].models.stacked()["x"][k])


@every_method
@both_strategies
@pytest.mark.filterwarnings("ignore:gradients of tasks")
def test_a_gradient_that_is_not_finite(method: Method, strategy: str) -> None:
    def losses(x: Tensor) -> Tensor:
        return torch.stack([near(x, RIGHT) + torch.sqrt(0.0 * x[0]), near(x, UP)])  # slope 0/0, loss finite

    front = fit(losses, method, broken=True, strategy=strategy, preferences=torch.eye(2) * 0.8 + 0.2)
    assert front.status == ["non-finite"] * 2
    assert moved(front) == 0.0
    assert step(losses, method)[1].isnan().all()


@both_strategies
@pytest.mark.parametrize("method", BY_GRAMIAN, ids=lambda m: m.name)
@pytest.mark.filterwarnings("ignore:first losses differ")
def test_a_gradient_whose_square_overflows(method: Method, strategy: str) -> None:
    def losses(x: Tensor) -> Tensor:
        return torch.stack([1e30 * near(x, RIGHT), near(x, UP)])

    front = fit(losses, method, broken=True, strategy=strategy)
    assert front.status == ["non-finite"] * 3
    assert moved(front) == 0.0
    assert step(losses, method)[1].isnan().all()


@pytest.mark.parametrize("method", MIN_NORM, ids=lambda m: m.name)
@pytest.mark.parametrize("ratio", [1e15, 1e30, 1e60])
@pytest.mark.filterwarnings("ignore:first losses differ")
def test_a_ratio_of_gradients_that_fits(method: Method, ratio: float) -> None:
    """The step is as long as the short gradient: the long one gets next to no weight."""

    def losses(x: Tensor) -> Tensor:
        return torch.stack([1.0 + ratio * x[0], 1.0 + x[1]])

    weights, grad = step(losses, pm.MGDA(), torch.float64)
    torch.testing.assert_close(grad, torch.tensor([0.0, 1.0], dtype=torch.float64), rtol=0, atol=1.5 / ratio)
    assert weights[0] <= 2.0 / ratio**2
    front = fit(losses, pm.MGDA(), precision="float64")
    assert front.status == ["trained"] * 3
    assert moved(front) <= 12 * 0.05 * 1.0001
    if isinstance(method, pm.ParetoMTL):  # released, it is MGDA
        released = pm.ParetoMTL(initial_steps=0, release_steps=9)
        torch.testing.assert_close(step(losses, released, torch.float64)[0], weights, rtol=1e-6, atol=1e-30)


@given(st.lists(st.integers(-8, 8), min_size=2, max_size=8), st.integers(0, 2**20))
def test_conflicting_gradients_of_any_lengths(exponents: list[int], seed: int) -> None:
    """Along the step no loss rises, relative to the length of its own gradient and that of the step."""
    tasks = len(exponents)
    j = torch.randn(tasks, tasks + 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    j = j * torch.tensor([[10.0**exponent] for exponent in exponents], dtype=torch.float64)
    x = nn.Parameter(torch.zeros(tasks + 1, dtype=torch.float64))
    weights = pm.backward(torch.stack([1.0 + row @ x for row in j]), pm.MGDA().bind(torch.ones(1, tasks), 0), [x])
    assert x.grad is not None
    lost = (weights * j.norm(dim=-1)).sum() / x.grad.norm()
    cosines = j @ x.grad / (j.norm(dim=-1) * x.grad.norm())
    assert (cosines >= -2e-14 * lost).all()


@both_strategies
@pytest.mark.parametrize("scale", [1e-30, 1e-42, 0.0])
@pytest.mark.parametrize("method", [*BY_GRAMIAN, *BY_LOSSES], ids=lambda m: m.name)
def test_a_gradient_that_vanishes(method: Method, scale: float, strategy: str) -> None:
    """A constant task, or one whose gradient's square is zero in its precision: no step lowers both."""

    def losses(x: Tensor) -> Tensor:
        return torch.stack([1.0 + scale * near(x, RIGHT), near(x, UP)])

    apart = isinstance(method, pm.Linear)  # other models end alike: then it may be that no task can gain
    with (
        pytest.warns(UserWarning, match=r"losses of tasks \['t0'\] were the same")
        if apart
        else contextlib.nullcontext()
    ):
        front = fit(losses, method, strategy=strategy)
    if isinstance(method, pm.MGDA):
        assert front.status == ["critical"] * 3
        assert moved(front) == 0.0
        torch.testing.assert_close(step(losses, method)[0], torch.tensor([1.0, 0.0]))
    elif isinstance(method, pm.GradNorm):  # the live task gives way, down to the floor of the weights
        last = fit(losses, method, strategy=strategy, epochs=120).history["weights"][-1, 0]
        torch.testing.assert_close(last, torch.tensor([1.999, 0.001]), rtol=0, atol=2e-3)
    elif method in BY_LOSSES:
        assert moved(front) > 0.1


@every_method
@both_strategies
@both_precisions
def test_losses_of_exactly_zero(method: Method, strategy: str, precision: str) -> None:
    front = fit(lambda x: torch.stack([0.0 * x[0], 0.0 * x[1]]), method, strategy=strategy, precision=precision)
    assert set(front.status) == {"critical" if method in MIN_NORM else "trained"}
    assert moved(front) < 1e-7
    weights, grad = step(lambda x: torch.stack([0.0 * x[0], 0.0 * x[1]]), method)
    assert weights.isfinite().all()
    assert (grad == 0).all()


@every_method
@both_strategies
@pytest.mark.parametrize("tasks", [2, 5])
def test_all_tasks_identical(method: Method, strategy: str, tasks: int) -> None:
    """Any weights make the same direction; those of MGDA sum to one."""

    def losses(x: Tensor) -> Tensor:
        return torch.stack([near(x, RIGHT)] * tasks)

    fit(losses, method, tasks, strategy=strategy)
    weights, grad = step(losses, method, torch.float64, tasks)
    expected = torch.tensor([-0.2, 0.8], dtype=torch.float64) * weights.sum()
    torch.testing.assert_close(grad, expected, rtol=1e-9, atol=1e-12)
    if isinstance(method, pm.MGDA):
        torch.testing.assert_close(weights.sum(), weights.new_ones(()))


@pytest.mark.filterwarnings("ignore:the losses of tasks")  # a step of exactly zero leaves them as they are
@both_strategies
@both_precisions
@pytest.mark.parametrize("slope", [1.0, 3.0, 1e4])
def test_perfectly_opposed_tasks(slope: float, strategy: str, precision: str) -> None:
    def losses(x: Tensor) -> Tensor:
        return torch.stack([1e5 + slope * x[0], 1e5 - x[0]])

    for method in MIN_NORM:
        front = fit(losses, method, strategy=strategy, precision=precision)
        assert front.status[1] == "critical"
        assert abs(float(front.models.stacked()["x"][1, 0]) - 0.9) < 1e-6
        weights, grad = step(losses, method)
        torch.testing.assert_close(weights, torch.tensor([1.0, slope]) / (1.0 + slope), rtol=1e-5, atol=1e-7)
        assert grad.abs().max() < 1e-6
    for method in (pm.GradNorm(), pm.Linear(), pm.Uncertainty()):
        fit(losses, method, strategy=strategy, precision=precision, epochs=3)


@given(st.integers(2, 20), st.integers(0, 2**20), st.floats(0, 16), st.sampled_from(["rows", "columns", "both"]))
def test_gramians_of_any_condition(tasks: int, seed: int, digits: float, where: str) -> None:
    """Task gradients J are given; the step is the min-norm point of their hull, by an oracle that has J itself.

    A Gramian of condition 10^16 holds nothing but rounding in its least direction, so that the norm is right up to the
    square root of rounding times the longest gradient.
    """
    g = torch.Generator().manual_seed(seed)
    j = torch.randn(tasks, tasks + 1, generator=g, dtype=torch.float64)
    spread = 10.0 ** (-digits / 2 * torch.rand(tasks + 1, generator=g, dtype=torch.float64))
    spread[0], spread[-1] = 1.0, 10.0 ** (-digits / 2)
    if where in ("rows", "both"):
        j = j * spread[:tasks, None]
    if where in ("columns", "both"):
        j = j * spread
    x = nn.Parameter(torch.zeros(tasks + 1, dtype=torch.float64))
    weights = pm.backward(torch.stack([1.0 + row @ x for row in j]), pm.MGDA().bind(torch.ones(1, tasks), 0), [x])
    assert x.grad is not None
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(), weights.new_ones(()))
    torch.testing.assert_close(x.grad, weights @ j, rtol=1e-9, atol=1e-12)
    longest = float(j.norm(dim=-1).max())
    gap = float(x.grad @ x.grad - (j @ x.grad).min())  # zero exactly at the optimum
    assert gap <= 1e-12 * longest**2
    truth = daqp_point(torch.linalg.qr(j.T)[1].T)  # the same points in as many dimensions as there are
    if truth is not None:
        assert abs(float(x.grad.norm()) - float(truth.norm())) <= 1e-6 * longest


@every_method
def test_bfloat16(method: Method) -> None:
    """Parameters and Gramian stay in float32, and losses are computed there."""
    data = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))

    def losses(outputs: Tensor, targets: Tensor) -> Tensor:
        assert outputs.dtype == torch.float32
        return (outputs - targets).square().mean(0)

    problem = pm.Problem(lambda: nn.Linear(4, 2), losses, ["a", "b"], train=(data, data[:, :2].tanh()))
    front = pm.fit(problem, method, 2, epochs=8, precision="bfloat16", device="cpu", progress="quiet")
    assert front.models.stacked()["weight"].dtype == torch.float32
    assert "non-finite" not in front.status
    assert front.history["losses"][-1].mean() < front.history["losses"][0].mean()


@every_method
def test_float16_wants_a_scaler(method: Method) -> None:
    """A gradient of 1e5 is infinite in half precision: the scaler skips, and the weigher waits for a smaller scale."""
    with pytest.raises(ValueError, match="'precision' must not be \"float16\", whose gradients overflow"):
        fit(lambda x: torch.stack([x[0], x[1]]), method, precision="float16")
    x = nn.Parameter(torch.tensor([0.9, 0.4]))
    optimizer = torch.optim.SGD([x], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**17)
    weigher = method.bind(method.spread(3, 2), 1, total=10)
    skipped = 0
    for _ in range(4):
        optimizer.zero_grad()
        half = x.half()
        losses = torch.stack([(half - half.new_tensor(goal)).square().sum().float() for goal in (RIGHT, UP)])
        pm.backward(losses, weigher, [x], scaler=scaler)
        before = x.detach().clone()
        scaler.step(optimizer)
        scaler.update()
        skipped += torch.equal(before, x)
    assert skipped >= 1
    assert int(weigher.number) == 4 - skipped > 0
    assert x.isfinite().all()


@every_method
@both_strategies
@pytest.mark.filterwarnings("ignore:first losses differ")
def test_twenty_tasks(method: Method, strategy: str) -> None:
    goals = [(math.cos(i), math.sin(i)) for i in range(20)]
    front = fit(lambda x: torch.stack([near(x, goal) for goal in goals]), method, 20, strategy=strategy, epochs=4)
    assert "non-finite" not in front.status


def test_every_row_of_the_page_is_tested_here() -> None:
    page = (DOCS / "project" / "numerics.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\| `(test_\w+)` \|$", page, flags=re.MULTILINE))
    tests = {name for name in globals() if name.startswith("test_")} - {"test_every_row_of_the_page_is_tested_here"}
    assert named == tests


@pytest.mark.parametrize("strategy", ["sequential", "batched"])
@pytest.mark.parametrize("form", [tuple, list, lambda parts: dict(enumerate(parts))])
def test_losses_of_large_numbers_in_bfloat16(strategy: Any, form: Callable[[Any], Any]) -> None:
    """A mean of numbers near 1,000 would be good to 4 in bfloat16."""

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(1, 2)

        def forward(self, x: Tensor) -> Any:
            return form(self.layer(x).unbind(-1))

    def losses(outputs: Any, targets: Tensor) -> Tensor:
        return torch.stack([(outputs[i] - targets[:, i]).abs().mean() for i in range(2)])

    targets = torch.randint(1000, 1100, (64, 2), generator=torch.Generator().manual_seed(0))  # with floats torch widens
    problem = pm.Problem(Two, losses, ["a", "b"], train=(torch.zeros(64, 1), targets))
    front = pm.fit(
        problem, "linear", 2, epochs=1, optimizer=lambda p: torch.optim.SGD(p, lr=0.0), precision="bfloat16",
        strategy=strategy, device="cpu", progress="quiet",
    )  # fmt: skip
    biases = front.models.stacked()["layer.bias"]
    torch.testing.assert_close(front.losses["train"], targets.double().mean(0).float() - biases, rtol=0, atol=0.01)
