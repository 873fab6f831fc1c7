from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from _helpers.pictures import write_faces, write_road
from _helpers.sources import REAL, converted, real_folder, use_small_sources
from paretomtl.cli._app import app
from paretomtl.problems._multi_mnist import files as _prepared

runner = CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1"})


def call(*arguments: str, code: int = 0) -> str:
    found = runner.invoke(app, list(arguments))
    assert found.exit_code == code, found.output
    return found.output


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PARETOMTL_DATA", str(tmp_path / "data"))
    return use_small_sources(tmp_path / "sources", monkeypatch)


def prepare(sources: Path, *arguments: str) -> str:
    return call("data", "prepare", "multi-mnist", "--from", str(sources), *arguments)


def test_prepare_makes_a_file_and_a_sheet_and_prints_the_checksum(sources: Path, tmp_path: Path) -> None:
    text = prepare(sources, "--seed", "1")
    made = _prepared.load_canvases("multi-mnist", tmp_path / "data", 1)
    assert "multi-mnist, regenerated with seed 1: 120 training and 24 test canvases" in text
    assert f"sha256  {made.checksum()} (published for seed 0 only)" in text
    assert f"sheet   {tmp_path / 'data' / 'multi-mnist-seed1.png'}" in text
    assert (tmp_path / "data" / "multi-mnist-seed1.png").stat().st_size > 20_000
    assert "original" not in text
    assert "There already" in prepare(sources, "--seed", "1")


def test_the_cache_and_the_sheet_go_where_they_are_asked_to(sources: Path, tmp_path: Path) -> None:
    sheet, cache = tmp_path / "pictures" / "some.png", tmp_path / "cache"
    asked = ["data", "prepare", "multi-mnist", "--from", str(sources), "--seed", "1", "--cache", str(cache)]
    facts = json.loads(runner.invoke(app, [*asked, "--sheet", str(sheet), "--json"]).stdout)
    assert facts["file"] == str(cache / "multi-mnist-seed1.npz")
    assert facts["sheet"] == str(sheet)
    assert facts["train"] == 120
    assert sheet.read_bytes().startswith(b"\x89PNG")
    assert "sheet  " not in prepare(sources, "--seed", "2", "--no-sheet")
    assert not (tmp_path / "data" / "multi-mnist-seed2.png").exists()


def test_without_figures_the_data_are_made_all_the_same(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    text = prepare(sources, "--seed", "1")
    assert "No contact sheet: 'matplotlib' is needed for this and is not installed: pip install" in text
    assert "sha256" in text
    assert (tmp_path / "data" / "multi-mnist-seed1.npz").exists()


@pytest.mark.study
def test_what_was_prepared_is_trained_on_by_name(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_prepared, "_check_published", lambda *arguments: None)
    assert "paretomtl run multi-mnist" in prepare(sources)
    elsewhere = prepare(sources, "--cache", str(tmp_path / "other"))
    assert f"PARETOMTL_DATA={tmp_path / 'other'} paretomtl run multi-mnist" in elsewhere
    quick = ("--epochs", "1", "--preferences", "2", "--device", "cpu", "--json")
    facts = json.loads(call("run", "multi-mnist", "--out", str(tmp_path / "run"), "--progress", "quiet", *quick))
    assert facts["tasks"] == ["top-left", "bottom-right"]
    assert facts["reference"] == [2.0, 2.0]
    compare = ("compare", "multi-mnist", "--methods", "linear,mgda", "--seeds", "1", *quick)
    ranked = json.loads(call(*compare, "--progress", "quiet"))
    assert (ranked["split"], ranked["note"]) == (
        "train",
        "No validation split; add --with validation=True to rank by it.",
    )
    held_out = json.loads(call(*compare, "--progress", "quiet", "--with", "validation=True"))
    assert (held_out["split"], held_out["note"]) == ("val", None)


def test_arguments_of_a_problem_are_set_on_the_command_line(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a validation split and the paper's recipe; results of another recipe are not mixed with them."""
    monkeypatch.setattr(_prepared, "_check_published", lambda *arguments: None)
    prepare(sources)
    quick = ("--epochs", "1", "--preferences", "2", "--device", "cpu")
    asked = ("--with", "recipe=paper", "--with", "validation=True", "--keep", "best")
    call("run", "multi-mnist", *asked, "--out", str(tmp_path / "run"), "--progress", "quiet", *quick)
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["optimizer"].startswith("SGD")
    assert (config["samples"], config["keep"]) == (100, "best")
    into = ("--methods", "linear", "--seeds", "1", "--out", str(tmp_path / "compare"), *quick)
    call("compare", "multi-mnist", "--with", "recipe=paper", *into)
    stored = json.loads((tmp_path / "compare" / "compare.json").read_text())
    assert stored["command"] == "paretomtl compare multi-mnist --with recipe=paper --methods linear --seeds 1"
    assert "must hold results of the same problem and options" in call("compare", "multi-mnist", *into, code=2)


@pytest.mark.study
def test_three_images_are_prepared_and_trained_on_by_name(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_prepared, "_check_published", lambda *arguments: None)
    text = call("data", "prepare", "multi-fashion-3", "--from", str(sources))
    assert "multi-fashion-3, made with seed 0: 120 training and 24 test canvases, 36 by 36" in text
    assert (tmp_path / "data" / "multi-fashion-3-seed0.png").stat().st_size > 20_000
    quick = ("--epochs", "1", "--preferences", "3", "--device", "cpu", "--progress", "quiet", "--json")
    facts = json.loads(call("run", "multi-fashion-3", "--out", str(tmp_path / "run"), *quick))
    assert facts["tasks"] == ["top-left", "bottom-right", "top-right"]
    assert facts["reference"] == [2.0, 2.0, 2.0]


def test_the_problems_are_listed() -> None:
    problems = json.loads(call("list", "--json"))["problem"]
    for name in ("multi-mnist", "multi-fashion", "multi-fashion-mnist"):
        assert "regenerated: classify both." in problems[name]
    for name in ("multi-mnist-3", "multi-fashion-3"):
        assert "not in the paper: classify all three." in problems[name]
    assert "predict it alike for women and men." in problems["census-parity"]


def test_what_is_not_prepared_says_how_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARETOMTL_DATA", str(tmp_path))
    text = call("run", "multi-fashion", code=2)
    assert f"'{tmp_path / 'multi-fashion-seed0.npz'}' does not exist yet" in text
    assert text.strip().endswith("Make it with: paretomtl data prepare multi-fashion")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["multi-faces"], "multi-fashion-3, census, utkface, localization. Got 'multi-faces' instead"),
        (["census-parity"], "Got 'census-parity' instead. Did you mean 'census'?"),
        (["multi-mnist", "--from", "nowhere"], "'source' (--from) must be a folder with the files of MNIST"),
        (["multi-mnist", "--seed", "-1"], "'seed' must be a whole number that is not negative. Got -1"),
        (["multi-mnist", "--cache", "/proc/nowhere"], "'cache' must be a folder that can be written"),
        (["multi-mnist", "--from", "."], "The canvases must have the published SHA-256"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(
    sources: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(sources)
    text = call("data", "prepare", *arguments, code=2)
    assert message in text
    assert "Traceback" not in text


def test_files_that_were_altered_are_named(sources: Path) -> None:
    path = sources / "mnist" / "t10k-labels-idx1-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-1])
    text = call("data", "prepare", "multi-mnist", "--from", str(sources), "--seed", "1", code=2)
    assert f"'{path}' must be the published file of MNIST, md5" in text


def test_without_a_network_the_error_says_what_to_do(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from paretomtl.problems._data import download as _download
    from paretomtl.problems._multi_mnist.idx import SOURCES

    monkeypatch.setattr(_download, "_PAUSE", 0.0)
    monkeypatch.setitem(
        SOURCES, "mnist", replace(SOURCES["mnist"], mirrors=("http://127.0.0.1:9/a/", "http://127.0.0.1:9/b/"))
    )
    text = call("data", "prepare", "multi-mnist", "--seed", "1", code=2)
    assert "could not be downloaded from any address" in text
    assert "http://127.0.0.1:9/b/train-images-idx3-ubyte.gz: " in text
    assert "--from FOLDER" in text


@pytest.mark.study
@pytest.mark.parametrize("name", ["multi-fashion-mnist", "multi-mnist-3"])
def test_the_real_files_make_what_is_published(tmp_path: Path, name: str) -> None:
    assert real_folder() == REAL
    text = call("data", "prepare", name, "--from", str(REAL), "--cache", str(tmp_path), "--no-sheet")
    assert f"sha256  {_prepared.PUBLISHED[name]} (as published)" in text
    (tmp_path / f"{name}-seed0.npz").unlink()  # 182 MB


def test_help_explains() -> None:
    assert "prepare" in call("data", "--help")
    text = call("data", "prepare", "--help")
    assert "--from" in text
    assert "--json" in text


@pytest.mark.study
@pytest.mark.filterwarnings("ignore:first losses differ")
def test_faces_are_prepared_and_trained_on_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARETOMTL_DATA", str(tmp_path / "data"))
    write_faces(tmp_path / "faces", [(20 + i, i % 2, i % 5) for i in range(12)])
    text = call("data", "prepare", "utkface", "--from", str(tmp_path / "faces"), "--side", "16")
    assert "utkface, 12 faces, 16 by 16" in text
    assert "paretomtl run utkface --with side=16" in text
    quick = ("--epochs", "1", "--method", "linear", "--preferences", "1", "--device", "cpu", "--progress", "quiet")
    facts = json.loads(call("run", "utkface", "--with", "side=16", *quick, "--out", str(tmp_path / "run"), "--json"))
    assert facts["tasks"] == ["gender", "race", "age"]
    (tmp_path / "faces" / "noname.jpg").write_bytes(b"")
    other = ("data", "prepare", "utkface", "--from", str(tmp_path / "faces"), "--side", "8")
    assert "noname.jpg" in call(*other, code=2)
    assert "12 faces, 8 by 8" in call(*other, "--skip-broken")


def test_frames_are_prepared_and_sizes_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARETOMTL_DATA", str(tmp_path / "data"))
    road = write_road(tmp_path / "road", 8)
    asked = ["data", "prepare", "localization", "--from", str(road), "--size", "8x12", "--json"]
    facts = json.loads(runner.invoke(app, asked).stdout)
    assert facts["frames"] == len(list(road.rglob("*.jpg")))
    assert facts["file"] == str(tmp_path / "data" / "localization-8x12.npz")
    assert facts["published"] is None
    text = call("data", "prepare", "localization", "--size", "8", code=2)
    assert "'--size' must be height and width in pixels, such as 48x64. Got '8' instead" in " ".join(text.split())
    assert "must be a folder with frames and poses" in call("data", "prepare", "localization", "--size", "4x4", code=2)


@pytest.mark.study
def test_the_real_census_is_prepared_and_made_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = call("data", "prepare", "census", "--from", str(converted("census-income-kdd")), "--cache", str(tmp_path))
    assert "census, 199,523 training and 99,762 test records, 482 features" in text
    assert "(as published)" in text
    assert f"PARETOMTL_DATA={tmp_path} paretomtl run census" in text
