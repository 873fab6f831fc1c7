"""Five models from a loop that does not use this library, compared and selected as a front.

python examples/other_fronts.py
"""

import torch
from torch import nn

import paretomtl as pm

torch.manual_seed(0)
x = torch.randn(600, 8)
y = x[:, [0, 0]] + 0.7 * x[:, [1, 2]]


def losses(outputs, targets):
    return (outputs - targets).square().mean(0)


def train(weight):
    model = nn.Sequential(nn.Linear(8, 1), nn.Linear(1, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(150):
        optimizer.zero_grad()
        (losses(model(x[:300]), y[:300]) * torch.tensor([weight, 1 - weight])).sum().backward()
        optimizer.step()
    return model


weights = [0.1, 0.3, 0.5, 0.7, 0.9]
problem = pm.Problem(
    model=lambda: nn.Sequential(nn.Linear(8, 1), nn.Linear(1, 2)),
    losses=losses,
    tasks=["left", "right"],
    train=(x[:300], y[:300]),
    val=(x[300:], y[300:]),
    name="sensors",
    reference=[1, 1],
)
front = pm.Front.from_models(
    [train(weight) for weight in weights], problem, names=[f"weight {w}" for w in weights], method="fixed weights"
)
print(front)
print(f"hypervolume on val: {front.hypervolume(split='val'):.3f}")
print(front.select(max_regret=True).reason)
front.save("out/other-fronts")
