"""A run's folder that somebody else made: what is in it leads nowhere else, hangs nobody, and is what it says."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import paretomtl as pm
from _helpers.networks import fit, problem
from paretomtl._support.files.atomic_files import read_record, write_record
from paretomtl.cli._app import app
from paretomtl.report.page._live import LiveRun
from paretomtl.runs import inspect_run, read_log, repair_run
from paretomtl.runs.checkpoint_file import FORMAT
from paretomtl.runs.doctor import worst
from paretomtl.runs.folder import RunFolder
from paretomtl.training.shards.job import put_files, take_files

OPTIONS: dict[str, Any] = {"strategy": "sequential", "checkpoint_seconds": 0.0}
FILES = [
    "config.json",
    "checkpoint.safetensors",
    "checkpoint-previous.safetensors",
    "front/front.json",
    "front/models-*",
]
FILES += ["log.jsonl", "manifest.json", ".lock"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    fit(problem(), out=folder / "run", **OPTIONS)
    (folder / "run" / ".lock").write_text("{}")
    return folder / "run"


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the same settings but for the seed, so that everything in it fits."""
    folder = tmp_path_factory.mktemp("other")
    fit(problem(), out=folder, seed=1, **OPTIONS)
    return folder


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    """A copy of a finished run."""
    return Path(shutil.copytree(made, tmp_path / "in" / "run"))


def named(run: Path, name: str) -> Path:
    (found,) = run.glob(name)
    return found


def link(path: Path) -> None:
    """Put a link to a file outside in the place of a file."""
    outside = path.parents[1] / "outside"
    outside.mkdir(exist_ok=True)
    path.rename(outside / path.name)
    path.symlink_to(outside / path.name)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and not path.is_symlink()}


@pytest.mark.parametrize("harm", [link, pipe, device, folder])
@pytest.mark.parametrize("name", FILES)
def test_what_is_no_regular_file_is_named_and_not_opened(name: str, harm: Callable[[Path], None], run: Path) -> None:
    path = named(run, name)
    harm(path)
    before = contents(run.parent)
    kind = {link: "a link", pipe: "a pipe", device: "a link to '/dev/zero'", folder: "a folder"}[harm]
    with pytest.raises(ValueError, match=rf"{path.name}' must be a regular file. It is {kind}"):
        RunFolder(run).open(resume=True)
    found = [finding for finding in inspect_run(run) if kind.partition(" to ")[0] in finding.text]
    assert found, "the doctor says it"
    assert worst(found) in ("repairable", "lost")
    try:
        repair_run(run)
    except ValueError as error:
        assert name == ".lock", error  # noqa: PT017 (all others are told as findings)
    assert all(path.read_bytes() == before[path] for path in before if "outside" in path.parts)


@pytest.mark.parametrize("harm", [pipe, device])
def test_readers_end_where_a_front_or_a_log_never_would(harm: Callable[[Path], None], run: Path) -> None:
    harm(run / "front" / "front.json")
    harm(run / "log.jsonl")
    for words in (["show"], ["select", "--knee"], ["report"], ["doctor"]):
        found = CliRunner().invoke(app, [words[0], str(run), *words[1:]], env={"COLUMNS": "200", "NO_COLOR": "1"})
        assert found.exit_code in (1, 2), found.output
        assert "front.json' must be a regular file" in found.output.replace("\n", "")
    live = LiveRun(run, "run")
    assert live.poll()
    with pytest.raises(ValueError, match=r"log.jsonl' must be a regular file"):
        read_log(run)


@pytest.mark.parametrize("name", ["front", "shards"])
def test_a_link_to_a_folder_is_not_followed(name: str, run: Path) -> None:
    outside = run.parents[1] / "outside"
    shutil.copytree(run / "front", outside)
    (outside / "models-0123456789abcdef.safetensors").write_text("mine")
    (outside / ".mine.unfinished-1-2").write_text("mine")
    shutil.rmtree(run / name, ignore_errors=True)
    (run / name).symlink_to(outside)
    before = contents(outside)
    assert "a link" in " ".join(finding.text for finding in inspect_run(run))
    repair_run(run)
    with pytest.raises(ValueError, match=rf"{name}' must be a folder. It is a link to '{outside}', which is not follo"):
        fit(problem(), out=run, resume=True, **OPTIONS)
    if name == "front":
        with pytest.raises(ValueError, match=r"front' must be a folder. It is a link"):
            pm.Front.load(run)
    assert contents(outside) == before


def test_a_front_is_not_stored_through_a_link(run: Path, recwarn: pytest.WarningsRecorder) -> None:
    front = pm.Front.load(run)
    shutil.rmtree(run / "front")
    (run.parent / "outside").mkdir()
    (run / "front").symlink_to(run.parent / "outside")
    RunFolder(run).save_front(front)
    assert "front' must be a folder. It is a link" in str(recwarn.list[0].message)
    assert not list((run.parent / "outside").iterdir())


def test_the_folder_itself_may_be_reached_through_a_link(run: Path, tmp_path: Path) -> None:
    (run / ".lock").unlink()
    (tmp_path / "link").symlink_to(run)
    (tmp_path / "front").symlink_to(run / "front")
    assert worst(inspect_run(tmp_path / "link")) == "ok"
    assert len(pm.Front.load(tmp_path / "link")) == len(pm.Front.load(tmp_path / "front")) == 3
    assert len(fit(problem(), out=tmp_path / "link", resume=True, **OPTIONS)) == 3


def test_a_name_that_a_write_takes_first_is_not_written_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paretomtl._support.files.atomic_files.threading.get_ident", lambda: 7)
    (tmp_path / "mine").write_text("mine")
    for name in ("config.json", "writable"):
        (tmp_path / f".{name}.unfinished-{os.getpid()}-7").symlink_to(tmp_path / "mine")
    write_record(tmp_path / "config.json", {}, format=1)
    RunFolder(tmp_path / "run").open(resume=False)
    (tmp_path / "run2").mkdir()
    (tmp_path / "run2" / f".writable.unfinished-{os.getpid()}-7").symlink_to(tmp_path / "mine")
    RunFolder(tmp_path / "run2").open(resume=False)
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_second_name_of_a_file_is_not_written(run: Path, recwarn: pytest.WarningsRecorder) -> None:
    """A hard link looks as any file does; a lock and a log are what is written in place."""
    for name in (".lock", "log.jsonl"):
        (run.parent / name).write_text("mine\n")
        (run / name).unlink()
        (run / name).hardlink_to(run.parent / name)
    folder = RunFolder(run)
    folder.open(resume=True)
    folder.log("resume")
    folder.close()
    assert "must have one name to be written. It has 2 (hard links)" in str(recwarn.list[0].message)
    repair_run(run)
    assert (run.parent / ".lock").read_text() == (run.parent / "log.jsonl").read_text() == "mine\n"


def test_links_are_not_sent_to_workers(run: Path) -> None:
    (run.parent / "secret").write_text("mine")
    (run / "secret.json").symlink_to(run.parent / "secret")
    (run / "front" / "secret.json").symlink_to(run.parent / "secret")
    sent = take_files(run)
    assert "config.json" in sent
    assert b"mine" not in sent.values()
    shutil.rmtree(run / "front")
    (run / "front").symlink_to(run.parent)
    assert not [name for name in take_files(run) if name.startswith("front")]
    with pytest.raises(ValueError, match=r"front' must be a folder. It is a link"):
        put_files(run, {"front/front.json": b"{}"})


def test_a_file_of_no_sane_size_is_refused(run: Path) -> None:
    for name, size in (("front/front.json", 1 << 30), ("manifest.json", 1 << 30), ("front/models-*", 1 << 41)):
        os.truncate(named(run, name), size)
    with pytest.raises(ValueError, match=r"front.json' must have at most 67,108,864 bytes. Got 1,073,741,824 instead"):
        pm.Front.load(run)
    text = " ".join(finding.text for finding in inspect_run(run))
    assert "manifest.json' must have at most 4,194,304 bytes" in text


def test_a_link_among_shards_is_named_and_not_followed(run: Path) -> None:
    shutil.copytree(run, run.parent / "outside")
    (run.parent / "outside" / ".mine.unfinished-1-2").write_text("mine")
    (run / "shards").mkdir()
    (run / "shards" / "000").symlink_to(run.parent / "outside")
    before = contents(run.parent / "outside")
    assert {finding.file: finding.state for finding in inspect_run(run)}["shards/000"] == "repairable"
    repair_run(run)
    assert contents(run.parent / "outside") == before


# What the files say of each other.


def test_models_of_another_front_are_not_taken_for_those_of_this(run: Path, other: Path) -> None:
    theirs = named(other, "front/models-*")
    models = named(run, "front/models-*")
    manifest = (run / "manifest.json").read_bytes()
    models.write_bytes(theirs.read_bytes())
    with pytest.raises(ValueError, match=r"must hold the tensors with the checksum .* Got those of another file"):
        pm.Front.load(run)
    states = {finding.file: finding.state for finding in inspect_run(run)}
    assert states["front/front.json"] == "repairable", "it is rebuilt from the checkpoint"
    repair_run(run)
    assert (run / "manifest.json").read_bytes() == manifest, "what does not fit is not called ok"
    # The same with the name of the other file in the front.
    models.unlink()
    shutil.copy(theirs, run / "front")
    path = run / "front" / "front.json"
    words = read_record(path, [2])
    write_record(path, {**words, "models": {**words["models"], "file": theirs.name}}, format=2)
    with pytest.raises(
        ValueError, match=r"front.json' must name a file of models in the same folder, and its checksum"
    ):
        pm.Front.load(run)
    # The same with the checksum of the other file, too: the checksums of the models are those of this one.
    checksum = read_record(other / "front" / "front.json", [2])["models"]["sha256"]
    entry = {**words["models"], "file": theirs.name, "sha256": checksum}
    write_record(path, {**words, "models": entry}, format=2)
    with pytest.raises(ValueError, match="The checksum of row 0 differs"):
        pm.Front.load(run).state_dict(0)


def test_a_checkpoint_of_another_run_is_not_resumed(run: Path, other: Path) -> None:
    shutil.rmtree(run / "front")
    (run / ".lock").unlink()
    for name in ("checkpoint.safetensors", "checkpoint-previous.safetensors"):
        shutil.copy(other / name, run)
    found = {finding.file: finding for finding in inspect_run(run)}
    assert found["checkpoint.safetensors"].state == "lost"
    assert "of this run. It is whole, but belongs to another run" in found["checkpoint.safetensors"].text
    repair_run(run)
    assert "manifest.json: rewritten" not in " ".join(repair_run(run))
    with pytest.raises(ValueError, match="must be a checkpoint of this run"):
        fit(problem(), out=run, resume=True, **OPTIONS)


def test_a_run_of_before_identities_is_resumed(run: Path) -> None:
    (run / ".lock").unlink()
    config = read_record(run / "config.json", [FORMAT])
    del config["run"]
    write_record(run / "config.json", config, format=FORMAT)
    shutil.rmtree(run / "front")
    assert fit(problem(), out=run, resume=True, **OPTIONS).complete
    assert json.loads((run / "config.json").read_text()).get("run") is None
