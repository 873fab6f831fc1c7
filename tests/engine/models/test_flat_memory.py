"""Values of models in few pieces of memory, and gradients as they lie there."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from _helpers.networks import sgd
from _helpers.normed_regression import fit, problem
from _helpers.streams import CPU, Net, adam, batches, planned, pretended, run, values  # noqa: F401
from paretomtl._support.files.state_packing import pack, unpack
from paretomtl._support.files.tensor_files import read_tensors, write_tensors
from paretomtl.engine import gradients as _gradients
from paretomtl.engine.autotune import capture
from paretomtl.engine.history import EpochHistory
from paretomtl.engine.model_group import Group
from paretomtl.engine.models import stack as stack_module
from paretomtl.engine.models.modules import make_modules
from paretomtl.engine.models.stack import Stack
from paretomtl.engine.runners.cuda_graph import GraphRunner


@pytest.mark.parametrize("channels_last", [False, True])
def test_blocks_hold_the_values_of_a_module(channels_last: bool) -> None:
    plan, (module,), state = planned(1)
    before = {name: tensor.detach().clone() for name, tensor in {**dict(module.named_parameters())}.items()}
    identities = [id(p) for p in module.parameters()]
    (group,) = plan.on_streams([module], state, channels_last=channels_last)
    models = group.models
    assert [id(p) for p in module.parameters()] == identities
    assert {block.values.dtype for block in models.tensors().blocks} == {torch.float32, torch.int64}
    for name, tensor in before.items():
        assert torch.equal(models.tensors()[name][0], tensor), name
    weight = module.get_parameter("trunk.0.weight")
    assert weight.is_contiguous(memory_format=torch.channels_last if channels_last else torch.contiguous_format)
    kept = models.copy()
    assert all(kept[name].stride() == tensor.stride() for name, tensor in models.tensors().items())
    with torch.no_grad():
        for tensor in [*module.parameters(), *module.buffers()]:
            tensor.add_(1)
    models.restore(torch.tensor([False]), kept)
    assert torch.equal(weight.detach(), before["trunk.0.weight"] + 1)
    assert int(module.get_buffer("trunk.1.num_batches_tracked")) == 1
    models.restore(torch.tensor([True]), dict(kept))  # by name
    assert torch.equal(weight.detach(), before["trunk.0.weight"])
    weight.data.add_(2)
    kept.follow(models.tensors())
    assert torch.equal(kept["trunk.0.weight"][0], before["trunk.0.weight"] + 2)


def test_a_buffer_that_is_replaced_is_not_overlooked() -> None:
    class Replaces(Net):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            self.calls = self.calls + 1
            return super().forward(x)

    plan, modules, state = planned(1, Replaces)
    (group,) = plan.on_streams(modules, state)
    held, kept = capture._kept_tensors([group]), group.models.copy()
    group.models.losses(next(batches().epoch(0, 0)))
    now = capture._kept_tensors([group])
    assert [mine is theirs for mine, theirs in zip(held, now, strict=True)].count(False) == 1
    assert float(group.models.copy()["calls"]) == 1
    kept.follow(group.models.tensors())
    assert float(kept["calls"]) == 1


def test_tensors_that_share_memory_stay_where_they_are() -> None:
    class Shares(Net):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("row", self.heads[0].weight.detach()[0])

    plan, (module,), state = planned(1, Shares)
    (group,) = plan.on_streams([module], state)
    assert group.models.tensors().blocks == []
    module.heads[0].weight.data.fill_(3.0)  # type: ignore[operator, union-attr, index]
    assert (module.row == 3.0).all()


@pytest.mark.usefixtures("pretended")
@pytest.mark.parametrize("optimizer", [sgd, adam])
def test_a_checkpoint_of_modules_with_channels_last(optimizer: Any, tmp_path: Path) -> None:
    def made() -> tuple[list[Group], GraphRunner]:
        plan, modules, state = planned(2, optimizer=optimizer)
        groups = plan.on_streams(modules, state, channels_last=True)
        return groups, GraphRunner(groups, batches(), EpochHistory(2, 2, CPU), 10, 1, 2)

    groups, runner = made()
    number = run(runner, 1)
    tensors: dict[str, Tensor] = {}
    packed = json.dumps(pack([group.stored() for group in groups], tensors))
    write_tensors(tmp_path / "checkpoint", tensors, {})
    run(runner, 1, number)
    again, other = made()
    stored = unpack(json.loads(packed), read_tensors(tmp_path / "checkpoint")[0])
    for group, part in zip(again, stored, strict=True):
        group.load(part)
        for parameter, state in group.optimizer.state.items():
            moments = [tensor for tensor in state.values() if tensor.shape == parameter.shape]
            assert all(tensor.stride() == parameter.stride() for tensor in moments)
        assert group.before_previous is not None
        assert all(tensor.stride() == group.previous[name].stride() for name, tensor in group.before_previous.items())
    run(other, 1, number)
    for name, tensor in values(groups).items():
        assert torch.equal(tensor, values(again)[name]), name


def test_gathered_gradients_keep_channels_last() -> None:
    g = torch.Generator().manual_seed(0)
    shapes = [(5, 3, 2, 2), (4, 6)]
    rows: list[Any] = [tuple(torch.randn(shape, generator=g) for shape in shapes) for _ in range(2)]
    rows[0] = (rows[0][0].contiguous(memory_format=torch.channels_last), None)  # the other lies as usual
    plain = [tuple(None if part is None else part.contiguous() for part in row) for row in rows]
    weights = torch.tensor([[0.3, 0.7]])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_gradients, "launches_cost", lambda tensor: True)
        gathered = _gradients.Gathered.of(rows, 1)
    assert gathered is not None
    assert gathered.last == {0}
    torch.testing.assert_close(gathered.gramian(), _gradients.gramian(plain, 1))
    first, second = gathered.combine(weights)
    expected = _gradients.combine(weights[0], plain)
    torch.testing.assert_close([first, second], expected)
    assert first is not None
    assert first.stride() == rows[0][0].stride(), "as the optimizer wants it"


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
    for name, tensor in plain.models.stacked().items():
        torch.testing.assert_close(tensor, block.models.stacked()[name])


@pytest.mark.usefixtures("as_on_a_gpu")
def test_rows_of_a_block_go_back_alone() -> None:
    made = problem()
    stack = Stack(made, make_modules(made, range(3), CPU, torch.float32))
    kept = stack.copy()
    (block,) = stack.tensors().blocks
    assert all(tensor.data_ptr() % 256 == block.values.data_ptr() % 256 for tensor in stack.trained.values())
    before = {name: tensor.clone() for name, tensor in kept.items()}
    with torch.no_grad():
        for tensor in stack.tensors().values():
            tensor.add_(1)
    stack.restore(torch.tensor([False, True, False]), kept)
    for name, tensor in stack.tensors().items():
        assert torch.equal(tensor[1], before[name][1]), name
        assert torch.equal(tensor[0], before[name][0] + 1), name
    kept.follow(stack.tensors())
    for name, tensor in stack.tensors().items():
        assert torch.equal(kept[name], tensor), name
