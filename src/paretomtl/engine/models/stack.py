"""K models as one stack of parameters, run by vmap. Nothing else in the package calls vmap.

vmap covers the forward pass alone. The m task gradients are taken outside of it by plain autograd, so that batch
normalisation and dropout work.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from paretomtl._support.module_tensors import load_tensors
from paretomtl.engine.batches.structure import map_tensors, unchanged
from paretomtl.engine.gradients import launches_cost
from paretomtl.engine.kernels.stacked_layers import StackedLayers
from paretomtl.engine.models.base import Models
from paretomtl.engine.models.flat_memory import ModelState, make_blocks
from paretomtl.engine.models.modules import copy_template, own_tensors
from paretomtl.problems import Problem

_NOTHING: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
_BLOCK = 1 << 23  # numbers; with more, an operation takes longer than its launch


class Stack(Models):
    """K models as stacked parameters and buffers ``[K, ...]``.

    Frozen parameters that all models hold once are those of the template. What they compute of a batch alone is
    computed once for all models.

    Args:
        problem: whose losses they have.
        modules: the K models; the first becomes the template that the stack is run through.
        compiler: arguments of ``torch.compile``; None does not compile.
    """

    def __init__(
        self, problem: Problem, modules: Sequence[nn.Module], compiler: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(problem, modules[0])
        self.count = len(modules)
        wanted = {name for name, p in self.module.named_parameters() if p.requires_grad}
        tensors = [own_tensors(module) for module in modules]
        stacked = {name: torch.stack([each[name].detach() for each in tensors]) for name in tensors[0]}
        buffers = {name for name, _ in self.module.named_buffers()}
        self.buffers = {name: stacked.pop(name) for name in list(stacked) if name in buffers}
        self.parameters = {name: tensor.requires_grad_(name in wanted) for name, tensor in stacked.items()}
        self._blocks = make_blocks(self.parameters) if _pays_as_block(self.parameters) else []
        for block in self._blocks:
            self.parameters |= {name: t.requires_grad_(name in wanted) for name, t in block.views().items()}
        self.trained = {name: tensor for name, tensor in self.parameters.items() if name in wanted}
        self.randomness = "different"
        self._compiled = None if compiler is None else torch.compile(self._vmapped, **compiler)

    def forward(self, batch: Any) -> tuple[Tensor, Any]:
        with self._kernels(), unchanged(batch):
            losses, outputs = (self._compiled or self._vmapped)(self.parameters, self.buffers, batch)
        return losses, outputs

    def extract(self, k: int, *, frozen: bool = False) -> nn.Module:
        module = copy_template(self.module, frozen=frozen)
        load_tensors(module, {name: tensor[k] for name, tensor in self.tensors().items()})
        return module

    def tensors(self) -> ModelState:
        tensors = {name: tensor.detach() for name, tensor in (self.parameters | self.buffers).items()}
        return ModelState(self._blocks, tensors)

    def live_buffers(self) -> list[Tensor]:
        return [buffer.detach() for buffer in self.buffers.values()]

    @contextlib.contextmanager
    def _kernels(self) -> Iterator[None]:
        """Plain attention, layers made for stacks on a GPU, and convolutions under autocast.

        Fused attention kernels do not support vmap on a CPU, and fail on misaligned strides on a GPU.
        """
        kind, plain = next(iter(self.trained.values())).device.type, self._compiled is None
        layers = StackedLayers() if plain and kind != "cpu" else _NOTHING
        low = _LowConvolutions(kind) if plain and torch.is_autocast_enabled(kind) else _NOTHING
        with sdpa_kernel(SDPBackend.MATH), layers, low:
            yield

    def _vmapped(self, parameters: dict[str, Tensor], buffers: dict[str, Tensor], batch: Any) -> tuple[Tensor, Any]:
        def one(parameters: dict[str, Tensor], buffers: dict[str, Tensor]) -> tuple[Tensor, Any]:
            renamed = {f"model.{name}": tensor for name, tensor in (parameters | buffers).items()}
            losses, outputs = functional_call(self._runner, renamed, (batch,))
            return losses, _plain(outputs, wanted=bool(self.problem.metrics))

        results: tuple[Tensor, Any] = vmap(one, randomness=self.randomness)(parameters, buffers)
        return results

    def _capture(self, output: Tensor) -> Tensor:
        captured: Tensor = _Capture.apply(output, self.captured.append)  # type: ignore[no-untyped-call]
        return captured


class _LowConvolutions(TorchFunctionMode):
    """Convolutions under autocast: vmap rewrites them, so that autocast passes over them on a CPU.

    Their results have the dtype of the inputs there, as other layers cannot mix dtypes under vmap. On a GPU, inputs
    that a frozen part made in low precision get the dtype of the stacked weights.
    """

    _FUNCTIONS = (
        *(nn.functional.conv1d, nn.functional.conv2d, nn.functional.conv3d),
        *(nn.functional.conv_transpose1d, nn.functional.conv_transpose2d, nn.functional.conv_transpose3d),
    )

    def __init__(self, device: str) -> None:
        super().__init__()
        self._device = device

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func not in self._FUNCTIONS or not torch.is_autocast_enabled(self._device):
            return func(*args, **kwargs)
        x, weight = [*args, *(kwargs[name] for name in ("input", "weight") if name in kwargs)][:2]
        dtype = torch.get_autocast_dtype("cpu") if self._device == "cpu" else weight.dtype
        args, kwargs = map_tensors(lambda tensor: tensor.to(dtype), [list(args), dict(kwargs)])
        return func(*args, **kwargs).to(x.dtype)


class _Capture(torch.autograd.Function):
    """Exposes a representation as it is outside of vmap, with the models in front."""

    @staticmethod
    def forward(x: Tensor, keep: Callable[[Tensor], None]) -> Tensor:
        raise RuntimeError("the representation must depend on the parameters of the models.")

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int, None], x: Tensor, keep: Callable[[Tensor], None]) -> tuple[Tensor, int]:
        x = x.movedim(in_dims[0], 0)
        keep(x)
        return x.clone(), 0


def _pays_as_block(parameters: Mapping[str, Tensor]) -> bool:
    """Whether a block saves time: on a GPU, for small parameters of one dtype, where launches dominate."""
    tensors = list(parameters.values())
    small = sum(tensor.numel() for tensor in tensors) <= _BLOCK
    return launches_cost(tensors[0]) and len({tensor.dtype for tensor in tensors}) == 1 and small


def _plain(outputs: Any, wanted: bool) -> Any:
    """Outputs as tuples, lists and dictionaries of tensors, which vmap can return."""
    if isinstance(outputs, Tensor):
        return outputs
    if isinstance(outputs, Mapping):
        return {name: _plain(part, wanted) for name, part in outputs.items()}
    if isinstance(outputs, (tuple, list)):
        return tuple(_plain(part, wanted) for part in outputs)
    if wanted and outputs is not None:
        raise TypeError(f"metrics of stacked models need outputs made of tensors. Got {type(outputs).__name__}.")
    return ()
