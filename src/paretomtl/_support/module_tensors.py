"""The tensors of a module: values for its parameters and buffers, by name."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn


@torch.no_grad()
def load_tensors(module: nn.Module, tensors: Mapping[str, Tensor]) -> list[str]:
    """Copy values into the parameters and buffers of these names; return the names that do not fit."""
    for name in tensors:  # buffers that a forward pass created
        owner, _, leaf = name.rpartition(".")
        try:
            buffers = module.get_submodule(owner)._buffers
        except AttributeError:
            continue
        if leaf in buffers and buffers[leaf] is None:
            buffers[leaf] = tensors[name].clone()
    own = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    wrong = [name for name in {*own, *tensors} if name not in own or name not in tensors]
    wrong += [name for name in own if name in tensors and own[name].shape != tensors[name].shape]
    for name, tensor in own.items():
        if name not in wrong:
            tensor.copy_(tensors[name])
    return sorted(wrong)
