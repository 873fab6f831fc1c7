"""The folders of 7-Scenes: a picture and a pose for each frame."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from _helpers.pictures import picture, write_picture, write_scene
from paretomtl.problems import prepare_localization
from paretomtl.problems._localization.rotations import matrix_of_angles, quaternions_of

pytest.importorskip("PIL", reason="Pillow is not installed: pip install 'paretomtl[images]'")

COUNT = 12


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    """One sequence, without a folder of its own."""
    return write_scene(tmp_path / "kitchen", COUNT)


@pytest.fixture
def sequences(tmp_path: Path) -> Path:
    """Three sequences of 4, 3 and 2 frames."""
    for number, count in ((1, 4), (2, 3), (3, 2)):
        write_scene(tmp_path / "kitchen" / f"seq-{number:02d}", count)
    return tmp_path / "kitchen"


def test_frames_of_one_sequence(scene: Path, tmp_path: Path) -> None:
    write_picture(scene / "frame-000000.depth.png", picture(99, 8, 16))  # is not read
    made = prepare_localization(scene, tmp_path / "cache", (8, 16))
    assert made.images.shape == (COUNT, 3, 8, 16)
    for i in range(COUNT):
        assert np.array_equal(made.images[i], picture(i, 8, 16).transpose(2, 0, 1)), "PNG keeps every pixel"
        assert made.positions[i].tolist() == [i, -i, 0.5]
        expected = quaternions_of(matrix_of_angles(0.1 * i, 0.05, -0.02 * i))
        assert np.allclose(made.quaternions[i], expected, atol=1e-8)
    assert made.names.tolist() == [f"frame-{i:06d}" for i in range(COUNT)]
    assert made.moments.tolist() == list(range(COUNT))
    assert set(made.records) == set(made.listed) == {0}


def test_frames_of_several_sequences(sequences: Path, tmp_path: Path) -> None:
    made = prepare_localization(sequences, tmp_path / "cache", (8, 16))
    assert made.records.tolist() == [0] * 4 + [1] * 3 + [2] * 2
    assert made.moments.tolist() == [0, 1, 2, 3, 0, 1, 2, 0, 1]
    assert made.names[4] == "seq-02/frame-000000"
    assert set(made.listed) == {0}


def test_published_lists(sequences: Path, tmp_path: Path) -> None:
    (sequences / "TrainSplit.txt").write_text("sequence1\n\n")
    with pytest.raises(FileNotFoundError, match=r"must hold both lists or none of them. There is no '.*TestSplit.txt'"):
        prepare_localization(sequences, tmp_path / "cache", (8, 16))
    (sequences / "TestSplit.txt").write_text("sequence02\n")
    made = prepare_localization(sequences, tmp_path / "cache", (8, 16))
    assert made.listed.tolist() == [1] * 4 + [2] * 3 + [3] * 2
    for text, message in (
        ("sequence9", "TestSplit.txt', line 1 must be a sequence that is there. Got 'sequence9'"),
        ("seq-02", "TestSplit.txt', line 1 must be a sequence that is there. Got 'seq-02'"),
        ("sequence2\nsequence1", "line 2: a sequence must be in one of the lists. 'sequence1' is in both"),
    ):
        (sequences / "TestSplit.txt").write_text(text)
        with pytest.raises(ValueError, match=message):
            prepare_localization(sequences, tmp_path / "other", (8, 16))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 0 0 0 0 1 0 0 0 0 1 0 0 0 0", "must be the 16 numbers of a matrix of 4 by 4. Got 15 fields"),
        ("1 0 0 nan 0 1 0 0 0 0 1 0 0 0 0 1", "each entry of the matrix must be a finite number. Got 'nan'"),
        ("1 0 0 0 0 1 0 0 0 0 1 0 0 0 1 1", r"the last row of a pose must be 0 0 0 1. Got \[0.0, 0.0, 1.0, 1.0\]"),
        ("1 0 0 0 0 1 0 0 0 0 2 0 0 0 0 1", "a rotation must have orthonormal columns"),
        ("1 0 0 0 0 1 0 0 0 0 -1 0 0 0 0 1", "a rotation must have the determinant 1. Got -1"),
    ],
)
def test_a_bad_pose_is_named(scene: Path, tmp_path: Path, text: str, message: str) -> None:
    (scene / "frame-000003.pose.txt").write_text(text)
    with pytest.raises(ValueError, match=rf"frame-000003.pose.txt'.*{message}"):
        prepare_localization(scene, tmp_path / "cache")


def test_pictures_and_poses_must_match(scene: Path, tmp_path: Path) -> None:
    whole = (scene / "frame-000003.color.png").read_bytes()
    (scene / "frame-000003.color.png").unlink()
    (scene / "frame-000005.pose.txt").unlink()
    with pytest.raises(ValueError, match=r"one pose for every frame. That is not so for 2: frame-000003, frame-000005"):
        prepare_localization(scene, tmp_path / "cache")
    for name in ("frame-000003.color.png", "frame-000003.color.jpg"):
        (scene / name).write_bytes(whole)
    (scene / "frame-000005.color.png").unlink()
    with pytest.raises(ValueError, match=r"That is not so for 1: frame-000003\."):
        prepare_localization(scene, tmp_path / "cache")


def test_pictures_that_do_not_decode(sequences: Path, tmp_path: Path) -> None:
    whole = prepare_localization(sequences, tmp_path / "whole", (8, 16))
    for name in ("seq-01/frame-000001", "seq-02/frame-000000", "seq-02/frame-000001", "seq-02/frame-000002"):
        (sequences / f"{name}.color.png").write_bytes(b"")
    with pytest.raises(ValueError, match=r"must hold pictures that decode. 4 of 9 do not; skip_broken=True"):
        prepare_localization(sequences, tmp_path / "cache", (8, 16))
    messages: list[str] = []
    made = prepare_localization(sequences, tmp_path / "cache", (8, 16), messages.append, skip_broken=True)
    assert messages[0].startswith("Left out 4 of 9 pictures:")
    kept = [0, 2, 3, 7, 8]
    assert made.names.tolist() == whole.names[kept].tolist()
    assert made.moments.tolist() == whole.moments[kept].tolist()
    assert made.records.tolist() == [0, 0, 0, 1, 1], "records are counted without gaps"
    for name in ("images", "positions", "quaternions"):
        np.testing.assert_array_equal(getattr(made, name), getattr(whole, name)[kept])
