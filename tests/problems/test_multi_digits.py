from __future__ import annotations

import pytest
import torch

import paretomtl as pm
from paretomtl.problems._multi_digits import _pairs

pytest.importorskip("sklearn.datasets", reason="scikit-learn is not installed: pip install 'paretomtl[digits]'")


def test_pairs_are_real_digits_of_different_classes() -> None:
    problem = pm.problems.multi_digits(400)
    for split, count in (("train", 400), ("val", 100), ("test", 100)):
        images, labels = getattr(problem, split)
        assert images.shape == (count, 1, 11, 11)
        assert labels.shape == (count, 2)
        assert (labels[:, 0] != labels[:, 1]).all()
        assert images.min() >= 0
        assert images.max() == 1.0
        assert (images[:, :, 0, -3:] == 0).all(), "the corners that no digit reaches are empty"
        assert set(labels.flatten().tolist()) == set(range(10))


def test_the_pairs_are_always_the_same() -> None:
    torch.manual_seed(1)
    first = pm.problems.multi_digits(50)
    torch.manual_seed(2)
    again = pm.problems.multi_digits(50)
    assert torch.equal(first.train[0], again.train[0])  # type: ignore[index]


def test_every_image_is_of_its_own_split() -> None:
    """Row 0 is the top-left digit's alone: its first row, or empty; those of a split are of its own images."""
    from sklearn.datasets import load_digits

    images = torch.tensor(load_digits().images, dtype=torch.float32) / 16.0
    order = torch.randperm(1797, generator=torch.Generator().manual_seed(0))
    problem = pm.problems.multi_digits(1200)
    for split, part in (("train", order[:1197]), ("val", order[1197:1397]), ("test", order[1397:])):
        known = {tuple(row) for row in images[part][:, 0].tolist()} | {(0.0,) * 8}
        found = {tuple(row) for row in getattr(problem, split)[0][:, 0, 0, :8].tolist()}
        assert found <= known
        assert len(found) > 20


def test_digits_are_overlapped_as_multi_mnist_does() -> None:
    images = torch.stack([torch.full((8, 8), 0.5), torch.full((8, 8), 0.75)])
    pictures, labels = _pairs(images, torch.tensor([3, 7]), 40, torch.Generator().manual_seed(0))
    assert labels.tolist() == [[3, 7], [7, 3]] * 20
    for picture, (first, _) in zip(pictures[:, 0], labels.tolist(), strict=True):
        value = 0.5 if first == 3 else 0.75
        top = 0 if picture[0, 0] > 0 else 1
        bottom = 2 if picture[10, 10] == 0 else 3
        expected = torch.zeros(11, 11)
        expected[top : top + 8, top : top + 8] += value
        expected[bottom : bottom + 8, bottom : bottom + 8] += 1.25 - value
        assert torch.equal(picture, expected.clamp_max(1.0))


def test_it_trains_to_visibly_different_trade_offs() -> None:
    """A tenth of the demo: the loss of each task already falls and rises along the importances."""
    front = pm.fit(pm.problems.multi_digits(1000), preferences=3, epochs=25, device="cpu", progress="quiet")
    left, right = front.losses["train"].T.tolist()
    assert left[2] > left[0] + 0.1
    assert right[0] > right[2] + 0.1
    assert front.reference == (2.0, 2.0)
    assert set(front.metrics["test"]) == {"top-left accuracy", "bottom-right accuracy"}
