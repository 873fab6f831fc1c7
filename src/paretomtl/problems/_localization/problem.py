from __future__ import annotations

import functools
import math
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from paretomtl.problems._data.array_file import Like, read_arrays, write_arrays
from paretomtl.problems._data.cache import load_or_make
from paretomtl.problems._data.images import Size, check_size
from paretomtl.problems._localization.apolloscape import LAYOUTS, layout_of, read_apolloscape
from paretomtl.problems._localization.frames import NEITHER, Frames, Integers
from paretomtl.problems._localization.rotations import mean_quaternion
from paretomtl.problems._localization.sheets import read_frame_sheets
from paretomtl.problems._multi_mnist.files import data_folder
from paretomtl.problems._networks.posenet import PoseNet, angles, chords, distances, pose_losses
from paretomtl.problems._problem import Metric, Problem
from paretomtl.problems.recipes import residual

VERSION = 1
"""Of the file."""

SIZE = (48, 64)
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
    :math:`2 \sin(\theta / 4)` of the angle between the rotations, times :math:`\beta`. In a room both are tenths; on a
    street, where metres are many and angles small, PoseNet takes 250 to 2000 for :math:`\beta`.

    The paper trains on the Zpark sample of ApolloScape, which is read where somebody has it; its split and settings are
    not said. Frames that follow each other look the same, so they are split in blocks of 50 moments: the fifth of every
    five tests, the third validates if asked for, and training leaves out 5 moments on either side of both. Lists of the
    data set's own, ``train.txt`` and ``val.txt``, take the place of this. ResNet-18 is trained as in the paper's code
    for other images, Adam with a learning rate of 0.001 that falls to a tenth halfway, but in batches of 32 for 60
    epochs, as there are few frames.

    Images are ``[n, 3, height, width]`` in unsigned bytes, targets positions ``[n, 3]`` in metres from the first frame,
    ``load_localization().origin``, and unit quaternions ``[n, 4]``. Metrics are "translation error" and "median
    translation error" in metres, "rotation error" and "median rotation error" in degrees. Hypervolumes refer to what
    the mean pose of all frames but those of the test costs, the best answer without looking.

    ``paretomtl data prepare localization --from FOLDER`` must have read the frames; they cannot be downloaded by it.

    Args:
        validation: validate on every fifth block; if not, it is trained on, too.
        folder: where the prepared file is; ``$PARETOMTL_DATA`` or the user's cache folder if left out.
        model: takes images in unsigned bytes and returns positions ``[n, 3]`` in metres and unit quaternions ``[n,
            4]``; None is :class:`PoseNet` with the mean and the standard deviation of the training positions.
        size: height and width of the prepared images.
        beta: multiplies the loss of the rotation.

    Example:
        >>> localization(folder="new")
        Traceback (most recent call last):
        ...
        FileNotFoundError: 'new/localization-48x64.npz' is not there yet. Make it with: paretomtl data prepare ...
    """
    if not isinstance(beta, (int, float)) or not 0 < beta < math.inf:
        raise ValueError(f"'beta' must be a positive number. Got {beta!r} instead.")
    frames = load_localization(folder, size)
    parts = frames.split(validation)
    splits = {name: _tensors(frames, part) for name, part in parts.items()}
    positions = frames.positions[parts["train"]] - frames.origin
    center, spread = positions.mean(0).tolist(), np.maximum(positions.std(0), _STILL).tolist()
    reference = _mean_pose_losses(frames, float(beta))
    return poses_of(splits, model or (lambda: PoseNet(center, spread)), reference, beta)


def poses_of(
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
    """What the mean pose costs on all frames but those of the test."""
    part = frames.split(validation=False)["train"]
    positions, quaternions = torch.from_numpy(frames.positions[part]), torch.from_numpy(frames.quaternions[part])
    mean = torch.from_numpy(mean_quaternion(frames.quaternions[part]))
    return [
        float(distances(positions, positions.mean(0)).mean()),
        beta * float(chords(quaternions, mean.expand_as(quaternions)).mean()),
    ]


def prepare_localization(
    source: str | Path | None,
    cache: str | Path | None = None,
    size: Size = SIZE,
    log: Callable[[str], None] = lambda text: None,
    skip_broken: bool = False,
) -> Frames:
    """Read frames with their poses once, and keep them in one file; what is there already is only read.

    Two layouts are known. One is that of ApolloScape, for a road such as the Zpark sample: images in
    ``image/RECORD/CAMERA/NAME.jpg``, poses in ``pose/RECORD/CAMERA.txt`` or ``pose/RECORD/CAMERA/pose.txt``, or the
    same under ``ColorImage`` and ``Pose``. A record may be several folders deep. A line is ``NAME
    roll,pitch,yaw,x,y,z`` in radians and metres, or the 16 numbers of a matrix and ``NAME``. Lists of the split may be
    in ``split`` or ``trainval_split``, ``train.txt`` and ``val.txt``, a line for each image, ``RECORD/CAMERA/NAME``.

    The other has ``poses.csv`` with the columns frame, m00, ..., m23, the upper three rows of the pose, and
    ``sheet_0.jpg`` and so on with 25 by 10 tiles of 64 by 48 each.

    Args:
        source: the folder. None takes what is there already.
        cache: where the file is kept; ``$PARETOMTL_DATA`` or the user's cache folder if left out.
        size: height and width that images are shrunk to, by Pillow (extra ``images``), whatever their proportions.
        log: is told what happens.
        skip_broken: leave out images that do not decode, and name them to ``log``; they are an error otherwise. Sheets
            are never left out.
    """
    path = localization_file(cache, size)

    def make() -> Frames:
        began = time.perf_counter()
        frames = _read(source, size, skip_broken, log)
        write_arrays(path, frames.arrays, version=VERSION, name="localization", height=size[0], width=size[1])
        log(f"Read {len(frames):,} frames in {time.perf_counter() - began:.1f} s: {path}")
        return frames

    return load_or_make(path, lambda: load_localization(cache, size), make, log, ", delete it to read other files")


def _read(source: str | Path | None, size: Size, skip_broken: bool, log: Callable[[str], None]) -> Frames:
    """The frames of a folder in either layout."""
    if source is None:
        raise ValueError("'source' (--from) must be a folder with frames and poses. Got None, and none are kept.")
    folder = Path(source).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(f"'source' (--from) must be a folder with frames and poses. There is no '{folder}'.")
    if (folder / "poses.csv").is_file():
        return read_frame_sheets(folder, size)
    if layout_of(folder) is not None:
        return read_apolloscape(folder, size, skip_broken, log)
    pairs = " or ".join(f"'{images}' and '{poses}'" for images, poses in LAYOUTS)
    raise FileNotFoundError(
        f"'{folder}' must hold the folders {pairs}, or sheets with poses.csv. It has none of these."
    )


def load_localization(cache: str | Path | None = None, size: Size = SIZE) -> Frames:
    """What :func:`prepare_localization` stored; an error for a file that is missing, damaged, or of something else."""
    path = localization_file(cache, size)
    resized = "" if tuple(size) == SIZE else f" --size {size[0]}x{size[1]}"
    place = "" if cache is None else f" --cache {shlex.quote(str(cache))}"
    command = f"paretomtl data prepare localization --from FOLDER{place}{resized}"
    words: dict[str, str | int] = {"version": VERSION, "name": "localization", "height": size[0], "width": size[1]}
    frames = Frames(**read_arrays(path, command, {"images": Like("u1", ("n", 3, *size)), **_LAYOUT}, **words))
    if len(np.unique(frames.records)) != frames.records.max() + 1:
        raise ValueError(f"'{path}' must have frames of every record. Make it again with: {command}")
    return frames


_LAYOUT = {
    "positions": Like("f8", ("n", 3)),
    "quaternions": Like("f8", ("n", 4)),
    "records": Like("i8", ("n",), 2**31),
    "moments": Like("i8", ("n",), 2**31),
    "listed": Like("u1", ("n",), NEITHER),
    "names": Like("U", ("n",)),
}


def localization_file(cache: str | Path | None, size: Size) -> Path:
    """The file of the frames."""
    check_size("size", size)
    return (data_folder() if cache is None else Path(cache).expanduser()) / f"localization-{size[0]}x{size[1]}.npz"
