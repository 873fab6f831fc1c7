"""Disks that fill up, folders that go away, and signals in the middle of a write."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import signal
import tempfile
from pathlib import Path
from typing import Any

import pytest

import paretomtl as pm
from _helpers.fronts import assert_equal
from _helpers.networks import fit, problem
from paretomtl._support.files import atomic_files as _files
from paretomtl._support.files import tensor_files as _tensors
from paretomtl.runs import inspect_run

OPTIONS: dict[str, Any] = {"strategy": "sequential", "checkpoint_seconds": 0.0}


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, of this test alone."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_a_folder_that_goes_away_costs_no_training(tmp_path: Path) -> None:
    out = tmp_path / "run"

    def remove(report: Any) -> None:
        if report.epoch == 2:
            shutil.rmtree(out)

    with pytest.warns(UserWarning, match="No such file") as said:
        front = fit(problem(), out=out, callbacks=[remove], **OPTIONS)
    assert any("no checkpoint could be stored" in str(warning.message) for warning in said)
    assert_equal(front, fit(problem(), **OPTIONS))
    assert_equal(pm.Front.load(out), front)


def test_a_front_that_finds_no_room_is_stored_elsewhere(
    tmp_path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    original = _tensors.whole_file

    def full(path: Path, *rest: Any) -> Any:
        if path.parent == out / "front":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return original(path, *rest)

    monkeypatch.setattr("paretomtl._support.files.tensor_files.whole_file", full)
    with pytest.warns(
        UserWarning, match=rf"cannot be stored in .*No space left.* It is in '{elsewhere}/paretomtl-front"
    ):
        front = fit(problem(), out=out, **OPTIONS)
    (stored,) = elsewhere.glob("paretomtl-front-*")
    assert_equal(pm.Front.load(stored), front)
    monkeypatch.undo()
    assert_equal(fit(problem(), out=out, resume=True, **OPTIONS), front)


def test_no_more_open_files(tmp_path: Path, elsewhere: Path) -> None:
    """The limit is reached in the middle of the run: it goes on, and the next one stores what it could not."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)

    def close_down(report: Any) -> None:
        if report.epoch == 2:
            taken = os.dup(0)
            os.close(taken)
            resource.setrlimit(resource.RLIMIT_NOFILE, (taken, limits[1]))

    try:
        with pytest.warns(UserWarning, match="Too many open files"):
            front = fit(problem(), out=tmp_path / "run", callbacks=[close_down], **OPTIONS)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert_equal(front, fit(problem(), **OPTIONS))
    assert_equal(fit(problem(), out=tmp_path / "run", resume=True, **OPTIONS), front)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("signals", [1, 2])
def test_signals_in_the_middle_of_a_checkpoint(
    signals: int, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One lets the write end, and the run with it; two end both at once. Nothing is torn, either way."""
    original, calls = os.fsync, 0

    def fsync(handle: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 12:
            for _ in range(signals):
                os.kill(os.getpid(), number)
        original(handle)

    monkeypatch.setattr("paretomtl._support.files.atomic_files.os.fsync", fsync)
    if signals == 1:
        with pytest.warns(UserWarning, match="training was stopped"):
            assert not fit(problem(), out=tmp_path, **OPTIONS).complete
    else:
        with pytest.raises(KeyboardInterrupt):
            fit(problem(), out=tmp_path, **OPTIONS)
    monkeypatch.undo()
    assert {finding.state for finding in inspect_run(tmp_path)} <= {"ok", "info"}
    assert_equal(fit(problem(), out=tmp_path, resume=True, **OPTIONS), fit(problem(), **OPTIONS))


def test_a_checkpoint_of_a_run_that_never_began_is_not_resumed(tmp_path: Path) -> None:
    """It was killed between its first checkpoint and its configuration; another one begins in its place."""
    fit(problem(), out=tmp_path / "other", seed=5)
    (tmp_path / "run").mkdir()
    for name in ("checkpoint.safetensors", "checkpoint-previous.safetensors"):
        shutil.copy(tmp_path / "other" / name, tmp_path / "run" / name)
    front = fit(problem(), out=tmp_path / "run", resume=True, **OPTIONS)
    assert_equal(front, fit(problem(), **OPTIONS))


def test_a_run_that_lost_its_configuration_is_not_overwritten(tmp_path: Path) -> None:
    fit(problem(), out=tmp_path)
    (tmp_path / "config.json").unlink()
    with pytest.raises(ValueError, match=r"'out' must be an empty folder, or .* has a 'manifest.json'"):
        fit(problem(), out=tmp_path)
    assert (tmp_path / "checkpoint.safetensors").exists()


@pytest.mark.parametrize("name", ["config.json", "checkpoint.safetensors", "front/front.json", "manifest.json"])
def test_newer_formats_say_so(name: str, tmp_path: Path) -> None:
    fit(problem(), out=tmp_path)
    path = tmp_path / name
    if name == "checkpoint.safetensors":
        shutil.rmtree(tmp_path / "front")
        tensors, meta = _tensors.read_tensors(path)
        _tensors.write_tensors(path, tensors, {**meta, "format": "77"})
    else:
        _files.write_record(path, {**_files.read_json(path), "format": 77}, format=77)
    match = rf"{name}' was written by a newer paretomtl \(format 77; this one knows [123]\): update"
    with pytest.raises(ValueError, match=match):
        fit(problem(), out=tmp_path, resume=True)
    found = {finding.file: finding for finding in inspect_run(tmp_path)}
    assert "was written by a newer paretomtl" in found[name].text
    assert found[name].repair is None


def test_runs_of_before_load(tmp_path: Path) -> None:
    """Files without checksums, no manifest, no second checkpoint."""
    first = fit(problem(), out=tmp_path)
    for name, number in (("config.json", 3), ("front/front.json", 2)):
        content = _files.read_record(tmp_path / name, [number])
        _files.write_text(tmp_path / name, json.dumps({"format": number, **content}))
    (tmp_path / "manifest.json").unlink()
    (tmp_path / "checkpoint-previous.safetensors").unlink()
    assert {finding.state for finding in inspect_run(tmp_path)} <= {"ok", "info"}
    assert_equal(pm.Front.load(tmp_path), first)
    assert_equal(fit(problem(), out=tmp_path, resume=True), first)
