"""A cluster: the same run, cut into jobs.

Models of a front are independent, so an executor can train them elsewhere. Here Ray
trains two models in each job, or, without Ray, this process trains one job after
another. On a cluster, only the address changes: `pm.RayExecutor("HEAD:6379")`.

python examples/cluster.py
"""

import importlib.util

import torch
from torch import nn

import paretomtl as pm

torch.manual_seed(0)
x = torch.randn(800, 8)
y = x[:, [0, 0]] + 0.7 * x[:, [1, 2]]

problem = pm.Problem(
    model=lambda: nn.Sequential(nn.Linear(8, 1), nn.Linear(1, 2)),
    losses=lambda outputs, targets: (outputs - targets).square().mean(0),
    tasks=["left", "right"],
    train=(x[:400], y[:400]),
    val=(x[400:], y[400:]),
    recipe=pm.Recipe(60, 100, lambda p: torch.optim.Adam(p, lr=0.01)),
    name="sensors",
)


def executor():
    if importlib.util.find_spec("ray"):
        return pm.RayExecutor(shard_size=2)
    return pm.training.SerialExecutor(shard_size=2)


def main(executor=executor):
    jobs = executor()
    options = {"preferences": 6, "strategy": "sequential", "device": "cpu"}
    front = pm.fit(problem, "linear", executor=jobs, **options)
    alone = pm.fit(problem, "linear", **options)
    print(front)
    difference = (front.losses["val"] - alone.losses["val"]).abs().max()
    print(f"{type(jobs).__name__}, 3 jobs of 2 models each")
    print(f"largest difference from a run in one process: {difference:.1g}")
    return front


if __name__ == "__main__":
    main()
