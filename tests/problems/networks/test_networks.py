"""The paper's networks: their sizes, any number of heads, images in bytes, and stacks of them."""

from __future__ import annotations

import pytest
import torch

import paretomtl as pm
from paretomtl.problems import LeNet, ResNet18, cross_entropies


def test_the_sizes_are_those_of_the_papers() -> None:
    assert sum(p.numel() for p in LeNet().parameters()) == 31_910
    # 11,689,512 of the published network, less two channels of the stem and its head, and two heads of ten classes
    assert sum(p.numel() for p in ResNet18().parameters()) == 11_689_512 - 2 * 64 * 49 - 513 * 1000 + 2 * 513 * 10


@pytest.mark.parametrize("tasks", [1, 2, 5])
@pytest.mark.parametrize("model", [LeNet, ResNet18])
def test_any_number_of_heads_and_images_in_bytes(model: type[torch.nn.Module], tasks: int) -> None:
    g = torch.Generator().manual_seed(0)
    images = torch.randint(256, (4, 1, 36, 36), generator=g, dtype=torch.uint8)
    network = model(tasks).eval()  # type: ignore[call-arg]
    outputs = network(images)
    assert [tuple(y.shape) for y in outputs] == [(4, 10)] * tasks
    torch.testing.assert_close(outputs, network(images.float()))
    scaled = model(tasks, scale=1 / 255).eval()  # type: ignore[call-arg]
    scaled.load_state_dict(network.state_dict())
    torch.testing.assert_close(scaled(images), network(images / 255))


def test_residual_networks_of_any_heads_and_sizes() -> None:
    """Colours, heads of given sizes, images that are not square; a narrow one has the same layers."""
    for height, width in ((48, 48), (48, 64), (7, 9)):
        outputs = ResNet18((2, 5, 1), channels=3, width=4).eval()(torch.zeros(2, 3, height, width))
        assert [tuple(y.shape) for y in outputs] == [(2, 2), (2, 5), (2, 1)]
    heads = 513 * (2 + 5 + 1)
    assert sum(p.numel() for p in ResNet18((2, 5, 1), 3).parameters()) == 11_689_512 - 513 * 1000 + heads
    assert list(ResNet18(width=4).state_dict()) == list(ResNet18().state_dict())


@pytest.mark.study
def test_a_front_of_residual_networks_as_a_stack() -> None:
    g = torch.Generator().manual_seed(0)
    data = (torch.randint(256, (8, 1, 36, 36), generator=g, dtype=torch.uint8), torch.randint(10, (8, 2), generator=g))
    problem = pm.Problem(lambda: ResNet18(scale=1 / 255), cross_entropies, ["a", "b"], train=data)
    front = pm.fit(problem, preferences=2, epochs=1, batch_size=4, strategy="batched", progress="quiet")
    assert front.losses["train"].isfinite().all()


def test_bad_numbers_are_named() -> None:
    with pytest.raises(ValueError, match="'tasks' must be"):
        ResNet18(0)
    with pytest.raises(ValueError, match="'channels' must be"):
        ResNet18(channels=0)
    with pytest.raises(ValueError, match="'width' must be"):
        ResNet18(width=0)
    with pytest.raises(ValueError, match="'tasks' must be"):
        ResNet18((2, 0))
    with pytest.raises(ValueError, match=r"'len\(tasks\)' must be"):
        ResNet18(())
