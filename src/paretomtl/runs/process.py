"""The process that trains a run, and whether it still runs.

A process is identified by host, process ID and start time, because process IDs are reused.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def this_process() -> dict[str, Any]:
    """Return the identity of this process: host, process ID and, if the system reports it, start time."""
    known = _looked_up(os.getpid())
    return {"host": socket.gethostname(), "pid": os.getpid(), "began": None if known is None else known[1]}


def is_running(process: Mapping[str, Any]) -> bool | None:
    """Whether a process that a "start" or "resume" event of a log names is still running.

    None if that is unknown: for a process on another machine, and on systems other than POSIX.

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
    """Return the state of a process and its start time in ticks since boot; None if the system does not report them."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return fields[0], fields[19]
    except (OSError, IndexError):
        return None
