from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from paretomtl.core._shapes import check_count

_STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))  # channels and first stride of each


class ResNet18(nn.Module):
    """ResNet-18 (He et al. 2016) with one head of ten classes a task, for images of 36 by 36 (paper, supplement).

    A stem of 7 by 7 with stride 2 and a max pooling, four stages of two blocks each, and the mean over all places.
    Images may be of any integer or floating-point kind: they are cast to the precision of the parameters.

    Args:
        tasks: the number of heads.
        channels: of the images.
        scale: multiplies the images.

    Example:
        >>> import torch
        >>> [head.shape for head in ResNet18(tasks=3).eval()(torch.zeros(4, 1, 36, 36))]
        [torch.Size([4, 10]), torch.Size([4, 10]), torch.Size([4, 10])]
    """

    def __init__(self, tasks: int = 2, channels: int = 1, scale: float = 1.0) -> None:
        super().__init__()
        check_count("tasks", tasks)
        check_count("channels", channels)
        self.scale = scale
        self.stem = nn.Conv2d(channels, 64, 7, stride=2, padding=3, bias=False)
        blocks: list[nn.Module] = []
        width = 64
        for wide, stride in _STAGES:
            blocks += [_Block(width, wide, stride), _Block(wide, wide, 1)]
            width = wide
        self.trunk = nn.Sequential(nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1), *blocks)
        self.heads = nn.ModuleList([nn.Linear(width, 10) for _ in range(tasks)])

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        images = images.to(self.stem.weight.dtype)
        hidden = self.trunk(self.stem(images if self.scale == 1.0 else images * self.scale)).mean((-2, -1))
        return tuple(head(hidden) for head in self.heads)


class _Block(nn.Module):
    """Two convolutions of 3 by 3 beside a shortcut."""

    def __init__(self, width: int, wide: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(width, wide, 3, stride, 1, bias=False), nn.BatchNorm2d(wide))
        self.second = nn.Sequential(nn.Conv2d(wide, wide, 3, 1, 1, bias=False), nn.BatchNorm2d(wide))
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or width != wide:
            self.shortcut = nn.Sequential(nn.Conv2d(width, wide, 1, stride, bias=False), nn.BatchNorm2d(wide))

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.second(functional.relu(self.first(x))) + self.shortcut(x))
