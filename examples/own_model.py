"""Your own model and data: power draw and failures of a machine, from its sensors.

A small network for a small device predicts both, and cannot be best at both. Five
models show the trade-off, and a rule chooses one.

python examples/own_model.py
paretomtl run examples/own_model.py:problem
"""

import torch
from torch import nn

import paretomtl as pm


class Sensors(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, 4), nn.ReLU())
        self.power, self.failure = nn.Linear(4, 1), nn.Linear(4, 1)

    def forward(self, x):
        hidden = self.trunk(x)
        return self.power(hidden)[:, 0], self.failure(hidden)[:, 0]


def losses(outputs, targets):
    power, failure = outputs
    return {
        "power": nn.functional.mse_loss(power, targets[:, 0]),
        "failure": nn.functional.binary_cross_entropy_with_logits(
            failure, targets[:, 1]
        ),
    }


def failures_found(outputs, targets):
    failed = targets[:, 1] == 1
    return (outputs[1][failed] > 0).double().mean()


torch.manual_seed(0)
x = torch.randn(2000, 8)
power = x[:, :4].relu().sum(-1)  # four motors, which draw power when they run
failure = (x[:, 2:] @ torch.randn(6) > 1).float()
y = torch.stack([power, failure], -1)

problem = pm.Problem(
    Sensors,
    losses,
    tasks=["power", "failure"],
    train=(x[:1000], y[:1000]),
    val=(x[1000:], y[1000:]),
    metrics={"failures found": pm.Metric(failures_found)},
    recipe=pm.Recipe(
        epochs=60, batch_size=100, optimizer=lambda p: torch.optim.Adam(p, lr=0.01)
    ),
    name="sensors",
)


def main():
    front = pm.fit(problem, preferences=5)
    print(front)

    choice = front.select(bounds={"power": 0.25}, best="failures found")
    print(choice.reason)
    model = front.model(choice.k)  # an ordinary nn.Module
    print("chosen:", type(model).__name__, "of model", choice.k)
    return front


if __name__ == "__main__":  # the command line imports this file, and must not train
    main()
