"""Rotations of cameras: matrices, unit quaternions (w, x, y, z) with w not negative, and angles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paretomtl.problems._data.text import finite

Floats = NDArray[np.float64]

TOLERANCE = 1e-3
"""How far a rotation's columns may be from orthonormal, in their scalar products: poses are rounded."""


def check_rotation(matrix: Floats, place: str) -> None:
    """Reject a matrix ``[3, 3]`` that is not a rotation; ``place`` says where it is from."""
    if not np.isfinite(matrix).all():
        raise ValueError(f"{place}: a rotation must be of finite numbers. Got {matrix.tolist()} instead.")
    with np.errstate(over="ignore", invalid="ignore"):  # squares of huge numbers, which may cancel to NaN
        error = np.abs(matrix.T @ matrix - np.eye(3)).max()
    if not error <= TOLERANCE:
        raise ValueError(
            f"{place}: a rotation must have orthonormal columns, up to {TOLERANCE:g}. Got {matrix.tolist()}, which is "
            f"off by {error:.2g}."
        )
    if np.linalg.det(matrix) < 0:
        raise ValueError(f"{place}: a rotation must have the determinant 1. Got -1: {matrix.tolist()} is a reflection.")


def parse_matrix(fields: Sequence[str], place: str) -> Floats:
    """Parse a pose ``[3, 4]`` from the 16 numbers of a matrix, row by row; ``place`` says where they are from."""
    if len(fields) != 16:
        raise ValueError(f"{place} must be the 16 numbers of a matrix of 4 by 4. Got {len(fields)} fields.")
    matrix = np.array([finite(text, f"{place}: each entry of the matrix") for text in fields]).reshape(4, 4)
    if np.abs(matrix[3] - [0, 0, 0, 1]).max() > 1e-6:
        raise ValueError(f"{place}: the last row of a pose must be 0 0 0 1. Got {matrix[3].tolist()} instead.")
    check_rotation(matrix[:3, :3], place)
    return matrix[:3]


def quaternions_of(matrices: ArrayLike) -> Floats:
    r"""The unit quaternions ``[..., 4]`` of rotations ``[..., 3, 3]``, with w not negative.

    The entries of :math:`4 q q^\top` are linear in those of the matrix; q is its dominant eigenvector. This is exact
    for every angle. For a rounded matrix it is the quaternion of the nearest rotation (Bar-Itzhack 2000).

    Example:
        >>> quaternions_of([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]).round(4).tolist()
        [0.7071, 0.0, 0.0, 0.7071]
    """
    r = np.asarray(matrices, dtype=np.float64)
    outer = np.empty((*r.shape[:-2], 4, 4))
    signs = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], dtype=np.float64)  # of w, x, y, z
    outer[..., range(4), range(4)] = 1.0 + np.diagonal(r, axis1=-2, axis2=-1) @ signs.T
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        outer[..., 0, i + 1] = outer[..., i + 1, 0] = r[..., k, j] - r[..., j, k]
        outer[..., i + 1, j + 1] = outer[..., j + 1, i + 1] = r[..., i, j] + r[..., j, i]
    return upright(np.linalg.eigh(outer)[1][..., -1])


def upright(quaternions: Floats) -> Floats:
    """Choose between q and -q, the same rotation, so that the first nonzero entry is positive."""
    first = np.take_along_axis(quaternions, (quaternions != 0).argmax(-1)[..., None], -1)
    return np.where(first < 0, -quaternions, quaternions) + 0.0  # no negative zeros


def matrix_of_angles(roll: float, pitch: float, yaw: float) -> Floats:
    """The rotation ``[3, 3]`` of ApolloScape's angles in radians: about x by roll, then y by pitch, then z by yaw.

    Example:
        >>> (matrix_of_angles(0.0, 0.0, np.pi / 2) @ [1.0, 0.0, 0.0]).round(4).tolist()
        [0.0, 1.0, 0.0]
    """
    (cr, cp, cy), (sr, sp, sy) = np.cos([roll, pitch, yaw]), np.sin([roll, pitch, yaw])
    about_x = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    about_y = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    about_z = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    return np.asarray(about_z @ about_y @ about_x, dtype=np.float64)


def mean_quaternion(quaternions: Floats) -> Floats:
    """The mean rotation of quaternions ``[n, 4]``, whatever their signs (Markley et al. 2007)."""
    return upright(np.linalg.eigh(quaternions.T @ quaternions)[1][:, -1])
