"""A small network with convolutions and two heads, its problem, and a run on the GPU."""

from __future__ import annotations

import torch

import paretomtl as pm


class Net(torch.nn.Module):
    """Convolutions, batch normalisation and two heads."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = torch.nn.Sequential(
            torch.nn.Conv2d(1, 6, 3),
            torch.nn.BatchNorm2d(6),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(216, 16),
        )
        self.heads = torch.nn.ModuleList([torch.nn.Linear(16, 4) for _ in range(2)])

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        hidden = self.trunk(x)
        return tuple(head(hidden) for head in self.heads)


def images(**options: object) -> pm.Problem:
    g = torch.Generator().manual_seed(0)
    data = (torch.rand(96, 1, 8, 8, generator=g), torch.randint(4, (96, 2), generator=g))
    return pm.Problem(Net, pm.problems.cross_entropies, ["a", "b"], train=data, **options)  # type: ignore[arg-type]


def train(problem: pm.Problem, method: str = "pareto-mtl", count: int = 3, **options: object) -> pm.Front:
    sgd = lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9)  # noqa: E731
    settings = {"epochs": 5, "batch_size": 32, "optimizer": sgd, "device": "cuda", "progress": "quiet", **options}
    return pm.fit(problem, method, count, **settings)  # type: ignore[arg-type]
