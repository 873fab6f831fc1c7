from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretomtl.problems._networks.resnet import ResNet18


class PoseNet(nn.Module):
    """PoseNet (Kendall et al. 2015) on ResNet-18, as in the paper (section 6.2): from an image to the camera's pose.

    Two linear heads on the 512 features of :class:`ResNet18`, without the wide layer that the original has between
    them: a position in metres, ``[n, 3]``, and a unit quaternion (w, x, y, z), ``[n, 4]``. The first is ``center +
    spread * head``, so that the head has to learn numbers near one wherever the scene lies; the two are constants of
    the model, stored with its parameters.

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
                raise ValueError(f"'{name}' must be three numbers. Got {list(value)} instead.")
            self.register_buffer(name, torch.tensor(list(value), dtype=torch.get_default_dtype()))
        self.network = ResNet18((3, 4), channels=3, scale=scale, width=width)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        position, quaternion = self.network(images)
        wide = torch.promote_types(quaternion.dtype, torch.float32)  # a quaternion in bfloat16 is off by half a degree
        return self.center + self.spread * position, functional.normalize(quaternion.to(wide), dim=-1)


def pose_losses(outputs: tuple[Tensor, Tensor], targets: tuple[Tensor, Tensor], beta: float = 1.0) -> Tensor:
    r"""The losses ``[2]`` of :func:`localization`: metres, and the chord between unit quaternions.

    .. math:: L_t = \frac{1}{n} \sum_i |t_i - \hat t_i|, \qquad
              L_r = \frac{\beta}{n} \sum_i \min(|q_i - \hat q_i|, |q_i + \hat q_i|)

    The chord is that of PoseNet, made indifferent to the sign, as q and -q are the same rotation. For rotations that
    differ by the angle :math:`\theta` it is :math:`2 \sin(\theta / 4)`: a degree costs 0.0087, half a turn, which is
    the most, 1.41. Its gradient has the same length everywhere but at zero.

    Example:
        >>> outputs = torch.tensor([[0.0, 3.0, 4.0]]), torch.tensor([[-1.0, 0.0, 0.0, 0.0]])
        >>> pose_losses(outputs, (torch.zeros(1, 3), torch.tensor([[0.0, 1.0, 0.0, 0.0]])))
        tensor([5.0000, 1.4142])
        >>> pose_losses(outputs, (torch.zeros(1, 3), torch.tensor([[1.0, 0.0, 0.0, 0.0]])))
        tensor([5., 0.])
    """
    (position, quaternion), (there, turned) = outputs, targets
    return torch.stack([distances(position, there).mean(), beta * chords(quaternion, turned).mean()])


def distances(a: Tensor, b: Tensor) -> Tensor:
    """The Euclidean distances ``[n]`` of points ``[n, 3]``."""
    return _length(a - b)


def chords(a: Tensor, b: Tensor) -> Tensor:
    """The lesser of the distances ``[n]`` from a to b and to -b, for unit quaternions ``[n, 4]``."""
    sign = torch.where((a * b).sum(-1, keepdim=True) < 0, -1.0, 1.0).to(b.dtype)
    return _length(a - sign * b)


def angles(a: Tensor, b: Tensor) -> Tensor:
    """The angles ``[n]``, in degrees, from 0 to 180, between the rotations of quaternions ``[n, 4]``.

    By the half-angle of the chord and not by an arc cosine, which cannot tell small angles from none.

    Example:
        >>> angles(torch.tensor([[1.0, 0.0, 0.0, 0.0]]), torch.tensor([[0.0, 0.0, -2.0, 0.0]]))
        tensor([180.], dtype=torch.float64)
    """
    a, b = functional.normalize(a.double(), dim=-1), functional.normalize(b.double(), dim=-1)
    near, far = _length(a - b), _length(a + b)
    return 4.0 * torch.rad2deg(torch.atan2(torch.minimum(near, far), torch.maximum(near, far)))


def _length(vectors: Tensor) -> Tensor:
    found: Tensor = torch.linalg.vector_norm(vectors, dim=-1)
    return found
