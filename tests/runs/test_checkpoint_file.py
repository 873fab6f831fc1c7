"""Damaged checkpoints, fronts, configurations and logs of a run."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import paretomtl as pm
from _helpers.crashes import Crash, Samples, crash
from _helpers.fronts import assert_equal
from _helpers.networks import fit, problem
from paretomtl.runs import inspect_run, read_log


def interrupted(folder: Path) -> None:
    """A folder with a checkpoint and no finished front."""
    with pytest.raises(Crash):
        fit(problem(train=Samples(265, crash)), out=folder, epochs=5, strategy="sequential", checkpoint_seconds=0.0)


def damage(path: Path, harm: str) -> None:
    if harm == "missing":
        path.unlink()
        return
    data = bytearray(path.read_bytes())
    if harm == "flip":
        data[-5] ^= 1
    if harm == "header":
        data = data.replace(b"number", b"numbre", 1)
    path.write_bytes({"truncate": data[:-20], "empty": b""}.get(harm, data))


@pytest.mark.parametrize("harm", ["truncate", "flip", "empty", "header", "missing"])
def test_the_previous_checkpoint_stands_in_for_a_damaged_one(harm: str, tmp_path: Path) -> None:
    interrupted(tmp_path)
    damage(tmp_path / "checkpoint.safetensors", harm)
    options: dict[str, Any] = {"epochs": 5, "strategy": "sequential"}
    with pytest.warns(
        UserWarning, match=r"the last checkpoint in .* is lost .* goes on from the one before it, of step"
    ):
        resumed = fit(problem(train=Samples()), out=tmp_path, resume=True, **options)
    assert_equal(resumed, fit(problem(train=Samples()), **options))


@pytest.mark.parametrize("harm", ["truncate", "flip", "empty", "header"])
def test_two_damaged_checkpoints_are_said_to_be(harm: str, tmp_path: Path) -> None:
    interrupted(tmp_path)
    for name in ("checkpoint.safetensors", "checkpoint-previous.safetensors"):
        damage(tmp_path / name, harm)
    with pytest.raises(ValueError, match=r"must hold a whole checkpoint .*checkpoint-previous.*doctor"):
        fit(problem(train=Samples()), out=tmp_path, epochs=5, strategy="sequential", resume=True)


@pytest.mark.parametrize("name", ["front.json", "models-*.safetensors", "numbers-*.safetensors"])
@pytest.mark.parametrize("harm", ["truncate", "flip", "missing"])
def test_a_damaged_front_is_made_again(name: str, harm: str, tmp_path: Path) -> None:
    first = fit(problem(), out=tmp_path)
    damage(next((tmp_path / "front").glob(name)), harm)
    lost = (name, harm) == ("front.json", "missing")
    with contextlib.nullcontext() if lost else pytest.warns(UserWarning, match="the front is rebuilt"):
        assert_equal(fit(problem(), out=tmp_path, resume=True), first)
    assert_equal(pm.Front.load(tmp_path), first)
    assert {finding.state for finding in inspect_run(tmp_path)} <= {"ok", "info"}


def test_damage_that_leaves_no_trace_is_found_by_doctor(tmp_path: Path) -> None:
    """A disk that turns a bit leaves size and time: resuming a finished run reads no weights, and does not notice."""
    first = fit(problem(), out=tmp_path)
    path = next((tmp_path / "front").glob("models-*.safetensors"))
    before = path.stat()
    damage(path, "flip")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    resumed = fit(problem(), out=tmp_path, resume=True)
    with pytest.raises(ValueError, match="Its checksum differs"):
        resumed.models.verify()
    texts = [finding.text for finding in inspect_run(tmp_path) if finding.file == "front/front.json"]
    assert "rebuilds the front once the folder 'front' is deleted" in texts[0]
    shutil.rmtree(tmp_path / "front")
    assert_equal(fit(problem(), out=tmp_path, resume=True), first)


def test_a_torn_configuration_is_said_to_be(tmp_path: Path) -> None:
    interrupted(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(path.read_text()[:50])
    with pytest.raises(ValueError, match=r"config.json' must be a JSON file. It is damaged"):
        fit(problem(train=Samples()), out=tmp_path, epochs=5, resume=True)


def test_a_torn_line_of_the_log_is_stepped_over(tmp_path: Path) -> None:
    interrupted(tmp_path)
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"event": "epo')
    fit(problem(train=Samples()), out=tmp_path, epochs=5, strategy="sequential", resume=True)
    assert [event["event"] for event in read_log(tmp_path)][-1] == "end"
