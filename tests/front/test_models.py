"""Model stores: weights are read when a model is asked for, alone, and verified then."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from typer.testing import CliRunner

import paretomtl as pm
from _helpers.fronts import assert_equal, front_of
from _helpers.networks import MLP, fit, problem
from paretomtl._support.files.atomic_files import read_record, write_record
from paretomtl._support.files.tensor_files import read_tensors, write_named_tensors
from paretomtl.cli._app import app
from paretomtl.front.models import LOSSES_ALONE, STILL_TRAINING, ModelStore, SeparateModules
from paretomtl.front.storage.model_files import KINDS
from paretomtl.report.page._live import LiveRun


def models_file(folder: Path) -> Path:
    return next(path for path in folder.rglob("models-*.safetensors"))


def spoil(path: Path, row: int | None = None) -> None:
    """Change every weight in a file of models, or those of one row."""
    data = bytearray(path.read_bytes())
    (length,) = struct.unpack("<Q", data[:8])
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name == "__metadata__":
            continue
        start, end = (8 + length + place for place in entry["data_offsets"])
        step = (end - start) // entry["shape"][0]
        rows = range(entry["shape"][0]) if row is None else [row]
        for k in rows:
            data[start + k * step] ^= 1
    path.write_bytes(data)


def test_one_model_is_read_and_verified_alone(tmp_path: Path) -> None:
    saved = fit()
    saved.save(tmp_path)
    spoil(models_file(tmp_path), row=1)
    front = pm.Front.load(tmp_path, problem())
    for k in (0, 2):
        for name, tensor in saved.state_dict(k).items():
            assert torch.equal(front.state_dict(k)[name], tensor)
        assert isinstance(front.model(k), MLP)
    with pytest.raises(ValueError, match=r"models-.* The checksum of row 1 differs: it was changed") as error:
        front.state_dict(1)
    assert "paretomtl doctor" in "".join(error.value.__notes__)
    with pytest.raises(ValueError, match="was changed"):
        front.models.verify()


def test_numbers_are_read_without_any_weights(tmp_path: Path) -> None:
    """All weights are spoilt, and nothing that needs no model notices."""
    trained = fit(problem(), out=tmp_path)
    (tmp_path / "asked.json").unlink(missing_ok=True)
    path = models_file(tmp_path)
    before = path.stat()
    spoil(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    front = pm.Front.load(tmp_path)
    assert repr(front)
    assert torch.equal(front.losses["train"], trained.losses["train"])
    assert torch.equal(front.history["losses"], trained.history["losses"])
    page = tmp_path.parent / "page.html"
    for command, *rest in (["show"], ["select", "--max-regret"], ["report", "--out", str(page)]):
        done = CliRunner().invoke(app, [command, str(tmp_path), *rest])
        assert done.exit_code == 0, done.output
    run = LiveRun(tmp_path, "run")
    run.poll()
    assert run.news.state == "finished"
    assert run.view()["exports"]
    assert fit(problem(), out=tmp_path, resume=True).complete
    with pytest.raises(ValueError, match="was changed"):
        front.state_dict(0)


def test_a_file_that_goes_after_loading_is_said_to_be(tmp_path: Path) -> None:
    fit(seed=0).save(tmp_path)
    front = pm.Front.load(tmp_path)
    fit(seed=1).save(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"models-.*removed or replaced since the front was loaded: load"):
        front.state_dict(0)


def test_a_loaded_front_is_saved_elsewhere_and_where_it_is(tmp_path: Path) -> None:
    saved = fit()
    saved.save(tmp_path / "a")
    path = models_file(tmp_path / "a")
    before = path.stat()
    front = pm.Front.load(tmp_path / "a")
    front.save(tmp_path / "a")
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns), "not written again"
    front.save(tmp_path / "b")
    for name in ("a", "b"):
        assert_equal(pm.Front.load(tmp_path / name), saved)
        pm.Front.load(tmp_path / name).models.verify()


def test_the_working_directory_may_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = fit()
    monkeypatch.chdir(tmp_path)
    saved.save("a")
    front = pm.Front.load("a")
    (tmp_path / "b").mkdir()
    monkeypatch.chdir(tmp_path / "b")
    assert torch.equal(front.state_dict(1)["trunk.0.weight"], saved.state_dict(1)["trunk.0.weight"])


def test_weights_are_copies(tmp_path: Path) -> None:
    front = fit()
    front.state_dict(0)["trunk.0.weight"].zero_()
    assert front.state_dict(0)["trunk.0.weight"].any()
    front.save(tmp_path)
    stored = pm.Front.load(tmp_path)
    numbers = next(tmp_path.glob("numbers-*"))
    numbers.write_bytes(bytes(numbers.stat().st_size))  # in place: memory that was mapped would change with it
    assert torch.equal(stored.history["losses"], front.history["losses"])


def test_files_of_the_user_in_the_folder_stay(tmp_path: Path) -> None:
    names = ["models.safetensors", "models_v2.safetensors", "models-mine.safetensors", "numbers_of_mine.safetensors"]
    for name in names:
        (tmp_path / name).write_text("mine")
    for seed in (0, 1):
        fit(seed=seed).save(tmp_path)
    assert all((tmp_path / name).read_text() == "mine" for name in names)
    assert len(list(tmp_path.iterdir())) == len(names) + 3


def test_a_save_that_finds_no_models_leaves_nothing(tmp_path: Path) -> None:
    fit(seed=0).save(tmp_path / "a")
    front = pm.Front.load(tmp_path / "a")
    models_file(tmp_path / "a").unlink()
    with pytest.raises(FileNotFoundError, match="load the front again"):
        front.save(tmp_path / "b")
    assert list((tmp_path / "b").iterdir()) == []


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"rows": []}, "a checksum for each of 3 models"),
        ({"rows": [1, 2, 3]}, "a checksum for each of 3 models"),
        ({"kind": "unheard-of"}, "must name a known kind of model store, stacked. Got 'unheard-of'"),
        ({"kind": ["stacked"]}, "must name a known kind of model store"),
        ({"sha256": "0" * 64}, "must name a file of models in the same folder, and its checksum"),
    ],
)
def test_an_entry_that_does_not_fit_is_refused(entry: dict[str, Any], message: str, tmp_path: Path) -> None:
    fit().save(tmp_path)
    words = read_record(tmp_path / "front.json", [2])
    write_record(tmp_path / "front.json", {**words, "models": {**words["models"], **entry}}, format=2)
    with pytest.raises(ValueError, match=message):
        pm.Front.load(tmp_path)


def test_a_file_with_other_rows_is_refused(tmp_path: Path) -> None:
    fit().save(tmp_path)
    words = read_record(tmp_path / "front.json", [2])
    path, checksum = write_named_tensors(tmp_path, "models", {"x": torch.zeros(2, 5)}, {})
    entry = {**words["models"], "file": path.name, "sha256": checksum}
    write_record(tmp_path / "front.json", {**words, "models": entry}, format=2)
    with pytest.raises(ValueError, match=r"models-.* must hold tensors of 3 rows, one for each model"):
        pm.Front.load(tmp_path)


@pytest.mark.parametrize(
    ("store", "message"),
    [(LOSSES_ALONE, "of a front that has only losses"), (STILL_TRAINING, "of a run that still trains: its models")],
)
def test_a_front_without_models_says_why(store: ModelStore, message: str) -> None:
    front = replace(front_of([[1.0, 2.0], [2.0, 1.0]], names=("first", "second")), models=store)
    assert not front.models
    for ask in (front.model, front.state_dict):
        with pytest.raises(ValueError, match=rf"'k' must be .* Got model 1 \(second\) {message}"):
            ask(1)
    assert front.models.stacked() == {}


def test_modules_of_any_kind_are_kept_in_memory(tmp_path: Path) -> None:
    modules = [nn.Linear(1, 2).eval(), nn.Linear(3, 2).eval()]
    front = replace(front_of([[1.0, 2.0], [2.0, 1.0]]), models=SeparateModules(modules))
    assert front.state_dict(1)["weight"].shape == (2, 3)
    copy = front.model(1)
    assert copy is not modules[1]
    with pytest.raises(ValueError, match="'models' must have one architecture to be stacked"):
        front.models.stacked()
    with pytest.warns(UserWarning, match="the models are not stored"):
        front.save(tmp_path)
    assert not pm.Front.load(tmp_path).models


class Mixture(ModelStore):
    """Each model is a mixture of a few sets of weights: a front that is not K stacked models."""

    kind = "mixture"

    def __init__(self, shares: Tensor, ends: Mapping[str, Tensor]) -> None:
        self.shares, self.ends = shares, dict(ends)

    def __len__(self) -> int:
        return len(self.shares)

    def weights(self, row: int) -> dict[str, Tensor]:
        return {name: torch.tensordot(self.shares[row], ends, 1) for name, ends in self.ends.items()}

    def tensors(self) -> dict[str, Tensor]:
        return {"shares": self.shares, **{f"ends/{name}": ends for name, ends in self.ends.items()}}

    @classmethod
    def open(cls, path: Path, entry: Mapping[str, Any], count: int) -> Mixture:
        tensors, _ = read_tensors(path, entry["sha256"])
        shares = tensors.pop("shares")
        assert len(shares) == count
        return cls(shares, {name.removeprefix("ends/"): ends for name, ends in tensors.items()})


def test_a_front_of_another_kind_is_chosen_from_stored_and_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = fit()
    ends = {name: tensor[:2].double() for name, tensor in trained.models.stacked().items()}
    shares = torch.tensor([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]], dtype=torch.float64)
    numbers = front_of([[0.1, 0.9], [0.4, 0.4], [0.9, 0.1]])
    front = replace(numbers, models=Mixture(shares, ends), model_factory=MLP)
    assert front.select(knee=True).k == 1
    middle = front.model(1)
    assert isinstance(middle, MLP)
    expected = (ends["trunk.0.weight"][0] + ends["trunk.0.weight"][1]) / 2
    torch.testing.assert_close(middle.trunk[0].weight.detach(), expected)
    front.save(tmp_path)
    with pytest.raises(ValueError, match=r"must name a known kind of model store, stacked. Got 'mixture'"):
        pm.Front.load(tmp_path)
    monkeypatch.setitem(KINDS, "mixture", Mixture.open)
    found = pm.Front.load(tmp_path)
    assert isinstance(found.models, Mixture)
    for name, tensor in front.state_dict(1).items():
        assert torch.equal(found.state_dict(1)[name], tensor)
