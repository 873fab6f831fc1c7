"""Losses and metrics of the built-in problems: multi-class, binary, parity, faces, poses."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from paretomtl.problems._problem import Metric

PARITY_FLOOR = 0.01
"""The parity loss of equal predictions; below a gap of this size the loss is a parabola, above it the gap."""


def cross_entropies(outputs: tuple[Tensor, ...], targets: Tensor) -> Tensor:
    """The cross-entropy of each head, ``[m]``, from targets ``[n, m]``.

    Example:
        >>> cross_entropies((torch.zeros(4, 10), torch.zeros(4, 10)), torch.zeros(4, 2, dtype=torch.long))
        tensor([2.3026, 2.3026])
    """
    return torch.stack([functional.cross_entropy(y, targets[:, i]) for i, y in enumerate(outputs)])


def accuracy(task: int) -> Metric:
    """The accuracy of one head, from targets ``[n, m]``.

    Example:
        >>> accuracy(1).function((torch.eye(2), torch.eye(2)), torch.tensor([[0, 0], [1, 0]]))
        tensor(0.5000, dtype=torch.float64)
    """
    return Metric(lambda outputs, targets: (outputs[task].argmax(-1) == targets[:, task]).double().mean())


def binary_cross_entropies(outputs: Sequence[Tensor], targets: Tensor) -> Tensor:
    """The binary cross-entropy of each head, ``[m]``, from logits ``[n]`` each and targets ``[n, m]`` of 0 and 1.

    A head with no information has logit 0 and loss ln 2. A target of NaN in the batch makes the loss of its task NaN.

    Example:
        >>> binary_cross_entropies((torch.zeros(4), torch.tensor([9.0, 9.0, -9.0, -9.0])), torch.eye(4)[:, :2])
        tensor([0.6931, 2.2501])
    """
    loss = functional.binary_cross_entropy_with_logits
    return torch.stack([loss(y, targets[:, i].to(y.dtype)) for i, y in enumerate(outputs)])


def binary_accuracy(task: int) -> Metric:
    """The accuracy of one binary head, from targets ``[n, m]``: a logit above 0 predicts 1.

    Example:
        >>> binary_accuracy(0).function((torch.tensor([2.0, -1.0]),), torch.tensor([[1.0], [1.0]]))
        tensor(0.5000, dtype=torch.float64)
    """
    return Metric(lambda outputs, targets: ((outputs[task] > 0) == (targets[:, task] > 0.5)).double().mean())


def area_under_curve(task: int) -> Metric:
    r"""The area under the ROC curve of one head, from targets ``[n, m]``: how well it ranks positives above negatives.

    It is the fraction of pairs of a positive and a negative that are ordered correctly, where a tie counts half (Hanley
    and McNeil 1982). With p positives, q negatives, and R the sum of the ranks of the positives, where equal logits
    share the mean of their ranks,

    .. math:: \frac{R - p (p + 1) / 2}{p \, q}.

    Unlike the accuracy, it is 1/2 for a constant output, however rare positives are. It is NaN if all samples have the
    same label, or if a logit is NaN.

    Example:
        >>> area_under_curve(0).function((torch.tensor([1.0, 2.0, 2.0, 3.0]),), torch.tensor([[0], [0], [1], [1]]))
        tensor(0.8750, dtype=torch.float64)
    """
    return Metric(lambda outputs, targets: _area(outputs[task], targets[:, task] > 0.5))


def _area(logits: Tensor, yes: Tensor) -> Tensor:
    _, place, count = torch.unique(logits, return_inverse=True, return_counts=True)
    twice_rank = (2 * count.cumsum(0) - count + 1)[place]  # integers: nothing is rounded before the division
    positive = yes.sum()
    pairs = positive * (~yes).sum()
    right = twice_rank[yes].sum() - positive * (positive + 1)
    return torch.where(logits.isnan().any(), torch.nan, right.double() / (2 * pairs))


def parity_losses(outputs: Tensor | Sequence[Tensor], targets: Tensor) -> Tensor:
    r"""Binary cross-entropy and demographic parity (Calders and Verwer 2010; Dwork et al. 2012) of one head, ``[2]``.

    Demographic parity asks for equal rates of positive predictions in two groups. The rates are those of soft
    predictions here, so that the loss has a gradient. With the probabilities :math:`p_i = \sigma(y_i)`, and :math:`G_0`
    and :math:`G_1` the samples of the two groups in the batch,

    .. math:: L_\text{parity} = \sqrt{\Delta^2 + 0.01^2}, \qquad
              \Delta = \frac{1}{|G_0|} \sum_{i \in G_0} p_i - \frac{1}{|G_1|} \sum_{i \in G_1} p_i.

    It is smooth and positive: 0.01 for equal rates, and nearly :math:`|\Delta|` for gaps well above that. It is a
    function of the whole batch and not a mean over samples: the gap of a small batch is noisy, so that its expectation
    lies above the gap of the population. A batch without one of the groups has no parity loss: it is NaN there, with a
    gradient of zero.

    Args:
        outputs: logits ``[n]``, or a tuple with that tensor alone, as :class:`MLP` with one head returns it.
        targets: ``[n, 2]``: the label, 0 or 1, and the group, 0 or 1. A sample whose group is another number, or NaN,
            counts for the first loss alone.

    Example:
        >>> targets = torch.tensor([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
        >>> parity_losses(torch.zeros(4), targets)
        tensor([0.6931, 0.0100])
        >>> parity_losses(torch.tensor([-9.0, -9.0, 9.0, 9.0]), targets)
        tensor([4.5001, 0.9998])
        >>> parity_losses(torch.zeros(2), targets[:2])
        tensor([0.6931,    nan])
    """
    logits = only_head(outputs, targets)
    income = functional.binary_cross_entropy_with_logits(logits, targets[:, 0].to(logits.dtype))
    gap, defined = _rate_gap(logits.sigmoid(), targets[:, 1])
    parity = torch.where(defined, torch.sqrt(gap.square() + PARITY_FLOOR**2), torch.nan)
    return torch.stack([income, parity])


def parity_gap(soft: bool = False) -> Metric:
    r"""The gap of demographic parity of one head, on a whole split: lower is better, and 0 is parity.

    .. math:: |P(\hat y = 1 \mid G_0) - P(\hat y = 1 \mid G_1)|

    Outputs and targets are those of :func:`parity_losses`. Unlike that loss, it does not depend on how a split is cut
    into batches. It is NaN if one of the groups is missing, or if a logit is NaN.

    Args:
        soft: take the means of the predicted probabilities. False takes the rates of logits above 0.

    Example:
        >>> logits, targets = torch.tensor([-1.0, 2.0, 3.0]), torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
        >>> parity_gap().function(logits, targets)
        tensor(0.5000, dtype=torch.float64)
        >>> parity_gap(soft=True).function(logits, targets)
        tensor(0.3777, dtype=torch.float64)
    """

    def measure(outputs: Tensor | Sequence[Tensor], targets: Tensor) -> Tensor:
        logits = only_head(outputs, targets).double()
        gap, defined = _rate_gap(logits.sigmoid() if soft else (logits > 0).double(), targets[:, 1])
        return torch.where(defined & ~logits.isnan().any(), gap.abs(), torch.nan)

    return Metric(measure, better="lower")


def has_both_groups(groups: Tensor) -> Tensor:
    """Whether some samples are of group 0 and some of group 1, from groups ``[n]``."""
    return (groups == 0).any() & (groups == 1).any()


def _rate_gap(predictions: Tensor, groups: Tensor) -> tuple[Tensor, Tensor]:
    """The difference of the mean predictions of groups 0 and 1, and whether both have samples.

    Without samples of a group the difference is finite, so that its gradient is, too.
    """
    masks = [(groups == group).to(predictions.dtype) for group in (0, 1)]
    first, second = ((predictions * mask).sum() / mask.sum().clamp_min(1.0) for mask in masks)
    return first - second, has_both_groups(groups)


def only_head(outputs: Tensor | Sequence[Tensor], targets: Tensor) -> Tensor:
    """The logits ``[n]`` of a model with one head."""
    if targets.ndim != 2 or targets.shape[1] != 2:
        raise ValueError(
            f"'targets' must have shape [n, 2], the label and the group. Got {list(targets.shape)} instead."
        )
    heads = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    if len(heads) != 1 or heads[0].shape != targets.shape[:1]:
        found = ", ".join(str(list(head.shape)) for head in heads)
        raise ValueError(f"'outputs' must be one tensor of logits of shape [{len(targets)}]. Got {found} instead.")
    return heads[0]


def face_losses(outputs: tuple[Tensor, Tensor, Tensor], targets: Tensor) -> Tensor:
    """The losses ``[3]`` of :func:`utkface`, from targets ``[n, 3]``: two cross-entropies, and years.

    Example:
        >>> outputs = torch.zeros(1, 2), torch.zeros(1, 5), torch.tensor([[30.0]])
        >>> face_losses(outputs, torch.tensor([[1, 4, 26]]))
        tensor([0.6931, 1.6094, 4.0000])
    """
    gender, race, age = outputs
    return torch.stack(
        [
            functional.cross_entropy(gender, targets[:, 0]),
            functional.cross_entropy(race, targets[:, 1]),
            (age[:, 0] - targets[:, 2]).abs().mean(),
        ]
    )


def age_error(outputs: tuple[Tensor, ...], targets: Tensor) -> Tensor:
    """The mean absolute error of the age in years, from the outputs and targets of :func:`face_losses`."""
    return (outputs[2][:, 0].double() - targets[:, 2]).abs().mean()


def pose_losses(outputs: tuple[Tensor, Tensor], targets: tuple[Tensor, Tensor], beta: float = 1.0) -> Tensor:
    r"""The losses ``[2]`` of :func:`localization`: metres, and the chord between unit quaternions.

    .. math:: L_t = \frac{1}{n} \sum_i |t_i - \hat t_i|, \qquad
              L_r = \frac{\beta}{n} \sum_i \min(|q_i - \hat q_i|, |q_i + \hat q_i|)

    The chord is that of PoseNet, made independent of the sign, because q and -q are the same rotation. For rotations
    that differ by the angle :math:`\theta` it is :math:`2 \sin(\theta / 4)`. One degree costs 0.0087; half a turn, the
    largest angle, costs 1.41. Its gradient has the same length everywhere except at zero.

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
    """The smaller of the distances ``[n]`` from a to b and from a to -b, for unit quaternions ``[n, 4]``."""
    sign = torch.where((a * b).sum(-1, keepdim=True) < 0, -1.0, 1.0).to(b.dtype)
    return _length(a - sign * b)


def angles(a: Tensor, b: Tensor) -> Tensor:
    """The angles ``[n]``, in degrees, from 0 to 180, between the rotations of quaternions ``[n, 4]``.

    They are computed from the half-angle of the chord. An arc cosine cannot tell small angles from zero.

    Example:
        >>> angles(torch.tensor([[1.0, 0.0, 0.0, 0.0]]), torch.tensor([[0.0, 0.0, -2.0, 0.0]]))
        tensor([180.], dtype=torch.float64)
    """
    a, b = functional.normalize(a.double(), dim=-1), functional.normalize(b.double(), dim=-1)
    near, far = _length(a - b), _length(a + b)
    return 4.0 * torch.rad2deg(torch.atan2(torch.minimum(near, far), torch.maximum(near, far)))


def _length(vectors: Tensor) -> Tensor:
    length: Tensor = torch.linalg.vector_norm(vectors, dim=-1)
    return length
