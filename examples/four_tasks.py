"""Four tasks, ten trade-offs, and a choice by importance.

python examples/four_tasks.py
"""

import torch
from torch import nn

import paretomtl as pm

TASKS = ["click", "like", "share", "stay"]

torch.manual_seed(0)
x = torch.randn(1500, 12)
y = torch.tanh(x @ torch.randn(12, 4) + 0.5 * x.roll(1, 1) @ torch.randn(12, 4))

problem = pm.Problem(
    model=lambda: nn.Sequential(nn.Linear(12, 6), nn.Tanh(), nn.Linear(6, 4)),
    losses=lambda outputs, targets: (outputs - targets).square().mean(0),
    tasks=TASKS,
    train=(x[:1000], y[:1000]),
    val=(x[1000:], y[1000:]),
    name="feed",
)
directions = pm.preferences.even(10, tasks=4).clamp_min(0.3)  # away from the axes, so that no model gives up a task
front = pm.fit(
    problem, "pareto-mtl", directions, epochs=60, batch_size=100, optimizer=lambda p: torch.optim.Adam(p, lr=0.01)
)
print(front)
print(front.select(importance=[1, 1, 1, 5]).reason)
