"""The power goes, the disk fills up, the process is killed, at any write of a run: a sample of stress/faults.py."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from _helpers.faults import Call, Disk, Fault, Watch
from _helpers.places import HELPERS, TESTS

WRITE = [Call("open", "a"), Call("write", "a", data=b"new"), Call("fsync", "a"), Call("rename", "a", "b")]


@pytest.mark.system
@pytest.mark.skipif(not hasattr(os, "fork") or not Path("/proc/self/fd").exists(), reason="needs fork and /proc")
def test_no_run_is_lost_and_none_resumes_to_another_result(tmp_path: Path) -> None:
    script = HELPERS / "faulty_run.py"
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    command = [sys.executable, str(script), str(tmp_path), "30", "7"]
    found = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert found.returncode == 0, found.stderr
    result = json.loads(found.stdout)
    assert result["faults"] == 32
    assert result["failures"] == []


@pytest.mark.parametrize(
    ("calls", "nothing", "names"),
    [
        (0, {"b": b"old"}, {"b": b"old"}),
        (2, {"b": b"old"}, {"b": b"old", "a": b""}),
        (3, {"b": b"old"}, {"b": b"old", "a": b"new"}),
        (4, {"b": b"old"}, {"b": b"new"}),
    ],
)
def test_what_a_cut_leaves(calls: int, nothing: dict[str, bytes], names: dict[str, bytes]) -> None:
    disk = Disk({"b": b"old"})
    for call in WRITE[:calls]:
        disk.do(call)
    assert disk.after_cut("nothing", random.Random(0)) == nothing
    assert disk.after_cut("names", random.Random(0)) == names


def test_what_is_synced_stays() -> None:
    disk = Disk({"b": b"old"})
    for call in [*WRITE, Call("sync", ".")]:
        disk.do(call)
    assert all(disk.after_cut(how, random.Random(0)) == {"b": b"new"} for how in ("nothing", "names", "some"))


def test_a_write_without_sync_is_torn() -> None:
    """What the library must not do, the disk does not forgive."""
    disk = Disk({"b": b"old"})
    for call in (WRITE[0], WRITE[1], WRITE[3], Call("sync", ".")):
        disk.do(call)
    assert disk.after_cut("nothing", random.Random(0)) == {"b": b""}


@pytest.mark.parametrize("lasting", [False, True])
def test_the_chosen_call_fails(lasting: bool, tmp_path: Path) -> None:
    with Watch(tmp_path, Fault("ENOSPC", 1, lasting)) as watch:
        with pytest.raises(OSError, match="No space left"):
            (tmp_path / "a").write_bytes(b"12345678")
        if lasting:
            with pytest.raises(OSError, match="No space left"):
                (tmp_path / "b").write_bytes(b"12345678")
        else:
            (tmp_path / "b").write_bytes(b"12345678")
    assert [call.kind for call in watch.calls[:2]] == ["open", "write"]
    assert (tmp_path / "a").stat().st_size >= 4, "half of it was written"
