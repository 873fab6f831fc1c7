"""Two data sets, each with the labels of one task: a loader and a loss for each, without joining them by hand.

python examples/task_loaders.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import paretomtl as pm


class Faces(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(10, 24), nn.ReLU())
        self.age, self.smile = nn.Linear(24, 1), nn.Linear(24, 2)

    def forward(self, x):
        hidden = self.trunk(x)
        return {"age": self.age(hidden).squeeze(-1), "smile": self.smile(hidden)}


torch.manual_seed(0)
x = torch.randn(600, 10)
ages, smiles = x @ torch.randn(10) / 3, (x @ torch.randn(10, 2)).argmax(-1)

problem = pm.Problem(
    Faces,
    losses={"age": nn.functional.mse_loss, "smile": nn.functional.cross_entropy},
    tasks=["age", "smile"],
    train={
        "age": DataLoader(TensorDataset(x[:300], ages[:300]), batch_size=50, shuffle=True),
        "smile": DataLoader(TensorDataset(x[300:500], smiles[300:500]), batch_size=50, shuffle=True),
    },
    test=(x[500:], ages[500:], smiles[500:]),  # one data set with the labels of both
    metrics={"accuracy": pm.Metric(lambda logits, y: (logits.argmax(-1) == y).float().mean(), task="smile")},
    name="two data sets",
)
front = pm.fit(problem, preferences=3, epochs=20, optimizer=lambda p: torch.optim.Adam(p, lr=0.01))
print(front)
