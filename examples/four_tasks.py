"""Four tasks, ten trade-offs, and a choice by importance.

A network predicts what users of a feed will do. Four reactions share two hidden units,
so each model is better at some of them. The rule weighs one task five times.

python examples/four_tasks.py
"""

import torch
from torch import nn

import paretomtl as pm

torch.manual_seed(0)
x = torch.randn(2000, 12)
y = torch.tanh(x @ torch.randn(12, 4) / 3 + 0.1 * torch.randn(2000, 4))

problem = pm.Problem(
    model=lambda: nn.Sequential(nn.Linear(12, 2), nn.Tanh(), nn.Linear(2, 4)),
    losses=lambda outputs, targets: (outputs - targets).square().mean(0),
    tasks=["click", "like", "share", "stay"],
    train=(x[:1000], y[:1000]),
    val=(x[1000:], y[1000:]),
    recipe=pm.Recipe(60, 100, lambda p: torch.optim.Adam(p, lr=0.01)),
    name="feed",
)


def main():
    front = pm.fit(problem, "linear", preferences=10)
    print(front)
    print(
        front.select(importance={"stay": 5, "click": 1, "like": 1, "share": 1}).reason
    )
    return front


if __name__ == "__main__":
    main()
