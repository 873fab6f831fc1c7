"""What takes the steps, as far as it can be seen without a GPU; tests/gpu/test_cuda_training.py has the rest."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

import paretomtl as pm
from paretomtl.engine import gradients as _gradients
from paretomtl.engine.batches.indexed import ResidentBatches
from paretomtl.engine.batches.make import make_batches
from paretomtl.engine.gradients import Gathered, combine, gramian
from paretomtl.engine.group import Group
from paretomtl.engine.history import EpochHistory, GrowingTensor
from paretomtl.engine.models import stack as stack_module
from paretomtl.engine.models.modules import make_modules
from paretomtl.engine.models.stack import Stack
from paretomtl.engine.step import StepRecord
from paretomtl.methods import Method, Step
from paretomtl.training.torch_modes import library_modes

CPU = torch.device("cpu")


def problem(**options: Any) -> pm.Problem:
    g = torch.Generator().manual_seed(0)
    data = (torch.randn(40, 3, generator=g), torch.randn(40, 2, generator=g))

    def losses(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return torch.stack([(y - t).square().mean() for y, t in zip(outputs.mT, targets.mT, strict=True)])

    def model() -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))

    return dataclasses.replace(pm.Problem(model, losses, ["a", "b"], train=data), **options)


def fit(made: pm.Problem | None = None, **options: Any) -> pm.Front:
    sgd = lambda p: torch.optim.SGD(p, lr=0.05)  # noqa: E731
    settings = {"preferences": 3, "epochs": 3, "batch_size": 8, "optimizer": sgd, "progress": "quiet", **options}
    return pm.fit(made or problem(), **settings)


class Counting(pm.ParetoMTL):
    """Writes down the steps that it is asked to weigh."""

    def weigh(self, step: Step, state: Any) -> Any:
        asked.append(int(step.number))
        return super().weigh(step, state)


asked: list[int] = []


@pytest.mark.parametrize("strategy", ["sequential", "batched"])
def test_weights_are_made_anew_every_so_many_steps(strategy: str) -> None:
    asked.clear()
    front = fit(method=Counting(initial_steps=0), weigh_every=4, strategy=strategy, preferences=1)
    assert [number for number in asked if number][-3:] == [4, 8, 12]
    assert front.losses["train"].isfinite().all()


def test_between_two_weighings_no_loss_is_raised() -> None:
    class Opposed(pm.ParetoMTL):
        def weigh(self, step: Step, state: Any) -> Any:
            _, after = super().weigh(step, state)
            return torch.tensor([[-0.5, 1.0]]).expand(step.losses.shape), after

    front = fit(method=Opposed(), weigh_every=2, epochs=1, batch_size=20)
    torch.testing.assert_close(front.history["weights"][0], torch.tensor([[-0.25, 1.0]]).expand(3, 2))


def test_a_run_with_old_weights_can_be_taken_up_again(tmp_path: Path) -> None:
    def stop(report: Any) -> None:
        if report.epoch == 1:
            raise InterruptedError

    options: dict[str, Any] = {"weigh_every": 3, "strategy": "batched"}
    whole = fit(**options)
    with pytest.raises(InterruptedError):
        fit(out=tmp_path, callbacks=[stop], **options)
    resumed = fit(out=tmp_path, resume=True, **options)
    for name, tensor in whole.parameters.items():
        assert torch.equal(tensor, resumed.parameters[name]), name
    with pytest.raises(ValueError, match="weigh_every"):
        fit(out=tmp_path, resume=True, strategy="batched")


def test_graphed_needs_a_gpu_and_says_so() -> None:
    with pytest.raises(ValueError, match=r"'strategy' must be .*: there is no CUDA device"):
        fit(strategy="graphed", device="cpu")
    assert not fit(strategy="auto", device="cpu").strategy.startswith("graphed")


@pytest.mark.parametrize("every", [0, -1, 1.5, "2"])
def test_bad_numbers_of_steps_are_named(every: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="'weigh_every' must be"):
        fit(weigh_every=every)


def test_a_device_that_is_gone_loses_nothing_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_down(report: Any) -> None:
        if report.epoch == 2:
            monkeypatch.setattr(Group, "stored", gone)
            raise RuntimeError("CUDA error: the launch timed out")

    def gone(self: Group) -> None:
        raise RuntimeError("CUDA error: no CUDA-capable device is detected\nmore lines")

    options: dict[str, Any] = {"strategy": "batched", "checkpoint_seconds": 0.0}
    with (
        pytest.warns(
            UserWarning, match="no checkpoint could be stored: CUDA error: no CUDA-capable device is detected"
        ),
        pytest.raises(RuntimeError, match="the launch timed out"),
    ):
        fit(out=tmp_path, callbacks=[break_down], **options)
    monkeypatch.undo()
    resumed = fit(out=tmp_path, resume=True, **options)
    for name, tensor in fit(**options).parameters.items():
        assert torch.equal(tensor, resumed.parameters[name]), name


def test_the_trace_adds_in_place() -> None:
    """A captured step writes to where the sums were when it was captured."""
    trace = EpochHistory(2, 2, CPU)
    places = [tensor.data_ptr() for tensor in (trace._losses, trace._weights, trace._present)]
    present = torch.tensor([[True, True], [True, False]])
    for k in range(4):
        losses = torch.tensor([[1.0, 2.0], [3.0, torch.nan]]) * (k + 1)
        trace.add([StepRecord(losses, torch.ones(2, 2), present, present)])
        trace.count()
        if k % 2:
            trace.end_epoch()
    assert [tensor.data_ptr() for tensor in (trace._losses, trace._weights, trace._present)] == places
    history = trace.part(slice(None), torch.float64)
    torch.testing.assert_close(history["losses"][:, 0, 0], torch.tensor([1.5, 3.5], dtype=torch.float64))
    assert history["losses"][0, 1, 1].isnan()
    assert trace.labelled().tolist() == [True, True]
    assert not trace.complete()
    present = torch.ones(2, 2, dtype=torch.bool)
    trace.add([StepRecord(torch.ones(2, 2), torch.ones(2, 2), present, present)])
    trace.count()
    trace.end_epoch()
    assert trace.complete()
    other = EpochHistory(2, 2, CPU)
    other.load(trace.state())
    assert other.labelled().tolist() == [True, True]


def test_losses_on_validation_stay_on_the_cpu() -> None:
    """They are stacked with those of later epochs for the next checkpoint."""
    trace = EpochHistory(2, 2, CPU)
    present = torch.ones(2, 2, dtype=torch.bool)
    trace.add([StepRecord(torch.ones(2, 2), torch.ones(2, 2), present, present)])
    trace.end_epoch()
    trace.add_validation(torch.ones(2, 2))
    other = EpochHistory(2, 2, torch.device("meta"))
    other.load(trace.state())
    assert other._history["losses"].rows().device.type == "meta"
    other.add_validation(torch.zeros(2, 2))
    assert other.state()["history"]["val"][:, 0, 0].tolist() == [1.0, 0.0]


def test_epochs_take_the_memory_of_their_numbers_whatever_they_began_with() -> None:
    rows = torch.arange(200.0).reshape(100, 2)
    for begin in (0, 1, 16, 17):
        table = GrowingTensor(rows[:begin].clone() if begin else None)
        for row in rows[begin:]:
            table.add(row)
        assert len(table) == 100
        assert torch.equal(table.rows(), rows)
        assert table.rows().untyped_storage().nbytes() <= 2 * rows.nbytes + 8 * 32


def resident(data: Any, size: int = 4) -> ResidentBatches:
    made = make_batches("train", data, batch_size=size, device=CPU, dtype=torch.float32)
    assert isinstance(made, ResidentBatches)
    return made


@pytest.mark.parametrize(("samples", "sizes"), [(8, [4, 4]), (10, [4, 4, 2]), (9, [4, 4]), (3, [3])])
def test_batches_by_their_place_are_those_of_an_epoch(samples: int, sizes: list[int]) -> None:
    made = resident((torch.arange(samples), torch.arange(samples).float()))
    assert made.sizes() == sizes
    made.shuffle(seed=3, epoch=1)
    begin = torch.zeros((), dtype=torch.long)
    for size, batch in zip(made.sizes(), made.epoch(3, 1), strict=True):
        part = made.part(begin, size)
        assert all(torch.equal(mine, theirs) for mine, theirs in zip(part, batch, strict=True))
        begin += size


X = torch.randn(6, 2)


@pytest.mark.parametrize(
    ("data", "labelled"),
    [
        ((X, torch.zeros(6, 2)), True),
        ((torch.full((6, 2), torch.nan), torch.zeros(6, 2)), True),
        ((X, torch.tensor([[0.0, torch.nan]] * 6)), False),
        ((X, torch.zeros(6), torch.tensor([0, 1, 2, 3, 4, -100])), False),
        ({"x": X, "y": torch.zeros(6, dtype=torch.uint8)}, False),  # some x are negative: it may be a label
        (torch.ones(6, 2), True),
        ((X, torch.zeros(6), torch.ones(6, dtype=torch.bool)), True),
        ((X, torch.zeros(6), torch.tensor([True] * 5 + [False])), False),
    ],
)
def test_labels_that_may_be_missing_are_seen(data: Any, labelled: bool) -> None:
    if isinstance(data, dict):
        data["x"] = -data["x"].abs().long() - 1
    assert resident(data).labelled() == labelled


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


@pytest.fixture
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (stack_module, _gradients):
        monkeypatch.setattr(module, "launches_cost", lambda tensor: True)


@pytest.mark.parametrize("keep", ["last", "best"])
def test_blocks_and_gathered_gradients_train_as_others(keep: str, request: pytest.FixtureRequest) -> None:
    made = problem()
    made = dataclasses.replace(made, val=made.train)
    plain = fit(made, strategy="batched", keep=keep)
    request.getfixturevalue("as_on_a_gpu")
    block = fit(made, strategy="batched", keep=keep)
    for name, tensor in plain.parameters.items():
        torch.testing.assert_close(tensor, block.parameters[name])


@pytest.mark.usefixtures("as_on_a_gpu")
def test_rows_of_a_block_go_back_alone() -> None:
    made = problem()
    stack = Stack(made, make_modules(made, range(3), CPU, torch.float32))
    kept = stack.copy()
    (block,) = stack.blocks()
    assert all(tensor.data_ptr() % 256 == block.values.data_ptr() % 256 for tensor in stack.trained.values())
    before = {name: tensor.clone() for name, tensor in kept.items()}
    with torch.no_grad():
        for tensor in stack.tensors().values():
            tensor.add_(1)
    stack.restore(torch.tensor([False, True, False]), kept)
    for name, tensor in stack.tensors().items():
        assert torch.equal(tensor[1], before[name][1]), name
        assert torch.equal(tensor[0], before[name][0] + 1), name
    stack.save_to(kept)
    for name, tensor in stack.tensors().items():
        assert torch.equal(kept[name], tensor), name


def test_how_numbers_are_multiplied_is_put_back() -> None:
    before = torch.backends.cuda.matmul.fp32_precision
    for name, expected in (("float32", "ieee"), ("tf32", "tf32"), ("bfloat16", "ieee")):
        with library_modes(name):
            assert torch.backends.cuda.matmul.fp32_precision == expected
            assert torch.backends.cudnn.conv.fp32_precision == expected  # type: ignore[attr-defined]
        assert torch.backends.cuda.matmul.fp32_precision == before
    with pytest.raises(KeyError), library_modes("tf32"):
        raise KeyError
    assert torch.backends.cuda.matmul.fp32_precision == before


def test_tf32_changes_nothing_on_a_cpu() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fronts = [fit(precision=precision, strategy="batched") for precision in ("float32", "tf32")]
    for name, tensor in fronts[0].parameters.items():
        assert torch.equal(tensor, fronts[1].parameters[name])


def test_every_method_can_use_old_weights() -> None:
    for name in ("mgda", "linear", "gradnorm", "uncertainty"):
        assert fit(method=name, weigh_every=2).losses["train"].isfinite().all()
    assert issubclass(Counting, Method)
