from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from paretomtl.problems._census.files import Census, load_census
from paretomtl.problems._census.problem import make_splits
from paretomtl.problems._losses import (
    area_under_curve,
    binary_accuracy,
    has_both_groups,
    only_head,
    parity_gap,
    parity_losses,
)
from paretomtl.problems._networks.tabular import MLP
from paretomtl.problems._problem import Metric, Problem, Recipe
from paretomtl.problems.recipes import configured, warm_cosine

SEXES = ("Female", "Male")
"""The groups 0 and 1, as the records name them."""

_BATCH = 2048
_HIDDEN = (128, 32)


def census_parity(
    validation: bool = False,
    folder: str | Path | None = None,
    model: Callable[[], nn.Module] | None = None,
    verify: bool = True,
) -> Problem:
    r"""Census-Income (KDD), not in the paper: predict income, and predict it alike for women and men.

    Accuracy against demographic parity (Calders and Verwer 2010) is a conflict that no capacity removes: in the
    records more men than women have a high income, so that a model that predicts income well predicts it more often for
    men. The records, the splits and the features are those of
    :func:`census`, sex included; ``paretomtl data prepare census`` must have prepared them. Targets are ``[n, 2]``: an
    income above 50,000 dollars (0 or 1), and sex (0 woman, 1 man). There are two losses of one predicted probability p:

    .. math::
        L_\text{income} = -\overline{y \log p + (1 - y) \log (1 - p)}, \qquad
        L_\text{parity} = \sqrt{(\bar p_\text{women} - \bar p_\text{men})^2 + 0.01^2},

    with means over the batch, see :func:`parity_losses`. A batch of one sex alone has no parity loss.

    The network is :class:`MLP` with hidden layers of 128 and 32 units and one head. The recipe: AdamW with learning
    rate 0.0014, a cosine down to zero, batches of 2048, 5 epochs; methods are configured as for :func:`census`. The
    reference of the hypervolume is (0.7, 0.2). All of this was fixed before the first run.

    The parity loss of a split is the mean over its batches. The gap of a batch is noisy, so this mean lies above the
    loss of the whole split, the more the smaller batches are; evaluation on a GPU takes larger batches than training.
    The metrics are exact on the whole split: "income accuracy", "income auc", "parity gap" (of predictions at the
    threshold 1/2) and "soft parity gap" (of p). With ``accumulate`` or several processes the loss is the mean over the
    parts of a batch, so keep parts large.

    Beware of scales from first values (``scale="first"``, and ``scale="auto"``, which takes them if they differ by more
    than a factor of 10). A model that is not trained treats all alike: its parity loss is near its best value, 0.01,
    while its income loss is near ln 2 = 0.693. Divided by these values, parity weighs up to seventy times as much as
    income, and models of all weights end near parity. Losses as they are (``scale=None``) are comparable: in the
    published records a constant prediction has at best the losses 0.23 and 0.01, and predictions that are right on
    average for each sex have a parity loss of 0.077.

    Args:
        validation: train on nine tenths of the training records, and validate on the others, as in :func:`census`.
        folder: where the records are; ``$PARETOMTL_DATA`` or the user's cache folder if left out.
        model: takes features ``[n, 482]`` and returns logits ``[n]``, or a tuple with that tensor alone.
        verify: False takes the records that ``prepare_census(verify=False)`` made from your own files. Their column sex
            must have the categories Female and Male; records of other categories count for the income alone.

    Example:
        >>> census_parity(folder="new")
        Traceback (most recent call last):
        ...
        FileNotFoundError: 'new/census.npz' does not exist yet. Make it with: paretomtl data prepare census --cache new
    """
    data = load_census(folder, verify=verify)
    columns = _sex_columns(data)
    return from_splits(
        {name: _with_sex(*split, columns) for name, split in make_splits(data, validation).items()}, model
    )


def from_splits(splits: Mapping[str, tuple[Tensor, Tensor]], model: Callable[[], nn.Module] | None = None) -> Problem:
    """The problem of features ``[n, d]`` and targets ``[n, 2]``, income and sex, by split."""
    features, targets = splits["train"]
    inputs = features.shape[1]
    return Problem(
        model=model or (lambda: MLP(inputs, 1, hidden=_HIDDEN)),
        losses=parity_losses,
        tasks=("income", "parity"),
        train=splits["train"],
        val=splits.get("val"),
        test=splits["test"],
        metrics={
            "income accuracy": _of_head(binary_accuracy(0)),
            "income auc": _of_head(area_under_curve(0)),
            "parity gap": parity_gap(),
            "soft parity gap": parity_gap(soft=True),
        },
        name="census-parity",
        reference=(0.7, 0.2),
        recipe=Recipe(
            epochs=5,
            batch_size=_BATCH,
            optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=1.4e-3),
            scheduler=warm_cosine,
            schedule="step",
            methods=configured(len(targets), _BATCH),
        ),
        counts=_count_labels,
    )


def _of_head(metric: Metric) -> Metric:
    """A metric of the first head, for models that return a tensor or a tuple."""
    return replace(metric, function=lambda outputs, targets: metric.function((only_head(outputs, targets),), targets))


def _count_labels(batch: Any) -> Tensor:
    """All samples have an income; together they have a parity if both sexes are among them."""
    sexes = batch[1][:, 1]
    both = has_both_groups(sexes)
    return len(sexes) * torch.stack([torch.ones_like(both), both])


def _sex_columns(data: Census) -> list[int]:
    """The places of women and of men among the features."""
    names, wanted = list(data.feature_names), [f"sex={name}" for name in SEXES]
    if not set(wanted) <= set(names):
        found = [name.removeprefix("sex=") for name in names if name.startswith("sex=")]
        raise ValueError(f"'sex' must have the categories {' and '.join(SEXES)} in the records. Got {found} instead.")
    return [names.index(name) for name in wanted]


def _with_sex(features: Tensor, labels: Tensor, columns: list[int]) -> tuple[Tensor, Tensor]:
    """Features, and targets ``[n, 2]``: income, and sex or NaN if it is neither of the two."""
    woman, man = (features[:, column] for column in columns)
    sex = torch.where(woman + man > 0, man, torch.nan)
    return features, torch.stack([labels[:, 0], sex], -1)
