"""Your own model and data: predict power draw and failure of a machine from the same sensors.

python examples/own_model.py
paretomtl run examples/own_model.py:problem
"""

import torch
from torch import nn

import paretomtl as pm


class Sensors(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
        self.power, self.failure = nn.Linear(16, 1), nn.Linear(16, 1)

    def forward(self, x):
        hidden = self.trunk(x)
        return self.power(hidden)[:, 0], self.failure(hidden)[:, 0]


def losses(outputs, targets):
    power, failure = outputs
    return {
        "power": nn.functional.mse_loss(power, targets[:, 0]),
        "failure": nn.functional.binary_cross_entropy_with_logits(failure, targets[:, 1]),
    }


def failures_found(outputs, targets):
    failed = targets[:, 1] == 1
    return (outputs[1][failed] > 0).double().mean()


torch.manual_seed(0)
x = torch.randn(1200, 8)
y = torch.stack([x[:, :4].square().sum(-1).sqrt(), (x[:, 2:] @ torch.randn(6) > 1).float()], -1)

problem = pm.Problem(
    Sensors,
    losses,
    tasks=["power", "failure"],
    train=(x[:800], y[:800]),
    val=(x[800:], y[800:]),
    metrics={"failures found": pm.Metric(failures_found)},
    recipe=pm.Recipe(epochs=60, batch_size=100, optimizer=lambda p: torch.optim.Adam(p, lr=0.01)),
    name="sensors",
)

if __name__ == "__main__":  # the command line imports this file, and must not train
    front = pm.fit(problem, preferences=5)
    print(front)

    choice = front.select(bounds={"power": 0.2}, best="failures found")
    print(choice.reason)
    if choice.k is not None:
        model = front.model(choice.k)  # an ordinary nn.Module
        print("chosen:", type(model).__name__, "of model", choice.k)
