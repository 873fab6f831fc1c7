"""The best epoch of each model so far, by its losses on validation.

``keep="best"`` takes the epoch in the model's own region with the lowest mean loss. The lowest sum weighted by the
preference would be wrong: a preference is a direction, and for (1, 0) that sum sees only the loss that may be large. In
a trial, the favoured task became twice as bad. ``patience`` uses the same rule: two rules would end runs while the kept
epoch still moves, or continue while it does not. The losses of all epochs are in the history, so nothing more is
stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from paretomtl.core import FEASIBLE_TOLERANCE, dominates
from paretomtl.engine.evaluate import Scores
from paretomtl.engine.model_group import Group, split_by_group
from paretomtl.training.results.snapshot import concat_rows
from paretomtl.training.settings.settings import Settings


class BestSoFar:
    """Each model at its best epoch on validation, which no epoch so far dominates.

    With directions, the best is in the model's own region and has the lowest mean loss; outside, it has the smallest
    violation. With importances, it has the lowest mean weighted by them. Otherwise it has the lowest mean.

    An epoch is taken if it dominates the kept one, or if it is better by these rules and no epoch so far dominates it.
    By induction none dominates the kept one: an epoch that dominated a dominating one would have dominated the kept
    one. An epoch that is best by these rules and not dominated is taken when it comes, and never replaced.

    Args:
        groups: the models.
        weights: whether to keep their weights; otherwise only the epochs are known.
        since: how many epochs came before, when the models were others.
    """

    def __init__(self, groups: Sequence[Group], *, weights: bool = True, since: int = 0) -> None:
        self._since = since
        self._tensors = [dict(group.solution().copy()) for group in groups] if weights else []
        count = sum(group.models.count for group in groups)
        self._epochs = [0] * count
        self._inside = torch.zeros(count, dtype=torch.bool)
        self._values = torch.full((count,), torch.inf, dtype=torch.float64)

    def consider(self, epoch: int, scores: Scores, groups: Sequence[Group], settings: Settings, seen: Tensor) -> None:
        """Keep every model that is better than before; ``seen [T, K, m]`` are the losses of all epochs so far."""
        self._follow(groups)
        method = settings.method
        state = {name: tensor.cpu() for name, tensor in concat_rows([group.state for group in groups]).items()}
        scale = method.scale_of(state)
        seen = seen[self._since :]
        seen = torch.where(seen.isnan().flatten(0, 1).all(0), 0.0, seen.double())  # tasks without labels
        sound = seen.isfinite().all(-1)
        seen = torch.where(sound[..., None], seen, torch.nan)
        places = [max(epoch - self._since, 1) - 1 for epoch in self._epochs]
        now, before = seen[-1], seen[places, range(len(places))]
        values = now * (1.0 if scale is None else scale)
        if method.reading == "importance":
            values = values * torch.cat([rows[settings.subproblems] for rows in settings.vectors])
        values = values.sum(-1)
        inside = torch.ones(len(values), dtype=torch.bool)
        violation = method.violation(state, scores.losses)
        if violation is not None:
            inside = violation <= FEASIBLE_TOLERANCE
            values = torch.where(inside, values, violation)
        better = (inside & ~self._inside) | ((inside == self._inside) & (values < self._values))
        beaten = dominates(seen[:-1], now).any(0)  # of unscaled losses: no positive factor changes dominance
        first = torch.tensor([epoch == 0 for epoch in self._epochs])
        better = sound[-1] & values.isfinite() & (first | dominates(now, before) | (better & ~beaten))
        self._values = torch.where(better, values, self._values)
        self._inside = torch.where(better, inside, self._inside)
        self._epochs = [epoch if now else then for now, then in zip(better.tolist(), self._epochs, strict=True)]
        if not self._tensors:
            return
        for group, stored, rows in zip(groups, self._tensors, split_by_group(better, groups), strict=True):
            mask = rows.to(group.active.device)
            for name, tensor in group.solution().items():
                stored[name] = torch.where(mask.reshape(-1, *[1] * (tensor.ndim - 1)), tensor, stored[name])

    def forget(self, epoch: int) -> None:
        """Forget all epochs so far, ``epoch`` of them: the models were asked for something else."""
        self._since = epoch
        self._epochs = [0] * len(self._epochs)
        self._inside = torch.zeros_like(self._inside)
        self._values = torch.full_like(self._values, torch.inf)

    def _follow(self, groups: Sequence[Group]) -> None:
        """Sort the stored tensors by groups, which may have changed: a stack that fails is split."""
        if not self._tensors or len(groups) == len(self._tensors):
            return
        parts = zip(*(split_by_group(tensor, groups) for tensor in concat_rows(self._tensors).values()), strict=True)
        names = list(self._tensors[0])
        self._tensors = [{name: t.clone() for name, t in zip(names, part, strict=True)} for part in parts]

    def give_back(self, groups: Sequence[Group]) -> None:
        """Restore every model to its best epoch, if it was ever validated."""
        self._follow(groups)
        known = torch.tensor([epoch > 0 for epoch in self._epochs])
        for group, stored, rows in zip(groups, self._tensors, split_by_group(known, groups), strict=True):
            for values in (group.models.tensors(), *([] if group.average is None else [group.average.values])):
                values.write(stored, rows.to(group.active.device))
            group.previous = group.models.copy()
            group.active = group.active | rows.to(group.active.device)  # at that epoch it was finite

    def epochs(self, now: int) -> list[int]:
        """The best epoch of each model; ``now`` for one that was never validated."""
        return [epoch or now for epoch in self._epochs]

    def improved(self) -> int:
        """The last epoch in which a model was better than before, or the last that does not count."""
        return max(self._since, *self._epochs)

    def state(self) -> dict[str, Any]:
        """The state, for a checkpoint."""
        return {
            "tensors": self._tensors,
            "epochs": self._epochs,
            "inside": self._inside,
            "values": self._values,
            "since": self._since,
        }

    def load(self, state: Mapping[str, Any], device: torch.device, epoch: int) -> None:
        """Restore the state of a checkpoint, after ``epoch`` epochs."""
        if len(state["epochs"]) != len(self._epochs) or not all(0 <= best <= epoch for best in state["epochs"]):
            raise ValueError(f"the best epochs are not among the {epoch} that are done")
        self._tensors = [{name: t.to(device) for name, t in tensors.items()} for tensors in state["tensors"]]
        self._epochs, self._inside, self._values = state["epochs"], state["inside"], state["values"]
        self._since = state.get("since", 0)
