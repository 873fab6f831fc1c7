"""Repacked copies of data become the published layouts, pixel by pixel."""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np
import pytest

from _helpers.census_files import FILES, some_records, text_of
from _helpers.pictures import DATE, picture, write_sheets
from _helpers.sources import converted, converter
from paretomtl.problems import prepare_census, prepare_localization, prepare_utkface
from paretomtl.problems._data.array_file import checksum

pytest.importorskip("PIL", reason="Pillow is not installed: pip install 'paretomtl[images]'")

CHECKSUMS = {
    "census-income-kdd": "e1e98e36dca1fde0a47e04caebf7562a7e30f5da4448f750b107f7fee671c2f2",
    "utkface": "431f118a754892df8963a61dab65fd3a0aa19974d9d17071a12ddc728ef55328",
    "7scenes-redkitchen": "c65cd7c5bd17a35cc0d069d7c00405b3340d9404b1fbad946d45ef80ea4a6368",
}
"""Of the prepared arrays that the stored results were trained on; pictures as libjpeg-turbo decodes them."""


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def test_text(tmp_path: Path, out: Path) -> None:
    for file in FILES:
        (tmp_path / f"{file}.xz").write_bytes(lzma.compress(text_of(some_records(40, 0))))
    converter().convert_census(tmp_path, out)
    assert sorted(path.name for path in out.iterdir()) == [f"{file}.gz" for file in FILES]
    assert len(prepare_census(out, tmp_path, verify=False).train_labels) == 40


def test_faces(tmp_path: Path, out: Path) -> None:
    tiles = np.stack([picture(i, 48, 48) for i in range(5)])
    write_sheets(tmp_path, tiles, "sheet_{:02d}.jpg", (25, 40))
    names = [f"2{i}_0_1_{int(DATE) + i}.jpg.chip.jpg" for i in range(5)]
    rows = [f"0,{i},2{i},0,1,{name}" for i, name in enumerate(names)]
    (tmp_path / "labels.csv").write_text("\n".join(["sheet,tile,age,gender,race,file", *rows]) + "\n")
    converter().convert_faces(tmp_path, out)
    made = prepare_utkface(out, tmp_path)
    sheet = converter().read_tiles(tmp_path / "sheet_00.jpg", (25, 40), (48, 48))
    assert made.names.tolist() == names
    assert np.array_equal(made.images, sheet[:5].transpose(0, 3, 1, 2)), "nothing is lost on the way"
    with pytest.raises(FileExistsError, match="is there already: each picture must have one row"):
        converter().convert_faces(tmp_path, out)
    with pytest.raises(ValueError, match=r"sheet_00.jpg' must have 4 by 4 tiles of 8 by 8"):
        converter().read_tiles(tmp_path / "sheet_00.jpg", (4, 4), (8, 8))


def test_frames(tmp_path: Path, out: Path) -> None:
    write_sheets(tmp_path, np.stack([picture(i, 48, 64) for i in range(6)]), "sheet_{}.jpg", (10, 25))
    header = ["frame", *(f"m{row}{column}" for row in range(3) for column in range(4))]
    rows = [[i, 1, 0, 0, i / 7, 0, 0, -1, 0.5, 0, 1, 0, -i] for i in range(6)]
    (tmp_path / "poses.csv").write_text("\n".join(",".join(map(str, row)) for row in [header, *rows]) + "\n")
    converter().convert_frames(tmp_path, out)
    made = prepare_localization(out, tmp_path)
    sheet = converter().read_tiles(tmp_path / "sheet_0.jpg", (10, 25), (48, 64))
    assert np.array_equal(made.images, sheet[:6].transpose(0, 3, 1, 2))
    assert made.positions.tolist() == [[i / 7, 0.5, -i] for i in range(6)]
    assert made.names[5] == "frame-000005"


@pytest.mark.study
@pytest.mark.parametrize("name", CHECKSUMS)
def test_the_real_copies_give_the_arrays_of_the_stored_results(name: str, tmp_path: Path) -> None:
    prepare = {
        "census-income-kdd": prepare_census,
        "utkface": prepare_utkface,
        "7scenes-redkitchen": prepare_localization,
    }[name]
    arrays = prepare(converted(name), tmp_path).arrays  # type: ignore[operator]
    if "quaternions" in arrays:  # eigenvectors differ in their last bits between processors
        arrays = {**arrays, "quaternions": arrays["quaternions"].round(9) + 0.0}
    assert checksum(arrays) == CHECKSUMS[name]
