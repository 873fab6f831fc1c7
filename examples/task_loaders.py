"""A loader for each task: two data sets, each with the labels of one task.

Each task has its own loader and its own loss; you need not join the data sets. The
trunk has one unit only, so that age and smile really compete for it.

python examples/task_loaders.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import paretomtl as pm


class Faces(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(10, 1), nn.Tanh())
        self.age, self.smile = nn.Linear(1, 1), nn.Linear(1, 2)

    def forward(self, x):
        hidden = self.trunk(x)
        return {"age": self.age(hidden)[:, 0], "smile": self.smile(hidden)}


def accuracy(logits, labels):
    return (logits.argmax(-1) == labels).float().mean()


torch.manual_seed(0)
x = torch.randn(2000, 10)
ages, smiles = x @ torch.randn(10) / 3, (x @ torch.randn(10, 2)).argmax(-1)
aged = TensorDataset(x[:600], ages[:600])
smiling = TensorDataset(x[600:1000], smiles[600:1000])  # other faces, and fewer

problem = pm.Problem(
    Faces,
    losses={"age": nn.functional.mse_loss, "smile": nn.functional.cross_entropy},
    tasks=["age", "smile"],
    train={
        "age": DataLoader(aged, batch_size=50, shuffle=True),
        "smile": DataLoader(smiling, batch_size=50, shuffle=True),
    },
    val=(x[1000:], ages[1000:], smiles[1000:]),  # one data set with both labels
    metrics={"accuracy": pm.Metric(accuracy, task="smile")},
    recipe=pm.Recipe(epochs=40, optimizer=lambda p: torch.optim.Adam(p, lr=0.02)),
    name="two data sets",
)


def main():
    front = pm.fit(problem, preferences=5)
    print(front)
    print(front.select(at_least={"accuracy": 0.85}, best="age").reason)
    return front


if __name__ == "__main__":
    main()
