"""Models from elsewhere: five models of a plain training loop become a front.

The loop does not use this library. `Front.from_models` measures its models, and the
front compares them and chooses one of them.

python examples/other_fronts.py
"""

import torch
from torch import nn

import paretomtl as pm

WEIGHTS = [0.1, 0.3, 0.5, 0.7, 0.9]

torch.manual_seed(0)
x = torch.randn(600, 8)
y = x[:, [0, 0]] + 0.7 * x[:, [1, 2]]


def model():
    return nn.Sequential(nn.Linear(8, 1), nn.Linear(1, 2))


def losses(outputs, targets):
    return (outputs - targets).square().mean(0)


def train(weight):
    net = model()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    for _ in range(150):
        optimizer.zero_grad()
        left, right = losses(net(x[:300]), y[:300])
        (weight * left + (1 - weight) * right).backward()
        optimizer.step()
    return net


problem = pm.Problem(
    model,
    losses,
    tasks=["left", "right"],
    train=(x[:300], y[:300]),
    val=(x[300:], y[300:]),
    name="sensors",
    reference=[1, 1],
)


def main():
    front = pm.Front.from_models(
        [train(weight) for weight in WEIGHTS],
        problem,
        names=[f"weight {weight}" for weight in WEIGHTS],
        method="fixed weights",
    )
    print(front)
    print(f"hypervolume on validation: {front.hypervolume(split='val'):.3f}")
    print(front.select(max_regret=True).reason)
    front.save("out/other-fronts")
    return front


if __name__ == "__main__":
    main()
