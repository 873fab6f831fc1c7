from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import paretomtl as pm
from _helpers.pictures import DATE, picture, real_folder, write_faces, write_picture, write_sheets
from paretomtl.paper.real_data.faces import KNOWING_NOTHING
from paretomtl.problems import ResNet18, face_losses, load_utkface, prepare_utkface
from paretomtl.problems._utkface import folder as faces
from paretomtl.problems._utkface.problem import split_faces

pytest.importorskip("PIL", reason="Pillow is not installed: pip install 'paretomtl[images]'")

LABELS = [(26, 0, 1), (1, 1, 4), (116, 0, 0), (26, 1, 2), (30, 1, 3), (7, 0, 2), (40, 0, 4), (55, 1, 0), (63, 0, 1)] * 3


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The published layout, with 27 faces."""
    write_faces(tmp_path / "faces", LABELS)
    return tmp_path / "faces"


@pytest.fixture
def sheets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two sheets of 4 by 5 tiles of 8 by 8, the second filled with 7."""
    monkeypatch.setattr(faces, "GRID", (4, 5))
    monkeypatch.setattr(faces, "TILE", (8, 8))
    lines = [",".join(faces.COLUMNS)]
    for i, (age, gender, race) in enumerate(LABELS):
        lines.append(f"{i // 20},{i % 20},{age},{gender},{race},{age}_{gender}_{race}_{int(DATE) + i}.jpg.chip.jpg")
    write_sheets(tmp_path, np.stack([picture(i, 8, 8) for i in range(len(LABELS))]), "sheet_{:02d}.jpg", (4, 5))
    (tmp_path / "labels.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def change(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("26_0_1_20170116174525125.jpg.chip.jpg", (0, 1, 26)),
        ("116_1_4_20170116174525125.jpg", (1, 4, 116)),
        ("1_0_0_201701161745251250.jpg.chip.jpg", (0, 0, 1)),
        ("22_1_2_20170116174525125 .jpg.chip.jpg", (1, 2, 22)),
    ],
)
def test_labels_are_in_the_names(name: str, labels: tuple[int, int, int]) -> None:
    assert faces.labels_of(name) == labels


def test_the_published_folder(folder: Path, tmp_path: Path) -> None:
    (folder / "README.txt").write_text("not a picture")
    told: list[str] = []
    made = prepare_utkface(folder, tmp_path / "cache", side=10, log=told.append)
    assert made.images.shape == (27, 3, 10, 10)
    assert made.images.dtype == np.uint8
    assert list(made.names) == sorted(path.name for path in folder.glob("*.jpg"))
    for name, (gender, race, age), image in zip(made.names, made.labels.tolist(), made.images, strict=True):
        assert name.startswith(f"{age}_{gender}_{race}_")
        number = int(name.split("_")[3].split(".")[0]) - int(DATE)
        exact = picture(number, 20, 20).reshape(10, 2, 10, 2, 3).mean((1, 3)).transpose(2, 0, 1)
        assert np.abs(image - exact).max() < 6, "shrunk to the mean of what a pixel covers"
    assert told[-1].startswith("Read 27 faces in ")
    found = load_utkface(tmp_path / "cache", side=10)
    assert found.checksum() == made.checksum()
    assert np.array_equal(found.names, made.names)


def test_shrinking_does_not_alias(tmp_path: Path) -> None:
    """Stripes of one pixel become grey: no row or column is just left out."""
    stripes = np.zeros((200, 200, 3), dtype=np.uint8)
    stripes[:, ::2] = 255
    write_picture(tmp_path / f"26_0_1_{DATE}.jpg", stripes)
    image = prepare_utkface(tmp_path, tmp_path / "cache").images[0]
    assert np.abs(image.astype(int) - 127).max() <= 8


def test_sheets(sheets: Path, tmp_path: Path) -> None:
    made = prepare_utkface(sheets, tmp_path / "cache", side=8)
    assert made.images.shape == (27, 3, 8, 8)
    assert list(made.names) == sorted(made.names)
    for name, (gender, race, age), image in zip(made.names, made.labels.tolist(), made.images, strict=True):
        assert name.startswith(f"{age}_{gender}_{race}_")
        number = int(name.split("_")[3].split(".")[0]) - int(DATE)
        assert np.abs(image.astype(int) - picture(number, 8, 8).transpose(2, 0, 1)).max() < 12
    assert prepare_utkface(sheets, tmp_path / "cache", side=5).images.shape == (27, 3, 5, 5)


def test_what_is_there_is_only_read(folder: Path, tmp_path: Path) -> None:
    made = prepare_utkface(folder, tmp_path / "cache", side=6)
    told: list[str] = []
    again = prepare_utkface(None, tmp_path / "cache", side=6, log=told.append)
    assert told == [f"There already, delete it to read other files: {tmp_path / 'cache' / 'utkface-6.npz'}"]
    assert again.checksum() == made.checksum()
    path = tmp_path / "cache" / "utkface-6.npz"
    path.write_bytes(path.read_bytes()[:1000])
    assert prepare_utkface(folder, tmp_path / "cache", side=6, log=told.append).checksum() == made.checksum()
    assert told[1].startswith("Making it again: ")


def test_bad_pictures_are_all_named_and_left_out_when_asked(folder: Path, tmp_path: Path) -> None:
    good = f"26_0_1_{DATE}.jpg.chip.jpg"
    whole = (folder / good).read_bytes()
    bad = {
        f"27_0_1_{DATE}.jpg.chip.jpg": (whole[: len(whole) // 2], "does not decode"),
        f"28_0_1_{DATE}.jpg.chip.jpg": (b"", "does not decode"),
        f"29_0_1_{DATE}.jpg.chip.jpg": (b"text", "does not decode"),
        f"39_1_{DATE}.jpg.chip.jpg": (whole, "its name must be age_gender_race_date.jpg"),
        "24_0_1_2017011617452512.jpg.chip.jpg": (whole, "with a date of 17 digits"),
        f"53_3_1_{DATE}.jpg.chip.jpg": (whole, "the gender in its name must be from 0 to 1, got 3"),
        f"53_1_5_{DATE}.jpg.chip.jpg": (whole, "the race in its name must be from 0 to 4, got 5"),
        f"153_1_1_{DATE}.jpg.chip.jpg": (whole, "the age in its name must be from 0 to 120, got 153"),
    }
    for name, (content, _) in bad.items():
        (folder / name).write_bytes(content)
    with pytest.raises(ValueError, match=r"8 of 35 are not like that; skip_broken=True") as error:
        prepare_utkface(folder, tmp_path / "cache")
    told: list[str] = []
    made = prepare_utkface(folder, tmp_path / "cache", skip_broken=True, log=told.append)
    assert len(made) == 27
    assert not set(bad) & set(made.names)
    assert told[0].startswith("Left out 8 of 35 pictures:")
    for text in (str(error.value), told[0]):
        lines = text.splitlines()[1:]
        assert len(lines) == 8
        for name, (_, reason) in bad.items():
            assert any(f"'{folder / name}'" in line and reason in line for line in lines), name


def test_a_folder_without_a_good_picture(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"must be a folder with the faces of UTKFace. There is no '.*nowhere'"):
        prepare_utkface(tmp_path / "nowhere", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"must hold the pictures of UTKFace.* There is no picture in it"):
        prepare_utkface(tmp_path, tmp_path)
    (tmp_path / f"29_0_1_{DATE}.jpg").write_bytes(b"")
    with pytest.raises(ValueError, match=r"must hold a picture that can be used. None of 1 can"):
        prepare_utkface(tmp_path, tmp_path, skip_broken=True)
    with pytest.raises(ValueError, match=r"'source' \(--from\) must be .* Got None"):
        prepare_utkface(None, tmp_path)
    with pytest.raises(ValueError, match="'side' must be"):
        prepare_utkface(tmp_path, tmp_path, side=0)
    assert not list(tmp_path.glob("*.npz"))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            "sheet,tile,age",
            "sheet,tile,years",
            r"labels.csv' must begin with .* missing \['age'\], unknown \['years'\]",
        ),
        (
            "gender,race",
            "race,gender",
            r"labels.csv' must begin with the columns .* Got \['sheet', 'tile', 'age', 'race'",
        ),
        ("0,0,26,0,1", "0,0,x,0,1", "labels.csv', line 2: 'age' must be a whole number from 0 to 120. Got 'x'"),
        ("0,0,26,0,1", "0,0,121,0,1", "line 2: 'age' must be a whole number from 0 to 120. Got '121'"),
        ("0,1,1,1,4", "0,1,1,2,4", "line 3: 'gender' must be a whole number from 0 to 1. Got '2'"),
        ("0,1,1,1,4", "0,1,1,1,-1", "line 3: 'race' must be a whole number from 0 to 4. Got '-1'"),
        ("0,1,1,1,4", "0,20,1,1,4", "line 3: 'tile' must be a whole number from 0 to 19. Got '20'"),
        ("0,1,1,1,4", "0,1,--1,1,4", "line 3: 'age' must be a whole number from 0 to 120. Got '--1'"),
        ("0,1,1,1,4", "0,1,1,1.0,4", "line 3: 'gender' must be a whole number"),
        ("0,1,1,1,4,", "0,1,1,1,4,,", "line 3 must have 6 fields. Got 7"),
        ("0,1,1,1,4", "0,0,1,1,4", "line 3: a tile must have one row. Sheet 0, tile 0 has two"),
        ("0,1,1,1,4", "2,19,1,1,4", "must have a row for every tile. It lacks tile 1 of sheet 0, tile 7 of sheet 1, "),
        ("0,1,1,1,4", "0,1,2,1,4", r"line 3: the labels must be those in the name of the file. Got \(1, 4, 2\)"),
        ("1_1_4_2", "1_1_2", "line 3: 'file' must be the name of a published file. Got '1_1_2"),
        (
            f"4,1_1_4_{int(DATE) + 1}",
            f"4,26_0_1_{DATE}",
            "line 3: a file must have one row. .* is in '.*', line 2, too",
        ),
        ("0,1,1,1,4", '"0,1,1,1,4', "labels.csv', line .* must "),
    ],
)
def test_a_bad_table_is_named(sheets: Path, before: str, after: str, message: str) -> None:
    change(sheets / "labels.csv", before, after)
    with pytest.raises(ValueError, match=message):
        prepare_utkface(sheets, sheets / "cache")


def test_a_table_without_rows(sheets: Path) -> None:
    (sheets / "labels.csv").write_text(",".join(faces.COLUMNS))
    with pytest.raises(ValueError, match=r"labels.csv' must have rows under its header"):
        prepare_utkface(sheets, sheets / "cache")
    (sheets / "labels.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"labels.csv' must be text in UTF-8"):
        prepare_utkface(sheets, sheets / "cache")


def test_bad_sheets_are_named(sheets: Path) -> None:
    path = sheets / "sheet_01.jpg"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    for skip in (False, True):
        with pytest.raises(ValueError, match=r"sheet_01.jpg' must be a whole picture. It does not decode"):
            prepare_utkface(sheets, sheets / "cache", skip_broken=skip)
    write_picture(path, picture(0, 32, 32))
    with pytest.raises(ValueError, match=r"sheet_01.jpg' must be a sheet of 5 by 4 tiles .* Got 32 by 32 instead"):
        prepare_utkface(sheets, sheets / "cache")
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"labels.csv' must only name tiles of sheets that are there"):
        prepare_utkface(sheets, sheets / "cache")
    path.write_bytes(whole)
    (sheets / "sheet_07.jpg").write_bytes(whole)
    with pytest.raises(ValueError, match=r"must have a row for every tile. It has none for those of '.*sheet_07.jpg'"):
        prepare_utkface(sheets, sheets / "cache")


@pytest.mark.parametrize("count", [3, 10, 27, 9000, 23_705])
def test_the_split_is_always_the_same_and_whole(count: int) -> None:
    parts = split_faces(count, validation=True)
    assert np.array_equal(np.sort(np.concatenate(list(parts.values()))), np.arange(count))
    assert len(parts["val"]) == len(parts["test"]) == -(-count // 10)
    joined = split_faces(count, validation=False)
    assert np.array_equal(joined["test"], parts["test"])
    assert np.array_equal(joined["train"], np.concatenate([parts["train"], parts["val"]]))
    if count == 9000:
        assert parts["test"][:4].tolist() == np.random.RandomState(0).permutation(9000)[8100:8104].tolist()


def test_the_problem(folder: Path, tmp_path: Path) -> None:
    prepared = prepare_utkface(folder, tmp_path / "cache", side=12)
    problem: Any = pm.problems.utkface(True, tmp_path / "cache", side=12)
    parts = split_faces(27, True)
    for split, part in parts.items():
        images, labels = getattr(problem, split)
        assert images.dtype == torch.uint8
        assert labels.dtype == torch.int64
        assert np.array_equal(images.numpy(), prepared.images[part])
        assert np.array_equal(labels.numpy(), prepared.labels[part])
    assert problem.tasks == ("gender", "race", "age")
    assert [problem.metrics[name].better for name in ("gender accuracy", "race accuracy", "age error")] == [
        "higher",
        "higher",
        "lower",
    ]
    assert problem.reference == (1.0, 2.0, 20.0)
    assert [tuple(y.shape) for y in problem.model()(problem.train[0])] == [(21, 2), (21, 5), (21, 1)]
    assert problem.recipe.methods["pareto-mtl"] == pm.ParetoMTL(rescale=True, initial_steps=2)
    assert pm.problems.utkface(folder=tmp_path / "cache", side=12).val is None


def test_losses_are_in_their_units() -> None:
    g = torch.Generator().manual_seed(0)
    outputs = tuple(torch.randn(9, size, generator=g, dtype=torch.float64) for size in (2, 5, 1))
    targets = torch.stack([torch.randint(size, (9,), generator=g) for size in (2, 5, 99)], -1)
    found = face_losses(outputs, targets)  # type: ignore[arg-type]
    chance = [outputs[i].softmax(-1)[range(9), targets[:, i]] for i in range(2)]
    torch.testing.assert_close(found[:2], torch.stack([-p.log().mean() for p in chance]))
    assert found[2].item() == pytest.approx(np.abs(outputs[2][:, 0].numpy() - targets[:, 2].numpy()).mean())


@pytest.mark.filterwarnings("ignore:first losses differ")
def test_a_front_is_the_same_in_both_strategies(folder: Path, tmp_path: Path) -> None:
    """The paper's four vectors, with a narrow network: batch norm, three kinds of losses, a stack."""
    prepare_utkface(folder, tmp_path / "cache", side=12)
    problem = pm.problems.utkface(
        folder=tmp_path / "cache", side=12, model=lambda: ResNet18((2, 5, 1), 3, 1 / 255, width=4)
    )
    vectors = pm.preferences.extreme(3, balanced=True)
    options: Any = {"epochs": 1, "batch_size": 12, "device": "cpu", "precision": "float64", "progress": "quiet"}
    fronts = [pm.fit(problem, "pareto-mtl", vectors, strategy=name, **options) for name in ("sequential", "batched")]
    for split in ("train", "test"):
        assert fronts[0].losses[split].shape == (4, 3)
        torch.testing.assert_close(fronts[0].losses[split], fronts[1].losses[split], rtol=1e-9, atol=1e-9)
    errors = fronts[0].metrics["test"]["age error"]
    torch.testing.assert_close(errors, fronts[0].losses["test"][:, 2].double(), rtol=1e-6, atol=1e-6)


def test_what_is_not_prepared_says_how_to(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"utkface-20.npz' is not there yet. Make it with: paretomtl data"
    ) as error:
        pm.problems.utkface(folder=tmp_path, side=20)
    assert str(error.value).endswith(f"prepare utkface --from FOLDER --cache {tmp_path} --side 20")


def test_without_pillow_the_remedy_is_named(folder: Path) -> None:
    program = (
        "import sys; sys.modules['PIL'] = None\n"
        "import paretomtl as pm\n"
        f"pm.problems.prepare_utkface({str(folder)!r}, {str(folder / 'cache')!r})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "pip install pillow (or pip install '.[images]'" in done.stderr


def test_the_real_faces(tmp_path: Path) -> None:
    made = prepare_utkface(real_folder("utkface"), tmp_path)
    assert made.images.shape == (9000, 3, 48, 48)
    gender, race, age = made.labels.T
    assert np.bincount(gender).tolist() == [4698, 4302]
    assert np.bincount(race).tolist() == [3835, 1713, 1298, 1520, 634]
    assert (age.min(), age.max(), round(float(age.mean()), 2)) == (1, 116, 33.22)
    assert 80 < made.images.mean() < 170
    problem: Any = pm.problems.utkface(True, tmp_path)
    assert [len(getattr(problem, split)[1]) for split in ("train", "val", "test")] == [7200, 900, 900]
    gender, race, age = pm.problems.utkface(folder=tmp_path).train[1].double().T  # type: ignore[index]
    shares = [torch.bincount(labels.long()) / len(labels) for labels in (gender, race)]
    costs = [*(-(share * share.log()).sum() for share in shares), (age - age.median()).abs().mean()]
    assert pytest.approx([float(cost) for cost in costs], rel=0.02) == KNOWING_NOTHING, "a constant answer"
