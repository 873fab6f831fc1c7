"""What must not happen, whatever a file says: nothing is unpickled, nothing leaves its folder, nothing swells."""

from __future__ import annotations

import ast
import bz2
import gzip
import hashlib
import io
import json
import os
import pickle
import stat
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import paretomtl as pm
from _helpers.networks import fit, problem
from _helpers.servers import serving
from paretomtl._support.files.atomic_files import file_name, read_json, read_record, write_record
from paretomtl._support.files.tensor_files import read_tensors
from paretomtl.cli._app import app
from paretomtl.problems._census import text as _census_text
from paretomtl.problems._data import download as _download
from paretomtl.problems._data.array_file import read_arrays, write_arrays
from paretomtl.problems._multi_mnist.idx import read_idx
from paretomtl.runs import inspect_run
from paretomtl.runs.folder import RunFolder
from paretomtl.runs.manifest import read_manifest

SOURCE = Path(pm.__file__).parent
EVIL = ["../../x", "/etc/x", "..", ".", "", "a/b", "a\\b", "a\0b", "CON", "nul.txt", "x" * 5000, "~", "\ud800", "läuft"]


class Bomb:
    """Whoever unpickles it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (os.mkdir, (str(self.path),))


def test_the_source_has_nothing_that_unpickles_or_runs_text() -> None:
    modules = {"pickle", "_pickle", "cPickle", "dill", "joblib", "marshal", "shelve", "tarfile", "yaml"}
    calls = {"eval", "exec", "torch.load", "torch.jit.load", "torch.hub.load", "os.system", "pickle.load"}
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names if alias.name.split(".")[0] in modules]
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module] if node.module.split(".")[0] in modules else []
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                names = [called] if called in calls else []
                if called in ("np.load", "numpy.load"):
                    safe = any(k.arg == "allow_pickle" and ast.unparse(k.value) == "False" for k in node.keywords)
                    names = [] if safe else [called]
            found += [f"{path.relative_to(SOURCE)}:{node.lineno} {name}" for name in names]  # type: ignore[attr-defined]
    assert found == []


@pytest.mark.parametrize("name", ["checkpoint.safetensors", "front/models", "config.json", "front/front.json"])
def test_a_pickle_in_the_place_of_a_file_is_never_opened(name: str, tmp_path: Path) -> None:
    fit(problem(), out=tmp_path / "run")
    path = next(tmp_path.glob(f"run/{name}*"))
    buffer = io.BytesIO()
    torch.save(Bomb(tmp_path / "made"), buffer)
    for data in (pickle.dumps(Bomb(tmp_path / "made")), buffer.getvalue()):
        path.write_bytes(data)
        with pytest.raises(ValueError, match="damaged"):
            (read_tensors if path.suffix == ".safetensors" else read_json)(path)
        inspect_run(tmp_path / "run")
    assert not (tmp_path / "made").exists()


def test_arrays_of_objects_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, version=1, checksum="", x=np.array([Bomb(tmp_path / "made")], dtype=object))
    with pytest.raises(ValueError, match="must be a whole file of prepared data"):
        read_arrays(path, "make", {}, version=1)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("member", ["../x", "/x", "../../x.npy", "a/../../x"])
def test_members_of_an_archive_cannot_leave_it(member: str, tmp_path: Path) -> None:
    """Archives are read in place, and never unpacked into files."""
    folder = tmp_path / "in" / "side"
    folder.mkdir(parents=True)
    path = folder / "data.npz"
    write_arrays(path, {"x": np.arange(3)}, version=1)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(member, b"escaped")
        link = zipfile.ZipInfo("link.npy")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
        device = zipfile.ZipInfo("device.npy")
        device.external_attr = (stat.S_IFCHR | 0o666) << 16
        archive.writestr(device, b"")
    with pytest.raises(ValueError, match="must be a whole file of prepared data"):
        read_arrays(path, "make", {}, version=1)
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == [path]


def test_compressed_arrays_are_refused_before_they_swell(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    np.savez_compressed(path, version=1, checksum="", x=np.zeros(1 << 24, dtype=np.uint8))
    assert path.stat().st_size < 1 << 16
    with pytest.raises(ValueError, match="it is compressed"):
        read_arrays(path, "make", {}, version=1)


def test_a_packed_image_file_is_read_no_further_than_it_may_go(tmp_path: Path) -> None:
    path = tmp_path / "labels.gz"
    path.write_bytes(gzip.compress(bytes.fromhex("00000801 00000003") + bytes(1 << 24)))
    with pytest.raises(ValueError, match=r"must hold 3 bytes after its header. Got more instead"):
        read_idx(path, (3,))


def test_a_download_without_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_bytes(bytes(1 << 20))
    monkeypatch.setattr(_download, "LARGEST", 1 << 19)
    with serving(tmp_path / "there", monkeypatch) as server:
        source = _download.Published("it", "it", {"file": "0" * 32}, (server.address("good"),))
        with pytest.raises(OSError, match="it has more than 524,288 bytes, which no published file has"):
            _download.download(source, tmp_path / "here")
    assert not list((tmp_path / "here").iterdir())


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ""])
def test_a_text_that_swells_is_refused(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_census_text, "LARGEST_TEXT", 1 << 21)
    pack = {".gz": gzip.compress, ".bz2": bz2.compress, "": bytes}[suffix]
    path = tmp_path / f"census-income.data{suffix}"
    path.write_bytes(pack(b"\n" * (1 << 22)))
    with pytest.raises(ValueError, match="must be a text of at most 2,097,152 bytes, unpacked"):
        _census_text.read_records(path)


def test_a_checksum_of_packed_text_takes_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    text = bytes(range(256)) * (1 << 14)
    packed = gzip.compress(text) + gzip.compress(b"more")
    for step in (1000, len(packed)):
        digest = _download._UnpackedMd5()
        for start in range(0, len(packed), step):
            digest.update(packed[start : start + step])
        assert digest.hexdigest() == hashlib.md5(text + b"more").hexdigest()
    monkeypatch.setattr(_download, "LARGEST_TEXT", 1 << 20)
    digest = _download._UnpackedMd5()
    digest.update(packed)
    assert digest.hexdigest() == "no whole gzip"


@given(st.one_of(st.sampled_from(EVIL), st.text()))
def test_a_name_is_one_part_of_a_path(text: str) -> None:
    name = file_name(text)
    assert Path("runs", name).parent == Path("runs")
    assert name not in ("", ".", "..")
    assert not name.startswith(".")
    assert len(os.fsencode(name)) <= 255
    assert not set(name) & set('/\\\0:*?"<>|\n')
    assert file_name(name) == name


@pytest.mark.parametrize("name", EVIL)
def test_a_run_stays_where_runs_are(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = pm.Problem(torch.nn.Identity, len, ["a", "b"], name=name)
    monkeypatch.setattr("paretomtl.cli._train.find_problem", lambda *_: made)
    seen: list[Path] = []

    def fit(*_: Any, out: RunFolder, **__: Any) -> Any:
        seen.append(out.path)
        raise ValueError("seen")

    monkeypatch.setattr("paretomtl.cli._train.fit", fit)
    CliRunner().invoke(app, ["run", "any:thing", "--epochs", "1"])
    assert seen[0].parent == Path("runs")
    (tmp_path / seen[0]).mkdir(parents=True)


@pytest.mark.parametrize("name", [name for name in EVIL if name])
def test_tasks_and_metrics_of_any_name_are_stored_inside(name: str, tmp_path: Path) -> None:
    made = problem(metrics={name + "m": pm.Metric(lambda o, t: o[0].mean(), "lower")}, val=None)
    object.__setattr__(made, "tasks", (name, name + "2"))
    front = fit(made, out=tmp_path / "in" / "run", epochs=1)
    again = pm.Front.load(tmp_path / "in" / "run")
    assert again.tasks == front.tasks
    assert torch.equal(again.losses["train"], front.losses["train"])
    assert [each.name for each in tmp_path.iterdir()] == ["in"]
    assert [each.name for each in (tmp_path / "in").iterdir()] == ["run"]


@pytest.mark.parametrize("name", ["../../other.safetensors", "/other.safetensors", "..", "a\0b"])
def test_a_front_names_no_file_outside(name: str, tmp_path: Path) -> None:
    fit(problem(), out=tmp_path / "run")
    models = next((tmp_path / "run" / "front").glob("models-*"))
    models.rename(tmp_path / "other.safetensors")
    path = tmp_path / "run" / "front" / "front.json"
    words = read_record(path, [2])
    for entry in ({**words["models"], "file": name}, name):
        write_record(path, {**words, "models": entry}, format=2)
        with pytest.raises(ValueError, match=r"must name a file of models in the same folder"):
            pm.Front.load(tmp_path / "run")


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "front/../../x", "a\0b", "checkpoint/../x.safetensors"])
def test_a_manifest_names_no_file_outside(name: str, tmp_path: Path) -> None:
    write_record(tmp_path / "manifest.json", {"files": {name: {"size": 1, "sha256": ""}}}, format=1)
    with pytest.raises(ValueError, match="must only name files of a run"):
        read_manifest(tmp_path)


def test_json_that_is_nested_without_end_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("[" * 200_000)
    with pytest.raises(ValueError, match="must be a JSON file"):
        read_json(path)
    path.write_text(json.dumps({"format": 1, "sha256": 3}))
    with pytest.raises(ValueError, match="Its checksum differs"):
        read_record(path, [1])
