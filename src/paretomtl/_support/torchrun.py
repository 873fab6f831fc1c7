"""The environment that torchrun sets, read without torch."""

from __future__ import annotations

import os


def is_torchrun() -> bool:
    """Whether torchrun, or a launcher like it, started this process as one of several."""
    return "RANK" in os.environ and int(os.environ.get("WORLD_SIZE", "1")) > 1
