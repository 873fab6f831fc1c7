from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest
import torch

import paretomtl as pm
from _helpers.networks import Normed, classes, fit, problem
from paretomtl._support.files.atomic_files import read_record, write_record
from paretomtl.runs import read_log

X, Y = classes()


def test_the_folder_says_what_was_run(tmp_path: Path) -> None:
    fit(problem(val=(X, Y)), out=tmp_path, strategy="auto")
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["tasks"] == ["a", "b"]
    assert config["taken"]["strategy"] in ("sequential", "batched")
    assert "ms a step" in config["taken"]["reason"]
    assert config["optimizer"].startswith("SGD")
    log = read_log(tmp_path)
    assert [event["event"] for event in log] == ["start", *["epoch"] * 4, "end"]
    assert len(log[1]["losses"]) == len(log[1]["val_losses"]) == 3
    assert log[1]["hypervolume"] >= 0


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"epochs": 3}, "epochs"),
        ({"method": "mgda"}, "method"),
        ({"method": pm.ParetoMTL(epsilon=0.2)}, "method"),
        ({"preferences": 4}, "preferences"),
        ({"seed": 1}, "seed"),
        ({"batch_size": 16}, "batch_size"),
        ({"optimizer": lambda p: torch.optim.SGD(p, lr=0.2, momentum=0.9)}, "optimizer"),
        ({"optimizer": lambda p: torch.optim.Adam(p, lr=0.1)}, "optimizer"),
        ({"precision": "float64"}, "precision"),
        ({"of": problem(Normed)}, "parameters"),
        ({"of": problem(train=classes(90))}, "samples"),
        ({"of": problem(name="other")}, "problem"),
    ],
)
def test_another_run_is_not_resumed(options: dict[str, Any], name: str, tmp_path: Path) -> None:
    front = fit(problem(), out=tmp_path)
    with pytest.raises(ValueError, match=rf"'{name}' must be that of the run in .* to resume it"):
        fit(**{"of": problem(), **options}, out=tmp_path, resume=True)
    with pytest.raises(ValueError, match="'out' must be a new folder, or come with resume=True"):
        fit(problem(), out=tmp_path)
    assert torch.equal(pm.Front.load(tmp_path).losses["train"], front.losses["train"])


@pytest.mark.parametrize(("field", "value"), [("format", 99), ("version", "0.0.1")])
def test_a_run_of_another_version_is_not_resumed(field: str, value: Any, tmp_path: Path) -> None:
    fit(problem(), out=tmp_path)
    path = tmp_path / "config.json"
    write_record(path, {**read_record(path, [3]), "format": 3, field: value}, format=3)
    with pytest.raises(ValueError, match=field):
        fit(problem(), out=tmp_path, resume=True)


def test_a_folder_that_cannot_be_written_is_found_before_training(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    trained: list[Any] = []
    with pytest.raises(ValueError, match="'out' must be a folder that can be written"):
        fit(problem(), out=tmp_path / "file" / "run", callbacks=[trained.append])
    assert not trained


def test_a_full_disk_is_found_before_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("paretomtl.runs.checkpoint_file.write_tensors", full)
    with pytest.raises(ValueError, match=r"'out' must have room for a run.*No space left"):
        fit(problem(), out=tmp_path)
    monkeypatch.undo()
    assert fit(problem(), out=tmp_path).complete, "nothing stands in the way of another try"


def test_other_data_of_the_same_size_are_not_resumed(tmp_path: Path) -> None:
    fit(problem(), out=tmp_path)
    with pytest.raises(ValueError, match=r"'data\.train' must be that of the run in .* to resume it"):
        fit(problem(train=classes(seed=9)), out=tmp_path, resume=True)


def test_a_folder_with_files_of_others_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text("mine")
    with pytest.raises(ValueError, match=r"'out' must be an empty folder, or .* has a 'log.jsonl'"):
        fit(problem(), out=tmp_path)
    assert (tmp_path / "log.jsonl").read_text() == "mine"
