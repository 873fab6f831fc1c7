"""K models of one architecture: one ordinary module, or a stack. The only place that knows vmap."""

from __future__ import annotations

import contextlib
import copy
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.parameter import is_lazy
from torch.overrides import TorchFunctionMode

from paretomtl._support.random_state import isolated_randomness, seed_everything
from paretomtl.engine.data.batches import map_tensors, unchanged
from paretomtl.engine.gradients import launches_cost
from paretomtl.engine.kernels.stacked_layers import StackedLayers
from paretomtl.engine.models.flat_memory import FlatBlock, ModelState, in_blocks
from paretomtl.engine.models.module_checks import check_hooks, check_shapes, settle_modes, why_untrained
from paretomtl.engine.processes import check_unwrapped
from paretomtl.problems import Problem

_NOTHING: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
_BLOCK = 1 << 23  # numbers; with more, an operation takes longer than its launch
_LOW = (torch.bfloat16, torch.float16)  # what autocast makes of outputs


class Models(ABC):
    """K models, their losses on a batch, and their parameters and buffers.

    Attributes:
        count: K.
        trained: the parameters to train, by name, as the optimizer gets them.
        captured: the shared representations of the last forward pass, where the problem names their module.
        hook: what captures them.
    """

    count: int
    trained: dict[str, Tensor]

    def __init__(self, problem: Problem, module: nn.Module) -> None:
        self.problem = problem
        self.module = module
        self.captured: list[Tensor] = []
        self._capturing = False
        self._runner = ModelWithLosses(problem, module)
        self.hook = self._hook()

    @abstractmethod
    def forward(self, batch: Any) -> tuple[Tensor, Any]:
        """Losses, ``[K, m]`` for a stack and ``[m]`` for one model, attached to the graph; and outputs alike."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """All parameters and buffers with a leading K, by name, detached; what is written to them stays."""

    def held(self) -> list[Tensor]:
        """The buffers, which forward passes may change, as they lie in memory."""
        return [buffer.detach() for buffer in self.module.buffers()]

    def losses(self, batch: Any) -> Tensor:
        """The losses of a forward pass."""
        self.captured.clear()
        self._capturing = True
        try:
            return self.forward(batch)[0]
        finally:
            self._capturing = False

    def blocks(self) -> list[FlatBlock]:
        """The pieces of memory that hold some or all of :meth:`tensors`."""
        return []

    def copy(self) -> ModelState:
        """The values of all parameters and buffers, by name."""
        return self._now().copy()

    def remember(self, kept: ModelState) -> None:
        """Write all values to what :meth:`copy` returned, in place."""
        now = self._now()
        for name, tensor in now.items():  # a buffer that was made, or grew, in the forward pass
            if name not in kept or kept[name].shape != tensor.shape:
                kept[name] = tensor.clone()
        kept.write(now)

    def restore(self, rows: Tensor, values: Mapping[str, Tensor]) -> None:
        """Put the models in ``rows [K]`` bool back to earlier values."""
        self._now().write(values, rows)

    def _now(self) -> ModelState:
        return ModelState(self.blocks(), self.tensors())

    @contextlib.contextmanager
    def evaluating(self) -> Iterator[None]:
        """Eval mode within; every module then has its own mode again."""
        modes = {module: module.training for module in self.module.modules()}
        fast = torch.backends.mha.get_fastpath_enabled()
        self.module.eval()
        torch.backends.mha.set_fastpath_enabled(False)  # attention's kernel for inference knows no vmap
        try:
            yield
        finally:
            torch.backends.mha.set_fastpath_enabled(fast)
            for module, mode in modes.items():
                module.training = mode

    def _hook(self) -> torch.utils.hooks.RemovableHandle | None:
        name = self.problem.representation
        if name is None:
            return None
        modules = dict(self.module.named_modules())
        if not name or name not in modules:
            known = [each for each in modules if each][:6]
            raise ValueError(
                f"'representation' must name a submodule of the model. Got {name!r} instead: it has {known}."
            )

        def keep(module: nn.Module, inputs: Any, output: Any) -> Any:
            if not self._capturing:
                return output
            if not isinstance(output, Tensor):
                raise TypeError(
                    f"'representation' must name a submodule that returns a tensor. {name!r} returned a "
                    f"{type(output).__name__}."
                )
            return self._capture(output)

        handle: torch.utils.hooks.RemovableHandle = modules[name].register_forward_hook(keep)
        return handle

    @abstractmethod
    def _capture(self, output: Tensor) -> Tensor:
        """Keep a representation where autograd can be asked for its gradients; what goes on to the heads."""


class Single(Models):
    """One ordinary module.

    Args:
        problem: whose losses it has.
        module: the model.
        compiler: arguments of ``torch.compile``; None does not compile.
        blocked: move its parameters and buffers into blocks, for a forward pass that does not replace any.
    """

    count = 1

    def __init__(
        self,
        problem: Problem,
        module: nn.Module,
        compiler: Mapping[str, Any] | None = None,
        *,
        blocked: bool = False,
    ) -> None:
        super().__init__(problem, module)
        tensors = named_tensors(module)
        self._blocks = in_blocks({name: tensor.detach()[None] for name, tensor in tensors.items()}) if blocked else []
        for block in self._blocks:
            for name, view in block.views().items():
                tensors[name].data = view[0]
        self._own_buffers = list(module.buffers())
        self.trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
        self._own = dict(module.named_parameters())
        self._parameters = {name: p.detach()[None] for name, p in self._own.items()}
        self._forward = self._runner if compiler is None else torch.compile(self._runner, **compiler)

    def forward(self, batch: Any) -> tuple[Tensor, Any]:
        with unchanged(batch):
            losses, outputs = self._forward(batch)
        return losses, outputs

    def tensors(self) -> dict[str, Tensor]:
        self._follow()
        buffers = {name: buffer.detach()[None] for name, buffer in self.module.named_buffers()}
        return {**self._parameters, **buffers}

    def _follow(self) -> None:
        """Look where the parameters are: a forward pass may have put another tensor there (``weight.data = ...``)."""
        for name, parameter in self._own.items():
            if parameter.data_ptr() != self._parameters[name].data_ptr():
                self._parameters[name] = parameter.detach()[None]
                self._blocks = []

    def blocks(self) -> list[FlatBlock]:
        if not self._blocks:
            return []
        self._follow()
        buffers = list(self.module.buffers())
        same = len(buffers) == len(self._own_buffers) and all(map(operator.is_, buffers, self._own_buffers))
        return self._blocks if same else []  # a buffer that was replaced lies elsewhere

    def _capture(self, output: Tensor) -> Tensor:
        self.captured.append(output)
        return output.clone()  # in-place operations of the heads must not reach what was kept


class Stack(Models):
    """K models as stacked parameters and buffers ``[K, ...]``.

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
        self.parameters: dict[str, Tensor]
        self.parameters, self.buffers = stack_module_state(list(modules))
        wanted = {name for name, p in self.module.named_parameters() if p.requires_grad}
        self._blocks = in_blocks(self.parameters) if _worth_a_block(self.parameters) else []
        for block in self._blocks:
            self.parameters |= {name: t.requires_grad_(name in wanted) for name, t in block.views().items()}
        self.trained = {name: tensor for name, tensor in self.parameters.items() if name in wanted}
        self.randomness = "different"
        self._compiled = None if compiler is None else torch.compile(self._vmapped, **compiler)

    def forward(self, batch: Any) -> tuple[Tensor, Any]:
        with self._kernels(), unchanged(batch):
            losses, outputs = (self._compiled or self._vmapped)(self.parameters, self.buffers, batch)
        return losses, outputs

    def tensors(self) -> dict[str, Tensor]:
        return {name: tensor.detach() for name, tensor in (self.parameters | self.buffers).items()}

    def blocks(self) -> list[FlatBlock]:
        return self._blocks

    def held(self) -> list[Tensor]:
        return [buffer.detach() for buffer in self.buffers.values()]

    @contextlib.contextmanager
    def _kernels(self) -> Iterator[None]:
        """Plain attention, as fused kernels know no vmap or fail under it; on a GPU, layers made for stacks."""
        on_gpu = next(iter(self.trained.values())).device.type != "cpu"
        with sdpa_kernel(SDPBackend.MATH), StackedLayers() if on_gpu and not self._compiled else _NOTHING:
            yield

    def _vmapped(self, parameters: dict[str, Tensor], buffers: dict[str, Tensor], batch: Any) -> tuple[Tensor, Any]:
        def one(parameters: dict[str, Tensor], buffers: dict[str, Tensor]) -> tuple[Tensor, Any]:
            renamed = {f"model.{name}": tensor for name, tensor in (parameters | buffers).items()}
            losses, outputs = functional_call(self._runner, renamed, (batch,))
            return losses, _plain(outputs, wanted=bool(self.problem.metrics))

        found: tuple[Tensor, Any] = vmap(one, randomness=self.randomness)(parameters, buffers)
        return found

    def _capture(self, output: Tensor) -> Tensor:
        captured: Tensor = _Capture.apply(output, self.captured.append)  # type: ignore[no-untyped-call]
        return captured


class ModelWithLosses(nn.Module):
    """The model together with its losses, so that the general form may use any part of the model."""

    def __init__(self, problem: Problem, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self._problem = problem

    def forward(self, batch: Any) -> tuple[Tensor, Any]:
        return self._problem.run(self.model if self._problem.takes_model else self._widened, batch)

    def _widened(self, *inputs: Any) -> Any:
        """The model's outputs in float32 or better, as a mean of years in bfloat16 is good to two digits only."""
        outputs = self.model(*inputs)
        if isinstance(outputs, (Tensor, tuple, list)) or type(outputs) is dict:  # others may not be made anew
            return map_tensors(lambda x: x.float() if x.dtype in _LOW else x, outputs)
        return outputs


class _Capture(torch.autograd.Function):
    """Hands out a representation as it is outside of vmap, with the models in front."""

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


class NoDropout(TorchFunctionMode):
    """Dropout lets everything pass within, in layers, functions and attention.

    A hook of an activation is refused: vmap would never run it, which the gradients of one step need not show.
    """

    _DROPOUTS = (
        torch.nn.functional.dropout,
        torch.nn.functional.dropout1d,
        torch.nn.functional.dropout2d,
        torch.nn.functional.dropout3d,
        torch.nn.functional.alpha_dropout,
        torch.nn.functional.feature_alpha_dropout,
        torch.dropout,
    )

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func is Tensor.register_hook:
            raise RuntimeError("gradients go through hooks of activations, which a stack would not run")
        if func in self._DROPOUTS:
            return args[0] if args else kwargs["input"]
        if func is torch.nn.functional.scaled_dot_product_attention:
            kwargs["dropout_p"] = 0.0
            args = (*args[:4], 0.0, *args[5:]) if len(args) > 4 else args
            if len(args) > 4:
                del kwargs["dropout_p"]
        return func(*args, **kwargs)


def make_modules(problem: Problem, seeds: Sequence[int], device: torch.device, dtype: torch.dtype) -> list[nn.Module]:
    """One model per random state, checked to be models of one architecture with something to train."""
    modules: list[nn.Module] = []
    with isolated_randomness():
        for seed in seeds:
            seed_everything(seed)
            module = problem.model()
            if not isinstance(module, nn.Module):
                raise TypeError(f"'model' must make an nn.Module. Got {type(module).__name__} instead.")
            check_unwrapped(module)
            if any(module is other for other in modules):
                raise ValueError(
                    "'model' must make a new module at each call. Got the same one twice: return copy.deepcopy(model)."
                )
            lazy = [name for name, tensor in named_tensors(module).items() if is_lazy(tensor)]
            if lazy:
                raise ValueError(
                    f"'model' must make modules whose parameters have their shapes. Got lazy ones, {lazy[:5]}: let the "
                    "factory call the module once, on a batch of zeros."
                )
            complex_ones = [name for name, tensor in named_tensors(module).items() if tensor.is_complex()]
            if complex_ones:
                raise TypeError(
                    f"'model' must have real parameters and buffers. Got complex ones, {complex_ones[:5]}: keep real "
                    "and imaginary parts (torch.view_as_real) instead."
                )
            check_hooks("model", module.named_parameters())
            settle_modes(module)
            modules.append(module.to(device=device, dtype=dtype))
    if not any(p.requires_grad for p in modules[0].parameters()):
        raise ValueError(f"'model' must have parameters to train. Got none{why_untrained(modules[0])}.")
    check_shapes([{name: list(tensor.shape) for name, tensor in named_tensors(module).items()} for module in modules])
    return modules


def copy_module(module: nn.Module) -> nn.Module:
    """A copy for trials; a ValueError for a module that cannot be copied."""
    try:
        return copy.deepcopy(module)
    except Exception as error:
        raise ValueError(
            f"'model' must make modules that can be copied (copy.deepcopy), for trials. Got one that cannot: {error} "
            "In place of torch.nn.utils.weight_norm, take torch.nn.utils.parametrizations.weight_norm."
        ) from error


def named_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name."""
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _worth_a_block(parameters: Mapping[str, Tensor]) -> bool:
    """Not on a CPU, for parameters of several kinds, and for so many that operations are not what costs."""
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
