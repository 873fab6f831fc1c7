"""Rotations: matrices, quaternions and angles are the same thing, to the last digits and for every angle."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from paretomtl.problems._localization.rotations import (
    check_rotation,
    matrix_of_angles,
    mean_quaternion,
    quaternions_of,
    upright,
)
from paretomtl.problems._losses import angles, chords, pose_losses

numbers = st.floats(-1.0, 1.0)
turns = st.floats(-math.pi, math.pi)


@st.composite
def quaternions(draw: st.DrawFn) -> np.ndarray:
    """Unit quaternions, among them half turns and turns about axes, with entries that are zero or tiny."""
    found = draw(arrays.arrays(np.float64, 4, elements=st.one_of(numbers, st.sampled_from([0.0, 1.0, -1.0, 1e-9]))))
    length = np.linalg.norm(found)
    assume(length > 1e-3)
    return found / length


def turn(axis: np.ndarray, angle: float) -> np.ndarray:
    """Rodrigues' formula."""
    x, y, z = axis / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + math.sin(angle) * cross + (1 - math.cos(angle)) * cross @ cross


def matrices_of(quaternion: np.ndarray) -> np.ndarray:
    """The rotation of a unit quaternion, by the textbook."""
    w, x, y, z = quaternion
    return np.array(
        [
            [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
        ]
    )


def one(quaternion: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(quaternion)[None]


@given(quaternions())
def test_there_and_back(q: np.ndarray) -> None:
    matrix = matrices_of(q)
    check_rotation(matrix, "here")
    back = quaternions_of(matrix)
    assert back[0] >= 0
    assert abs(np.linalg.norm(back) - 1) < 1e-12
    assert np.abs(matrices_of(back) - matrix).max() < 1e-12
    assert min(np.abs(back - q).max(), np.abs(back + q).max()) < 1e-12
    if abs(q[0]) > 1e-12:
        assert np.abs(back - upright(q)).max() < 1e-12


@given(quaternions(), quaternions())
def test_products_are_products(p: np.ndarray, q: np.ndarray) -> None:
    """The quaternion of a product of rotations is Hamilton's product of their quaternions."""
    scalar = p[0] * q[0] - p[1:] @ q[1:]
    product = np.array([scalar, *(p[0] * q[1:] + q[0] * p[1:] + np.cross(p[1:], q[1:]))])
    assert np.abs(matrices_of(product) - matrices_of(p) @ matrices_of(q)).max() < 1e-12


@given(arrays.arrays(np.float64, 3, elements=numbers), st.floats(0.0, math.pi), quaternions())
def test_the_angle_is_the_angle(axis: np.ndarray, angle: float, q: np.ndarray) -> None:
    """Also after any common rotation, and whatever the signs and lengths of the quaternions."""
    assume(np.linalg.norm(axis) > 1e-3)
    a, b = quaternions_of(matrices_of(q)), quaternions_of(matrices_of(q) @ turn(axis, angle))
    for sign in (1.0, -1.0):
        for length in (1.0, 3.0):
            assert angles(one(sign * a), one(length * b)).item() == pytest.approx(math.degrees(angle), abs=1e-6)
            assert angles(one(length * b), one(sign * a)).item() == pytest.approx(math.degrees(angle), abs=1e-6)


@given(st.floats(1e-12, 1e-4))
def test_small_angles_are_not_lost(angle: float) -> None:
    b = quaternions_of(turn(np.array([1.0, 2.0, 3.0]), angle))
    assert angles(one(np.array([1.0, 0, 0, 0])), one(b)).item() == pytest.approx(math.degrees(angle), rel=1e-3)


@given(quaternions(), quaternions())
def test_the_loss_is_the_chord_of_the_angle(p: np.ndarray, q: np.ndarray) -> None:
    angle = math.radians(angles(one(p), one(q)).item())
    for a, b in ((p, q), (-p, q), (p, -q), (q, p)):
        assert chords(one(a), one(b)).item() == pytest.approx(2 * math.sin(angle / 4), abs=1e-9)


@given(turns, turns, turns)
def test_apolloscapes_angles(roll: float, pitch: float, yaw: float) -> None:
    """About x by roll, then about y by pitch, then about z by yaw, all fixed: half angles, as its toolkit has them."""
    x, y, z = np.eye(3)
    exact = turn(z, yaw) @ turn(y, pitch) @ turn(x, roll)
    found = matrix_of_angles(roll, pitch, yaw)
    assert np.abs(found - exact).max() < 1e-12
    (cr, cp, cy), (sr, sp, sy) = np.cos(np.array([roll, pitch, yaw]) / 2), np.sin(np.array([roll, pitch, yaw]) / 2)
    half = np.array(
        [
            cy * cr * cp + sy * sr * sp,
            cy * sr * cp - sy * cr * sp,
            cy * cr * sp + sy * sr * cp,
            sy * cr * cp - cy * sr * sp,
        ]
    )
    assert np.abs(matrices_of(half) - found).max() < 1e-12


@given(quaternions(), arrays.arrays(np.float64, (3, 3), elements=st.floats(-2e-4, 2e-4)))
def test_a_rounded_matrix_gives_the_nearest_rotation(q: np.ndarray, noise: np.ndarray) -> None:
    """By the polar decomposition, which is nearest to a matrix near a rotation."""
    rounded = matrices_of(q) + noise
    check_rotation(rounded, "here")
    u, _, v = np.linalg.svd(rounded)
    assert np.abs(matrices_of(quaternions_of(rounded)) - u @ v).max() < 1e-12


def test_batches_are_loops() -> None:
    random = np.random.default_rng(0)
    q = random.standard_normal((3, 5, 4))
    q /= np.linalg.norm(q, axis=-1, keepdims=True)
    matrices = np.apply_along_axis(matrices_of, -1, q)
    assert matrices.shape == (3, 5, 3, 3)
    assert np.allclose(quaternions_of(matrices)[1, 2], quaternions_of(matrices[1, 2]), atol=1e-14)


@given(quaternions(), st.integers(0, 2**31))
def test_the_mean_does_not_see_signs(q: np.ndarray, seed: int) -> None:
    random = np.random.default_rng(seed)
    many = q + 0.05 * random.standard_normal((8, 4))
    many = np.concatenate([many, 2 * (many @ q)[:, None] * q - many])  # mirrored at q, so that q is the mean
    many /= np.linalg.norm(many, axis=-1, keepdims=True)
    mean = mean_quaternion(many * random.choice([-1.0, 1.0], (16, 1)))
    assert angles(one(mean), one(q)).item() < 1e-5


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.diag([1.0, 1.0, -1.0]), "here: a rotation must have the determinant 1. Got -1"),
        (np.diag([1.0, 1.0, 1.01]), "here: a rotation must have orthonormal columns"),
        (np.zeros((3, 3)), "orthonormal columns"),
        (np.diag([1.0, 1.0, np.nan]), "here: a rotation must be of finite numbers"),
        (np.diag([1.0, 1.0, np.inf]), "finite numbers"),
    ],
)
def test_what_is_no_rotation_is_refused(matrix: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_rotation(matrix, "here")


def test_gradients_are_finite_everywhere_and_of_one_length() -> None:
    """At the target itself, at its opposite, half a turn away, and in between."""
    target = torch.tensor([[1.0, 0, 0, 0]] * 4, dtype=torch.float64)
    q = torch.tensor([[1.0, 0, 0, 0], [-1.0, 0, 0, 0], [0, 1.0, 0, 0], [0.6, 0, 0.8, 0]], dtype=torch.float64)
    q.requires_grad_()
    position = torch.zeros(4, 3, dtype=torch.float64, requires_grad=True)
    losses = pose_losses((position, q), (torch.zeros(4, 3, dtype=torch.float64), target), beta=4.0)
    assert losses.tolist() == pytest.approx([0.0, math.sqrt(2) + math.sqrt(0.8)])
    at, turned = torch.autograd.grad(losses.sum(), [position, q])
    assert at.abs().max() == 0
    assert turned.norm(dim=-1).tolist() == pytest.approx([0.0, 0.0, 1.0, 1.0])
