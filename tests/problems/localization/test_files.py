"""The prepared file of frames with poses."""

from __future__ import annotations

from pathlib import Path

import pytest

import paretomtl as pm
from _helpers.pictures import write_scene
from paretomtl.problems import load_localization, prepare_localization

pytest.importorskip("PIL", reason="Pillow is not installed: pip install 'paretomtl[images]'")


def test_what_is_there_is_only_read(tmp_path: Path) -> None:
    scene, messages = write_scene(tmp_path / "scene", 5), []
    made = prepare_localization(scene, tmp_path / "cache", (8, 16), messages.append)
    assert messages[-1].startswith("Read 5 frames in ")
    assert load_localization(tmp_path / "cache", (8, 16)).checksum() == made.checksum()
    again = prepare_localization(None, tmp_path / "cache", (8, 16), messages.append)
    assert again.checksum() == made.checksum()
    assert messages[-1].startswith("There already")
    assert prepare_localization(scene, tmp_path / "cache", (4, 6)).images.shape == (5, 3, 4, 6)


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="must hold the folders 'image' and 'pose' or 'ColorImage' and 'Pose'"):
        prepare_localization(tmp_path, tmp_path)
    with pytest.raises(FileNotFoundError, match=r"There is no '.*nowhere'"):
        prepare_localization(tmp_path / "nowhere", tmp_path)
    with pytest.raises(ValueError, match=r"'source' \(--from\) must be"):
        prepare_localization(None, tmp_path)
    with pytest.raises(ValueError, match=r"'size' must be \(height, width\). Got 48"):
        prepare_localization(tmp_path, tmp_path, 48)  # type: ignore[arg-type]
    for folder in ("image", "pose"):
        (tmp_path / "empty" / folder).mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match="pose' must hold a file of poses for each camera"):
        prepare_localization(tmp_path / "empty", tmp_path)
    (tmp_path / "empty" / "image" / "Record001" / "Camera_1").mkdir(parents=True)
    (tmp_path / "empty" / "pose" / "Record001").mkdir()
    (tmp_path / "empty" / "pose" / "Record001" / "Camera_1.txt").write_text("\n")
    with pytest.raises(ValueError, match=r"pose' must hold poses. Its 1 files have none"):
        prepare_localization(tmp_path / "empty", tmp_path)


def test_what_is_not_prepared_says_how_to(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"localization-20x30.npz' does not exist yet. Make it with: ") as error:
        pm.problems.localization(folder=tmp_path, size=(20, 30))
    command = f"paretomtl data prepare localization --from FOLDER --cache {tmp_path} --size 20x30"
    assert str(error.value).endswith(command)
