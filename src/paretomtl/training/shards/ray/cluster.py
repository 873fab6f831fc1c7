"""The connection to a Ray cluster, or to a local Ray on this machine; the resources of its workers."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import Any

_PROBE = """
import sys, ray
ray.init(address=sys.argv[1], log_to_driver=False, configure_logging=False)
ray.shutdown()
"""
_PORT = 6379
_CLIENT_PORT = 10001


def connect(ray: Any, address: str | None, timeout: float) -> bool:
    """Connect this process to Ray, if it is not.

    Args:
        ray: the module.
        address: of a cluster; None for the one that this process is connected to, or otherwise a local one.
        timeout: seconds to wait for an answer.

    Returns:
        Whether the caller must disconnect at the end.
    """
    if ray.is_initialized():
        return False
    quiet = {"log_to_driver": False, "logging_level": "error"}
    if address is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        ray.init(address="local", num_cpus=cores, include_dashboard=False, **quiet)
        return True
    if address != "auto":
        _knock(address, timeout)
    _probe(address, timeout)
    ray.init(address=address, **quiet)
    return True


def resources_of(ray: Any) -> list[dict[str, float]]:
    """The resources of each living machine of the cluster, busy or not."""
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def _knock(address: str, timeout: float) -> None:
    """Check that a process listens at an address."""
    scheme, has_scheme, rest = address.partition("://")
    place = rest if has_scheme else address
    host, _, port = place.partition(":")
    try:
        number = int(port or (_CLIENT_PORT if has_scheme else _PORT))
        if not host or (has_scheme and scheme != "ray"):
            raise ValueError
    except ValueError:
        raise ValueError(
            f"'address' must be HOST:PORT, ray://HOST:PORT or \"auto\". Got {address!r} instead."
        ) from None
    try:
        socket.create_connection((host, number), timeout=timeout).close()
    except OSError as error:
        raise ValueError(
            f"'address' must be that of a Ray cluster that answers. Got {address!r}: {error}. Start one there with "
            f"'ray start --head --port={number}', or leave the address out for a Ray on this machine."
        ) from None


def _probe(address: str, timeout: float) -> None:
    """Connect from a separate process first: a connection that fails may end the process, or never answer."""
    command = [sys.executable, "-c", _PROBE, address]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        raise ValueError(
            f"'address' must be that of a Ray cluster that answers. Got {address!r}, where nothing was heard for "
            f"{timeout:g} s."
        ) from None
    if process.returncode == 0:
        return
    lines = [line.strip() for line in process.stderr.splitlines() if line.strip()]
    for i, line in enumerate(lines):
        if "Version mismatch" in line:
            raise ValueError(
                f"'address' must be that of a cluster with the same Ray and Python. {' '.join(lines[i : i + 7])} "
                "Install the same versions here and there."
            )
    last = next((line for line in reversed(lines) if "Error" in line), lines[-1] if lines else "no answer")
    raise ValueError(f"'address' must be that of a Ray cluster that answers. Got {address!r}: {last}")
