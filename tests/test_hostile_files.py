"""Inputs that loaders once crashed, hung or grew on, found by ``stress/fuzz.py``."""

from __future__ import annotations

import gzip
import io
import json
import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import paretomtl as pm
from _helpers.census_files import text_of
from _helpers.fronts import front_of
from _helpers.fuzzing.packing import bomb
from _helpers.pictures import picture, write_picture, write_road
from paretomtl._support.files.atomic_files import read_json, sweep, write_record
from paretomtl._support.files.tensor_files import write_tensors
from paretomtl.cli._options import parse_settings
from paretomtl.cli._run_options import RunOptions
from paretomtl.compare import load_rows
from paretomtl.front.indicators import quick_hypervolume
from paretomtl.problems import Faces, load_utkface
from paretomtl.problems._census.layout import CENSUS
from paretomtl.problems._census.text import read_records
from paretomtl.problems._data.array_file import write_arrays
from paretomtl.problems._data.images import BrokenPictureError, read_picture
from paretomtl.problems._localization.apolloscape import read_apolloscape
from paretomtl.problems._localization.rotations import check_rotation
from paretomtl.problems._multi_mnist.idx import read_idx
from paretomtl.report.page._server import Watched
from paretomtl.runs import read_log
from paretomtl.runs.checkpoint_file import FORMAT, read_checkpoint
from paretomtl.runs.folder import RunFolder
from paretomtl.runs.log import LogTail

DEEP = "[" * 100_000


@pytest.mark.parametrize("text", [DEEP, "1" * 5000, "\ud800"], ids=["deep", "digits", "bytes"])
def test_json_that_python_chokes_on_is_damaged(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_bytes(text.encode(errors="surrogatepass"))
    with pytest.raises(ValueError, match=r"a.json' must be a JSON file. It is damaged"):
        read_json(tmp_path / "a.json")


@pytest.mark.parametrize("line", [b"\xff", DEEP.encode(), b"1" * 5000, b"[1]", b"null", b""])
def test_a_log_leaves_out_what_is_no_event(tmp_path: Path, line: bytes) -> None:
    run = RunFolder(tmp_path)
    run.log("start", task="left\u2028right")
    with (tmp_path / "log.jsonl").open("ab") as file:
        file.write(line + b"\n")
    run.log("end")
    assert [event["event"] for event in read_log(tmp_path)] == ["start", "end"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("reference", [1.0, "x"]),
        ("ideal", ["x", 0.0]),
        ("losses", {"train": [[1.0, 2.0], [3.0]]}),
        ("losses", {"train": [[10**400, 1.0]] * 2}),
        ("losses", {}),
        ("losses", {"elsewhere": [[1.0, 2.0]] * 2}),
        ("tasks", ["a", 5]),
        ("tasks", None),
        ("status", ["feasible"]),
        ("subproblems", [0, 5]),
        ("subproblems", [0, 0]),
        ("preferences", [[1.0], [0.0]]),
        ("dtype", "nn"),
        ("models", "\0"),
        ("models", ".."),
        ("scale", [[1.0, 2.0]]),
        ("seed", "0"),
        ("snapshot", 5),
        ("better", {"x": "sideways"}),
        ("better", {"x": {}}),
        ("better", []),
        ("seconds", 10**400),
        ("seed", 10**400),
        ("reference", [10**400, 1.0]),
        ("epochs", [10**400, 1]),
        ("preferences", 5),
        ("preferences", [[1.0, 0.0]] * 10_001),
        ("preferences", [[10**400, 1.0]] * 2),
        ("subproblems", [[0], [1]]),
        ("dtype", "int64"),
        ("dtype", "load"),
        ("dtype", 5),
        ("metrics", {"train": []}),
        ("models", 5),
        ("models", {"kind": "stacked", "file": "models-0.safetensors", "sha256": "0"}),
        ("numbers", {"file": "../numbers-0.safetensors"}),
    ],
)
def test_a_front_of_other_fields_is_damaged(tmp_path: Path, field: str, value: Any) -> None:
    front_of([[1.0, 2.0], [2.0, 1.0]]).save(tmp_path)
    words = json.loads((tmp_path / "front.json").read_text())
    assert field in words
    del words["sha256"]
    (tmp_path / "front.json").write_text(json.dumps({**words, field: value}))
    with pytest.raises((ValueError, FileNotFoundError), match=str(tmp_path)) as found:
        pm.Front.load(tmp_path)
    assert field in str(found.value)
    assert "Error(" not in str(found.value)


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '[{"x": {"b": 1, "b": 1}}]'])
def test_a_name_that_is_there_twice_is_damage(tmp_path: Path, text: str) -> None:
    """Of two values readers take the first or the last, and a checksum is of one of them."""
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(ValueError, match=r"a.json' must be a JSON file. It is damaged: '[ab]' appears twice"):
        read_json(tmp_path / "a.json")


@pytest.mark.parametrize("field", ["epoch", "step", "number"])
def test_a_checkpoint_counts_no_further_than_computers_do(tmp_path: Path, field: str) -> None:
    write_checkpoint(tmp_path, {"epoch": 1, "step": 1, "number": 1, field: 10**400})
    with pytest.raises(ValueError, match=r"checkpoint.safetensors' must describe the state of a run"):
        read_checkpoint(tmp_path / "checkpoint.safetensors")


@pytest.mark.parametrize("field", ["seed", "epochs"])
@pytest.mark.parametrize("value", [torch.nan, torch.inf, "x", None, [], 10**400])
def test_a_page_has_valid_numbers_whatever_a_configuration_says(tmp_path: Path, field: str, value: Any) -> None:
    config = {"tasks": ["a", "b"], "preferences": [[1.0, 0.0]], "subproblems": [0], "epochs": 3, "seed": 0}
    write_record(tmp_path / "config.json", {**config, field: value}, format=FORMAT)
    data, _ = Watched([tmp_path]).data()
    (view,) = json.loads(data, parse_constant=pytest.fail)["runs"]
    assert view[field] is None or isinstance(view[field], int)


def test_a_line_of_a_log_without_end_is_stepped_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paretomtl.runs.log.LINE", 100)
    long = json.dumps({"event": "epoch", "x": "x" * 250})
    path = tmp_path / "log.jsonl"
    path.write_text('{"event": "start"}\n' + long + '\n{"event": "stopped"}\n' + "y" * 350)
    tail = LogTail(path)
    assert [event["event"] for event in tail.events()] == ["start", "stopped"]
    assert [event["event"] for event in read_log(tmp_path)] == ["start", "stopped"]
    with path.open("a") as file:
        file.write('{"event": "start"}\n{"event": "end"}\n')
    assert [event["event"] for event in tail.events()] == ["end"], "the rest of a long line is no event"


def test_a_folder_among_leftovers_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".a.unfinished-1-2").mkdir()
    (tmp_path / ".b.unfinished-1-2").write_text("")
    (tmp_path / "mine").write_text("mine")
    (tmp_path / ".c.unfinished-1-2").symlink_to(tmp_path / "mine")
    sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".a.unfinished-1-2", "mine"]


def test_a_hypervolume_that_takes_for_ever_is_left_out() -> None:
    losses = torch.nn.functional.normalize(torch.rand(300, 8, generator=torch.Generator().manual_seed(0)), dim=-1)
    front = front_of(losses.tolist(), reference=(2.0,) * 8)
    assert quick_hypervolume(front) is None
    few = front_of(losses[:9].tolist(), reference=(2.0,) * 8)
    assert quick_hypervolume(few) == few.hypervolume()
    assert quick_hypervolume(front_of([[1.0, 2.0]])) is None, "there is no reference"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_rows_and_prepared_data_are_regular_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "compare.json")
    with pytest.raises(ValueError, match=r"compare.json' must be a regular file. It is a pipe"):
        load_rows(tmp_path / "compare.json")
    os.mkfifo(tmp_path / "utkface-4.npz")
    with pytest.raises(ValueError, match=r"utkface-4.npz' must be a regular file. It is a pipe"):
        load_utkface(tmp_path, 4)
    write_arrays(tmp_path / "elsewhere.npz", _faces(), version=1, name="utkface", side=4)
    (tmp_path / "utkface-4.npz").unlink()
    (tmp_path / "utkface-4.npz").symlink_to("elsewhere.npz")
    assert len(load_utkface(tmp_path, 4)) == 3, "data may lie on another disk"


@pytest.mark.parametrize(
    "state", ["", "5", DEEP, "[]", "{}", '{"tensor": "absent"}', '{"dict": [[1]]}', '{"value": 5}']
)
def test_a_signed_checkpoint_of_something_else_is_damaged(tmp_path: Path, state: str) -> None:
    words = {"kind": "checkpoint", "format": "3", "state": state}
    write_tensors(tmp_path / "checkpoint.safetensors", {"x": torch.ones(1)}, words)
    with pytest.raises(ValueError, match=r"checkpoint.safetensors' must "):
        read_checkpoint(tmp_path / "checkpoint.safetensors")


def test_a_checkpoint_that_is_none_is_told_in_few_words(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    write_tensors(path, {"x": torch.ones(1)}, {"kind": "k" * 999, "state": "s" * 999})
    with pytest.raises(ValueError, match=r"must be a checkpoint. Got 'k{39} instead"):
        read_checkpoint(path)


@pytest.mark.parametrize(
    "packed",
    [
        {"complex": "x"},
        {"number": [10**400, 0]},
        {"set": [{"list": []}]},
        *({"array": ["x", dtype, [1]]} for dtype in ("O", "i4,O", "<U99999999", "M8[x]", None, ["i4"])),
        {"array": ["x", "|u1", [10**30]]},
        {"scalar": ["y", "|u1", []]},
    ],
    ids=str,
)
def test_a_checkpoint_whose_state_is_malformed_is_damaged(packed: Any, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    meta = {"kind": "checkpoint", "format": "3", "state": json.dumps(packed)}
    write_tensors(path, {"x": torch.zeros(3, dtype=torch.uint8)}, meta)
    with pytest.raises(ValueError, match=r"checkpoint.safetensors' must .* It is damaged"):
        read_checkpoint(path)


def test_a_checkpoint_that_does_not_fit_the_run_is_named(tmp_path: Path) -> None:
    def train(**options: Any) -> pm.Front:
        problem = pm.problems.quadratic()
        return pm.fit(problem, preferences=2, epochs=2, out=tmp_path, progress="quiet", device="cpu", **options)

    train()
    for path in (tmp_path / "front").iterdir():
        path.unlink()
    (tmp_path / "checkpoint-previous.safetensors").unlink()
    whole = read_checkpoint(tmp_path / "checkpoint.safetensors")
    state = whole["groups"][0]["state"]
    other = {name: torch.zeros(3, *tensor.shape[1:]) for name, tensor in state.items()}
    for changes, message in (
        ({"epoch": -(10**9)}, "must describe the state of a run"),
        ({"groups": []}, "must be of this run to resume it. It does not fit"),
        (
            {"trace": {**whole["trace"], "first": torch.ones(())}},
            "the history has another number of models or tasks",
        ),
        ({"groups": [{**group, "state": other} for group in whole["groups"]]}, "the method has a state of"),
    ):
        write_checkpoint(tmp_path, {**whole, **changes})
        with pytest.raises(ValueError, match=message):
            train(resume=True)


def write_checkpoint(folder: Path, state: Any) -> None:
    """A checkpoint without one before it."""
    RunFolder(folder).save_checkpoint(state)
    (folder / "checkpoint-previous.safetensors").unlink(missing_ok=True)


def test_a_strategy_that_was_not_taken_is_named(tmp_path: Path) -> None:
    options: dict[str, Any] = {"preferences": 2, "epochs": 2, "out": tmp_path, "progress": "quiet", "device": "cpu"}
    pm.fit(pm.problems.quadratic(), **options)
    config = json.loads((tmp_path / "config.json").read_text())
    del config["sha256"]
    for taken in (5, {}, {**config["taken"], "strategy": "slow"}, {**config["taken"], "workers": -1}):
        (tmp_path / "config.json").write_text(json.dumps({**config, "taken": taken}))
        with pytest.raises(ValueError, match=r"config.json' must be of this run to resume it. It does not fit"):
            pm.fit(pm.problems.quadratic(), **options, resume=True)


@pytest.mark.parametrize(("field", "value"), [("with_", None), ("set_", [1]), ("compile", "no"), ("epochs", True)])
def test_options_of_another_kind_are_named(tmp_path: Path, field: str, value: Any) -> None:
    names = "problem with_ method set_ epochs batch_size optimizer learning_rate weight_decay seed strategy device "
    names += "precision weigh_every workers clip_norm compile keep"
    options: dict[str, Any] = dict.fromkeys(names.split())
    options |= dict.fromkeys(("problem", "method", "strategy", "precision", "keep"), "x")
    options |= {"with_": [], "set_": [], "seed": 0, "weigh_every": 1, "compile": False, "clip_norm": 1}
    (tmp_path / "asked.json").write_text(json.dumps(options))
    assert RunOptions.load(tmp_path).training.clip_norm == 1
    (tmp_path / "asked.json").write_text(json.dumps({**options, field: value}))
    with pytest.raises(ValueError, match=rf"asked.json' must hold the options of a run. Got .* for '{field}'"):
        RunOptions.load(tmp_path)


def test_rows_must_be_objects(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"rows": [{}, 5]}')
    with pytest.raises(ValueError, match=r"a.json' must hold an object with a list of rows"):
        load_rows(tmp_path / "a.json")


def test_brackets_without_end_are_text_on_the_command_line() -> None:
    for value in ("-" * 50_000 + "1", "[[]," * 50_000):
        assert parse_settings("--set", [f"epsilon={value}"], ["epsilon"], "x") == {"epsilon": value}


def test_an_idx_file_is_not_unpacked_further_than_its_shape(tmp_path: Path) -> None:
    head = b"".join(n.to_bytes(4, "big") for n in (0x801, 5))
    (tmp_path / "a.gz").write_bytes(gzip.compress(head) + bomb(".gz", b"\0", 1 << 24))
    with pytest.raises(ValueError, match=r"a.gz' must hold 5 bytes after its header. Got more instead"):
        read_idx(tmp_path / "a.gz", (5,))


def test_a_long_number_takes_no_longer_than_it_is(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(text_of([{"capital_gains": "1" * 60_000 + "x"}]))
    with pytest.raises(ValueError, match=r"a' must have a number for 'capital_gains'. Line 1"):
        read_records(tmp_path / "a")


def test_the_checksum_of_a_bomb_is_taken_in_small_pieces() -> None:
    class Pieces(list[int]):
        def update(self, piece: bytes) -> None:
            self.append(len(piece))

    digest = CENSUS.digest()
    digest._md5 = pieces = Pieces()
    digest.update(bomb(".gz", b"\n", 1 << 24))
    assert sum(pieces) == 1 << 24
    assert max(pieces) <= 1 << 20


def test_a_huge_matrix_is_no_rotation() -> None:
    matrix = np.array([[1e200, -1e200, 0.0], [1e200, 1e200, 0.0], [0.0, 0.0, 1.0]])
    with pytest.raises(ValueError, match=r"here: a rotation must have orthonormal columns"):
        check_rotation(matrix, "here")


@pytest.mark.parametrize("line", [".", "/", "..", "a/."])
def test_a_list_of_something_else_is_named(tmp_path: Path, line: str) -> None:
    write_road(tmp_path, 1, ["Camera_1"])
    (tmp_path / "split").mkdir()
    for name in ("train.txt", "val.txt"):
        (tmp_path / "split" / name).write_text(line)
    with pytest.raises(ValueError, match=r"train.txt', line 1 must be RECORD/CAMERA/NAME of an image"):
        read_apolloscape(tmp_path, (4, 4))


def test_pictures_are_jpeg_or_png_of_a_size_that_photographs_have(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install 'paretomtl[images]'")
    image.new("RGB", (4, 4)).save(tmp_path / "a.jpg", "bmp")
    with pytest.raises(BrokenPictureError, match=r"a.jpg' must be a whole picture"):
        read_picture(tmp_path / "a.jpg", (4, 4))
    image.new("1", (7000, 7000)).save(tmp_path / "b.png")
    with pytest.raises(BrokenPictureError, match=r"b.png' .* it has 49,000,000 pixels, and 40,000,000 are the most"):
        read_picture(tmp_path / "b.png", (4, 4))


def test_a_declared_length_is_not_believed(tmp_path: Path) -> None:
    write_picture(tmp_path / "a.png", picture(0))
    data = (tmp_path / "a.png").read_bytes()
    place = data.index(b"IDAT") - 4
    (tmp_path / "a.png").write_bytes(data[:place] + struct.pack(">I", 2**31 - 1) + data[place + 4 :])
    try:
        assert read_picture(tmp_path / "a.png", (4, 4)).shape == (3, 4, 4)
    except BrokenPictureError as error:
        assert not isinstance(error.__context__, MemoryError)  # noqa: PT017 (decoders differ)


def _faces(**changes: Any) -> dict[str, Any]:
    names = np.array(["a", "b", "c"])
    arrays = Faces(np.zeros((3, 3, 4, 4), np.uint8), np.zeros((3, 3), np.uint8), names).arrays
    return {name: changes.get(name, array) for name, array in arrays.items()}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": np.full((3, 3), 9, np.uint8)}, "'labels' has values out of range"),
        ({"labels": np.zeros((2, 3), np.uint8)}, r"'labels' has the shape \[2, 3\]"),
        ({"images": np.zeros((3, 3, 4, 4))}, "'images' has values of float64"),
        ({"names": np.zeros((0,), "U1")}, r"'names' has the shape \[0\]"),
    ],
)
def test_signed_arrays_of_another_form_are_named(tmp_path: Path, changes: Any, message: str) -> None:
    path = tmp_path / "utkface-4.npz"
    write_arrays(path, _faces(), version=1, name="utkface", side=4)
    assert len(load_utkface(tmp_path, 4)) == 3
    write_arrays(path, _faces(**changes), version=1, name="utkface", side=4)
    with pytest.raises(ValueError, match=message):
        load_utkface(tmp_path, 4)
    write_arrays(path, {**_faces(), "more": np.zeros(1)}, version=1, name="utkface", side=4)
    with pytest.raises(ValueError, match=r"Got images, labels, names, more instead"):
        load_utkface(tmp_path, 4)


def test_arrays_that_are_packed_or_longer_than_the_file_are_damaged(tmp_path: Path) -> None:
    path = tmp_path / "utkface-4.npz"
    np.savez_compressed(path, **_faces(), version=1, name="utkface", side=4, checksum="")
    with pytest.raises(ValueError, match=r"utkface-4.npz' must be a whole file .*it is compressed"):
        load_utkface(tmp_path, 4)
    member = io.BytesIO()
    np.save(member, np.zeros(3, dtype=np.uint8))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("images.npy", member.getvalue().replace(b"(3,), }          ", b"(99999999999,), }"))
    with pytest.raises(ValueError, match=r"'images.npy' is not as long as its header says"):
        load_utkface(tmp_path, 4)


def test_a_directory_that_points_before_the_file_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "utkface-4.npz"
    write_arrays(path, _faces(), version=1, name="utkface", side=4)
    data = path.read_bytes()
    end = data.rindex(b"PK\5\6")
    path.write_bytes(data[: end + 12] + struct.pack("<I", 2**31) + data[end + 16 :])
    with pytest.raises(ValueError, match=r"utkface-4.npz' must be a whole file of prepared data"):
        load_utkface(tmp_path, 4)
