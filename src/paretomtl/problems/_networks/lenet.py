from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from paretomtl._support.argument_checks import check_count, check_positive


class LeNet(nn.Module):
    """The paper's network for overlapped images of 36 by 36 (section 6.1): a trunk, and ten classes per task.

    Args:
        tasks: the number of heads.
        scale: multiplies the images. It is 1 in the paper, which trains on raw bytes, 0 to 255. Images are cast to the
            precision of the network first, so that a data set may stay in bytes.
        width: the factor of the number of channels and units of the trunk; 1 in the paper.

    Example:
        >>> import torch
        >>> [head.shape for head in LeNet()(torch.zeros(4, 1, 36, 36))]
        [torch.Size([4, 10]), torch.Size([4, 10])]
        >>> sum(p.numel() for p in LeNet().parameters())
        31910
    """

    def __init__(self, tasks: int = 2, scale: float = 1.0, width: float = 1.0) -> None:
        super().__init__()
        tasks = check_count("tasks", tasks)
        check_positive("width", width)
        self.scale = scale
        first, second, hidden = (max(1, round(width * size)) for size in (10, 20, 50))
        self.trunk = nn.Sequential(
            nn.Conv2d(1, first, 9),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Conv2d(first, second, 5),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(25 * second, hidden),
            nn.ReLU(),
        )
        self.heads = nn.ModuleList([nn.Linear(hidden, 10) for _ in range(tasks)])

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        dtype: Any = self.trunk[0].weight.dtype
        inputs = images.to(dtype)
        hidden: Tensor = self.trunk(inputs if self.scale == 1.0 else inputs * self.scale)
        return tuple(head(hidden) for head in self.heads)
