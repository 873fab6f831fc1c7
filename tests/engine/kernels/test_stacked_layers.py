"""Kernels for stacked layers, run on the CPU by an emulator, against torch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import vmap
from torch.nn import functional

from _helpers.emulate import emulate, needs_compiler
from paretomtl.engine.kernels import stacked_layers as _layers
from paretomtl.engine.kernels.stacked_layers import StackedLayers

pytestmark = needs_compiler


@pytest.fixture(autouse=True)
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels that were launched; they run in the emulator."""
    names: list[str] = []

    def kernel(path: Path, name: str, constants: dict[str, int], device: Any = None) -> Callable[..., None]:
        def launch(grid: tuple[int, int, int], block: int, args: list[Any], shared: int = 0) -> None:
            names.append(name)
            emulate(path, name, constants, grid, block, shared, [_plain(arg) for arg in args])

        return launch

    monkeypatch.setattr(_layers, "kernel", kernel)
    monkeypatch.setattr(_layers, "_usual", lambda *tensors: all(t.dtype == torch.float32 for t in tensors))
    return names


def _plain(arg: Any) -> Any:
    return arg.detach() if isinstance(arg, Tensor) else arg


def gradients(function: Callable[..., Tensor], inputs: list[Tensor], batched: list[int | None]) -> list[Tensor]:
    made = vmap(function, in_dims=tuple(batched))(*inputs)
    weights = torch.linspace(-1.0, 2.0, made.numel()).reshape(made.shape).sin()
    wanted = [tensor for tensor in inputs if tensor.requires_grad]
    return [made, *torch.autograd.grad((made * weights).sum(), wanted)]


SHAPES = {
    "first layer of LeNet": (1, 10, 9, 0, 20, 3),
    "second layer of LeNet": (10, 20, 5, 0, 9, 5),
    "padded": (3, 7, 3, 1, 8, 4),
    "one by one": (4, 13, 1, 0, 6, 2),
    "as large as before": (2, 5, 5, 2, 7, 3),
    "flat": (3, 4, (1, 4), (0, 1), 9, 2),
}


@pytest.mark.parametrize("alike", [True, False], ids=["images for all", "images each"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_convolutions_are_those_of_torch(shape: tuple[Any, ...], alike: bool, launched: list[str]) -> None:
    read, made, size, padding, side, count = shape
    g = torch.Generator().manual_seed(0)
    height, width = (size, size) if isinstance(size, int) else size
    x = torch.randn(*(() if alike else (2,)), count, read, side, side, generator=g, requires_grad=True)
    weight = torch.randn(2, made, read, height, width, generator=g, requires_grad=True)
    bias = torch.randn(2, made, generator=g, requires_grad=True)

    def layer(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return functional.conv2d(x, weight, bias, padding=padding)

    batched = [None if alike else 0, 0, 0]
    expected = gradients(layer, [x, weight, bias], batched)
    assert not launched
    with StackedLayers():
        found = gradients(layer, [x, weight, bias], batched)
    assert sorted(set(launched)) == ["correlate", "weight_gradient"]
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("side", [8, 9])
@pytest.mark.parametrize("window", [2, 3, (2, 4)])
def test_poolings_are_those_of_torch(window: Any, side: int, launched: list[str]) -> None:
    x = torch.randn(2, 3, 4, side, side, generator=torch.Generator().manual_seed(0), requires_grad=True)

    def layer(x: Tensor) -> Tensor:
        return functional.max_pool2d(x, window)

    expected = gradients(layer, [x], [0])
    assert not launched
    with StackedLayers():
        found = gradients(layer, [x], [0])
    assert sorted(launched) == ["pool", "unpool"]
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=0)


def test_pooling_passes_nan_on() -> None:
    x = torch.zeros(1, 1, 1, 2, 4)
    x[..., 1, 1] = torch.nan
    with StackedLayers():
        made = vmap(lambda x: functional.max_pool2d(x, 2))(x)
    assert made.isnan().flatten().tolist() == [True, False]


LEFT_ALONE: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "stride": lambda x, w: functional.conv2d(x, w, stride=2),
    "dilation": lambda x, w: functional.conv2d(x, w, dilation=2),
    "padding by name": lambda x, w: functional.conv2d(x, w, padding="same"),
    "much padding": lambda x, w: functional.conv2d(x, w, padding=2),
    "groups": lambda x, w: functional.conv2d(x.repeat(1, 2, 1, 1), w.repeat(2, 1, 1, 1), groups=2),
    "overlapping windows": lambda x, w: functional.max_pool2d(x, 3, 1),
    "padded windows": lambda x, w: functional.max_pool2d(x, 2, padding=1),
    "ceil mode": lambda x, w: functional.max_pool2d(x, 2, ceil_mode=True),
    "indices": lambda x, w: functional.max_pool2d(x, 2, return_indices=True)[0],
    "double": lambda x, w: functional.conv2d(x.double(), w.double()),
    "a bias that is not stacked": lambda x, w: functional.conv2d(x, w, torch.ones(3)),
    "many channels": lambda x, w: functional.conv2d(x, w.repeat(20, 1, 1, 1)),
}


@pytest.mark.parametrize("layer", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_what_no_kernel_is_made_for_is_left_to_torch(
    layer: Callable[[Tensor, Tensor], Tensor], launched: list[str]
) -> None:
    x, weight = torch.randn(2, 1, 2, 7, 7), torch.randn(2, 3, 2, 3, 3)
    expected = vmap(layer)(x, weight)
    with StackedLayers():
        assert torch.equal(vmap(layer)(x, weight), expected)
    assert not launched


def test_layers_outside_of_a_stack_are_left_to_torch(launched: list[str]) -> None:
    with StackedLayers():
        functional.max_pool2d(functional.conv2d(torch.randn(1, 2, 7, 7), torch.randn(3, 2, 3, 3)), 2)
        vmap(lambda x: functional.conv2d(x, torch.ones(3, 2, 3, 3)))(torch.randn(2, 1, 2, 7, 7))
    assert not launched
