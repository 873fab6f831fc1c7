"""The published folder of UTKFace: pictures with their labels in their names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from _helpers.pictures import DATE, picture, write_faces, write_picture
from paretomtl.problems import load_utkface, prepare_utkface
from paretomtl.problems._utkface.folder import labels_of

pytest.importorskip("PIL", reason="Pillow is not installed: pip install 'paretomtl[images]'")

LABELS = [(26, 0, 1), (1, 1, 4), (116, 0, 0), (26, 1, 2), (30, 1, 3), (7, 0, 2), (40, 0, 4), (55, 1, 0), (63, 0, 1)] * 3


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The published layout, with 27 faces."""
    write_faces(tmp_path / "faces", LABELS)
    return tmp_path / "faces"


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
    assert labels_of(name) == labels


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


def test_without_pillow_the_remedy_is_named(folder: Path) -> None:
    program = (
        "import sys; sys.modules['PIL'] = None\n"
        "import paretomtl as pm\n"
        f"pm.problems.prepare_utkface({str(folder)!r}, {str(folder / 'cache')!r})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "pip install pillow (or pip install '.[images]'" in done.stderr
