from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional

from paretomtl._support.argument_checks import check_count

_STAGES = ((1, 1), (2, 2), (4, 2), (8, 2))  # of each: channels, as a multiple of the first stage's, and first stride
_CLASSES = 10


class ResNet18(nn.Module):
    """ResNet-18 (He et al. 2016) with one linear head per task, for images of any size (paper, supplement).

    It has a stem of 7 by 7 with stride 2, max pooling, four stages of two blocks each, and global average pooling.
    Images ``[n, channels, height, width]`` may have any integer or floating-point dtype: they are cast to the precision
    of the parameters. The outputs are a tuple with ``[n, size]`` for each head.

    Args:
        tasks: the number of heads, of ten classes each; or the size of each head, such as ``(2, 5, 1)``.
        channels: the number of channels of the images.
        scale: multiplies the images.
        width: the channels of the first stage; the others have twice, four and eight times as many. The published
            network has 64.

    Example:
        >>> import torch
        >>> [head.shape for head in ResNet18(tasks=3).eval()(torch.zeros(4, 1, 36, 36))]
        [torch.Size([4, 10]), torch.Size([4, 10]), torch.Size([4, 10])]
        >>> [head.shape for head in ResNet18((2, 5, 1), channels=3).eval()(torch.zeros(4, 3, 48, 64))]
        [torch.Size([4, 2]), torch.Size([4, 5]), torch.Size([4, 1])]
    """

    def __init__(self, tasks: int | Sequence[int] = 2, channels: int = 1, scale: float = 1.0, width: int = 64) -> None:
        super().__init__()
        sizes = self._sizes(tasks)
        channels = check_count("channels", channels)
        width = check_count("width", width)
        self.scale = scale
        self.stem = nn.Conv2d(channels, width, 7, stride=2, padding=3, bias=False)
        blocks: list[nn.Module] = []
        before = width
        for times, stride in _STAGES:
            blocks += [_Block(before, times * width, stride), _Block(times * width, times * width, 1)]
            before = times * width
        self.trunk = nn.Sequential(nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1), *blocks)
        self.heads = nn.ModuleList([nn.Linear(before, size) for size in sizes])

    @staticmethod
    def _sizes(tasks: int | Sequence[int]) -> list[int]:
        """The size of each head."""
        if not isinstance(tasks, Sequence):
            tasks = check_count("tasks", tasks)
            return [_CLASSES] * tasks
        check_count("len(tasks)", len(tasks))
        return [check_count("tasks", size) for size in tasks]

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        images = images.to(self.stem.weight.dtype)
        hidden = self.trunk(self.stem(images if self.scale == 1.0 else images * self.scale)).mean((-2, -1))
        return tuple(head(hidden) for head in self.heads)


class _Block(nn.Module):
    """Two convolutions of 3 by 3 with a shortcut."""

    def __init__(self, width: int, wide: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(width, wide, 3, stride, 1, bias=False), nn.BatchNorm2d(wide))
        self.second = nn.Sequential(nn.Conv2d(wide, wide, 3, 1, 1, bias=False), nn.BatchNorm2d(wide))
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or width != wide:
            self.shortcut = nn.Sequential(nn.Conv2d(width, wide, 1, stride, bias=False), nn.BatchNorm2d(wide))

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.second(functional.relu(self.first(x))) + self.shortcut(x))
