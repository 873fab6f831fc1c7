"""A transformer with two heads: classify a sequence, and tag each of its tokens.

The class is the token that occurs most often. The tag says whether a token has occurred
before. A small encoder cannot hold both well, so there is a trade-off.

python examples/transformer.py
"""

import torch
from torch import nn

import paretomtl as pm

TOKENS, LENGTH, WIDTH = 8, 12, 8


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(TOKENS, WIDTH)
        self.places = nn.Parameter(0.1 * torch.randn(LENGTH, WIDTH))
        layer = nn.TransformerEncoderLayer(
            WIDTH, nhead=2, dim_feedforward=16, dropout=0.0, batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.topic, self.tags = nn.Linear(WIDTH, TOKENS), nn.Linear(WIDTH, 1)

    def forward(self, sequences):
        hidden = self.encoder(self.tokens(sequences) + self.places)
        return self.topic(hidden.mean(1)), self.tags(hidden)[..., 0]


torch.manual_seed(0)
x = torch.randint(TOKENS, (3000, LENGTH))
counts = nn.functional.one_hot(x, TOKENS)
topic = counts.sum(1).argmax(-1)
before = (counts.cumsum(1) - counts).gather(2, x[..., None])[..., 0] > 0

problem = pm.Problem(
    Reader,
    losses={
        "topic": nn.functional.cross_entropy,
        "tags": nn.functional.binary_cross_entropy_with_logits,
    },
    tasks=["topic", "tags"],
    train=(x[:2000], topic[:2000], before[:2000].float()),
    val=(x[2000:], topic[2000:], before[2000:].float()),
    metrics={
        "right topics": pm.Metric(
            lambda out, y: (out.argmax(-1) == y).float().mean(), task="topic"
        ),
        "right tags": pm.Metric(
            lambda out, y: ((out > 0) == y).float().mean(), task="tags"
        ),
    },
    recipe=pm.Recipe(40, 100, lambda p: torch.optim.Adam(p, lr=0.01)),
    name="sequences",
)


def main():
    front = pm.fit(problem, preferences=5)
    print(front)
    print(front.select(knee=True).reason)
    return front


if __name__ == "__main__":
    main()
