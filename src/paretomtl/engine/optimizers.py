"""Optimizers of torch.optim: which ones can be stacked, which ones can be captured."""

from __future__ import annotations

import torch

CAPTURABLE = {
    torch.optim.SGD: {"fused": True, "foreach": False},
    torch.optim.Adam: {"fused": True, "foreach": False, "capturable": True},
    torch.optim.AdamW: {"fused": True, "foreach": False, "capturable": True},
    torch.optim.Adamax: {"capturable": True},
    torch.optim.NAdam: {"capturable": True},
    torch.optim.RAdam: {"capturable": True},
    torch.optim.RMSprop: {"capturable": True},
    torch.optim.Adadelta: {"capturable": True},
    torch.optim.Rprop: {"capturable": True},
}
"""Optimizers that can be captured, and the options that allow it."""

RATE_ON_DEVICE = (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW)
"""Optimizers whose fused steps read a learning rate in float32 from the device."""


def reads_rate_on_device(optimizer: torch.optim.Optimizer) -> bool:
    """Whether the fused step of this optimizer reads its learning rate from the device."""
    tensors = [tensor for part in optimizer.param_groups for tensor in part["params"]]
    return isinstance(optimizer, RATE_ON_DEVICE) and all(tensor.dtype == torch.float32 for tensor in tensors)


def make_capturable(optimizer: torch.optim.Optimizer) -> None:
    """Set the options of an optimizer that allow its step to be captured."""
    for part in optimizer.param_groups:
        part.update(CAPTURABLE[type(optimizer)])


ELEMENTWISE = (
    torch.optim.SGD,
    torch.optim.Adam,
    torch.optim.AdamW,
    torch.optim.Adamax,
    torch.optim.NAdam,
    torch.optim.RAdam,
    torch.optim.RMSprop,
    torch.optim.Adagrad,
    torch.optim.Adadelta,
    torch.optim.Rprop,
)
"""Optimizers of torch.optim that work elementwise: a stack of models trains as the models would alone."""
