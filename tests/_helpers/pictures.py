"""Small pictures, sheets of tiles, and folders in the layouts of UTKFace, ApolloScape and 7-Scenes; all invented."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from paretomtl.problems import Frames
from paretomtl.problems._localization.rotations import matrix_of_angles

DATE = "20170116174525125"


def picture(seed: int, height: int = 12, width: int = 10) -> np.ndarray:
    """Smooth colours, which JPEG hardly changes: [height, width, 3]."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[0 : 1 : height * 1j, 0 : 1 : width * 1j][..., None]
    corner, down, right = random.integers(0, 120, (3, 3))
    return np.clip(corner + down * y + right * x, 0, 255).astype(np.uint8)


def write_picture(path: Path, pixels: np.ndarray) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install 'paretomtl[images]'")
    path.parent.mkdir(parents=True, exist_ok=True)
    image.fromarray(pixels).save(path, quality=98, subsampling=0)


def write_sheets(folder: Path, tiles: np.ndarray, pattern: str, grid: tuple[int, int]) -> None:
    """Tiles [n, height, width, 3] on sheets, row by row; empty places of the last one are black."""
    rows, columns = grid
    _, height, width, _ = tiles.shape
    for sheet in range(-(-len(tiles) // (rows * columns))):
        part = tiles[sheet * rows * columns :][: rows * columns]
        full = np.zeros((rows * columns, height, width, 3), dtype=np.uint8)
        full[: len(part)] = part
        whole = full.reshape(rows, columns, height, width, 3).swapaxes(1, 2)
        write_picture(folder / pattern.format(sheet), whole.reshape(rows * height, columns * width, 3))


def write_faces(folder: Path, labels: Sequence[tuple[int, int, int]], size: int = 20) -> list[str]:
    """The published layout: age, gender and race of each, in the name of its picture; returns the names."""
    names = [f"{age}_{gender}_{race}_{int(DATE) + i}.jpg.chip.jpg" for i, (age, gender, race) in enumerate(labels)]
    for i, name in enumerate(names):
        write_picture(folder / name, picture(i, size, size))
    return names


def write_road(folder: Path, moments: int, cameras: Sequence[str] = ("Camera_1", "Camera_2")) -> Path:
    """The layout of ApolloScape's sample, with two records, of which the second is short."""
    for record, count in (("Record001", moments), ("Record002", 3)):
        for camera in cameras:
            lines = []
            for i in range(count):
                name = f"170908_{65218364 + 128 * i:09d}_{camera}.jpg"
                write_picture(folder / "image" / record / camera / name, picture(i, 10, 12))
                lines.append(f"{name} {0.01 * i:.4f},{-0.02 * i:.4f},1.5,{-12302.459 + i},{4039.1506 - i},38.32")
            file = folder / "pose" / record / f"{camera}.txt"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("\n".join(lines) + "\n")
    return folder


def write_scene(folder: Path, count: int, size: tuple[int, int] = (8, 16)) -> Path:
    """The layout of a sequence of 7-Scenes."""
    for i in range(count):
        write_picture(folder / f"frame-{i:06d}.color.png", picture(i, *size))
        pose = np.eye(4)
        pose[:3] = np.column_stack([matrix_of_angles(0.1 * i, 0.05, -0.02 * i), [i, -i, 0.5]])
        text = "\n".join(" ".join(f"{value:.9g}" for value in row) for row in pose)
        (folder / f"frame-{i:06d}.pose.txt").write_text(text + "\n")
    return folder


def some_frames(records: list[int], moments: list[int], listed: list[int] | None = None, size: int = 2) -> Frames:
    """Frames on a circle that look ahead, with colours that encode the position."""
    n = len(records)
    turns = np.linspace(0, 2, n)
    zeros = np.zeros(n)
    colours = 127 + 120 * np.stack([np.cos(turns), np.sin(turns), np.cos(2 * turns)], -1)
    return Frames(
        np.broadcast_to(colours[:, :, None, None], (n, 3, size, size)).astype(np.uint8),
        np.stack([np.cos(turns), np.sin(turns), zeros], -1),
        np.stack([np.cos(turns / 2), zeros, zeros, np.sin(turns / 2)], -1),
        np.array(records),
        np.array(moments),
        np.array(listed or [0] * n, dtype=np.uint8),
        np.array([f"frame-{i:06d}" for i in range(n)]),
    )
