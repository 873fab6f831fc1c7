"""Your own training loop: `pm.backward` in place of `loss.backward()`.

One curve should follow the sine and the cosine, which it cannot. The loop trains one
model for each preference; the losses at the end become a front.

python examples/own_loop.py
"""

import torch
from torch import nn

import paretomtl as pm

STEPS = 400
x = torch.linspace(-2, 2, 128)[:, None]


def train(vectors, k):
    """Model k of the front, trained for row k of the vectors."""
    torch.manual_seed(k)
    model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    weigher = pm.ParetoMTL().bind(vectors, index=k, total=STEPS)
    for _ in range(STEPS):
        optimizer.zero_grad()
        curve = model(x)
        losses = torch.stack([(curve - y).square().mean() for y in (x.sin(), x.cos())])
        pm.backward(losses, weigher, model.parameters())
        optimizer.step()
    return losses.tolist(), weigher.status


def main():
    vectors = pm.preferences.even(5, tasks=2)
    trained = [train(vectors, k) for k in range(5)]
    front = pm.Front.from_losses(
        {"train": [losses for losses, _ in trained]},
        tasks=["sine", "cosine"],
        preferences=vectors,
        reading="direction",
        problem="one curve",
        method="pareto-mtl",
    )
    print(front)
    print("regions:", ", ".join(status for _, status in trained))
    return front


if __name__ == "__main__":
    main()
