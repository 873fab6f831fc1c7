"""Modes of torch while models are trained or measured."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch._functorch import config as functorch_config
from torch.compiler import config as compiler_config

_CUDNN = ("conv", "rnn")  # operations whose precision cuDNN sets separately
_CACHE = "paretomtl: no donated buffers"  # torch's cache of kernels does not tell them apart


@contextlib.contextmanager
def library_modes(precision: str) -> Iterator[None]:
    """Modes of torch within, whatever the caller has set: gradients on, autocast off, and the matmul precision.

    On a GPU, float32 numbers are multiplied in TF32 under "tf32", and otherwise exactly. The first of several backward
    passes of compiled models must not overwrite what the others read.
    """
    backends: list[Any] = [torch.backends.cuda.matmul, *(getattr(torch.backends.cudnn, name) for name in _CUDNN)]
    before = [backend.fp32_precision for backend in backends]
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        tag = compiler_config.cache_key_tag.removesuffix(_CACHE) + _CACHE
        stack.enter_context(functorch_config.patch(donated_buffer=False))
        stack.enter_context(compiler_config.patch(cache_key_tag=tag))  # type: ignore[attr-defined]
        for device in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        try:
            for backend in backends:
                backend.fp32_precision = "tf32" if precision == "tf32" else "ieee"
            yield
        finally:
            for backend, value in zip(backends, before, strict=True):
                backend.fp32_precision = value
