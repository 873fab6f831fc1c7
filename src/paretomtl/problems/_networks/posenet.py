from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretomtl._support.argument_checks import quote
from paretomtl.problems._networks.resnet import ResNet18


class PoseNet(nn.Module):
    """PoseNet (Kendall et al. 2015) on ResNet-18, as in the paper (section 6.2): from an image to the camera's pose.

    It has two linear heads on the 512 features of :class:`ResNet18`, without the wide layer of the original: a position
    in metres, ``[n, 3]``, and a unit quaternion (w, x, y, z), ``[n, 4]``. The position is ``center + spread * head``,
    so that the head learns numbers near one wherever the scene lies. ``center`` and ``spread`` are buffers of the
    model.

    Args:
        center: the mean position of the training frames, in metres.
        spread: the standard deviation of each coordinate, in metres.
        scale: multiplies the images, which may be in unsigned bytes.
        width: the channels of the first stage of the network.

    Example:
        >>> positions, quaternions = PoseNet(width=8).eval()(torch.zeros(4, 3, 48, 64))
        >>> positions.shape, quaternions.shape
        (torch.Size([4, 3]), torch.Size([4, 4]))
    """

    center: Tensor
    spread: Tensor

    def __init__(
        self,
        center: Sequence[float] = (0.0, 0.0, 0.0),
        spread: Sequence[float] = (1.0, 1.0, 1.0),
        scale: float = 1 / 255,
        width: int = 64,
    ) -> None:
        super().__init__()
        for name, value in (("center", center), ("spread", spread)):
            if len(value) != 3:
                raise ValueError(f"'{name}' must be three numbers. Got {quote(list(value))} instead.")
            self.register_buffer(name, torch.tensor(list(value), dtype=torch.get_default_dtype()))
        self.network = ResNet18((3, 4), channels=3, scale=scale, width=width)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        position, quaternion = self.network(images)
        wide = torch.promote_types(quaternion.dtype, torch.float32)  # a quaternion in bfloat16 is off by half a degree
        return self.center + self.spread * position, functional.normalize(quaternion.to(wide), dim=-1)
