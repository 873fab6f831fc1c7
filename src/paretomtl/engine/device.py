"""The device that models are trained on."""

from __future__ import annotations

import torch

from paretomtl.engine.processes import ProcessGroup, local_device


def find_device(device: torch.device | str | None, ranks: ProcessGroup) -> torch.device:
    """The device of this name, or the GPU if there is one; an error where it is not there."""
    try:
        found = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if device is None else device)
        if ranks.is_distributed and found.type == "cuda" and found.index is None:
            found = local_device()
        torch.zeros((), device=found)
        if found.type == "meta":
            raise RuntimeError("tensors have no values there.")
    except (RuntimeError, AssertionError, TypeError) as error:
        why = str(error).splitlines()[0].rstrip(".")
        raise ValueError(
            f"'device' must be one that is there. Got {device!r}: {why}. Here: {', '.join(_devices())}. Leave "
            "'device' out to take the GPU if there is one."
        ) from None
    return found


def _devices() -> list[str]:
    """The devices of this machine."""
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return ["cpu", *([] if found is None else [f"{found.type}:{i}" for i in range(torch.accelerator.device_count())])]
