"""The device that models are trained on."""

from __future__ import annotations

import torch

from paretomtl.engine.processes import ProcessGroup, local_device


def find_device(device: torch.device | str | None, processes: ProcessGroup) -> torch.device:
    """Return the named device, or by default the GPU if there is one; raise an error if it is not available."""
    try:
        chosen = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if device is None else device)
        if processes.is_distributed and chosen.type == "cuda" and chosen.index is None:
            chosen = local_device()
        torch.zeros((), device=chosen)
        if chosen.type == "meta":
            raise RuntimeError("tensors have no values there.")
    except (RuntimeError, AssertionError, TypeError) as error:
        why = str(error).splitlines()[0].rstrip(".")
        raise ValueError(
            f"'device' must be available. Got {device!r}: {why}. Available: {', '.join(_devices())}. Leave 'device' "
            "out to use the GPU if there is one."
        ) from None
    return chosen


def _devices() -> list[str]:
    """The devices of this machine."""
    if not torch.accelerator.is_available():
        return ["cpu"]
    kind = torch.accelerator.current_accelerator()
    assert kind is not None
    return ["cpu", *(f"{kind.type}:{i}" for i in range(torch.accelerator.device_count()))]
