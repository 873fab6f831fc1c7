"""On a GPU nothing waits for the host, and results are those of the CPU. Needs torch and pytest alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

import paretomtl as pm
from _helpers.emulate import Operations
from paretomtl import core
from paretomtl._support import cuda as _cuda
from paretomtl.methods import METHODS, Step, resolve_method

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@pytest.fixture
def no_waiting() -> Iterator[None]:
    """Any synchronisation with the host is an error."""
    try:
        torch.cuda.set_sync_debug_mode("error")
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def situation(tasks: int = 3, count: int = 15, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(seed)
    jacobian = torch.randn(count, tasks, 20, generator=g) + torch.randn(count, 1, 20, generator=g)
    losses = torch.rand(count, tasks, generator=g)
    return losses.cuda(), (jacobian @ jacobian.mT).cuda(), core.region_rows(pm.preferences.even(count, tasks)).cuda()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("tasks", [2, 3, 8])
def test_directions_equal_those_of_the_cpu(tasks: int, dtype: torch.dtype) -> None:
    losses, gramian, rows = situation(tasks)
    losses, gramian = losses.to(dtype), gramian.to(dtype)
    for phase in core.Phase:
        phases = torch.full((15,), phase.value)
        there = core.direction(losses, gramian, rows, phases.cuda(), epsilon=0.1)
        here = core.direction(losses.cpu(), gramian.cpu(), rows.cpu(), phases, epsilon=0.1)
        torch.testing.assert_close(there.dual.squared_norm.cpu(), here.dual.squared_norm, rtol=1e-6, atol=1e-9)
        assert torch.equal(there.phase.cpu(), here.phase)


@pytest.mark.parametrize("name", METHODS)
def test_weighing_does_not_wait(name: str, request: pytest.FixtureRequest) -> None:
    losses, gramian, _ = situation(count=3)
    method = resolve_method(name)
    state = {key: tensor.cuda() for key, tensor in method.init(method.spread(3, 3)).items()}
    request.getfixturevalue("no_waiting")
    for number in range(3):
        weights, state = method.weigh(Step(losses, gramian, number=number, total=10), state)
    torch.cuda.set_sync_debug_mode("default")
    assert weights.isfinite().all()


def test_core_functions_do_not_wait(request: pytest.FixtureRequest) -> None:
    losses, gramian, rows = situation()
    phase = torch.zeros(15, dtype=torch.long, device="cuda")
    request.getfixturevalue("no_waiting")
    core.min_norm(gramian)
    core.direction(losses, gramian, rows, phase, epsilon=0.1, unit_rows=True)
    core.nondominated(losses)
    core.constraint_values(rows, losses)


def test_training_leaves_the_global_random_state_alone() -> None:
    torch.manual_seed(0)
    expected = torch.rand(1, device="cuda")
    torch.manual_seed(0)
    pm.fit(pm.problems.synthetic(), preferences=2, epochs=2, device="cuda").model(0)
    assert torch.equal(torch.rand(1, device="cuda"), expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_gramian_keeps_its_precision_inside_autocast(dtype: torch.dtype) -> None:
    x = torch.nn.Parameter(torch.zeros(10_000, device="cuda"))
    towards = torch.stack([torch.full_like(x, 100.0), torch.linspace(99.0, 102.0, 10_000, device="cuda")]).detach()
    weigher = pm.MGDA().bind(torch.ones(1, 2), index=0)
    losses = [(t * x).sum() + 1 for t in towards]
    expected = pm.backward(torch.stack(losses), weigher, [x])
    with torch.autocast("cuda", dtype=dtype):
        found = pm.backward(torch.stack([(t * x).sum() + 1 for t in towards]), weigher, [x])
    torch.testing.assert_close(found, expected)


def test_a_solve_can_be_captured_and_replayed() -> None:
    losses, gramian, rows = situation()
    phase = torch.zeros(15, dtype=torch.long, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        core.direction(losses, gramian, rows, phase)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = core.direction(losses, gramian, rows, phase).weights
    other, other_gramian, _ = situation(seed=1)
    losses.copy_(other)
    gramian.copy_(other_gramian)
    graph.replay()
    torch.testing.assert_close(captured, core.direction(losses, gramian, rows, phase).weights)


@pytest.mark.filterwarnings("ignore:most models lie close together")
@pytest.mark.parametrize("method", ["pareto-mtl", "linear"])
def test_training_steps_do_not_wait(method: str) -> None:
    from paretomtl.engine.runners import eager

    waited: list[bool] = []
    original = eager.train_step

    def watched(*args: object, **kwargs: object) -> object:
        try:
            torch.cuda.set_sync_debug_mode("error" if waited else "default")
            return original(*args, **kwargs)  # type: ignore[arg-type]
        finally:
            torch.cuda.set_sync_debug_mode("default")
            waited.append(False)

    eager.train_step = watched  # type: ignore[assignment]
    try:
        sgd = lambda p: torch.optim.SGD(p, lr=1.0)  # noqa: E731
        front = pm.fit(pm.problems.synthetic(), method, 5, epochs=50, optimizer=sgd, device="cuda")
    finally:
        eager.train_step = original
    assert len(waited) == 50
    assert front.losses["train"].isfinite().all()


WEIGHED = [
    {},
    {"initial_steps": 0, "epsilon": 0.0, "rescale": True},
    # Not "first": it makes the first losses equal, so that they lie on boundaries, where rounding decides.
    {"scale": 2.5, "rescale": True, "unit_rows": True, "initial_steps": 2, "release_steps": 1},
]


@pytest.mark.parametrize("options", WEIGHED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("tasks", [2, 3, 8])
def test_one_kernel_weighs_as_the_cpu_does(tasks: int, dtype: torch.dtype, options: dict[str, object]) -> None:
    if "scale" in options:
        options = {**options, "scale": tuple(2.5**i for i in range(tasks))}
    method = pm.ParetoMTL(**options)  # type: ignore[arg-type]
    here = method.init(method.spread(15, tasks))
    there = {name: tensor.cuda() for name, tensor in here.items()}
    number = torch.zeros((), dtype=torch.long, device="cuda")
    for step in range(5):
        losses, gramian, _ = situation(tasks, seed=step)
        present = torch.rand(15, tasks, generator=torch.Generator().manual_seed(step)) < 0.9
        losses, gramian = losses.to(dtype), gramian.to(dtype)
        losses[step, 1] = gramian[step + 5, 0, 0] = torch.nan
        kept = {name: tensor.clone() for name, tensor in there.items()}
        found, after = method.weigh(Step(losses, gramian, present.cuda(), number + step, 5), there)
        assert "pareto_mtl" not in _cuda.why_not()
        assert all(torch.equal(tensor, kept[name]) for name, tensor in there.items()), "written in place"
        expected, here = method.weigh(Step(losses.cpu(), gramian.cpu(), present, step, 5), here)
        # Rescaling takes the sum with absent tasks, whose weights are not unique.
        sure = present.all(-1) if method.rescale else torch.ones(15, dtype=torch.bool)
        torch.testing.assert_close(found.cpu()[sure], expected[sure], rtol=1e-5, atol=1e-6)
        there = after
        for name, tensor in there.items():
            torch.testing.assert_close(tensor.cpu(), here[name], rtol=1e-12, atol=0)


def test_weighing_is_one_launch_that_can_be_replayed() -> None:
    method = pm.ParetoMTL(initial_steps=3)
    state = {name: tensor.cuda() for name, tensor in method.init(method.spread(15, 3)).items()}
    losses, gramian, _ = situation()
    number = torch.zeros((), dtype=torch.long, device="cuda")
    step = Step(losses, gramian, number=number, total=10)
    with Operations() as seen:
        method.weigh(step, state)
    assert seen.launched() == []
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        weights, after = method.weigh(step, state)
    for count in (1, 3):
        other, other_gramian, _ = situation(seed=count)
        losses.copy_(other)
        gramian.copy_(other_gramian)
        number.fill_(count)
        graph.replay()
        expected, expected_after = method.weigh(step, state)
        assert torch.equal(weights, expected)
        assert all(torch.equal(after[name], expected_after[name]) for name in after)
    assert (after["phase"] == core.Phase.MAIN).all()
