"""Losses and metrics of tasks that say yes or no."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from paretomtl.problems._problem import Metric


def binary_cross_entropies(outputs: Sequence[Tensor], targets: Tensor) -> Tensor:
    """The binary cross-entropy of each head, ``[m]``, from logits ``[n]`` each and targets ``[n, m]`` of 0 and 1.

    A head that says nothing, with logit 0, has ln 2. A task with a target of NaN in the batch is NaN.

    Example:
        >>> binary_cross_entropies((torch.zeros(4), torch.tensor([9.0, 9.0, -9.0, -9.0])), torch.eye(4)[:, :2])
        tensor([0.6931, 2.2501])
    """
    loss = nn.functional.binary_cross_entropy_with_logits
    return torch.stack([loss(y, targets[:, i].to(y.dtype)) for i, y in enumerate(outputs)])


def binary_accuracy(task: int) -> Metric:
    """The share of right answers of one head, yes being a logit above 0, from targets ``[n, m]``.

    Example:
        >>> binary_accuracy(0).function((torch.tensor([2.0, -1.0]),), torch.tensor([[1.0], [1.0]]))
        tensor(0.5000, dtype=torch.float64)
    """
    return Metric(lambda outputs, targets: ((outputs[task] > 0) == (targets[:, task] > 0.5)).double().mean())


def area_under_curve(task: int) -> Metric:
    r"""The area under the ROC curve of one head, from targets ``[n, m]``: how well it puts yes above no.

    It is the share of right orders among all pairs of a yes and a no, where equal logits are half right (Hanley and
    McNeil 1982). With p samples of yes, q of no, and R the sum of the ranks of yes, where equal logits share the mean
    of their ranks,

    .. math:: \frac{R - p (p + 1) / 2}{p \, q}.

    Unlike the accuracy it is 1/2 for a constant answer, however rare yes is. It is NaN where all samples are of one
    kind, or a logit is NaN.

    Example:
        >>> area_under_curve(0).function((torch.tensor([1.0, 2.0, 2.0, 3.0]),), torch.tensor([[0], [0], [1], [1]]))
        tensor(0.8750, dtype=torch.float64)
    """
    return Metric(lambda outputs, targets: _area(outputs[task], targets[:, task] > 0.5))


def _area(logits: Tensor, yes: Tensor) -> Tensor:
    _, place, count = torch.unique(logits, return_inverse=True, return_counts=True)
    twice_rank = (2 * count.cumsum(0) - count + 1)[place]  # whole numbers: nothing is rounded before the division
    positive = yes.sum()
    pairs = positive * (~yes).sum()
    right = twice_rank[yes].sum() - positive * (positive + 1)
    return torch.where(logits.isnan().any(), torch.nan, right.double() / (2 * pairs))
