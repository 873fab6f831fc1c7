"""Frames in the layout of 7-Scenes (Microsoft Research): a picture and a pose file for each frame."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from paretomtl.problems._data.images import SUFFIXES, Pixels, Size, pictures_in, read_pictures
from paretomtl.problems._data.text import read_lines
from paretomtl.problems._localization.frames import NEITHER, TEST, TRAIN, UNSAID, Frames
from paretomtl.problems._localization.rotations import parse_matrix, quaternions_of

_POSE = ".pose.txt"
_PICTURES = tuple(f".color{suffix}" for suffix in SUFFIXES)
_SEQUENCE = re.compile(r"sequence0*([0-9]+)")


def is_seven_scenes(folder: Path) -> bool:
    """Whether a folder holds frames of 7-Scenes, directly or in a folder for each sequence."""
    return any(any(each.glob(f"frame-*{_POSE}")) for each in (folder, *folder.glob("seq-*")))


def read_seven_scenes(
    folder: Path, size: Size, skip_broken: bool = False, log: Callable[[str], None] = lambda text: None
) -> Frames:
    """Read a scene: ``frame-000000.color.png`` with ``frame-000000.pose.txt``, directly or in ``seq-01`` and so on.

    A pose maps camera coordinates to world coordinates; its last column is the position in metres. Every frame must
    have a picture and a pose. ``TrainSplit.txt`` and ``TestSplit.txt`` may list sequences.
    """
    sequences = [folder] if any(folder.glob(f"frame-*{_POSE}")) else sorted(folder.glob("seq-*"))
    paths: list[Path] = []
    moments: list[int] = []
    for sequence in sequences:
        pictures = _pictures(sequence)
        paths += pictures
        moments += range(len(pictures))
    matrices = np.stack([_read_pose(path) for path in paths])
    listed = _read_lists(folder, paths)
    pixels, whole = read_pictures(paths, size, folder, skip_broken, log)
    used = sorted({paths[i].parent for i in whole})
    return Frames(
        pixels,
        np.ascontiguousarray(matrices[whole, :, 3]),
        quaternions_of(matrices[whole, :, :3]),
        np.array([used.index(paths[i].parent) for i in whole], dtype=np.int64),
        np.array(moments, dtype=np.int64)[whole],
        listed[whole],
        np.array([(paths[i].relative_to(folder).parent / _frame(paths[i])).as_posix() for i in whole]),
    )


def _frame(path: Path) -> str:
    """The name of a frame: that of its picture or pose file, without any suffix."""
    return path.name.split(".")[0]


def _pictures(sequence: Path) -> list[Path]:
    """The pictures of a sequence in order, one for each pose."""
    pictures = [path for path in pictures_in(sequence) if path.name.lower().endswith(_PICTURES)]
    names = [_frame(path) for path in pictures]
    poses = {_frame(path) for path in sequence.glob(f"frame-*{_POSE}")}
    if sorted(poses) != names:
        wrong = sorted(poses.symmetric_difference(names)) or sorted({name for name in names if names.count(name) > 1})
        raise ValueError(
            f"'{sequence}' must hold one picture and one pose for every frame. That is not so for {len(wrong):,}: "
            f"{', '.join(wrong[:5])}{', ...' if len(wrong) > 5 else ''}."
        )
    return pictures


def _read_pose(picture: Path) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    path = picture.with_name(f"{_frame(picture)}{_POSE}")
    return parse_matrix(" ".join(read_lines(path)).split(), f"'{path}'")


def _read_lists(folder: Path, paths: list[Path]) -> Pixels:
    """The split of each frame in the published lists; ``UNSAID`` if there are none."""
    files = {folder / "TrainSplit.txt": TRAIN, folder / "TestSplit.txt": TEST}
    present = [path for path in files if path.is_file()]
    if not present:
        return np.full(len(paths), UNSAID, dtype=np.uint8)
    parts: dict[str, int] = {}
    for path, part in files.items():
        if path not in present:
            raise FileNotFoundError(f"'{folder}' must hold both lists or none of them. There is no '{path}'.")
        for number, line in enumerate(read_lines(path), 1):
            if not (text := line.strip()):
                continue
            match = _SEQUENCE.fullmatch(text)
            name = f"seq-{int(match.group(1)[:9]):02d}" if match else ""
            if not name or not (folder / name).is_dir():
                raise ValueError(f"'{path}', line {number} must be a sequence that is there. Got {text!r} instead.")
            if parts.setdefault(name, part) != part:
                raise ValueError(
                    f"'{path}', line {number}: a sequence must be in one of the lists. {text!r} is in both."
                )
    return np.array([parts.get(path.parent.name, NEITHER) for path in paths], dtype=np.uint8)
