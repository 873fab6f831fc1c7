"""What is said of a folder after each kind of harm, and what --fix makes of it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from _helpers.fronts import assert_equal
from _helpers.networks import fit, problem
from paretomtl.cli._app import app
from paretomtl.runs import inspect_run, repair_run
from paretomtl.runs.doctor import worst
from paretomtl.runs.manifest import sha256_of

OPTIONS: dict[str, Any] = {"strategy": "sequential", "checkpoint_seconds": 0.0}
CHECKPOINT, PREVIOUS = "checkpoint.safetensors", "checkpoint-previous.safetensors"


def trained_once(train: Callable[[Path], None]) -> Callable[[Path], None]:
    """Trains the first time that it is called; later folders get the same files."""
    files: dict[Path, bytes] = {}

    def put(folder: Path) -> None:
        if not files:
            train(folder)
            files.update({path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()})
            return
        for path, data in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)

    return put


@trained_once
def unfinished(folder: Path) -> None:
    """A run that broke off, with two checkpoints and no front."""

    def leave(report: Any) -> None:
        if report.epoch == 2:
            sys.exit()  # an error would leave a front

    with pytest.raises(SystemExit):
        fit(problem(), out=folder, callbacks=[leave], **OPTIONS)


@trained_once
def finished(folder: Path) -> None:
    fit(problem(), out=folder, **OPTIONS)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def remove(path: Path) -> None:
    path.unlink()


def states(folder: Path) -> dict[str, str]:
    return {finding.file: finding.state for finding in inspect_run(folder)}


def test_a_finished_run_is_ok(tmp_path: Path) -> None:
    finished(tmp_path)
    assert set(states(tmp_path).values()) == {"ok"}
    assert repair_run(tmp_path) == []
    listed = json.loads((tmp_path / "manifest.json").read_text())["files"]
    files = {path.relative_to(tmp_path).as_posix(): path for path in tmp_path.rglob("*") if path.is_file()}
    assert set(listed) == set(files) - {"manifest.json"}
    for name, said in listed.items():
        if name == "log.jsonl":
            assert said["size"] <= files[name].stat().st_size
        else:
            assert said == {"size": files[name].stat().st_size, "sha256": sha256_of(files[name])}


@pytest.mark.parametrize("harm", [flip, cut, remove])
@pytest.mark.parametrize("name", [CHECKPOINT, PREVIOUS])
def test_one_damaged_checkpoint_is_repaired(name: str, harm: Callable[[Path], None], tmp_path: Path) -> None:
    unfinished(tmp_path)
    harm(tmp_path / name)
    assert worst(inspect_run(tmp_path)) == "repairable"
    said = repair_run(tmp_path)
    if name == CHECKPOINT:
        assert said[0].startswith(f"{CHECKPOINT}: replaced by the previous one, of epoch ")
    assert said[-1].startswith("manifest.json: rewritten")
    assert worst(inspect_run(tmp_path)) == "info", "there is no front yet"
    assert_equal(fit(problem(), out=tmp_path, resume=True, **OPTIONS), fit(problem(), **OPTIONS))


def test_two_damaged_checkpoints_are_lost_unless_nothing_needs_them(tmp_path: Path) -> None:
    for name, make, state in (("a", unfinished, "lost"), ("b", finished, "repairable")):
        make(tmp_path / name)
        for file in (CHECKPOINT, PREVIOUS):
            flip(tmp_path / name / file)
        assert states(tmp_path / name)[CHECKPOINT] == state
        before = {path: path.read_bytes() for path in (tmp_path / name).iterdir() if path.is_file()}
        assert repair_run(tmp_path / name) == [], "nothing is safe to do"
        assert {path: path.read_bytes() for path in (tmp_path / name).iterdir() if path.is_file()} == before


@pytest.mark.parametrize("harm", [flip, cut, remove])
@pytest.mark.parametrize("name", ["front.json", "models-*.safetensors"])
def test_a_damaged_front_is_made_again_by_resuming(name: str, harm: Callable[[Path], None], tmp_path: Path) -> None:
    finished(tmp_path)
    harm(next((tmp_path / "front").glob(name)))
    found = next(finding for finding in inspect_run(tmp_path) if finding.file == "front/front.json")
    assert found.state == "repairable"
    assert "resume (--resume) rebuilds the front" in found.text
    for checkpoint in (CHECKPOINT, PREVIOUS):
        flip(tmp_path / checkpoint)
    assert states(tmp_path)["front/front.json"] == "lost"


@pytest.mark.parametrize("harm", [flip, cut, remove])
def test_a_lost_configuration_is_said_to_be(harm: Callable[[Path], None], tmp_path: Path) -> None:
    finished(tmp_path)
    harm(tmp_path / "config.json")
    found = inspect_run(tmp_path)[0]
    assert (found.file, found.state) == ("config.json", "lost")
    assert found.text.endswith("The run cannot be resumed; the front is whole: show reads it.")


def test_leftovers_are_swept_and_others_left_alone(tmp_path: Path) -> None:
    finished(tmp_path)
    (tmp_path / ".config.json.unfinished-1-2").write_text("{")
    (tmp_path / "front" / "models-0123456789abcdef.safetensors").write_text("old")
    (tmp_path / ".lock").write_text("{}")
    (tmp_path / "notes.txt").write_text("mine")
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"event": "epo')
    found = states(tmp_path)
    assert found[".config.json.unfinished-1-2"] == found["front/models-0123456789abcdef.safetensors"] == "repairable"
    assert found[".lock"] == found["notes.txt"] == found["log.jsonl"] == "info"
    assert len(repair_run(tmp_path)) == 3
    assert set(states(tmp_path)) >= {"notes.txt", "log.jsonl"}
    assert worst(inspect_run(tmp_path)) == "info"
    (tmp_path / "log.jsonl").write_text("")
    text = next(finding.text for finding in inspect_run(tmp_path) if finding.file == "log.jsonl")
    assert "bytes shorter than it was" in text


@pytest.mark.parametrize("harm", [flip, cut, remove])
def test_a_manifest_is_written_again(harm: Callable[[Path], None], tmp_path: Path) -> None:
    finished(tmp_path)
    before = (tmp_path / "manifest.json").read_text()
    harm(tmp_path / "manifest.json")
    assert states(tmp_path)["manifest.json"] == ("info" if harm is remove else "repairable")
    assert repair_run(tmp_path) == ["manifest.json: rewritten; the checksums inside all files were verified."]
    assert set(json.loads((tmp_path / "manifest.json").read_text())["files"]) == set(json.loads(before)["files"])
    assert set(states(tmp_path).values()) == {"ok"}


def test_a_manifest_is_not_written_over_damage(tmp_path: Path) -> None:
    """It would make what is damaged look as it was written."""
    finished(tmp_path)
    flip(tmp_path / "config.json")
    before = (tmp_path / "manifest.json").read_bytes()
    assert repair_run(tmp_path) == []
    assert (tmp_path / "manifest.json").read_bytes() == before


def test_the_command(tmp_path: Path) -> None:
    def call(*arguments: str) -> tuple[int, str]:
        found = CliRunner().invoke(app, ["doctor", *arguments], env={"COLUMNS": "80", "NO_COLOR": "1"})
        return found.exit_code, found.output

    run = str(tmp_path / "run")
    finished(tmp_path / "run")
    code, text = call(run)
    assert code == 0
    assert "The run is ok.\n\nNext:\n" in text
    cut(tmp_path / "run" / CHECKPOINT)
    code, text = call(run)
    assert code == 1
    assert "Something is wrong, and can be repaired." in text
    found = json.loads(call(run, "--json")[1])
    assert (found["state"], found["repaired"]) == ("repairable", [])
    assert {"file", "state", "text"} == set(found["findings"][0])
    assert call(run, "--fix")[0] == 0
    flip(tmp_path / "run" / "config.json")
    assert call(run)[0] == 4
    assert call(str(tmp_path / "nowhere"))[0] == 2
    assert "has none of its files" in call(str(tmp_path))[1]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_inspected(tmp_path: Path) -> None:
    finished(tmp_path / "run")
    (tmp_path / "run").chmod(0o500)
    try:
        assert worst(inspect_run(tmp_path / "run")) == "ok"
    finally:
        (tmp_path / "run").chmod(0o700)
