from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import paretomtl as pm
from _helpers.networks import fit, problem
from paretomtl._support.files.locks import Lock, Owner, is_held, locked, read_owner
from paretomtl.compare.row_store import load_rows, update_rows
from paretomtl.runs import inspect_run, read_log, repair_run

HOLD = """
import os, sys, time
from pathlib import Path
from paretomtl._support.files.locks import Lock
assert Lock(Path(sys.argv[1])).take() is None
if sys.argv[2] == "alone" or not os.fork():  # a child speaks for itself, once it has dropped what it inherited
    print(os.getpid(), flush=True)
time.sleep(600)
"""


def held_elsewhere(path: Path, how: str = "alone") -> tuple[subprocess.Popen[str], int]:
    """A process that holds a lock, and the number of its child, or of itself if it is alone."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path), how], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def test_one_at_a_time_among_threads(tmp_path: Path) -> None:
    one, other = Lock(tmp_path / "lock"), Lock(tmp_path / "lock")
    assert one.take() is None
    found: list[Owner | None] = []
    thread = threading.Thread(target=lambda: found.append(other.take()))
    thread.start()
    thread.join()
    assert found[0] is not None
    assert (found[0].pid, found[0].host) == (os.getpid(), socket.gethostname())
    assert is_held(tmp_path / "lock")
    one.release()
    assert not list(tmp_path.iterdir()), "the file goes away"
    assert other.take() is None
    one.release()
    assert is_held(tmp_path / "lock"), "only its holder lets go of it"
    other.release()


@pytest.mark.parametrize("how", ["alone", "fork"])
def test_a_lock_dies_with_its_process(how: str, tmp_path: Path) -> None:
    """Even where a child of it, such as a worker that loads data, lives on."""
    path = tmp_path / "lock"
    process, child = held_elsewhere(path, how)
    try:
        holder = Lock(path).take()
        assert holder is not None
        assert holder.pid == process.pid
        assert str(holder).startswith(f"process {process.pid} on {socket.gethostname()} since 20")
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert path.exists()
        assert not is_held(path)
        assert read_owner(path).pid == process.pid
        lock = Lock(path)
        assert lock.take() is None
        lock.release()
    finally:
        process.kill()
        process.wait()
        if how == "fork":
            os.kill(child, signal.SIGKILL)
        assert process.stdout is not None
        process.stdout.close()


def test_a_file_of_nonsense_is_no_lock(tmp_path: Path) -> None:
    (tmp_path / "lock").write_bytes(b"\xff{")
    assert read_owner(tmp_path / "lock") == Owner()
    lock = Lock(tmp_path / "lock")
    assert lock.take() is None
    lock.release()


def test_waiting_ends_with_a_name(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "lock"),
        pytest.raises(BlockingIOError, match=rf"must be free to be written. process {os.getpid()} on"),
        locked(tmp_path / "lock", seconds=0.05),
    ):
        pass


def test_a_file_system_without_locks_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")

    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.warns(UserWarning, match=r"has no locks .*: make sure that only one process writes there at a time"):
        assert Lock(tmp_path / "lock").take() is None


def test_rows_of_many_writers_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"

    def write(writer: int) -> None:
        for i in range(8):
            row = {"writer": writer, "i": i}
            update_rows(path, "rows", "", lambda stored, row=row: [*stored, row])  # type: ignore[misc]

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = load_rows(path)
    assert sorted((row["writer"], row["i"]) for row in rows) == [(w, i) for w in range(4) for i in range(8)]
    assert [each.name for each in tmp_path.iterdir()] == ["rows.json"]


def test_two_runs_cannot_share_a_folder(tmp_path: Path) -> None:
    """The second one is told who is first; reading is free; afterwards the folder is, too."""
    said: list[str] = []

    def meddle(report: Any) -> None:
        for resume in (False, True):
            with pytest.raises(BlockingIOError, match="'out' is locked by process") as error:
                fit(problem(), out=tmp_path, resume=resume)
            said.append(str(error.value))
        with pytest.raises(BlockingIOError, match="'RUN' is locked by process"):
            repair_run(tmp_path)
        assert inspect_run(tmp_path)[0].text.startswith(f"held by process {os.getpid()} on")
        assert read_log(tmp_path)
        with pytest.raises(FileNotFoundError, match="an unfinished run"):
            pm.Front.load(tmp_path)

    front = fit(problem(), out=tmp_path, epochs=1, callbacks=[meddle])
    assert front.complete
    assert said[0].startswith(f"'out' is locked by process {os.getpid()} on {socket.gethostname()} since 20")
    assert f"which writes to '{tmp_path}'" in said[0]
    assert not (tmp_path / ".lock").exists()
    assert fit(problem(), out=tmp_path, epochs=1, resume=True).complete


def test_a_run_that_fails_lets_go(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'strategy'"):
        fit(problem(), out=tmp_path, strategy="graphed")
    assert not is_held(tmp_path / ".lock")
    assert fit(problem(), out=tmp_path).complete
