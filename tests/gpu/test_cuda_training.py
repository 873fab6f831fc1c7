"""Training on a GPU: strategies and devices agree, captured steps are replayed, kernels equal torch operations."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path
from typing import Any

import pytest
import torch

import paretomtl as pm
from _helpers.cuda_images import Net, images, train
from paretomtl._support import cuda as _cuda
from paretomtl.engine.autotune import memory
from paretomtl.engine.batches.indexed import ResidentBatches
from paretomtl.engine.batches.make import make_batches
from paretomtl.engine.gradients import task_gradients
from paretomtl.engine.history import EpochHistory
from paretomtl.engine.model_group import Group
from paretomtl.engine.models.modules import make_modules
from paretomtl.engine.models.stack import Stack
from paretomtl.engine.runners.cuda_graph import GraphRunner
from paretomtl.engine.strategy import Plan
from paretomtl.training.torch_modes import library_modes

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@pytest.mark.parametrize("method", ["pareto-mtl", "mgda", "linear"])
@pytest.mark.parametrize("scope", [{}, {"shared": ["trunk"]}, {"representation": "trunk"}])
def test_strategies_and_devices_agree(scope: dict[str, object], method: str) -> None:
    runs = [("sequential", "cuda"), ("batched", "cuda"), ("graphed", "cuda"), ("sequential", "cpu")]
    options = {"precision": "float64", "epochs": 12, "batch_size": 96}  # one batch: its order is drawn on the device
    fronts = [train(images(**scope), method, strategy=name, device=device, **options) for name, device in runs]
    for other in fronts[1:]:
        for name, tensor in fronts[0].models.stacked().items():
            torch.testing.assert_close(tensor, other.models.stacked()[name], rtol=0, atol=1e-6)


def test_steps_on_batches_do_not_wait() -> None:
    from paretomtl.engine.runners import eager

    original = eager.train_step
    steps: list[int] = []

    def watched(*args: object, **kwargs: object) -> object:
        try:
            torch.cuda.set_sync_debug_mode("error" if len(steps) > 3 else "default")
            return original(*args, **kwargs)  # type: ignore[arg-type]
        finally:
            torch.cuda.set_sync_debug_mode("default")
            steps.append(1)

    eager.train_step = watched  # type: ignore[assignment]
    try:
        for strategy in ("sequential", "batched"):
            front = train(images(), strategy=strategy)
            assert front.losses["train"].isfinite().all()
    finally:
        eager.train_step = original
    assert len(steps) == 30


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("strategy", ["sequential", "batched", "graphed"])
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
    for name, tensor in whole.models.stacked().items():
        assert torch.equal(tensor, resumed.models.stacked()[name]), name


def test_auto_captures_on_the_gpu() -> None:
    assert train(images(), strategy="auto").strategy == "graphed: the step can be captured"


def batches_of(problem: pm.Problem, size: int = 32) -> ResidentBatches:
    made = make_batches("train", problem.train, batch_size=size, device=torch.device("cuda"), dtype=torch.float32)
    assert isinstance(made, ResidentBatches)
    return made


def test_replays_do_not_wait_and_are_as_many_as_steps() -> None:
    problem = images()
    method = pm.ParetoMTL()
    modules = make_modules(problem, range(3), torch.device("cuda"), torch.float32)
    state = {name: tensor.cuda() for name, tensor in method.init(method.spread(3, 2)).items()}
    plan = Plan(problem, method, lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9))
    history = EpochHistory(3, 2, torch.device("cuda"))
    runner = GraphRunner(plan.graphed(modules, state), batches_of(problem), history, 100)
    number = 0
    for epoch in range(4):
        for item in runner.epoch(0, epoch, 0, number):
            replayed = bool(runner._graphs)
            torch.cuda.set_sync_debug_mode("error" if replayed else "default")
            try:
                runner.step(item, number)
            finally:
                torch.cuda.set_sync_debug_mode("default")
            history.count()
            number += 1
    assert replayed
    assert len(runner._graphs) == 1
    assert int(runner._number) == number
    history.end_epoch()
    assert history.last("losses").isfinite().all()


# Captured, some optimizers of torch count steps and correct their averages in float32.
APART = {"RMSprop": 1e-6, "Adamax": 1e-6, "RAdam": 2e-5, "NAdam": 2e-5}


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "RAdam", "NAdam", "Adamax", "Adadelta", "Rprop"])
def test_schedules_are_followed_with_every_optimizer(name: str) -> None:
    def make(parameters: object) -> torch.optim.Optimizer:
        return getattr(torch.optim, name)(parameters, lr=0.01)  # type: ignore[no-any-return]

    def halve(optimizer: torch.optim.Optimizer) -> torch.optim.lr_scheduler.LRScheduler:
        return torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    options = {"optimizer": make, "scheduler": halve, "precision": "float64", "epochs": 6}
    fronts = [train(images(), strategy=strategy, **options) for strategy in ("batched", "graphed")]
    for key, tensor in fronts[0].models.stacked().items():
        if key != "trunk.0.bias":  # it has no effect before a normalisation, and follows rounding
            torch.testing.assert_close(tensor, fronts[1].models.stacked()[key], rtol=0, atol=APART.get(name, 1e-9))


def test_one_capture_serves_all_learning_rates() -> None:
    problem = images()
    method = pm.Linear()
    modules = make_modules(problem, range(3), torch.device("cuda"), torch.float32)
    state = {name: tensor.cuda() for name, tensor in method.init(method.spread(3, 2)).items()}
    groups = Plan(problem, method, lambda p: torch.optim.SGD(p, lr=0.05)).graphed(modules, state)
    runner = GraphRunner(groups, batches_of(problem), EpochHistory(3, 2, torch.device("cuda")), 100)
    captured = set()
    for number in range(12):
        item = next(runner.epoch(0, 0, 0, number))
        before = {name: tensor.detach().clone() for name, tensor in groups[0].models.trained.items()}
        runner.step(item, number)
        captured |= {id(graph) for graph in runner._graphs.values()}
        groups[0].optimizer.param_groups[0]["lr"] = 0.05 if number < 8 else 0.0
    assert len(captured) == 1
    for name, tensor in groups[0].models.trained.items():
        assert torch.equal(tensor, before[name]), "with a rate of zero nothing moves"


class Waits(Net):
    """Asks for a value in its forward pass, which cannot be captured."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        assert float(x.sum()) > 0
        return super().forward(x)


class Counts(Net):
    """Counts its calls in Python, which a replay does not."""

    calls = 0

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        Counts.calls += 1
        return super().forward(x * Counts.calls)


@pytest.mark.parametrize("model", [Waits, Counts])
def test_models_that_cannot_be_captured_are_told_and_trained(model: type[Net]) -> None:
    problem = dataclasses.replace(images(), model=model)
    front = train(problem, strategy="auto")
    assert not front.strategy.startswith("graphed")
    assert front.losses["train"].isfinite().all()
    assert torch.rand(1, device="cuda") >= 0, "random numbers can be drawn after a capture that failed"
    with pytest.raises(ValueError, match="'strategy' must be"):
        train(problem, strategy="graphed")


def test_a_dataset_is_not_graphed_and_says_why() -> None:
    class Pairs(torch.utils.data.Dataset):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return 96

        def __getitem__(self, i: int) -> tuple[torch.Tensor, torch.Tensor]:
            return torch.rand(1, 8, 8), torch.tensor([0, 1])

    problem = dataclasses.replace(images(), train=Pairs())
    assert "not graphed: the training data are not tensors" in train(problem, strategy="auto", epochs=1).strategy


def test_a_stack_that_does_not_fit_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    original = memory.train_step

    def small(groups: list[Group], *args: object) -> object:
        if groups[0].models.count > 2:
            raise torch.OutOfMemoryError("no room")
        return original(groups, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(memory, "train_step", small)
    with pytest.warns(UserWarning, match="a stack of 5 models would need about .* GiB"):
        cut = train(images(), strategy="graphed", count=5, precision="float64")
    assert "stacks of 2 one after another" in cut.strategy
    monkeypatch.undo()
    whole = train(images(), strategy="graphed", count=5, precision="float64")
    for name, tensor in whole.models.stacked().items():
        torch.testing.assert_close(tensor, cut.models.stacked()[name], rtol=0, atol=1e-9)


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("method", ["pareto-mtl", "gradnorm", "uncertainty"])
def test_weights_of_earlier_steps(method: str, every: int) -> None:
    fronts = [
        train(images(), method, strategy=strategy, weigh_every=every, precision="float64", epochs=8)
        for strategy in ("sequential", "graphed")
    ]
    for name, tensor in fronts[0].models.stacked().items():
        torch.testing.assert_close(tensor, fronts[1].models.stacked()[name], rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"clip_norm": 0.1},
        {"keep": "best"},
        {"schedule": "step", "scheduler": lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.9)},
        {"method": pm.ParetoMTL(release_steps=6, initial_steps=3, scale="first")},
        *({"method": pm.ParetoMTL(scale=scale, scale_steps=6)} for scale in ("running", "gradnorm", "uncertainty")),
    ],
    ids=["clipped", "best", "scheduled by steps", "released", "running", "gradnorm", "uncertainty"],
)
def test_options_of_a_captured_run(options: dict[str, Any]) -> None:
    problem = images()
    problem = dataclasses.replace(problem, val=problem.train)
    settings = {"method": "pareto-mtl", **options, "precision": "float64", "epochs": 8}
    fronts = [train(problem, strategy=strategy, **settings) for strategy in ("batched", "graphed")]
    for name, tensor in fronts[0].models.stacked().items():
        torch.testing.assert_close(tensor, fronts[1].models.stacked()[name], rtol=0, atol=1e-6)
    torch.testing.assert_close(fronts[0].history["losses"], fronts[1].history["losses"], rtol=1e-6, atol=0)


def test_attention_in_a_stack() -> None:
    class Attends(Net):
        def __init__(self) -> None:
            super().__init__()
            self.trunk = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
            self.heads = torch.nn.ModuleList([torch.nn.Linear(8, 4) for _ in range(2)])

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            hidden = self.trunk(x[:, 0]).mean(1)
            return tuple(head(hidden) for head in self.heads)

    front = train(dataclasses.replace(images(), model=Attends), strategy="auto")
    assert front.strategy.startswith("graphed"), front.strategy


def test_missing_labels_are_left_out_of_replays() -> None:
    problem = images()
    inputs, targets = problem.train  # type: ignore[misc]
    targets = targets.clone()
    targets[::2, 0] = -100
    targets[3::7, 1] = -100
    problem = dataclasses.replace(problem, train=(inputs, targets))
    slow = lambda p: torch.optim.SGD(p, lr=1e-3)  # noqa: E731
    for method in ("pareto-mtl", "linear"):
        fronts = [
            train(problem, method, strategy=strategy, precision="float64", batch_size=4, epochs=1, optimizer=slow)
            for strategy in ("sequential", "graphed")
        ]
        for name, tensor in fronts[0].models.stacked().items():
            torch.testing.assert_close(tensor, fronts[1].models.stacked()[name], rtol=0, atol=1e-6)


@pytest.mark.parametrize("padding", [0, 1])
def test_kernels_of_stacked_layers_equal_torch(padding: int, monkeypatch: pytest.MonkeyPatch) -> None:
    class Small(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.trunk = torch.nn.Sequential(
                torch.nn.Conv2d(1, 10, 9), torch.nn.MaxPool2d(2), torch.nn.ReLU(),
                torch.nn.Conv2d(10, 20, 5, padding=padding), torch.nn.MaxPool2d(2), torch.nn.ReLU(), torch.nn.Flatten(),
            )  # fmt: skip
            self.heads = torch.nn.ModuleList([torch.nn.LazyLinear(10) for _ in range(2)])

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            hidden = self.trunk(x)
            return tuple(head(hidden) for head in self.heads)

    g = torch.Generator().manual_seed(0)
    batch = (torch.rand(70, 1, 36, 36, generator=g).cuda(), torch.randint(10, (70, 2), generator=g).cuda())
    problem = pm.Problem(Small, pm.problems.cross_entropies, ["a", "b"], train=batch)
    modules = [Small().cuda() for _ in range(3)]
    for module in modules:
        module(batch[0])
    stack = Stack(problem, modules)
    found = []
    for switch in ("1", "0"):
        monkeypatch.setenv("PARETOMTL_KERNELS", switch)
        with library_modes("float32"):
            losses = stack.losses(batch)
            rows = task_gradients(losses, list(stack.trained.values()))
        found.append([losses, *(g for row in rows for g in row if g is not None)])
    assert "correlate" not in _cuda.why_not() or _cuda.why_not()["correlate"] == "PARETOMTL_KERNELS is 0"
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=2e-3, atol=2e-5)


class Skipping(Net):
    """Leaves its inputs out now and then, as a generator of the host decides."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("skipped", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if self.training and random.random() < 0.05:
            self.skipped += 1
            x = x * 0.0
        return super().forward(x)


def test_steps_that_draw_on_the_host_are_not_captured() -> None:
    front = train(dataclasses.replace(images(), model=Skipping), "linear", epochs=50)
    assert not front.strategy.startswith("graphed")
    assert (front.models.stacked()["skipped"] > 0).all()


def test_numbers_that_callbacks_change_are_captured_again() -> None:
    weight = [1.0]

    def losses(outputs: Any, targets: torch.Tensor) -> torch.Tensor:
        first, second = pm.problems.cross_entropies(outputs, targets)
        return torch.stack([first, second * weight[0]])

    def raise_weight(report: Any) -> None:
        weight[0] = 1.0 + report.epoch

    found = []
    for strategy in ("graphed", "sequential"):
        weight[0] = 1.0
        problem = dataclasses.replace(images(), losses=losses)
        found.append(train(problem, "linear", strategy=strategy, callbacks=[raise_weight]).history["losses"])
    torch.testing.assert_close(found[0], found[1], rtol=2e-2, atol=2e-2)
    assert float(found[0][-1, 1, 1]) > 2.0
