"""The process that trains a run, and whether it still runs.

A process is known by host, number and the moment it began, because numbers are reused.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def this_process() -> dict[str, Any]:
    """The identity of this process: host, number, and when it began, where the system says so."""
    known = _looked_up(os.getpid())
    return {"host": socket.gethostname(), "pid": os.getpid(), "began": None if known is None else known[1]}


def is_running(process: Mapping[str, Any]) -> bool | None:
    """Whether a process, as the lines "start" and "resume" of a log name it, is still there.

    None where that is not known: for a process on another machine, and on systems other than POSIX.

    Example:
        >>> is_running(this_process()) in (True, None)
        True
    """
    pid = process.get("pid")
    if os.name != "posix" or process.get("host") != socket.gethostname() or type(pid) is not int or pid <= 0:
        return None
    known = _looked_up(pid)
    if known is not None:
        state, began = known
        return state not in "ZX" and process.get("began") in (None, began)
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _looked_up(pid: int) -> tuple[str, str] | None:
    """The state of a process and when it began, in ticks since the system did; None where nothing says so."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return words[0], words[19]
    except (OSError, IndexError):
        return None
