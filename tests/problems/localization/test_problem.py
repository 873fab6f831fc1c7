from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import paretomtl as pm
from _helpers.pictures import picture, real_folder, some_frames, write_picture, write_road, write_sheets
from paretomtl.paper.real_data.localization import KNOWING_NOTHING
from paretomtl.problems import Frames, PoseNet, load_localization, prepare_localization
from paretomtl.problems._localization import sheets as frame_sheets
from paretomtl.problems._localization.apolloscape import parse_pose
from paretomtl.problems._localization.rotations import matrices_of, matrix_of_angles, quaternions_of

pytest.importorskip("PIL", reason="Pillow is not installed: pip install 'paretomtl[images]'")

COUNT = 30


@pytest.fixture
def sheets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two sheets of 5 by 4 tiles of 8 by 16, the second filled to a half."""
    monkeypatch.setattr(frame_sheets, "GRID", (4, 5))
    monkeypatch.setattr(frame_sheets, "TILE", (8, 16))
    lines = [",".join(frame_sheets.COLUMNS)]
    for i in range(COUNT):
        pose = np.column_stack([matrix_of_angles(0.1 * i, 0.05, -0.02 * i), [i, -i, 0.5]])
        lines.append(",".join([str(i), *(f"{value:.9g}" for value in pose.flatten())]))
    write_sheets(tmp_path, np.stack([picture(i, 8, 16) for i in range(COUNT)]), "sheet_{}.jpg", (4, 5))
    (tmp_path / "poses.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.fixture
def road(tmp_path: Path) -> Path:
    return write_road(tmp_path / "zpark", 6)


def change(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))


def test_sheets(sheets: Path, tmp_path: Path) -> None:
    told: list[str] = []
    made = prepare_localization(sheets, tmp_path / "cache", (8, 16), told.append)
    assert made.images.shape == (COUNT, 3, 8, 16)
    assert told[-1].startswith(f"Read {COUNT} frames in ")
    for i in range(COUNT):
        assert np.abs(made.images[i].astype(int) - picture(i, 8, 16).transpose(2, 0, 1)).max() < 12
        assert made.positions[i].tolist() == [i, -i, 0.5]
        assert np.allclose(matrices_of(made.quaternions[i]), matrix_of_angles(0.1 * i, 0.05, -0.02 * i), atol=1e-8)
    assert (made.quaternions[:, 0] >= 0).all()
    assert made.moments.tolist() == list(range(COUNT))
    found = load_localization(tmp_path / "cache", (8, 16))
    assert found.checksum() == made.checksum()
    again = prepare_localization(None, tmp_path / "cache", (8, 16), told.append)
    assert again.checksum() == made.checksum()
    assert told[-1].startswith("There already")
    assert prepare_localization(sheets, tmp_path / "cache", (4, 6)).images.shape == (COUNT, 3, 4, 6)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("m23", "m33", r"poses.csv' must begin with the columns frame,m00.* missing \['m23'\], unknown \['m33'\]"),
        ("\n1,", "\n1,0.5,", "poses.csv', line 3 must have 13 fields. Got 14"),
        ("\n1,0.99", "\n1,nan", "poses.csv', line 3: 'm00' must be a finite number. Got 'nan"),
        ("\n1,0.99", "\n1,0.89", "poses.csv', line 3: a rotation must have orthonormal columns"),
        ("\n1,", "\n1.5,", "poses.csv', line 3: 'frame' must be a whole number from 0 to 199. Got '1.5'"),
        ("\n1,", "\n2,", "poses.csv', line 4: a frame must have one pose. Frame 2 has two"),
        ("\n29,", "\n31,", "poses.csv' must have a row for every tile. It lacks tile 9 of sheet 1, tile 10 of sheet 1"),
        ("\n29,", "\n41,", r"It lacks tile 9 of sheet 1, .* and 7 more"),
    ],
)
def test_a_bad_table_is_named(sheets: Path, before: str, after: str, message: str) -> None:
    change(sheets / "poses.csv", before, after)
    with pytest.raises(ValueError, match=message):
        prepare_localization(sheets, sheets / "cache")


def test_poses_and_tiles_must_match(sheets: Path) -> None:
    lines = (sheets / "poses.csv").read_text().splitlines()
    (sheets / "poses.csv").write_text("\n".join(lines[:18]))
    with pytest.raises(ValueError, match=r"must have a row for every tile. It has none for those of '.*sheet_1.jpg'"):
        prepare_localization(sheets, sheets / "cache")
    mirrored = [1.0, 0, 0, 0, 0, 1.0, 0, 0, 0, 0, -1.0, 0]
    (sheets / "poses.csv").write_text("\n".join([*lines[:2], ",".join(map(str, [1, *mirrored])), *lines[3:]]))
    with pytest.raises(ValueError, match=r"poses.csv', line 3: a rotation must have the determinant 1. Got -1"):
        prepare_localization(sheets, sheets / "cache")
    (sheets / "poses.csv").write_text("\n".join(lines))
    (sheets / "sheet_1.jpg").unlink()
    with pytest.raises(FileNotFoundError, match=r"must only name tiles of sheets that are there. .*sheet_1.jpg"):
        prepare_localization(sheets, sheets / "cache")


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


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    """A circle of 250 frames of 8 by 8 that are prepared already."""
    from paretomtl.problems._data.array_file import write_arrays

    frames = some_frames([0] * 250, list(range(250)), size=8)
    frames = dataclasses.replace(frames, positions=frames.positions + np.array([1000.0, -2000.0, 30.0]))
    write_arrays(tmp_path / "localization-8x8.npz", frames.arrays, version=1, name="localization", height=8, width=8)
    return tmp_path


def test_the_problem(prepared: Path) -> None:
    problem: Any = pm.problems.localization(True, prepared, size=(8, 8))
    assert [len(getattr(problem, split)[0]) for split in ("train", "val", "test")] == [135, 50, 50]
    assert problem.tasks == ("translation", "rotation")
    assert {metric.better for metric in problem.metrics.values()} == {"lower"}
    images, positions, quaternions = problem.train
    assert images.dtype == torch.uint8
    model = problem.model().eval()
    assert torch.allclose(model.center, positions.mean(0), atol=1e-6)
    assert positions[0].tolist() == [0.0, 0.0, 0.0], "far from the origin of the world, and exact"
    assert torch.allclose(model.spread[:2], positions[:, :2].std(0, correction=0), rtol=1e-4)
    assert model.spread[2] == pytest.approx(0.01), "a coordinate that stands still counts as moving by a centimetre"
    outputs = model(images[:5])
    assert [tuple(y.shape) for y in outputs] == [(5, 3), (5, 4)]
    assert (outputs[0] - positions[:5]).norm(dim=-1).max() < 10
    assert torch.allclose(outputs[1].norm(dim=-1), torch.ones(5))
    assert torch.allclose(quaternions.norm(dim=-1), torch.ones(135))
    assert problem.recipe.methods["pareto-mtl"] == pm.ParetoMTL(rescale=True, initial_steps=10)
    assert pm.problems.localization(folder=prepared, size=(8, 8)).reference == problem.reference


def test_the_reference_is_what_the_mean_pose_costs(prepared: Path) -> None:
    """The mean of an arc of rotations about one axis is its middle; beta multiplies the second loss."""
    plain: Any = pm.problems.localization(folder=prepared, size=(8, 8))
    _, positions, quaternions = plain.train
    t = (positions - positions.mean(0)).norm(dim=-1).mean()
    half = torch.atan2(quaternions[:, 3], quaternions[:, 0])
    assert plain.reference[0] == pytest.approx(float(t), rel=1e-4)
    assert plain.reference[1] == pytest.approx(float((2 * ((half - half.mean()) / 2).sin()).abs().mean()), rel=1e-3)
    heavy: Any = pm.problems.localization(folder=prepared, size=(8, 8), beta=250)
    assert heavy.reference == pytest.approx([plain.reference[0], 250 * plain.reference[1]])
    outputs, targets = plain.model().eval()(plain.test[0]), plain.test[1:]
    assert torch.allclose(heavy.losses(outputs, targets)[1], 250 * plain.losses(outputs, targets)[1])
    for beta in (0, -1.0, math.inf, math.nan, "1"):
        with pytest.raises(ValueError, match="'beta' must be a positive number"):
            pm.problems.localization(folder=prepared, size=(8, 8), beta=beta)  # type: ignore[arg-type]


def test_metrics_are_means_and_medians(prepared: Path) -> None:
    problem: Any = pm.problems.localization(folder=prepared, size=(8, 8))
    positions, degrees = torch.tensor([3.0, 0.0, 1.0, 8.0]), torch.tensor([10.0, 0.0, 90.0, 180.0])
    half = torch.deg2rad(degrees) / 2
    zeros = torch.zeros(4)
    outputs = torch.stack([positions, zeros, zeros], -1), torch.stack([half.cos(), zeros, half.sin(), zeros], -1)
    targets = torch.zeros(4, 3), torch.tensor([[-1.0, 0, 0, 0]]).expand(4, 4)
    found = {name: float(metric.function(outputs, targets)) for name, metric in problem.metrics.items()}
    assert found == pytest.approx(
        {
            "translation error": 3.0,
            "median translation error": 2.0,
            "rotation error": 70.0,
            "median rotation error": 50.0,
        },
        rel=1e-5,
    )


def test_a_front_is_the_same_in_both_strategies(prepared: Path) -> None:
    problem = pm.problems.localization(
        folder=prepared, size=(8, 8), model=lambda: PoseNet(spread=(0.5, 0.5, 0.1), width=4)
    )
    options: Any = {"epochs": 1, "batch_size": 64, "device": "cpu", "precision": "float64", "progress": "quiet"}
    fronts = [pm.fit(problem, "pareto-mtl", 3, strategy=name, **options) for name in ("sequential", "batched")]
    for split in ("train", "test"):
        torch.testing.assert_close(fronts[0].losses[split], fronts[1].losses[split], rtol=1e-9, atol=1e-9)
    metres = fronts[0].metrics["test"]["translation error"]
    torch.testing.assert_close(metres, fronts[0].losses["test"][:, 0].double(), rtol=1e-4, atol=1e-5)


def test_training_gets_nearer(prepared: Path) -> None:
    """A narrow network finds frames on the circle again far better than the mean pose does."""
    problem = pm.problems.localization(folder=prepared, size=(8, 8), model=lambda: PoseNet(width=8))
    options: Any = {"epochs": 15, "device": "cpu", "strategy": "sequential", "progress": "quiet"}
    front = pm.fit(problem, "linear", [[0.5, 0.5]], optimizer=lambda p: torch.optim.Adam(p, lr=0.01), **options)
    assert problem.reference is not None
    assert (front.losses["train"][0] < 0.7 * torch.tensor(problem.reference)).all()


def test_posenet_takes_bytes_and_refuses_bad_numbers() -> None:
    images = torch.randint(256, (3, 3, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    model = PoseNet((5.0, 6.0, 7.0), (1.0, 2.0, 3.0), width=4).eval()
    plain = PoseNet(width=4, scale=1.0).eval()
    plain.network.load_state_dict(model.network.state_dict())
    position, quaternion = model(images)
    there, turned = plain(images / 255)
    torch.testing.assert_close(position, torch.tensor([5.0, 6.0, 7.0]) + torch.tensor([1.0, 2.0, 3.0]) * there)
    torch.testing.assert_close(quaternion, turned)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert all(y.dtype == torch.float32 for y in model(images))
    with pytest.raises(ValueError, match="'center' must be three numbers"):
        PoseNet(center=(1.0, 2.0))


def test_what_is_not_prepared_says_how_to(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"localization-20x30.npz' is not there yet. Make it with: ") as error:
        pm.problems.localization(folder=tmp_path, size=(20, 30))
    command = f"paretomtl data prepare localization --from FOLDER --cache {tmp_path} --size 20x30"
    assert str(error.value).endswith(command)


def test_large_photographs_are_read_at_a_fraction(tmp_path: Path) -> None:
    """A smooth photograph of a million pixels is the same small image, whatever fraction it was decoded at."""
    road = write_road(tmp_path / "zpark", 3, ("Camera_1",))
    path = next((road / "image" / "Record001" / "Camera_1").iterdir())
    write_picture(path, picture(0, 960, 1280))
    made = prepare_localization(road, tmp_path)
    index = list(made.names).index(path.relative_to(road / "image").as_posix())
    assert np.abs(made.images[index].astype(int) - picture(0, 48, 64).transpose(2, 0, 1)).max() <= 4


def test_the_real_frames(tmp_path: Path) -> None:
    made = prepare_localization(real_folder("7scenes-redkitchen"), tmp_path)
    assert made.images.shape == (1000, 3, 48, 64)
    assert np.abs(np.linalg.norm(made.quaternions, axis=-1) - 1).max() < 1e-12
    low, high = made.positions.min(0), made.positions.max(0)
    assert low.round(2).tolist() == [-1.01, -0.55, 0.3]
    assert high.round(2).tolist() == [0.85, 0.03, 1.26]
    assert np.linalg.norm(np.diff(made.positions, axis=0), axis=-1).max() == pytest.approx(0.036, abs=1e-3)
    problem: Any = pm.problems.localization(True, tmp_path)
    assert [len(getattr(problem, split)[0]) for split in ("train", "val", "test")] == [525, 200, 200]
    assert problem.reference == pytest.approx((0.547, 0.193), abs=1e-3)
    known = pm.problems.localization(folder=tmp_path).reference
    assert pytest.approx(known, abs=0.01) == KNOWING_NOTHING, "a constant answer"
