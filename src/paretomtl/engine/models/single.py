"""One model: an ordinary module."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from paretomtl.engine.batches.structure import unchanged
from paretomtl.engine.models.base import Models
from paretomtl.engine.models.flat_memory import ModelState, make_blocks
from paretomtl.engine.models.modules import FrozenParameter, copy_template, own_tensors
from paretomtl.problems import Problem


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
        tensors = own_tensors(module)
        self._blocks = make_blocks({name: tensor.detach()[None] for name, tensor in tensors.items()}) if blocked else []
        for block in self._blocks:
            for name, view in block.views().items():
                tensors[name].data = view[0]
        self._own_buffers = list(module.buffers())
        self.trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
        self._own = {name: p for name, p in module.named_parameters() if not isinstance(p, FrozenParameter)}
        self._parameters = {name: p.detach()[None] for name, p in self._own.items()}
        self._forward = self._runner if compiler is None else torch.compile(self._runner, **compiler)

    def forward(self, batch: Any) -> tuple[Tensor, Any]:
        with unchanged(batch):
            losses, outputs = self._forward(batch)
        return losses, outputs

    def extract(self, k: int, *, frozen: bool = False) -> nn.Module:
        return copy_template(self.module, frozen=frozen)

    def tensors(self) -> ModelState:
        for name, parameter in self._own.items():
            if parameter.data_ptr() != self._parameters[name].data_ptr():  # replaced by ``weight.data = ...``
                self._parameters[name] = parameter.detach()[None]
                self._blocks = []
        buffers = dict(self.module.named_buffers())
        same = len(buffers) == len(self._own_buffers) and all(map(operator.is_, buffers.values(), self._own_buffers))
        tensors = {**self._parameters, **{name: buffer.detach()[None] for name, buffer in buffers.items()}}
        return ModelState(self._blocks if same else [], tensors)  # a buffer that was replaced lies elsewhere

    def _capture(self, output: Tensor) -> Tensor:
        self.captured.append(output)
        return output.clone()  # in-place operations of the heads must not change the captured tensor
