"""Kernels for layers of stacked models where libraries leave a GPU idle: few channels, small images.

A function mode replaces ``torch.conv2d`` by an autograd function with a vmap rule, so that users' modules stay as they
are. Kernels are CUDA C, compiled by NVRTC through torch when first used. Triton was tried for the convolutions: gathers
for its matrix unit cost more than they save with ten channels. Every kernel has torch operations as a fallback, so a
compiler that fails costs only speed, and a warning. Tests compare each kernel with them on a CPU, by an emulator of its
threads.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.overrides import TorchFunctionMode

from paretomtl._support.cuda import Launch, kernel, prefetch, why_not

_T = TypeVar("_T")

_CONV, _POOL = (Path(__file__).with_name(name) for name in ("conv.cu", "pool.cu"))
_TURNED = {"SHARED_X": 0, "FLIPPED": 1}
CHANNELS = 32  # from about here on, libraries fill the GPU
_SHARED = 75 * 1024  # bytes of shared memory a block may take: three of them fit
_ALL_SHARED, _ALL_REGISTERS = 227 * 1024, 65536  # of a processor of an H100 or H200
_REGISTERS = 128  # of a thread
_THREADS = 384  # of a block
_WARPS = 16  # on a processor, to hide what they wait for
_BLOCKS = 528  # blocks that keep all processors busy


class StackedLayers(TorchFunctionMode):
    """A mode in which convolutions and max poolings under ``vmap`` use the kernels of this module, if they apply."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.conv2d:
            output = _convolution(*args, **kwargs)
        elif func in (torch.nn.functional.max_pool2d, torch.max_pool2d):
            output = _pooling(*args, **kwargs)
        else:
            output = None
        return func(*args, **kwargs) if output is None else output


@dataclass(frozen=True)
class _Shape:
    """A correlation with stride 1: input, output, filter and padding sizes."""

    CI: int
    HI: int
    WI: int
    CO: int
    KH: int
    KW: int
    PH: int
    PW: int

    @property
    def rows(self) -> int:
        return self.HI + 2 * self.PH - self.KH + 1

    @property
    def columns(self) -> int:
        return self.WI + 2 * self.PW - self.KW + 1

    def backwards(self) -> _Shape:
        """The correlation of the gradient with the filters turned around, which gives the gradient of the input."""
        return _Shape(
            self.CO, self.rows, self.columns, self.CI, self.KH, self.KW, self.KH - 1 - self.PH, self.KW - 1 - self.PW
        )

    def constants(self) -> dict[str, int]:
        return {**vars(self), "HO": self.rows, "WO": self.columns}

    def wide(self, columns: int) -> int:
        """The length of a row in shared memory, for tiles of some width."""
        if columns >= self.columns:
            return self.WI
        return max(self.WI + 2 * self.PW, -(-self.columns // columns) * columns + self.KW - 1)

    def products(self, columns: int) -> int:
        """The number of products that make a row of one channel from one row of another, for tiles of some width."""
        if columns < self.columns:
            return -(-self.columns // columns) * columns * self.KW
        places = [t + j - self.PW for t in range(columns) for j in range(self.KW)]
        return sum(0 <= place < self.WI for place in places)


@dataclass(frozen=True)
class _Plan:
    """Constants and launch sizes of a kernel."""

    constants: dict[str, int]
    threads: int
    shared: int
    cost: float


def _planned(
    constants: dict[str, int], threads: int, shared: int, registers: int, cost: float, waiting: float
) -> _Plan:
    """A plan, which costs more with too few threads or blocks to hide waiting; fitted to times on an H200."""
    blocks = min(_ALL_SHARED // (shared + 1024), _ALL_REGISTERS // (registers * threads), 2048 // threads)
    blocks = max(1, blocks)
    warps = blocks * threads / 32
    constants = {**constants, "THREADS": threads, "BLOCKS": blocks}
    return _Plan(constants, threads, shared, cost * (1 + waiting / blocks) * max(1.0, _WARPS / warps) ** 0.5)


@functools.cache
def _most_shared() -> int:
    """Bytes of shared memory that a block may take, less on a GPU that has less."""
    if not torch.cuda.is_available():
        return _SHARED
    device = torch.cuda.get_device_properties(torch.cuda.current_device())
    return min(_SHARED, int(getattr(device, "shared_memory_per_block_optin", 48 << 10)))


@functools.cache
def _correlate_plan(shape: _Shape) -> _Plan | None:
    """The plan of ``correlate``: the tile that loads least for its arithmetic."""
    plans = []
    for channels, columns in itertools.product(range(2, 11), range(2, min(30, shape.columns) + 1)):
        groups, segments, taps = -(-shape.CO // channels), -(-shape.columns // columns), -(-channels // 2) * 2
        window = shape.WI if columns >= shape.columns else columns + shape.KW - 1
        products = shape.products(columns)
        filters = -(-shape.CI * shape.KH * shape.KW * groups * taps // 4) * 4
        image = max(shape.CI * shape.HI * shape.wide(columns), groups * shape.rows * shape.columns)
        each = groups * shape.rows * segments
        for images in (1, 2, 3, 4, 6):
            threads, shared = -(-images * each // 32) * 32, 4 * (filters + images * image)
            registers = taps * columns + window + 25
            if shared > _most_shared() or threads > _THREADS or registers > _REGISTERS:
                continue
            idle = threads / (images * each)
            made = groups * channels * products / (shape.CO * shape.columns * shape.KW)
            loads = 4 * (window + shape.KW * taps / 2) * segments / (channels * products)
            copies = 8 * filters / images + 10 * image  # load and store instructions, relative to multiplications
            copies /= shape.CO * shape.rows * shape.columns * shape.CI * shape.KH * shape.KW
            constants = {**shape.constants(), "TO": channels, "TX": columns, "IMAGES": images}
            plans.append(_planned(constants, threads, shared, registers, idle * made * (1 + 0.7 * loads) + copies, 0.5))
    return min(plans, key=lambda plan: plan.cost, default=None)


@functools.cache
def _weight_plan(shape: _Shape) -> _Plan | None:
    """The plan of ``weight_gradient``."""
    plans = []
    for channels, columns, slices in itertools.product(range(1, 11), range(2, 15, 2), range(1, shape.rows + 1)):
        groups, segments = -(-shape.CO // channels), -(-shape.columns // columns)
        window = shape.WI if columns >= shape.columns else columns + shape.KW - 1
        tasks, products = groups * shape.CI * shape.KH, shape.products(columns)
        threads = -(-(tasks * slices + 16) // 32) * 32
        left = threads - tasks * slices
        numbers = shape.CO * (shape.CI * shape.KH * shape.KW + 1)
        sizes = -(-shape.CO * shape.rows * segments * columns // 4) * 4 + shape.CI * shape.HI * shape.wide(columns)
        shared, registers = 4 * max(sizes, numbers + shape.CO * left), channels * shape.KW + window + shape.CO + 34
        if shared > _most_shared() or threads > _THREADS or registers > _REGISTERS:
            continue
        idle = threads / (tasks * slices) * (-(-shape.rows // slices) * slices / shape.rows)
        made = groups * channels * products / (shape.CO * shape.columns * shape.KW)
        loads = 4 * (window + channels * columns / 2) * segments / (channels * products)
        constants = {**shape.constants(), "TO": channels, "TX": columns, "SLICES": slices}
        plans.append(_planned(constants, threads, shared, registers, idle * made * (1 + 0.5 * loads), 1.0))
    return min(plans, key=lambda plan: plan.cost, default=None)


def _correlate(x: Tensor, weight: Tensor, bias: Tensor | None, shape: _Shape, *, shared: bool, flipped: bool) -> Tensor:
    """``[K, N, CO, HO, WO]``."""
    plan = _require(_correlate_plan(shape))
    flags = {"SHARED_X": int(shared), "FLIPPED": int(flipped)}
    launch = _require(kernel(_CONV, "correlate", plan.constants | flags, x.device))
    models, count = len(weight), x.shape[0 if shared else 1]
    y = x.new_empty(models, count, shape.CO, shape.rows, shape.columns)
    args: list[Tensor | int | float] = [x, weight, weight if bias is None else bias, y, count, int(bias is not None)]
    launch((-(-count // plan.constants["IMAGES"]), models, 1), plan.threads, args, plan.shared)
    return y


def _weight_gradient(x: Tensor, gradient: Tensor, shape: _Shape, *, shared: bool) -> tuple[Tensor, Tensor]:
    """The gradients of filters ``[K, CO, CI, KH, KW]`` and biases ``[K, CO]``."""
    plan = _require(_weight_plan(shape))
    flags = {"SHARED_X": int(shared), "FLIPPED": 0}
    launch = _require(kernel(_CONV, "weight_gradient", plan.constants | flags, x.device))
    models, count = gradient.shape[:2]
    chunk = max(1, models * count // _BLOCKS)
    splits = -(-count // chunk)
    numbers = shape.CO * shape.CI * shape.KH * shape.KW
    parts = x.new_empty(models, splits, numbers + shape.CO)
    launch((splits, models, 1), plan.threads, [x, gradient, parts, count, chunk], plan.shared)
    total = parts.sum(1)
    filters = total[:, :numbers].reshape(models, shape.CO, shape.CI, shape.KH, shape.KW)
    return filters, total[:, numbers:]


class _Convolve(torch.autograd.Function):
    """Convolution of stacked models: ``x [K, N, CI, HI, WI]``, or without K for all alike; ``weight [K, ...]``."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, shape: _Shape) -> Tensor:
        x, weight, bias = x.contiguous(), weight.contiguous(), None if bias is None else bias.contiguous()
        ctx.save_for_backward(x, weight)
        ctx.shape, ctx.shared, ctx.biased = shape, x.ndim == 4, bias is not None
        return _correlate(x, weight, bias, shape, shared=ctx.shared, flipped=False)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        x, weight = ctx.saved_tensors
        gradient = gradients[0].contiguous()
        down = filters = bias = None
        if ctx.needs_input_grad[0]:
            down = _correlate(gradient, weight, None, ctx.shape.backwards(), shared=False, flipped=True)
            down = down.sum(0) if ctx.shared else down
        if ctx.needs_input_grad[1] or ctx.needs_input_grad[2]:
            filters, bias = _weight_gradient(x, gradient, ctx.shape, shared=ctx.shared)
        return down, filters, bias if ctx.biased else None, None


class _UnderVmap(torch.autograd.Function):
    """A function of stacked tensors in place of one of single tensors: what vmap sees of :class:`_Convolve`."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor | None, shape: _Shape) -> Tensor:
        raise RuntimeError("stacked layers work under vmap alone.")

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], x: Tensor, weight: Tensor, bias: Tensor | None, shape: _Shape
    ) -> tuple[Tensor, int]:
        x, weight = (t if dim is None else t.movedim(dim, 0) for t, dim in zip((x, weight), in_dims, strict=False))
        if bias is not None and in_dims[2] is not None:
            bias = bias.movedim(in_dims[2], 0)
        made: Tensor = _Convolve.apply(x, weight, bias, shape)  # type: ignore[no-untyped-call]
        return made, 0


class _Pool(torch.autograd.Function):
    """Max pooling of ``x [..., H, W]`` by windows ``[KH, KW]`` that do not overlap."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, window: tuple[int, int]) -> Tensor:
        x = x.contiguous()
        ctx.shape, ctx.window = x.shape, window
        y = x.new_empty(*x.shape[:-2], x.shape[-2] // window[0], x.shape[-1] // window[1])
        where = torch.empty_like(y, dtype=torch.uint8)
        _pool_launch("pool", x.shape, window, y.numel(), [x, y, where])
        ctx.save_for_backward(where)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (where,) = ctx.saved_tensors
        gradient = gradients[0].contiguous()
        whole = all(size % part == 0 for size, part in zip(ctx.shape[-2:], ctx.window, strict=True))
        down = gradient.new_empty(ctx.shape) if whole else gradient.new_zeros(ctx.shape)
        _pool_launch("unpool", ctx.shape, ctx.window, gradient.numel(), [gradient, where, down])
        return down, None


class _PoolUnderVmap(torch.autograd.Function):
    """Max pooling as vmap sees it, by :class:`_Pool`."""

    @staticmethod
    def forward(x: Tensor, window: tuple[int, int]) -> Tensor:
        raise RuntimeError("stacked layers work under vmap alone.")

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int, None], x: Tensor, window: tuple[int, int]) -> tuple[Tensor, int]:
        x = x.movedim(in_dims[0], 0)
        if x.numel() >= 2**31:  # more than the kernel can count
            pooled = torch.max_pool2d(x.flatten(0, 1), window)
            return pooled.reshape(*x.shape[:2], *pooled.shape[1:]), 0
        made: Tensor = _Pool.apply(x, window)  # type: ignore[no-untyped-call]
        return made, 0


def _pool_launch(name: str, shape: torch.Size, window: tuple[int, int], total: int, tensors: list[Tensor]) -> None:
    launch = _require(_pool_kernel(name, shape[-2], shape[-1], window, tensors[0].device))
    launch((-(-total // 256), 1, 1), 256, [*tensors, total])


def _pool_kernel(name: str, height: int, width: int, window: tuple[int, int], device: torch.device) -> Launch | None:
    sizes = {"KH": window[0], "KW": window[1], "H": height, "W": width}
    return kernel(_POOL, name, sizes | {"HO": height // window[0], "WO": width // window[1]}, device)


def _convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor | None:
    """The convolution of a stacked model by a kernel; None where none applies."""
    plain = _pair(stride) == (1, 1) and _pair(dilation) == (1, 1) and groups == 1
    if not (plain and _stacked(weight) and input.ndim == 4 and _usual(input, weight)):
        return None
    sides = _pair(padding)
    channels, read, height, width = weight.shape
    if sides is None or max(channels, read) > CHANNELS or 2 * sides[0] >= height or 2 * sides[1] >= width:
        return None  # with more padding than keeps the size, a row of the output may reach no row of the input
    shape = _Shape(read, input.shape[-2], input.shape[-1], channels, height, width, *sides)
    if bias is not None and not (_stacked(bias) and _usual(bias)):
        return None
    if min(shape.rows, shape.columns) < 1 or not _has_kernels(shape, input.device, shared=not _stacked(input)):
        return None
    made: Tensor = _UnderVmap.apply(input, weight, bias, shape)  # type: ignore[no-untyped-call]
    return made


def _pooling(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | None:
    """The max pooling of a stacked model by a kernel; None where none applies."""
    window = _pair(kernel_size)
    plain = _pair(padding) == (0, 0) and _pair(dilation) == (1, 1) and not return_indices and not ceil_mode
    if not (plain and window and _pair(stride or kernel_size) == window and _stacked(input) and _usual(input)):
        return None
    if input.ndim != 4 or input.shape[-2] < window[0] or input.shape[-1] < window[1] or window[0] * window[1] > 255:
        return None
    height, width = input.shape[-2:]
    if any(_pool_kernel(name, height, width, window, input.device) is None for name in ("pool", "unpool")):
        return None
    made: Tensor = _PoolUnderVmap.apply(input, window)  # type: ignore[no-untyped-call]
    return made


def _has_kernels(shape: _Shape, device: torch.device, *, shared: bool) -> bool:
    """Whether there are kernels for a convolution of this shape and its gradients; they are compiled in parallel."""
    plans = [_correlate_plan(shape), _weight_plan(shape), _correlate_plan(shape.backwards())]
    if None in plans:
        return False
    flags = {"SHARED_X": int(shared), "FLIPPED": 0}
    wanted = [
        (_CONV, name, _require(plan).constants | each)
        for name, plan, each in zip(
            ("correlate", "weight_gradient", "correlate"), plans, (flags, flags, _TURNED), strict=True
        )
    ]
    if kernel(*wanted[0], device) is None:
        return False
    prefetch(wanted, device)
    return all(kernel(*each, device) is not None for each in wanted)


def _require(value: _T | None) -> _T:
    if value is None:
        raise RuntimeError(f"a kernel for stacked layers is not available: {why_not()}.")
    return value


def _usual(*tensors: Tensor) -> bool:
    """float32 on a GPU, outside of autocast and of a compiler."""
    if torch.compiler.is_compiling() or torch.is_autocast_enabled("cuda"):
        return False
    return all(tensor.device.type == "cuda" and tensor.dtype == torch.float32 for tensor in tensors)


def _stacked(tensor: Tensor) -> bool:
    return bool(torch._C._functorch.is_batchedtensor(tensor))


def _pair(value: Any) -> tuple[int, int] | None:
    """A size in both directions; None if it is not numbers, such as padding="same"."""
    if isinstance(value, int):
        return value, value
    if isinstance(value, (tuple, list)) and len(value) in (1, 2) and all(isinstance(part, int) for part in value):
        return value[0], value[-1]
    return None
