"""Frames on sheets of small tiles, with a table of poses."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from paretomtl.problems._data.csv import read_table
from paretomtl.problems._data.images import Size, fit_tiles
from paretomtl.problems._data.tiles import read_tiles
from paretomtl.problems._localization.frames import UNSAID, Frames
from paretomtl.problems._localization.rotations import Floats, check_rotation, quaternions_of

TILE, GRID = (48, 64), (10, 25)  # height and width; rows and columns
COLUMNS = ("frame", *(f"m{row}{column}" for row in range(3) for column in range(4)))


def read_frame_sheets(folder: Path, size: Size) -> Frames:
    """Sheets of 250 tiles each, and ``poses.csv``: frame, and the upper three rows of the pose, row by row.

    Frames are one record, and frame i is tile i: the pose takes points of the camera into the world, and its last
    column is the camera's position in metres.
    """
    table = folder / "poses.csv"
    count = GRID[0] * GRID[1]
    matrices: list[Floats] = []
    places: dict[tuple[int, int], int] = {}
    for row in read_table(table, COLUMNS):
        frame = row.whole("frame", 0, 10 * count - 1)
        matrix = np.array([row.number(column) for column in COLUMNS[1:]]).reshape(3, 4)
        check_rotation(matrix[:, :3], row.place)
        if divmod(frame, count) in places:
            raise ValueError(f"{row.place}: a frame must have one pose. Frame {frame} has two.")
        places[divmod(frame, count)] = len(matrices)
        matrices.append(matrix)
    tiles, order = read_tiles(folder, "sheet_{}.jpg", GRID, TILE, places, table)
    poses = np.stack(matrices)[order]
    return Frames(
        fit_tiles(tiles, size),
        np.ascontiguousarray(poses[:, :, 3]),
        quaternions_of(poses[:, :, :3]),
        np.zeros(len(poses), dtype=np.int64),
        np.arange(len(poses)),
        np.full(len(poses), UNSAID, dtype=np.uint8),
        np.array([f"frame-{frame:06d}" for frame in range(len(poses))]),
    )
