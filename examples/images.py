"""Images: the shape and the size of a figure, by one convolutional network.

A Dataset returns a picture in bytes and a pair of labels. A single feature must serve
both tasks, so they compete.

python examples/images.py
"""

import torch
from torch import nn
from torch.utils.data import Dataset

import paretomtl as pm


class Figures(Dataset):
    """Squares, frames and crosses of 5 to 15 pixels, in noise."""

    def __init__(self, count, seed):
        draw = torch.Generator().manual_seed(seed)
        self.shapes = torch.randint(3, (count,), generator=draw)
        self.sizes = torch.randint(5, 16, (count,), generator=draw)
        self.images = torch.randint(0, 100, (count, 1, 16, 16), generator=draw)
        for i, (shape, size) in enumerate(zip(self.shapes, self.sizes, strict=True)):
            part = self.images[i, 0, :size, :size]
            if shape == 0:  # a square
                part += 100
            elif shape == 1:  # a frame
                part[[0, -1]] += 100
                part[1:-1, [0, -1]] += 100
            else:  # a cross
                part[size // 2] += 100
                part[:, size // 2] += 100

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        labels = self.shapes[i], (self.sizes[i] - 10) / 3  # the size is standardised
        return self.images[i].to(torch.uint8), labels


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(1, 8, 5, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(288, 1)
        )
        self.shape, self.size = nn.Linear(1, 3), nn.Linear(1, 1)

    def forward(self, images):
        features = self.trunk(images.float() / 255)  # bytes become numbers here
        return self.shape(features), self.size(features)[:, 0]


def accuracy(outputs, labels):
    return (outputs.argmax(-1) == labels).double().mean()


problem = pm.Problem(
    Network,
    {"shape": nn.functional.cross_entropy, "size": nn.functional.mse_loss},
    tasks=["shape", "size"],
    train=Figures(1500, seed=0),
    val=Figures(500, seed=1),
    metrics={"shape accuracy": pm.Metric(accuracy, task="shape")},
    recipe=pm.Recipe(20, 50, lambda p: torch.optim.Adam(p, lr=0.01)),
    name="figures",
)


def main():
    front = pm.fit(problem, preferences=5, device="cpu")
    print(front)
    print(front.select(at_least={"shape accuracy": 0.7}, best="size").reason)
    return front


if __name__ == "__main__":
    main()
