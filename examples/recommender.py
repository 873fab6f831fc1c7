"""A recommender: the videos that get clicks are not the ones that people watch.

A two-tower model gives a user and a video one score, by which an index ranks videos.
Some videos attract clicks and then disappoint, so clicks and watch time ask for
different rankings. Seven models show what minutes cost in clicks.

python examples/recommender.py
"""

import torch
from torch import nn

import paretomtl as pm


def tower():
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 8))


class TwoTowers(nn.Module):
    def __init__(self):
        super().__init__()
        self.user, self.video = tower(), tower()
        self.scales = nn.Parameter(torch.zeros(2, 2))  # of clicks and of watch time

    def forward(self, pairs):
        user, video = pairs.split(6, -1)
        score = (self.user(user) * self.video(video)).sum(-1, keepdim=True)
        return torch.cat([score, score * self.scales[0].exp() + self.scales[1]], -1)


def losses(outputs, targets):
    return {
        "clicks": nn.functional.binary_cross_entropy_with_logits(
            outputs[:, 1], targets[:, 0]
        ),
        "watch time": nn.functional.mse_loss(outputs[:, 2], targets[:, 1].log1p()),
    }


def in_top_tenth(column):
    """The mean of a target over the tenth of the pairs that has the highest scores."""

    def mean(outputs, targets):
        return targets[outputs[:, 0].topk(len(outputs) // 10).indices, column].mean()

    return pm.Metric(mean)


torch.manual_seed(0)
user, video = torch.randn(200, 6), torch.randn(300, 6)
user, video = user[torch.randint(200, (9000,))], video[torch.randint(300, (9000,))]
interest = (user[:, :2] * video[:, :2]).sum(-1)
bait, depth = video[:, 4], video[:, 5]  # of titles, of videos
clicked = (interest + 2 * bait + torch.randn(9000) > 0.5).float()
minutes = clicked * (1 + 0.5 * interest + depth - bait).exp()
x, y = torch.cat([user, video], -1), torch.stack([clicked, minutes], -1)

problem = pm.Problem(
    TwoTowers,
    losses,
    tasks=["clicks", "watch time"],
    train=(x[:6000], y[:6000]),
    val=(x[6000:], y[6000:]),
    metrics={"top clicks": in_top_tenth(0), "top minutes": in_top_tenth(1)},
    recipe=pm.Recipe(30, 200, lambda p: torch.optim.Adam(p, lr=0.005)),
    name="videos",
)


def main():
    front = pm.fit(problem, preferences=7)
    print(front)
    print(front.select(at_least={"top clicks": 0.9}, best="top minutes").reason)
    return front


if __name__ == "__main__":
    main()
