"""Warnings at the end of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from paretomtl.training.results.snapshot import Snapshot
from paretomtl.training.settings.settings import Settings
from paretomtl.training.untrained import missing_labels_text

_NOT_STACKED = (
    " If tasks lack labels in some batches: let torch.stack be the last operation of 'losses', or return a dictionary, "
    "so that NaN stays with its own task."
)
_ROUNDING = 1e-6  # relative error of a mean in float32 by the order of the samples


def final_warnings(
    snapshot: Snapshot,
    settings: Settings,
    history: Mapping[str, Tensor],
    labelled: Sequence[bool],
    *,
    kept_apart: bool,
) -> list[str]:
    """The warnings of a result.

    Args:
        snapshot: the final models.
        settings: of the run.
        history: means of losses and weights by epoch, ``[T, K, m]``, of all models.
        labelled: whether each task ever had labels.
        kept_apart: whether NaN of missing labels stays with its own task.
    """
    texts = []
    vanished = " ".join(_vanished(settings, history))
    broken = torch.tensor([word == "non-finite" for word in snapshot.status])
    if bool(broken.any()):
        hint = "" if kept_apart else _NOT_STACKED
        stopped = "the other tasks went on" if vanished else "no model was trained after that"
        then = stopped if bool(broken.all()) else "the others went on"
        texts.append(
            f"losses or gradients of models {_numbers(broken, settings)} were not finite; each was frozen where "
            f"it last was finite, as far as that is known, and {then}.{hint}"
            f"{' ' if vanished else ''}{vanished}"
        )
    elif vanished:
        texts.append(vanished)
    without = [task for task, known in zip(settings.problem.tasks, labelled, strict=True) if not known]
    if without and settings.problem.train is not None:
        texts.append(
            f"tasks {without} had no labels in any batch of 'train', or NaN in labels or inputs made all of their "
            "losses NaN: nothing was learnt of them. Mend the data, or leave these tasks out of 'tasks': a choice "
            "needs finite losses in all tasks."
        )
    known = [i for i, task in enumerate(settings.problem.tasks) if task not in without]
    tasks = [settings.problem.tasks[i] for i in known]
    for split, losses in snapshot.losses.items():
        text = None if split == "train" else missing_labels_text(split, tasks, losses[:, known])
        texts += [] if text is None else [text]
    texts += _constant(snapshot, settings, history)
    if settings.method.reading == "direction":
        texts += [*_negative(snapshot, settings), *_reversed(snapshot, settings)]
    return texts


def stopped_early(settings: Settings, epoch: int, folder: Path | None) -> list[str]:
    """The warning of a run that was stopped after ``epoch`` epochs; empty if it was at its end."""
    if epoch >= settings.epochs:
        return []
    done = f"{epoch} of {settings.epochs} epochs"
    return [f"training was stopped after {done}: front.complete is False{_kept(settings, folder)}"]


def _kept(settings: Settings, folder: Path | None) -> str:
    """The end of that warning: what is stored, and how to resume."""
    if folder is not None:
        return f", and resume=True goes on. The last checkpoint is in '{folder}'."
    if len(settings.seeds) > 1:
        return " for each seed. Nothing is stored: Front.save keeps what was returned."
    return ". Nothing is stored: 'out' keeps checkpoints, from which resume=True goes on."


def _vanished(settings: Settings, history: Mapping[str, Tensor]) -> list[str]:
    """Tasks that once had losses, but none in the last epochs of all models, while other tasks still had some."""
    gone = history["losses"].isnan().all(1)
    if not len(gone) or bool(gone[-1].all()) or settings.problem.train is None:
        return []
    texts = []
    for task, column in zip(settings.problem.tasks, gone.T.tolist(), strict=True):
        if column[-1] and not all(column):
            since = len(column) - column[::-1].index(False) + 1
            texts.append(
                f"The loss of task '{task}' was NaN in every batch of all models from epoch {since} on, as without "
                "labels: nothing was learnt of it since then. Check it for logarithms, roots and divisions by zero."
            )
    return texts


def _constant(snapshot: Snapshot, settings: Settings, history: Mapping[str, Tensor]) -> list[str]:
    """Tasks with the same loss in all epochs of models that differ: training does not change them."""
    losses = history["losses"].double().flatten(0, 1)
    alike = all(torch.equal(tensor, tensor[:1].expand_as(tensor)) for tensor in snapshot.parameters.values())
    if len(history["losses"]) < 2 or alike:  # the same start may be a point where no task can gain
        return []
    one = (losses.amax(0) - losses.amin(0)) <= _ROUNDING * losses.abs().amax(0)
    names = _names(one & losses.isfinite().all(0), settings)
    if not names:
        return []
    return [
        f"the losses of tasks {names} were the same number in all epochs of all models on 'train': nothing was learnt "
        "of them. A task with gradient zero keeps methods that improve all tasks at once from improving any. Check "
        "that they depend on what the optimizer trains, or leave them out."
    ]


def _negative(snapshot: Snapshot, settings: Settings) -> list[str]:
    """Losses below zero at the end: regions are cut from the positive part of the loss space."""
    if snapshot.ideal is not None:  # losses better than the ideal point count as zero
        return []
    below = snapshot.losses["train"] < 0
    if not bool(below.any()):
        return []
    return [
        f"losses of tasks {_names(below.any(0), settings)} are negative on 'train' in models "
        f"{_numbers(below.any(-1), settings)}: preferences are directions of non-negative losses, so that these "
        "models have no region. Add a constant, subtract each loss's lower bound, or give an ideal and a worst "
        "point as 'scale' of ParetoMTL."
    ]


def _reversed(snapshot: Snapshot, settings: Settings) -> list[str]:
    """Losses that are smaller where their direction allows them to be larger: rows mistaken for importances."""
    if snapshot.since is not None:  # a method with regions says whether each model lies in its own
        return []
    wanted = torch.cat([rows[settings.subproblems] for rows in settings.vectors])
    losses = snapshot.losses["train"].double()
    good = (losses >= 0).all(-1) & (losses.sum(-1) > 0) & losses.isfinite().all(-1)
    shares = [rows[good] / rows[good].sum(-1, keepdim=True) for rows in (wanted, losses)]
    if len(shares[0]) < 2:
        return []
    centred = [share - share.mean(0) for share in shares]
    if not bool(((centred[0] * centred[1]).sum(0) < 0).all()):
        return []
    return [
        "losses on 'train' run against their directions: in every task, the more a direction allows, the smaller the "
        f"loss. Choices and reports that read the rows of {settings.method!r} as directions mislead. The run may be "
        "too short, or the learning rate too large. With PBI and COSMOS, the coefficient may be too small for losses "
        "of this size, so that the weighted sum prevails; 0 makes the rows importances."
    ]


def _names(tasks: Tensor, settings: Settings) -> list[str]:
    return [task for task, chosen in zip(settings.problem.tasks, tasks.tolist(), strict=True) if chosen]


def _numbers(rows: Tensor, settings: Settings) -> list[int]:
    """The numbers of some models; those of further seeds follow those of the first."""
    return [settings.subproblems[i % len(settings.subproblems)] for i, chosen in enumerate(rows.tolist()) if chosen]
