"""ApolloScape's data for self-localization: folders of images by record and camera, and files of poses."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paretomtl.problems._data.images import Pixels, Size, listing, pictures_in, read_pictures
from paretomtl.problems._data.text import finite, read_lines
from paretomtl.problems._localization.frames import NEITHER, TEST, TRAIN, UNSAID, Frames
from paretomtl.problems._localization.rotations import Floats, matrix_of_angles, parse_matrix, quaternions_of

LAYOUTS = (("image", "pose"), ("ColorImage", "Pose"))
"""The names of the folders of images and of poses, in the samples and in the scenes."""

LISTS = ("split", "trainval_split")
_CAMERA = re.compile(r"[ _]Camera[ _]?\d+$")
_SUFFIX = re.compile(r"\.[^./]*$")


@dataclass(frozen=True)
class Shot:
    """An image with its pose.

    Attributes:
        path: the image file.
        camera: its folder, relative to the folder of all images.
        place: the file and the line of the pose.
        pose: ``[3, 4]``.
    """

    path: Path
    camera: Path
    place: str
    pose: Floats

    @property
    def moment(self) -> str:
        """The time stamp, which simultaneous cameras share: ``170908_065218364`` of ``..._Camera_6.jpg``."""
        return _CAMERA.sub("", self.path.stem)


def layout_of(folder: Path) -> tuple[Path, Path] | None:
    """The folders of images and of poses, or None."""
    pairs = [(folder / images, folder / poses) for images, poses in LAYOUTS]
    return next((pair for pair in pairs if pair[0].is_dir() and pair[1].is_dir()), None)


def read_apolloscape(
    folder: Path, size: Size, skip_broken: bool = False, log: Callable[[str], None] = lambda text: None
) -> Frames:
    """Read the frames of a road; every image must have a pose, and every pose an image that decodes or is skipped."""
    layout = layout_of(folder)
    assert layout is not None
    images, poses = layout
    shots = _read_shots(images, poses)
    listed = _read_lists(folder, images, shots)
    every = {shot.camera.parent for shot in shots}
    moments = {record: sorted({s.moment for s in shots if s.camera.parent == record}) for record in every}
    times = {record: {moment: i for i, moment in enumerate(known)} for record, known in moments.items()}
    pixels, whole = read_pictures([shot.path for shot in shots], size, images, skip_broken, log)
    shots, listed = [shots[i] for i in whole], listed[whole]
    records = sorted({shot.camera.parent for shot in shots})
    matrices = np.stack([shot.pose for shot in shots])
    return Frames(
        pixels,
        np.ascontiguousarray(matrices[:, :, 3]),
        quaternions_of(matrices[:, :, :3]),
        np.array([records.index(shot.camera.parent) for shot in shots], dtype=np.int64),
        np.array([times[shot.camera.parent][shot.moment] for shot in shots], dtype=np.int64),
        listed,
        np.array([shot.path.relative_to(images).as_posix() for shot in shots]),
    )


def _read_shots(images: Path, poses: Path) -> list[Shot]:
    """All images with their poses, by record, camera and name."""
    files = sorted(poses.rglob("*.txt"))
    if not files:
        raise FileNotFoundError(f"'{poses}' must hold a file of poses for each camera, RECORD/CAMERA.txt. It has none.")
    shots: list[Shot] = []
    for file in files:
        relative = file.relative_to(poses)
        camera = relative.parent if relative.name == "pose.txt" else relative.with_suffix("")
        if not (images / camera).is_dir():
            raise FileNotFoundError(f"'{file}' must be of a camera with images. There is no '{images / camera}'.")
        there = {path.name: path for path in pictures_in(images / camera)}
        known: dict[str, str] = {}
        for number, line in enumerate(read_lines(file), 1):
            if not line.strip():
                continue
            place = f"'{file}', line {number}"
            name, pose = parse_pose(line, place)
            if name in known:
                raise ValueError(f"{place}: an image must have one pose. {name!r} has another in {known[name]}.")
            if name not in there:
                raise ValueError(
                    f"{place}: a pose must be of an image that is there. There is no '{images / camera / name}'."
                )
            known[name] = place
            shots.append(Shot(there[name], camera, place, pose))
        _check_all_posed([there[name] for name in there if name not in known], f"'{file}'")
    if not shots:
        raise ValueError(f"'{poses}' must hold poses. Its {len(files)} files have none.")
    covered = {shot.camera for shot in shots}
    folders = [path for path in sorted(images.rglob("*")) if path.is_dir() and path.relative_to(images) not in covered]
    _check_all_posed([path for each in folders for path in pictures_in(each)], f"'{poses}'")
    return sorted(shots, key=lambda shot: (shot.camera, shot.path.name))


def _check_all_posed(lacking: list[Path], where: str) -> None:
    if lacking:
        names = listing(f"'{path}'" for path in lacking)
        raise ValueError(f"{where} must have a pose for every image. It has none for {len(lacking):,}:{names}")


def parse_pose(line: str, place: str) -> tuple[str, Floats]:
    """Parse the name of an image and its pose ``[3, 4]`` from a line of either form.

    One form is ``NAME roll,pitch,yaw,x,y,z`` in radians and metres. The other is the 16 numbers of a matrix of 4 by 4,
    row by row, followed by ``NAME``.

    Example:
        >>> parse_pose("a.jpg 0,0,0,1,2,3", "here")[1].tolist()
        [[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 2.0], [0.0, 0.0, 1.0, 3.0]]
    """
    fields = line.split()
    if len(fields) == 2 and fields[1].count(",") == 5:
        values = [finite(text, f"{place}: each of roll,pitch,yaw,x,y,z") for text in fields[1].split(",")]
        if max(map(abs, values[:3])) > 2 * math.pi:
            raise ValueError(f"{place}: angles must be in radians, at most a turn. Got {values[:3]} instead.")
        return fields[0], np.column_stack([matrix_of_angles(*values[:3]), values[3:]])
    if len(fields) == 17:
        return fields[16], parse_matrix(fields[:16], place)
    raise ValueError(
        f"{place} must be NAME roll,pitch,yaw,x,y,z or 16 numbers and NAME. Got {len(fields)} fields: {line.strip()!r}."
    )


def _read_lists(folder: Path, images: Path, shots: list[Shot]) -> Pixels:
    """The split of each image in the published lists; ``UNSAID`` if there are none."""
    where = next((folder / name for name in LISTS if (folder / name).is_dir()), None)
    if where is None:
        return np.full(len(shots), UNSAID, dtype=np.uint8)
    numbers = {shot.path.relative_to(images).with_suffix("").as_posix(): i for i, shot in enumerate(shots)}
    listed = np.full(len(shots), NEITHER, dtype=np.uint8)
    for name, part in (("train.txt", TRAIN), ("val.txt", TEST)):
        if not (where / name).is_file():
            raise FileNotFoundError(f"'{where}' must hold train.txt and val.txt. There is no '{where / name}'.")
        for number, line in enumerate(read_lines(where / name), 1):
            if not (text := line.strip()):
                continue
            place = f"'{where / name}', line {number}"
            shot = numbers.get(text, numbers.get(_SUFFIX.sub("", text)))
            if shot is None:
                raise ValueError(
                    f"{place} must be RECORD/CAMERA/NAME of an image. Got {text!r}, which is none. Without "
                    f"'{where}', the frames are split in blocks."
                )
            if listed[shot] not in (NEITHER, part):
                raise ValueError(f"{place}: an image must be in one of the lists. {text!r} is in both.")
            listed[shot] = part
    return listed
