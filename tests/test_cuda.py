"""On a GPU nothing waits for the host, and results are those of the CPU. Needs torch and pytest alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import paretomtl as pm
from paretomtl import core
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


@pytest.mark.parametrize("method", ["pareto-mtl", "linear"])
def test_training_steps_do_not_wait(method: str) -> None:
    from paretomtl.training import _fit

    waited: list[bool] = []
    original = _fit.train_step

    def watched(*args: object, **kwargs: object) -> object:
        try:
            torch.cuda.set_sync_debug_mode("error" if waited else "default")
            return original(*args, **kwargs)  # type: ignore[arg-type]
        finally:
            torch.cuda.set_sync_debug_mode("default")
            waited.append(False)

    _fit.train_step = watched  # type: ignore[assignment]
    try:
        sgd = lambda p: torch.optim.SGD(p, lr=1.0)  # noqa: E731
        front = pm.fit(pm.problems.synthetic(), method, 5, epochs=50, optimizer=sgd, device="cuda")
    finally:
        _fit.train_step = original
    assert len(waited) == 50
    assert front.losses["train"].isfinite().all()


class Net(torch.nn.Module):
    """Convolutions, batch normalisation and two heads."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = torch.nn.Sequential(
            torch.nn.Conv2d(1, 6, 3),
            torch.nn.BatchNorm2d(6),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(216, 16),
        )
        self.heads = torch.nn.ModuleList([torch.nn.Linear(16, 4) for _ in range(2)])

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        hidden = self.trunk(x)
        return tuple(head(hidden) for head in self.heads)


def images(**options: object) -> pm.Problem:
    g = torch.Generator().manual_seed(0)
    data = (torch.rand(96, 1, 8, 8, generator=g), torch.randint(4, (96, 2), generator=g))
    return pm.Problem(Net, pm.problems.cross_entropies, ["a", "b"], train=data, **options)  # type: ignore[arg-type]


def train(problem: pm.Problem, method: str = "pareto-mtl", **options: object) -> pm.Front:
    sgd = lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9)  # noqa: E731
    settings = {"epochs": 5, "batch_size": 32, "optimizer": sgd, "device": "cuda", "progress": "quiet", **options}
    return pm.fit(problem, method, 3, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["pareto-mtl", "mgda", "linear"])
@pytest.mark.parametrize("scope", [{}, {"shared": ["trunk"]}, {"representation": "trunk"}])
def test_strategies_and_devices_agree(scope: dict[str, object], method: str) -> None:
    runs = [("sequential", "cuda"), ("batched", "cuda"), ("sequential", "cpu")]
    fronts = [
        train(images(**scope), method, strategy=name, device=device, precision="float64") for name, device in runs
    ]
    for other in fronts[1:]:
        for name, tensor in fronts[0].parameters.items():
            torch.testing.assert_close(tensor, other.parameters[name], rtol=0, atol=1e-6)


def test_steps_on_batches_do_not_wait() -> None:
    from paretomtl.training import _fit

    original = _fit.train_step
    steps: list[int] = []

    def watched(*args: object, **kwargs: object) -> object:
        try:
            torch.cuda.set_sync_debug_mode("error" if len(steps) > 3 else "default")
            return original(*args, **kwargs)  # type: ignore[arg-type]
        finally:
            torch.cuda.set_sync_debug_mode("default")
            steps.append(1)

    _fit.train_step = watched  # type: ignore[assignment]
    try:
        for strategy in ("sequential", "batched"):
            front = train(images(), strategy=strategy)
            assert front.losses["train"].isfinite().all()
    finally:
        _fit.train_step = original
    assert len(steps) == 60


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("strategy", ["sequential", "batched"])
def test_a_run_can_be_taken_up_again(strategy: str, precision: str, tmp_path: Path) -> None:
    """Bit by bit with deterministic kernels."""
    pytest.importorskip("safetensors")

    def stop(report: object) -> None:
        if report.epoch == 2:  # type: ignore[attr-defined]
            raise InterruptedError

    deterministic = torch.backends.cudnn.deterministic
    torch.backends.cudnn.deterministic = True
    try:
        options = {"strategy": strategy, "precision": precision}
        whole = train(images(), **options)
        with pytest.raises(InterruptedError):
            train(images(), out=tmp_path, callbacks=[stop], **options)
        resumed = train(images(), out=tmp_path, resume=True, **options)
    finally:
        torch.backends.cudnn.deterministic = deterministic
    for name, tensor in whole.parameters.items():
        assert torch.equal(tensor, resumed.parameters[name]), name


def test_auto_measures_on_the_gpu() -> None:
    assert "ms a step as a stack" in train(images(), strategy="auto").strategy
