"""``asked.json``: written as a run begins, and read by later commands."""

import json
from pathlib import Path
from typing import Any

import pytest

import paretomtl as pm
from paretomtl._support.files.atomic_files import write_record
from paretomtl.runs.doctor import inspect_run
from paretomtl.runs.folder import RunFolder
from paretomtl.runs.options import FORMAT, OPTIONS, read_options, write_options
from paretomtl.training import SerialExecutor

KINDS: dict[str, Any] = {"problem": str, "seed": int, "epochs": int | None, "patience": int | None}
ASKED: dict[str, Any] = {"problem": "synthetic", "seed": 0, "epochs": 3, "patience": None}


def read(folder: Path) -> dict[str, Any]:
    return read_options(folder, KINDS, ["problem"])


def test_options_are_read_as_they_were_stored(tmp_path: Path) -> None:
    write_options(tmp_path, ASKED)
    assert OPTIONS == "asked.json"
    assert read(tmp_path) == {"problem": "synthetic", "seed": 0, "epochs": 3}  # no patience: older versions read it


def test_a_resumed_run_keeps_its_options_but_for_its_length(tmp_path: Path) -> None:
    write_options(tmp_path, ASKED)
    write_options(tmp_path, {"problem": "another", "seed": 5, "epochs": 9, "patience": 2})
    assert read(tmp_path) == {"problem": "synthetic", "seed": 0, "epochs": 9, "patience": 2}


def test_options_that_did_not_change_are_not_written(tmp_path: Path) -> None:
    write_options(tmp_path, ASKED)
    before = (tmp_path / OPTIONS).stat()
    write_options(tmp_path, ASKED)
    assert (tmp_path / OPTIONS).stat() == before


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    write_options(tmp_path / "missing" / "folder", ASKED)


def test_a_run_of_python_has_no_options(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"has no asked.json; in Python, use pm.fit"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({**ASKED, "sails": 3}, r"It is damaged: no option is called 'sails'"),
        ({"seed": 0}, r"It is damaged: 'problem' is missing"),
        ({**ASKED, "seed": True}, r"Got True for 'seed'"),
        ({**ASKED, "epochs": 2**70}, r"Got \d+ for 'epochs'"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, content: dict[str, Any], message: str) -> None:
    write_record(tmp_path / OPTIONS, content, format=FORMAT)
    with pytest.raises(ValueError, match=rf"asked.json' must hold the options of a run. {message}"):
        read(tmp_path)


def test_the_folder_stores_them_as_the_run_begins(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, ASKED)
    folder.open(resume=False)
    assert not (tmp_path / OPTIONS).exists()  # a run that is refused leaves no file
    folder.begin({"epochs": 3})
    assert read(tmp_path)["seed"] == 0
    assert OPTIONS in json.loads((tmp_path / "manifest.json").read_text())["files"]
    folder.close()


def test_options_that_are_lost_come_with_the_next_file(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, ASKED)
    folder.open(resume=False)
    folder.begin({"epochs": 3})
    (tmp_path / OPTIONS).unlink()
    folder.save_checkpoint({"number": 1})
    assert read(tmp_path)["problem"] == "synthetic"
    folder.close()


def test_a_new_run_forgets_those_of_one_that_never_began(tmp_path: Path) -> None:
    write_options(tmp_path, {**ASKED, "seed": 7})
    folder = RunFolder(tmp_path, ASKED)
    folder.open(resume=False)
    folder.begin({"epochs": 3})
    assert read(tmp_path)["seed"] == 0
    folder.close()


def test_a_run_in_shards_stores_them_once(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run", ASKED)
    options: dict[str, Any] = {"preferences": 2, "epochs": 2, "device": "cpu", "progress": "quiet"}
    pm.fit(pm.problems.quadratic(), **options, executor=SerialExecutor(), out=folder)
    assert [path.parent.name for path in tmp_path.rglob(OPTIONS)] == ["run"]
    assert all(finding.state == "ok" for finding in inspect_run(tmp_path / "run") if finding.file == OPTIONS)
