from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import paretomtl as pm
from _helpers.pictures import write_faces
from _helpers.sources import converted
from paretomtl.paper.real_data.faces import KNOWING_NOTHING
from paretomtl.problems import ResNet18, face_losses, prepare_utkface
from paretomtl.problems._utkface.problem import split_faces

pytest.importorskip("PIL", reason="Pillow is not installed: pip install 'paretomtl[images]'")

LABELS = [(26, 0, 1), (1, 1, 4), (116, 0, 0), (26, 1, 2), (30, 1, 3), (7, 0, 2), (40, 0, 4), (55, 1, 0), (63, 0, 1)] * 3


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The published layout, with 27 faces."""
    write_faces(tmp_path / "faces", LABELS)
    return tmp_path / "faces"


@pytest.mark.parametrize("count", [3, 10, 27, 9000, 23_705])
def test_the_split_is_always_the_same_and_whole(count: int) -> None:
    parts = split_faces(count, validation=True)
    assert np.array_equal(np.sort(np.concatenate(list(parts.values()))), np.arange(count))
    assert len(parts["val"]) == len(parts["test"]) == -(-count // 10)
    joined = split_faces(count, validation=False)
    assert np.array_equal(joined["test"], parts["test"])
    assert np.array_equal(joined["train"], np.concatenate([parts["train"], parts["val"]]))
    if count == 9000:
        assert parts["test"][:4].tolist() == np.random.RandomState(0).permutation(9000)[8100:8104].tolist()


def test_the_problem(folder: Path, tmp_path: Path) -> None:
    prepared = prepare_utkface(folder, tmp_path / "cache", side=12)
    problem: Any = pm.problems.utkface(True, tmp_path / "cache", side=12)
    parts = split_faces(27, True)
    for split, part in parts.items():
        images, labels = getattr(problem, split)
        assert images.dtype == torch.uint8
        assert labels.dtype == torch.int64
        assert np.array_equal(images.numpy(), prepared.images[part])
        assert np.array_equal(labels.numpy(), prepared.labels[part])
    assert problem.tasks == ("gender", "race", "age")
    assert [problem.metrics[name].better for name in ("gender accuracy", "race accuracy", "age error")] == [
        "higher",
        "higher",
        "lower",
    ]
    assert problem.reference == (1.0, 2.0, 20.0)
    assert [tuple(y.shape) for y in problem.model()(problem.train[0])] == [(21, 2), (21, 5), (21, 1)]
    assert problem.recipe.methods["pareto-mtl"] == pm.ParetoMTL(rescale=True, initial_steps=2)
    assert pm.problems.utkface(folder=tmp_path / "cache", side=12).val is None


def test_losses_are_in_their_units() -> None:
    g = torch.Generator().manual_seed(0)
    outputs = tuple(torch.randn(9, size, generator=g, dtype=torch.float64) for size in (2, 5, 1))
    targets = torch.stack([torch.randint(size, (9,), generator=g) for size in (2, 5, 99)], -1)
    found = face_losses(outputs, targets)  # type: ignore[arg-type]
    chance = [outputs[i].softmax(-1)[range(9), targets[:, i]] for i in range(2)]
    torch.testing.assert_close(found[:2], torch.stack([-p.log().mean() for p in chance]))
    assert found[2].item() == pytest.approx(np.abs(outputs[2][:, 0].numpy() - targets[:, 2].numpy()).mean())


@pytest.mark.filterwarnings("ignore:first losses differ")
def test_a_front_is_the_same_in_both_strategies(folder: Path, tmp_path: Path) -> None:
    """The paper's four vectors, with a narrow network: batch norm, three kinds of losses, a stack."""
    prepare_utkface(folder, tmp_path / "cache", side=12)
    problem = pm.problems.utkface(
        folder=tmp_path / "cache", side=12, model=lambda: ResNet18((2, 5, 1), 3, 1 / 255, width=4)
    )
    vectors = pm.preferences.extreme(3, balanced=True)
    options: Any = {"epochs": 1, "batch_size": 12, "device": "cpu", "precision": "float64", "progress": "quiet"}
    fronts = [pm.fit(problem, "pareto-mtl", vectors, strategy=name, **options) for name in ("sequential", "batched")]
    for split in ("train", "test"):
        assert fronts[0].losses[split].shape == (4, 3)
        torch.testing.assert_close(fronts[0].losses[split], fronts[1].losses[split], rtol=1e-9, atol=1e-9)
    errors = fronts[0].metrics["test"]["age error"]
    torch.testing.assert_close(errors, fronts[0].losses["test"][:, 2].double(), rtol=1e-6, atol=1e-6)


@pytest.mark.study
def test_the_real_faces(tmp_path: Path) -> None:
    made = prepare_utkface(converted("utkface"), tmp_path)
    assert made.images.shape == (9000, 3, 48, 48)
    gender, race, age = made.labels.T
    assert np.bincount(gender).tolist() == [4698, 4302]
    assert np.bincount(race).tolist() == [3835, 1713, 1298, 1520, 634]
    assert (age.min(), age.max(), round(float(age.mean()), 2)) == (1, 116, 33.22)
    assert 80 < made.images.mean() < 170
    problem: Any = pm.problems.utkface(True, tmp_path)
    assert [len(getattr(problem, split)[1]) for split in ("train", "val", "test")] == [7200, 900, 900]
    gender, race, age = pm.problems.utkface(folder=tmp_path).train[1].double().T  # type: ignore[index]
    shares = [torch.bincount(labels.long()) / len(labels) for labels in (gender, race)]
    costs = [*(-(share * share.log()).sum() for share in shares), (age - age.median()).abs().mean()]
    assert pytest.approx([float(cost) for cost in costs], rel=0.02) == KNOWING_NOTHING, "a constant answer"
