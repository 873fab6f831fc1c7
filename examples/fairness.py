"""Fairness: how much accuracy does a smaller demographic parity gap cost?

A model decides on loans. Applicants of one group repay less often in these data,
so an accurate model also accepts fewer of them. Nine models trade the log-loss
against the gap between the groups, and a rule chooses one of them.

python examples/fairness.py
"""

import torch
from torch import nn

import paretomtl as pm


def applicants(number):
    """Features, and for each applicant whether they repay, and their group."""
    group = (torch.rand(number) < 0.4).float()
    x = torch.randn(number, 6)
    x[:, :3] -= 0.8 * group[:, None]  # three features reveal the group
    repays = x @ torch.tensor([0.9, 0.6, 0.3, 0.8, -0.6, 0.4]) + torch.randn(number) > 0
    return x, torch.stack([repays.float(), group], -1)


def difference(scores, group):
    """The mean of the first group minus that of the second."""
    return scores[group == 0].mean() - scores[group == 1].mean()


def losses(logits, targets):
    repays, group = targets.unbind(-1)
    return {
        "error": nn.functional.binary_cross_entropy_with_logits(logits, repays),
        "gap": difference(logits.sigmoid(), group).square(),
    }


def accuracy(logits, targets):
    return ((logits > 0) == targets[:, 0]).float().mean()


def parity_gap(logits, targets):
    return difference((logits > 0).float(), targets[:, 1]).abs()


torch.manual_seed(0)
problem = pm.Problem(
    model=lambda: nn.Sequential(
        nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1), nn.Flatten(0)
    ),
    losses=losses,
    tasks=["error", "gap"],
    train=applicants(4000),
    val=applicants(4000),
    metrics={
        "accuracy": pm.Metric(accuracy),
        "parity gap": pm.Metric(parity_gap, better="lower"),
    },
    recipe=pm.Recipe(
        epochs=200,
        batch_size=4000,  # the gap is that of a whole split: no smaller batches
        optimizer=lambda p: torch.optim.Adam(p, lr=0.02),
    ),
    reference=[0.7, 0.1],  # of the hypervolume: a useless model, and an unfair one
    name="loans",
)


def main():
    # The first loss of a gap is almost zero, so it says nothing about the scale.
    # Factors say it: a squared gap of 0.1 counts as much as a log-loss of 1.
    front = pm.fit(problem, pm.Auto(scale=[1, 10]), preferences=9)
    print(front)
    print(front.select(at_least={"accuracy": 0.78}, best="parity gap").reason)
    return front


if __name__ == "__main__":
    main()
