from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from paretomtl.problems._data.images import Size
from paretomtl.problems._localization.files import SIZE, load_localization
from paretomtl.problems._localization.frames import Frames, Integers
from paretomtl.problems._localization.rotations import mean_quaternion
from paretomtl.problems._losses import angles, chords, distances, pose_losses
from paretomtl.problems._networks.posenet import PoseNet
from paretomtl.problems._problem import Metric, Problem
from paretomtl.problems.recipes import residual

_STILL = 0.01  # metres: a coordinate that varies less than this counts as varying by it
_EPOCHS, _BATCH = 60, 32


def localization(
    validation: bool = False,
    folder: str | Path | None = None,
    model: Callable[[], nn.Module] | None = None,
    size: Size = SIZE,
    beta: float = 1.0,
) -> Problem:
    r"""Where a camera is and where it looks (paper, section 6.2), by PoseNet: translation and rotation from one image.

    The losses are those of :func:`paretomtl.problems.pose_losses`: the mean distance in metres, and the mean chord
    :math:`2 \sin(\theta / 4)` of the angle between the rotations, times :math:`\beta`. In a room both are tenths. On a
    street, with large distances and small angles, PoseNet takes 250 to 2000 for :math:`\beta`.

    The paper trains on the Zpark sample of ApolloScape; its split and settings are not known. Consecutive frames look
    the same, so they are split in blocks of 50 moments: the fifth of every five blocks is for test, the third for
    validation if that is requested, and training leaves out 5 moments on either side of both. The data set's own lists,
    ``train.txt`` and ``val.txt``, replace this split. ResNet-18 is trained as in the paper's code for other images, by
    Adam with a learning rate of 0.001 that drops to a tenth halfway, but in batches of 32 for 60 epochs, because there
    are few frames.

    Images are ``[n, 3, height, width]`` in unsigned bytes. Targets are positions ``[n, 3]`` in metres from the first
    frame, ``load_localization().origin``, and unit quaternions ``[n, 4]``. Metrics are "translation error" and "median
    translation error" in metres, "rotation error" and "median rotation error" in degrees. The reference of the
    hypervolume is the loss of the mean pose of all frames outside the test split, the best constant prediction.

    ``paretomtl data prepare localization --from FOLDER`` must have read the frames from your folder; they cannot be
    downloaded.

    Args:
        validation: validate on every fifth block; False trains on it.
        folder: where the prepared file is; ``$PARETOMTL_DATA`` or the user's cache folder if left out.
        model: takes images in unsigned bytes and returns positions ``[n, 3]`` in metres and unit quaternions ``[n,
            4]``; None is :class:`PoseNet` with the mean and the standard deviation of the training positions.
        size: height and width of the prepared images.
        beta: multiplies the loss of the rotation.

    Example:
        >>> localization(folder="new")
        Traceback (most recent call last):
        ...
        FileNotFoundError: 'new/localization-48x64.npz' does not exist yet. Make it with: paretomtl data prepare ...
    """
    if not isinstance(beta, (int, float)) or not 0 < beta < math.inf:
        raise ValueError(f"'beta' must be a positive number. Got {beta!r} instead.")
    frames = load_localization(folder, size)
    parts = frames.split(validation)
    splits = {name: _tensors(frames, part) for name, part in parts.items()}
    positions = frames.positions[parts["train"]] - frames.origin
    center, spread = positions.mean(0).tolist(), np.maximum(positions.std(0), _STILL).tolist()
    reference = _mean_pose_losses(frames, float(beta))
    return from_splits(splits, model or (lambda: PoseNet(center, spread)), reference, beta)


def from_splits(
    splits: Mapping[str, tuple[Tensor, Tensor, Tensor]],
    model: Callable[[], nn.Module],
    reference: Sequence[float],
    beta: float = 1.0,
) -> Problem:
    """The problem of images, positions ``[n, 3]`` and unit quaternions ``[n, 4]`` by split."""
    return Problem(
        model=model,
        losses=functools.partial(pose_losses, beta=float(beta)),
        tasks=["translation", "rotation"],
        train=splits["train"],
        val=splits.get("val"),
        test=splits["test"],
        metrics={
            "translation error": Metric(lambda outputs, targets: _metres(outputs, targets).mean(), "lower"),
            "median translation error": Metric(
                lambda outputs, targets: _metres(outputs, targets).quantile(0.5), "lower"
            ),
            "rotation error": Metric(lambda outputs, targets: angles(outputs[1], targets[1]).mean(), "lower"),
            "median rotation error": Metric(
                lambda outputs, targets: angles(outputs[1], targets[1]).quantile(0.5), "lower"
            ),
        },
        name="localization",
        reference=reference,
        recipe=residual(len(splits["train"][0]), epochs=_EPOCHS, batch_size=_BATCH),
    )


def _metres(outputs: tuple[Tensor, Tensor], targets: tuple[Tensor, Tensor]) -> Tensor:
    return distances(outputs[0].double(), targets[0].double())


def _tensors(frames: Frames, part: Integers) -> tuple[Tensor, Tensor, Tensor]:
    kind = torch.get_default_dtype()
    positions = torch.tensor(frames.positions[part] - frames.origin, dtype=kind)
    return torch.from_numpy(frames.images[part]), positions, torch.tensor(frames.quaternions[part], dtype=kind)


def _mean_pose_losses(frames: Frames, beta: float) -> list[float]:
    """The losses of the mean pose on the frames outside the test split."""
    part = frames.split(validation=False)["train"]
    positions, quaternions = torch.from_numpy(frames.positions[part]), torch.from_numpy(frames.quaternions[part])
    mean = torch.from_numpy(mean_quaternion(frames.quaternions[part]))
    return [
        float(distances(positions, positions.mean(0)).mean()),
        beta * float(chords(quaternions, mean.expand_as(quaternions)).mean()),
    ]
