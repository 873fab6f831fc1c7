"""The networks of the benchmarks, each with a batch of made-up data. A helper, not a benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

import paretomtl as pm
from paretomtl.problems import LeNet, ResNet18, cross_entropies

SAMPLES = 2048


class Census(nn.Module):
    """The paper's model for census income: 482 features, layers of 1024 and 128, a head per task."""

    def __init__(self, tasks: int) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(482, 1024), nn.ReLU(), nn.Linear(1024, 128), nn.ReLU())
        self.heads = nn.ModuleList([nn.Linear(128, 2) for _ in range(tasks)])

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        hidden = self.trunk(x)
        return tuple(head(hidden) for head in self.heads)


class Transformer(nn.Module):
    """Two layers of width 64 over 32 tokens, and a head per task."""

    def __init__(self, tasks: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(128, 64)
        self.places = nn.Parameter(0.02 * torch.randn(32, 64))
        layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.heads = nn.ModuleList([nn.Linear(64, 10) for _ in range(tasks)])

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        hidden = self.layers(self.tokens(x) + self.places).mean(1)
        return tuple(head(hidden) for head in self.heads)


@dataclass(frozen=True)
class Case:
    """A network and its usual setting.

    Attributes:
        name: the name in results.
        model: makes a model for a number of tasks.
        tasks: the default number of tasks m.
        classes: the number of classes of each head.
        batch: the size of a batch.
        flops: multiplications and additions of one forward pass of one sample.
        activations: numbers that one forward pass of one sample keeps.
    """

    name: str
    model: Any
    tasks: int
    classes: int
    batch: int
    flops: float
    activations: float

    def problem(self, tasks: int) -> pm.Problem:
        g = torch.Generator().manual_seed(0)
        labels = torch.randint(self.classes, (SAMPLES, tasks), generator=g)
        inputs = {
            "census MLP": lambda: torch.randn(SAMPLES, 482, generator=g),
            "transformer": lambda: torch.randint(128, (SAMPLES, 32), generator=g),
        }.get(self.name, lambda: torch.randint(256, (SAMPLES, 1, 36, 36), generator=g, dtype=torch.uint8))()
        names = [f"t{i}" for i in range(tasks)]
        return pm.Problem(lambda: self.model(tasks), cross_entropies, names, train=(inputs, labels))

    def floor(self, models: int, tasks: int, flops_a_second: float, bytes_a_second: float) -> float:
        """A lower bound of the milliseconds of a step: its arithmetic, or its memory traffic of activations.

        It has one forward pass, and for each task a backward pass of twice the arithmetic; activations are written
        once, and read and replaced by gradients once for each task.
        """
        samples = models * self.batch
        arithmetic = samples * self.flops * (1 + 2 * tasks) / flops_a_second
        memory = samples * self.activations * 4 * (1 + 2 * tasks) / bytes_a_second
        return 1e3 * max(arithmetic, memory)


def cases() -> list[Case]:
    lenet = 2 * (28 * 28 * 81 * 10 + 10 * 10 * 250 * 20 + 500 * 50 + 50 * 20)
    census = 2 * (482 * 1024 + 1024 * 128 + 128 * 6)
    transformer = 2 * 32 * 2 * (4 * 64 * 64 + 2 * 64 * 128 + 2 * 32 * 64)
    return [
        Case("LeNet", LeNet, 2, 10, 256, lenet, 7840 + 1960 + 2000 + 500 + 50),
        Case("ResNet-18", lambda tasks: ResNet18(tasks, scale=1 / 255), 2, 10, 256, *_resnet()),
        Case("census MLP", Census, 3, 2, 256, census, 1024 + 128),
        Case("transformer", Transformer, 2, 10, 256, transformer, 32 * 2 * (64 * 8 + 128 + 4 * 32)),
    ]


def _resnet() -> tuple[float, float]:
    """Arithmetic and activations of one forward pass of a ResNet-18, counted layer by layer."""
    counts = [0.0, 0.0]

    def count(layer: nn.Module, inputs: Any, output: Tensor) -> None:
        if isinstance(layer, nn.Conv2d):
            counts[0] += 2 * output[0].numel() * layer.weight[0].numel()
        counts[1] += output[0].numel()

    network = ResNet18().eval()
    for layer in network.modules():
        if isinstance(layer, (nn.Conv2d, nn.BatchNorm2d)):
            layer.register_forward_hook(count)
    with torch.no_grad():
        network(torch.zeros(1, 1, 36, 36))
    return counts[0], counts[1]
