"""Missing labels: each sample is labelled for one of two tasks only.

A task without labels in a batch returns NaN, and the step leaves it out. The trunk is
narrow, so the two tasks compete for it.

python examples/missing_labels.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import paretomtl as pm


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(10, 2), nn.Tanh())
        self.topic, self.mood = nn.Linear(2, 4), nn.Linear(2, 2)

    def forward(self, x):
        hidden = self.trunk(x)
        return self.topic(hidden), self.mood(hidden)


def losses(outputs, targets):
    """Labels of -1 are missing. The mean over no samples is 0/0, which is NaN."""
    found = []
    for logits, labels in zip(outputs, targets.unbind(-1), strict=True):
        total = nn.functional.cross_entropy(
            logits, labels, ignore_index=-1, reduction="sum"
        )
        found.append(total / (labels >= 0).sum())
    return torch.stack(found)


torch.manual_seed(0)
x = torch.randn(2000, 10)
topic, mood = (x @ torch.randn(10, 4)).argmax(-1), (x @ torch.randn(10, 2)).argmax(-1)
y = torch.stack([topic, mood], -1)
y[:500, 1] = -1  # the first 500 have no moods
y[500:1000, 0] = -1  # the next 500 have no topics

# Each batch comes from one of the two, so one task has no labels in it.
halves = [TensorDataset(x[:500], y[:500]), TensorDataset(x[500:1000], y[500:1000])]
batches = [batch for half in halves for batch in DataLoader(half, batch_size=50)]

problem = pm.Problem(
    Reader,
    losses,
    tasks=["topic", "mood"],
    train=DataLoader(batches, batch_size=None, shuffle=True),
    val=(x[1000:], y[1000:]),
    recipe=pm.Recipe(epochs=40, optimizer=lambda p: torch.optim.Adam(p, lr=0.02)),
    name="half-labelled",
)


def main():
    front = pm.fit(problem, preferences=5)
    print(front)
    print(front.select(max_regret=True).reason)
    return front


if __name__ == "__main__":
    main()
