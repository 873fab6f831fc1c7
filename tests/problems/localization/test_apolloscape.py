"""ApolloScape's folders of images and poses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from _helpers.pictures import picture, write_picture, write_road
from paretomtl.problems import Frames, load_localization, prepare_localization
from paretomtl.problems._localization.apolloscape import parse_pose
from paretomtl.problems._localization.rotations import matrix_of_angles, quaternions_of

pytest.importorskip("PIL", reason="Pillow is not installed: pip install 'paretomtl[images]'")


@pytest.fixture
def road(tmp_path: Path) -> Path:
    return write_road(tmp_path / "zpark", 6)


def change(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))


def check_road(made: Frames) -> None:
    """What :func:`write_road` wrote: 6 moments and then 3, of two cameras each."""
    assert made.images.shape == (18, 3, 10, 12)
    assert list(made.names) == sorted(made.names)
    assert made.records.tolist() == [0] * 12 + [1] * 6
    assert made.moments.tolist() == [*range(6), *range(6), *range(3), *range(3)]
    for image, position, quaternion, i in zip(made.images, made.positions, made.quaternions, made.moments, strict=True):
        assert np.abs(image.astype(int) - picture(i, 10, 12).transpose(2, 0, 1)).max() < 8
        assert position.tolist() == pytest.approx([-12302.459 + i, 4039.1506 - i, 38.32])
        exact = quaternions_of(matrix_of_angles(0.01 * i, -0.02 * i, 1.5))
        assert quaternion.tolist() == pytest.approx(exact.tolist(), abs=1e-12)


def test_apolloscapes_sample(road: Path, tmp_path: Path) -> None:
    """image/RECORD/CAMERA/NAME.jpg and pose/RECORD/CAMERA.txt, with angles."""
    check_road(prepare_localization(road, tmp_path, (10, 12)))


def test_apolloscapes_scenes(road: Path, tmp_path: Path) -> None:
    """ColorImage and Pose/RECORD/CAMERA/pose.txt, with matrices; records may lie in folders of days."""
    for before, after in (("image", "ColorImage"), ("pose", "Pose")):
        (road / after).mkdir()
        (road / before).rename(road / after / "BJ20170901A")
    for file in sorted((road / "Pose").rglob("Camera*.txt")):
        lines = []
        for line in file.read_text().splitlines():
            name, pose = parse_pose(line, "here")
            lines.append(" ".join([*(repr(float(value)) for value in [*pose.flatten(), 0, 0, 0, 1]), name]))
        file.with_suffix("").mkdir()
        (file.with_suffix("") / "pose.txt").write_text("\n".join(lines))
        file.unlink()
    check_road(prepare_localization(road, tmp_path, (10, 12)))


@pytest.mark.parametrize("ending", ["", ".jpg"])
@pytest.mark.parametrize("where", ["split", "trainval_split"])
def test_lists_of_the_split(road: Path, tmp_path: Path, where: str, ending: str) -> None:
    names = [name.removesuffix(".jpg") + ending for name in prepare_localization(road, tmp_path / "all").names]
    (road / where).mkdir()
    (road / where / "train.txt").write_text("\n".join(names[:11]))
    with pytest.raises(FileNotFoundError, match=f"{where}' must hold train.txt and val.txt. There is no '.*val.txt'"):
        prepare_localization(road, tmp_path)
    (road / where / "val.txt").write_text("\n".join([*names[12:], ""]))
    made = prepare_localization(road, tmp_path)
    assert made.listed.tolist() == [1] * 11 + [3] + [2] * 6
    parts = made.split(validation=False)
    assert parts["train"].tolist() == list(range(11))
    assert parts["test"].tolist() == list(range(12, 18))
    for line, message in ((names[0], "must be in one of the lists. .* is in both"), ("Record009/a", "which is none")):
        (road / where / "val.txt").write_text(f"{names[12]}\n{line}")
        with pytest.raises(ValueError, match=rf"val.txt', line 2.*{message}"):
            prepare_localization(road, tmp_path / "other")


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ("NAME 0.0,0.1,0.2,1,2", "must be NAME roll,pitch,yaw,x,y,z or 16 numbers and NAME. Got 2 fields"),
        ("NAME 0.0 0.1 0.2 1 2 3", "Got 7 fields"),
        ("NAME 0.0,0.1,x,1,2,3", "each of roll,pitch,yaw,x,y,z must be a finite number. Got 'x'"),
        ("NAME 0.0,0.1,0.2,1,inf,3", "must be a finite number. Got 'inf'"),
        ("NAME 0.0,0.1,90,1,2,3", r"angles must be in radians, at most a turn. Got \[0.0, 0.1, 90.0\]"),
        ("2 0 0 1 0 1 0 2 0 0 1 3 0 0 0 1 NAME", "a rotation must have orthonormal columns"),
        ("1 0 0 1 0 1 0 2 0 0 -1 3 0 0 0 1 NAME", "a rotation must have the determinant 1"),
        ("1 0 0 1 0 1 0 2 0 0 1 3 0 0 1 1 NAME", "the last row of a pose must be 0 0 0 1"),
        ("1 0 0 1 0 1 0 2 0 nan 1 3 0 0 0 1 NAME", "each entry of the matrix must be a finite number. Got 'nan'"),
        ("other.jpg 0,0,0,1,2,3", "a pose must be of an image that is there. There is no '.*other.jpg'"),
    ],
)
def test_a_bad_line_is_named(road: Path, tmp_path: Path, after: str, message: str) -> None:
    file = road / "pose" / "Record001" / "Camera_2.txt"
    lines = file.read_text().splitlines()
    lines[3] = after.replace("NAME", lines[3].split()[0])
    file.write_text("\n".join(lines))
    with pytest.raises(ValueError, match=rf"Camera_2.txt', line 4.*{message}"):
        prepare_localization(road, tmp_path)


def test_images_and_poses_must_match(road: Path, tmp_path: Path) -> None:
    file = road / "pose" / "Record001" / "Camera_1.txt"
    text = file.read_text()
    lines = text.splitlines()
    file.write_text("\n".join(lines[:4]))
    with pytest.raises(
        ValueError, match=r"Camera_1.txt' must have a pose for every image. It has none for 2:"
    ) as error:
        prepare_localization(road, tmp_path)
    assert [line.split()[0] in str(error.value) for line in lines] == [False] * 4 + [True] * 2
    file.write_text("\n".join([*lines, lines[1]]))
    with pytest.raises(ValueError, match=r"line 7: an image must have one pose. .* has another in '.*', line 2"):
        prepare_localization(road, tmp_path)
    file.unlink()
    with pytest.raises(ValueError, match=r"pose' must have a pose for every image. It has none for 6:"):
        prepare_localization(road, tmp_path)
    (road / "pose" / "Record001" / "Camera_9.txt").write_text(text)
    with pytest.raises(FileNotFoundError, match=r"Camera_9.txt' must be of a camera with images. There is no '.*_9'"):
        prepare_localization(road, tmp_path)


def test_images_that_do_not_decode_are_all_named(road: Path, tmp_path: Path) -> None:
    paths = sorted((road / "image" / "Record001" / "Camera_1").iterdir())[:2]
    for path in paths:
        path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"must hold pictures that decode. 2 of 18 do not; skip_broken=True") as error:
        prepare_localization(road, tmp_path)
    assert all(f"'{path}'" in str(error.value) for path in paths)
    assert not list(tmp_path.glob("*.npz"))


def test_images_that_do_not_decode_are_left_out_when_asked(road: Path, tmp_path: Path) -> None:
    """The others keep their moments, so that blocks of the split are where they were."""
    whole = prepare_localization(road, tmp_path / "whole", (10, 12))
    (road / "split").mkdir()
    for name, names in (("train.txt", whole.names[:9]), ("val.txt", whole.names[9:])):
        (road / "split" / name).write_text("\n".join(names))
    gone = sorted((road / "image" / "Record001" / "Camera_1").iterdir())[1:3]
    for path in gone:
        path.write_bytes(b"text")
    told: list[str] = []
    made = prepare_localization(road, tmp_path / "some", (10, 12), skip_broken=True, log=told.append)
    assert told[0].startswith("Left out 2 of 18 pictures:")
    assert all(f"'{path}' must be a whole picture. It does not decode: it is neither" in told[0] for path in gone)
    kept = [0, *range(3, 18)]
    assert made.names.tolist() == whole.names[kept].tolist()
    assert made.moments.tolist() == whole.moments[kept].tolist()
    assert made.listed.tolist() == [1] * 7 + [2] * 9
    for name in ("images", "positions", "quaternions", "records"):
        np.testing.assert_array_equal(getattr(made, name), getattr(whole, name)[kept])
    assert len(load_localization(tmp_path / "some", (10, 12))) == 16
    for path in (road / "image").rglob("*.jpg"):
        path.write_bytes(b"")
    with pytest.raises(ValueError, match=r"must hold pictures that decode. 18 of 18 do not:"):
        prepare_localization(road, tmp_path / "none", skip_broken=True)


def test_large_photographs_are_read_at_a_fraction(tmp_path: Path) -> None:
    """A smooth photograph of a million pixels is the same small image, whatever fraction it was decoded at."""
    road = write_road(tmp_path / "zpark", 3, ("Camera_1",))
    path = next((road / "image" / "Record001" / "Camera_1").iterdir())
    write_picture(path, picture(0, 960, 1280))
    made = prepare_localization(road, tmp_path)
    index = list(made.names).index(path.relative_to(road / "image").as_posix())
    assert np.abs(made.images[index].astype(int) - picture(0, 48, 64).transpose(2, 0, 1)).max() <= 4
