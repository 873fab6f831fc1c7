"""Checkpoint files: how they are written and read, and which run they belong to.

A checkpoint is one file of tensors with everything else as JSON in its header. It is whole or absent, has a checksum,
and nothing in it is pickled. It is written between steps only. The random states of torch, NumPy and Python are in it;
the order of samples follows from seed and epoch.

A run has a random identity, drawn when it begins and stored in its configuration and in each checkpoint. A digest of
the configuration would be the same for two runs with the same settings, and is not known yet when the first checkpoint
is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor

from paretomtl._support.files.atomic_files import check_format, parse_json
from paretomtl._support.files.state_packing import pack, unpack
from paretomtl._support.files.tensor_files import read_tensors, write_tensors

FORMAT = 3
"""The version of a run's configuration and of its checkpoints."""

CHECKPOINT, PREVIOUS = "checkpoint.safetensors", "checkpoint-previous.safetensors"
IDENTITY = "run"
"""The key of the run's identity in its configuration and its checkpoints."""

_COUNTS = 2**63  # upper bound of the counters in a checkpoint


def write_checkpoint(folder: Path, state: Mapping[str, Any], identity: str | None) -> None:
    """Store a checkpoint of a run in its folder, and keep the last one as the previous one."""
    tensors: dict[str, Tensor] = {}
    packed = pack(dict(state), tensors)
    meta = {"kind": "checkpoint", "format": str(FORMAT), "state": json.dumps(packed)}
    meta |= {} if identity is None else {IDENTITY: identity}
    write_tensors(folder / CHECKPOINT, tensors, meta, folder / PREVIOUS)


def identity_of(config: Mapping[str, Any]) -> str | None:
    """Return the identity of a configuration's run; None for a configuration of an earlier version."""
    identity = config.get(IDENTITY)
    return identity if isinstance(identity, str) else None


def read_checkpoint(path: Path, identity: str | None = None) -> dict[str, Any]:
    """Read a checkpoint onto the CPU; a ValueError names a file that is damaged or of another kind.

    Args:
        path: the file.
        identity: the identity of the run that it must belong to; None for any run.
    """
    tensors, meta = read_tensors(path)
    if meta.get("kind") != "checkpoint":
        raise ValueError(f"'{path}' must be a checkpoint. Got {meta.get('kind')!r:.40} instead.")
    number = meta.get("format", "")
    check_format(path, int(number) if re.fullmatch("[0-9]{1,9}", number) else number[:40], [FORMAT])
    if identity is not None and meta.get(IDENTITY) != identity:
        raise ValueError(f"'{path}' must be a checkpoint of this run. It is whole, but belongs to another run.")
    packed = parse_json(meta.get("state", "").encode(), f"'{path}'")
    try:
        state: dict[str, Any] = unpack(packed, tensors)
        counts = {name: state[name] for name in ("epoch", "step", "number")}
        if not all(isinstance(count, int) and 0 <= count < _COUNTS for count in counts.values()):
            raise ValueError(f"invalid counters: {counts!s:.200}")
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError, ArithmeticError) as error:
        raise ValueError(f"'{path}' must describe the state of a run. It is damaged: {error!r}.") from None
    return state


@contextmanager
def explain_mismatch(path: Path) -> Iterator[None]:
    """Turn errors caused by a whole file of another run into a ValueError that names the file."""
    try:
        yield
    except (ArithmeticError, ValueError, TypeError, LookupError, AttributeError, RuntimeError) as error:
        raise ValueError(
            f"'{path}' must be of this run to resume it. It does not fit: {error!r}. Take another folder."
        ) from None
