"""The prepared file of UTKFace."""

from __future__ import annotations

from pathlib import Path

import pytest

import paretomtl as pm
from _helpers.pictures import write_faces
from paretomtl.problems import prepare_utkface

pytest.importorskip("PIL", reason="Pillow is not installed: pip install 'paretomtl[images]'")

LABELS = [(26, 0, 1), (1, 1, 4), (116, 0, 0), (26, 1, 2), (30, 1, 3), (7, 0, 2), (40, 0, 4), (55, 1, 0), (63, 0, 1)] * 3


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The published layout, with 27 faces."""
    write_faces(tmp_path / "faces", LABELS)
    return tmp_path / "faces"


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


def test_what_is_not_prepared_says_how_to(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"utkface-20.npz' does not exist yet. Make it with: paretomtl data"
    ) as error:
        pm.problems.utkface(folder=tmp_path, side=20)
    assert str(error.value).endswith(f"prepare utkface --from FOLDER --cache {tmp_path} --side 20")
