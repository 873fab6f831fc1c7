"""Two data sets, each labelled for one task only: a task without labels in a batch returns NaN, and is left out.

python examples/missing_labels.py
"""

import torch
from torch import nn

import paretomtl as pm


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(10, 24), nn.ReLU())
        self.topic, self.mood = nn.Linear(24, 4), nn.Linear(24, 2)

    def forward(self, x):
        hidden = self.trunk(x)
        return self.topic(hidden), self.mood(hidden)


def losses(outputs, targets):
    """The losses; labels of -1 are missing, and the mean over no samples is 0/0: NaN."""
    found = []
    for logits, labels in zip(outputs, targets.unbind(-1), strict=True):
        each = nn.functional.cross_entropy(logits, labels, ignore_index=-1, reduction="sum")
        found.append(each / (labels >= 0).sum())
    return torch.stack(found)


torch.manual_seed(0)
x = torch.randn(1000, 10)
topic, mood = (x @ torch.randn(10, 4)).argmax(-1), (x @ torch.randn(10, 2)).argmax(-1)
y = torch.stack([topic, mood], -1)
y[:500, 1] = -1  # the first half has no moods
y[500:, 0] = -1  # the second half has no topics

# Each batch comes from one half, so that one task has no labels in it.
halves = [torch.utils.data.TensorDataset(x[part], y[part]) for part in (slice(500), slice(500, 1000))]
batches = [batch for half in halves for batch in torch.utils.data.DataLoader(half, batch_size=50)]
train = torch.utils.data.DataLoader(batches, batch_size=None, shuffle=True)

problem = pm.Problem(Reader, losses, tasks=["topic", "mood"], train=train, name="half-labelled")
front = pm.fit(problem, preferences=3, epochs=30, optimizer=lambda p: torch.optim.Adam(p, lr=0.01))
print(front)
