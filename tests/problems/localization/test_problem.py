from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import paretomtl as pm
from _helpers.pictures import some_frames
from _helpers.sources import converted
from paretomtl.paper.real_data.localization import KNOWING_NOTHING
from paretomtl.problems import PoseNet, prepare_localization

pytest.importorskip("PIL", reason="Pillow is not installed: pip install 'paretomtl[images]'")


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


def test_the_real_frames(tmp_path: Path) -> None:
    made = prepare_localization(converted("7scenes-redkitchen"), tmp_path)
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
