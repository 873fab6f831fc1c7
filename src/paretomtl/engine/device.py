"""The device that models are trained on."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path

import torch

from paretomtl._support.argument_checks import quote
from paretomtl.engine.processes import ProcessGroup, local_device


def free_memory(device: torch.device) -> float:
    """How many bytes of a device's memory are free; infinite where that is not known."""
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + unused
    free = [math.inf]
    with contextlib.suppress(OSError, ValueError):
        free.append(1024 * _number_after("MemAvailable:", "/proc/meminfo"))
    with contextlib.suppress(OSError, ValueError):  # of a container; files that were read can be dropped from memory
        limit, used = (int(Path(f"/sys/fs/cgroup/memory.{name}").read_text("ascii")) for name in ("max", "current"))
        free.append(limit - used + _number_after("inactive_file", "/sys/fs/cgroup/memory.stat"))
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # absent on Windows

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        taken = 1024 * _number_after("VmSize:", "/proc/self/status")
        free.append(math.inf if limit == resource.RLIM_INFINITY else limit - taken)
    return min(free)


def _number_after(name: str, path: str) -> int:
    words = Path(path).read_text("utf-8").split()
    return int(words[words.index(name) + 1])


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
        why = str(error).splitlines()[0].rstrip(".")[:200]
        raise ValueError(
            f"'device' must be available. Got {quote(device)}: {why}. Available: {', '.join(_devices())}. Leave "
            "'device' out to use the GPU if there is one."
        ) from None
    return chosen


def _devices() -> list[str]:
    """The devices of this machine."""
    if not torch.accelerator.is_available():
        return ["cpu"]
    kind = torch.accelerator.current_accelerator()
    assert kind is not None
    return ["cpu", *(f"{kind.type}:{i}" for i in range(torch.accelerator.device_count()))]
