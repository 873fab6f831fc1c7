"""K models of one architecture: the interface that the engine uses.

The shared representation is captured by a hook on its submodule. Under vmap, an autograd function with its own vmap
rule exposes the tensor as it is outside, with the models in front. Gradients can then be taken with respect to it.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from paretomtl._support.argument_checks import quote
from paretomtl.engine.batches.structure import map_tensors
from paretomtl.engine.models.flat_memory import ModelState
from paretomtl.problems import Problem

_LOW = (torch.bfloat16, torch.float16)  # dtypes of outputs under autocast


class Models(ABC):
    """K models, their losses on a batch, and their parameters and buffers.

    Attributes:
        count: K.
        trained: the parameters to train, by name, as the optimizer gets them.
        captured: the shared representations of the last forward pass, where the problem names their module.
        hook: the hook that captures them.
    """

    count: int
    trained: dict[str, Tensor]

    def __init__(self, problem: Problem, module: nn.Module) -> None:
        self.problem = problem
        self.module = module
        self.captured: list[Tensor] = []
        self._capturing = False
        self._runner = ModelWithLosses(problem, module)
        self.hook = self._add_hook()

    @functools.cached_property
    def in_trunk(self) -> list[bool]:
        """Which of the trained parameters the Gramian is taken over; fixed from the first step on."""
        return [self.problem.is_shared(name) for name in self.trained]

    @abstractmethod
    def forward(self, batch: Any) -> tuple[Tensor, Any]:
        """Losses, ``[K, m]`` for a stack and ``[m]`` for one model, attached to the graph; and the outputs."""

    @abstractmethod
    def tensors(self) -> ModelState:
        """Parameters and buffers with a leading K, by name, detached; writes to them change the models.

        Frozen parameters that all models of the run hold once are not among them: nothing changes them.
        """

    @abstractmethod
    def extract(self, k: int, *, frozen: bool = False) -> nn.Module:
        """A copy of model k as an ordinary module; with ``frozen``, also of what all models hold once."""

    def live_buffers(self) -> list[Tensor]:
        """The buffers themselves, which forward passes may change."""
        return [buffer.detach() for buffer in self.module.buffers()]

    def losses(self, batch: Any) -> Tensor:
        """The losses of a forward pass."""
        self.captured.clear()
        self._capturing = True
        try:
            return self.forward(batch)[0]
        finally:
            self._capturing = False

    def copy(self) -> ModelState:
        """The values of parameters and buffers, by name."""
        return self.tensors().copy()

    def restore(self, rows: Tensor, values: Mapping[str, Tensor]) -> None:
        """Restore earlier values of the models in ``rows [K]`` bool."""
        self.tensors().write(values, rows)

    @contextlib.contextmanager
    def evaluating(self) -> Iterator[None]:
        """Eval mode within; afterwards every module has its previous mode."""
        modes = {module: module.training for module in self.module.modules()}
        fast = torch.backends.mha.get_fastpath_enabled()
        self.module.eval()
        torch.backends.mha.set_fastpath_enabled(False)  # the inference kernel of attention does not support vmap
        try:
            yield
        finally:
            torch.backends.mha.set_fastpath_enabled(fast)
            for module, mode in modes.items():
                module.training = mode

    def _add_hook(self) -> torch.utils.hooks.RemovableHandle | None:
        name = self.problem.representation
        if name is None:
            return None
        modules = dict(self.module.named_modules())
        if not name or name not in modules:
            known = [each for each in modules if each][:6]
            raise ValueError(
                f"'representation' must name a submodule of the model. Got {quote(name)} instead: it has {known}."
            )

        def keep(module: nn.Module, inputs: Any, output: Any) -> Any:
            if not self._capturing:
                return output
            return change_tensor(name, output, self._capture)

        handle: torch.utils.hooks.RemovableHandle = modules[name].register_forward_hook(keep)
        return handle

    @abstractmethod
    def _capture(self, output: Tensor) -> Tensor:
        """Keep a representation whose gradients autograd can take; return the tensor for the heads."""


def change_tensor(name: str, output: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The output of the representation's module with a changed tensor: itself, or the only one in a dictionary."""
    if isinstance(output, Tensor):
        return change(output)
    parts = dict(output) if isinstance(output, Mapping) else {}
    if len(parts) == 1 and isinstance(next(iter(parts.values())), Tensor):
        changed: Any = copy.copy(output)  # of its own class, such as those of Hugging Face
        ((key, tensor),) = parts.items()
        changed[key] = change(tensor)
        return changed
    among = f" with {list(parts)}" if parts else ""
    raise TypeError(
        f"'representation' must name a submodule that returns one tensor. {name!r} returned a "
        f"{type(output).__name__}{among}: let a module of your own call it and return the tensor that the heads take, "
        "and name that."
    )


class ModelWithLosses(nn.Module):
    """The model together with its losses, so that the general form may use any part of the model."""

    def __init__(self, problem: Problem, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self._problem = problem

    def forward(self, batch: Any) -> tuple[Tensor, Any]:
        return self._problem.run(self.model if self._problem.takes_model else self._widened, batch)

    def _widened(self, *inputs: Any) -> Any:
        """The model's outputs in float32 or better, because a mean of years in bfloat16 has only two correct digits."""
        outputs = self.model(*inputs)
        if isinstance(outputs, Tensor):
            return outputs.float() if outputs.dtype in _LOW else outputs
        if isinstance(outputs, (tuple, list)) or type(outputs) is dict:  # other types may lack such a constructor
            return map_tensors(lambda x: x.float() if x.dtype in _LOW else x, outputs)
        return outputs
