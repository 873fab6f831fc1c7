"""Dropout switched off, so that two trials can be compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode


class NoDropout(TorchFunctionMode):
    """A mode in which dropout is a no-op, in layers, functions and attention.

    Hooks of activations are refused: vmap would never run them, and the gradients of one step need not show it.
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
