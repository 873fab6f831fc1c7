"""The options of a run on the command line, stored in its folder."""

import dataclasses
import json
from pathlib import Path

import pytest

from paretomtl._support.atomic_files import write_record
from paretomtl.runs.options import FORMAT, OPTIONS, RunOptions

ASKED = RunOptions(
    problem="synthetic",
    with_=["dimension=3"],
    method="pareto-mtl",
    set_=[],
    epochs=3,
    batch_size=None,
    optimizer=None,
    learning_rate=0.1,
    weight_decay=None,
    seed=0,
    strategy="auto",
    device=None,
    precision="float32",
    weigh_every=1,
    workers=None,
    clip_norm=None,
    compile=False,
    keep="last",
)


def test_options_are_read_as_they_were_stored(tmp_path: Path) -> None:
    ASKED.save(tmp_path)
    assert RunOptions.load(tmp_path) == ASKED
    stored = json.loads((tmp_path / OPTIONS).read_text())
    assert OPTIONS == "asked.json"
    assert stored["with_"] == ["dimension=3"]
    assert "patience" not in stored  # older versions read the file


def test_a_resumed_run_keeps_its_options_but_for_its_length(tmp_path: Path) -> None:
    ASKED.save(tmp_path)
    dataclasses.replace(ASKED, epochs=9, patience=2, seed=5, learning_rate=0.5).save(tmp_path)
    assert RunOptions.load(tmp_path) == dataclasses.replace(ASKED, epochs=9, patience=2)


def test_options_that_did_not_change_are_not_written(tmp_path: Path) -> None:
    ASKED.save(tmp_path)
    before = (tmp_path / OPTIONS).stat()
    ASKED.save(tmp_path)
    assert (tmp_path / OPTIONS).stat() == before


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    ASKED.save(tmp_path / "missing" / "folder")


def test_a_run_of_python_has_no_options(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"has no asked.json; in Python, use pm.fit"):
        RunOptions.load(tmp_path)


def test_an_unknown_option_is_named(tmp_path: Path) -> None:
    write_record(tmp_path / OPTIONS, {**dataclasses.asdict(ASKED), "sails": 3}, format=FORMAT)
    with pytest.raises(ValueError, match=r"asked.json' must hold the options of a run. It is damaged: .*sails"):
        RunOptions.load(tmp_path)
