"""What a run leaves: models at one moment with their scores, and the best of each model so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from paretomtl._support.version import made_by
from paretomtl.core import FEASIBLE_TOLERANCE, dominates
from paretomtl.engine.evaluate import Scores
from paretomtl.engine.step import Group, split_by_group
from paretomtl.front import Front
from paretomtl.front.indicators import hypervolume_or_none
from paretomtl.methods import Method

if TYPE_CHECKING:
    from paretomtl.engine.history import EpochHistory
    from paretomtl.training.settings import Settings


@dataclass(frozen=True)
class Snapshot:
    """All models at one moment: final, or right before the constraints are dropped."""

    losses: dict[str, Tensor]
    metrics: dict[str, dict[str, Tensor]]
    status: list[str]
    since: list[int] | None
    scale: Tensor | None
    epochs: list[int]
    parameters: dict[str, Tensor]
    ideal: tuple[float, ...] | None = None
    measured: dict[str, Tensor] = field(default_factory=dict)

    @classmethod
    def of(cls, method: Method, groups: Sequence[Group], scores: Mapping[str, Scores], epochs: list[int]) -> Snapshot:
        """The models as they are now, with scores that were just taken."""
        state = _concat_rows([group.state for group in groups])
        alive = torch.cat([group.active for group in groups]).cpu()
        losses = scores["train"].losses
        words = method.status({name: tensor.cpu() for name, tensor in state.items()}, losses)
        return cls(
            losses={split: found.losses for split, found in scores.items()},
            metrics={split: found.metrics for split, found in scores.items() if found.metrics},
            status=[word if living else "non-finite" for word, living in zip(words, alive.tolist(), strict=True)],
            since=method.since(state),
            scale=scale_now(method, groups),
            ideal=method.ideal,
            measured={name: tensor.cpu() for name, tensor in method.measured(state).items()},
            epochs=epochs,
            parameters={name: t.cpu() for name, t in _concat_rows([group.models.copy() for group in groups]).items()},
        )

    def part(self, rows: slice) -> dict[str, Any]:
        """The fields of a front of some rows."""
        return {
            "losses": {split: losses[rows] for split, losses in self.losses.items()},
            "metrics": {
                split: {name: values[rows] for name, values in metrics.items()}
                for split, metrics in self.metrics.items()
            },
            "status": self.status[rows],
            "since": None if self.since is None else self.since[rows],
            "scale": None if self.scale is None else self.scale[rows],
            "ideal": self.ideal,
            "measured": {name: tensor[rows] for name, tensor in self.measured.items()},
            "epochs": self.epochs[rows],
            "parameters": {name: tensor[rows] for name, tensor in self.parameters.items()},
        }


class BestSoFar:
    """Each model as it was when it scored best on validation: an epoch that none so far dominates.

    With directions: in its own region first, and then the least mean of its losses; outside, the least violation. With
    importances: the least mean weighted by them. Else the least mean.

    An epoch is taken if it dominates the kept one, or if it is better by these rules and no epoch so far dominates it.
    By induction none dominates the kept one: what dominated a dominating epoch would have dominated the kept one.
    An epoch that is best by these rules and dominated by none is taken when it comes, and never given up.

    Args:
        groups: the models.
        weights: whether to keep theirs; otherwise the epochs alone are known.
    """

    def __init__(self, groups: Sequence[Group], *, weights: bool = True) -> None:
        self._tensors = [dict(group.models.copy()) for group in groups] if weights else []
        count = sum(group.models.count for group in groups)
        self._epochs = [0] * count
        self._inside = torch.zeros(count, dtype=torch.bool)
        self._values = torch.full((count,), torch.inf, dtype=torch.float64)

    def consider(self, epoch: int, scores: Scores, groups: Sequence[Group], settings: Settings, seen: Tensor) -> None:
        """Take every model that is better now than it was; ``seen [T, K, m]`` are the losses of all epochs so far."""
        self._follow(groups)
        method = settings.method
        state = {name: tensor.cpu() for name, tensor in _concat_rows([group.state for group in groups]).items()}
        scale = method.scale_of(state)
        seen = torch.where(seen.isnan().flatten(0, 1).all(0), 0.0, seen.double())  # tasks without labels
        sound = seen.isfinite().all(-1)
        seen = torch.where(sound[..., None], seen, torch.nan)
        now, before = seen[-1], seen[[max(epoch - 1, 0) for epoch in self._epochs], range(len(self._epochs))]
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
        beaten = dominates(seen[:-1], now).any(0)  # of losses as they are: no positive factor changes it
        first = torch.tensor([epoch == 0 for epoch in self._epochs])
        better = sound[-1] & values.isfinite() & (first | dominates(now, before) | (better & ~beaten))
        self._values = torch.where(better, values, self._values)
        self._inside = torch.where(better, inside, self._inside)
        self._epochs = [epoch if now else then for now, then in zip(better.tolist(), self._epochs, strict=True)]
        if not self._tensors:
            return
        for group, kept, rows in zip(groups, self._tensors, split_by_group(better, groups), strict=True):
            mask = rows.to(group.active.device)
            for name, tensor in group.models.tensors().items():
                kept[name] = torch.where(mask.reshape(-1, *[1] * (tensor.ndim - 1)), tensor, kept[name])

    def _follow(self, groups: Sequence[Group]) -> None:
        """Sort what is kept by groups, which may be others than before: stacks are taken apart where they fail."""
        if not self._tensors or len(groups) == len(self._tensors):
            return
        parts = zip(*(split_by_group(tensor, groups) for tensor in _concat_rows(self._tensors).values()), strict=True)
        names = list(self._tensors[0])
        self._tensors = [{name: t.clone() for name, t in zip(names, part, strict=True)} for part in parts]

    def give_back(self, groups: Sequence[Group]) -> None:
        """Put every model back to its best, if it ever was on validation."""
        self._follow(groups)
        known = torch.tensor([epoch > 0 for epoch in self._epochs])
        for group, kept, rows in zip(groups, self._tensors, split_by_group(known, groups), strict=True):
            group.models.restore(rows.to(group.active.device), kept)
            group.previous = group.models.copy()
            group.active = group.active | rows.to(group.active.device)  # at that epoch it was finite

    def epochs(self, now: int) -> list[int]:
        """The epoch of each model's best; ``now`` for one that was never on validation."""
        return [epoch or now for epoch in self._epochs]

    def improved(self) -> int:
        """The last epoch in which a model was better than before; 0 for none."""
        return max(self._epochs)

    def state(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {"tensors": self._tensors, "epochs": self._epochs, "inside": self._inside, "values": self._values}

    def load(self, state: Mapping[str, Any], device: torch.device, epoch: int) -> None:
        """From a checkpoint after so many epochs."""
        if len(state["epochs"]) != len(self._epochs) or not all(0 <= kept <= epoch for kept in state["epochs"]):
            raise ValueError(f"the best epochs are not of the {epoch} that are done")
        self._tensors = [{name: t.to(device) for name, t in tensors.items()} for tensors in state["tensors"]]
        self._epochs, self._inside, self._values = state["epochs"], state["inside"], state["values"]


def scale_now(method: Method, groups: Sequence[Group]) -> Tensor | None:
    """The factors ``[K, m]`` that the method multiplies the losses by, on the CPU; None for none."""
    scale = method.scale_of(_concat_rows([group.state for group in groups]))
    return None if scale is None else scale.cpu()


def mean_hypervolume(losses: Tensor, reference: Sequence[float] | None, seeds: int) -> float | None:
    """The hypervolume of each seed's losses, as a mean over seeds; None where one cannot be known."""
    found = [hypervolume_or_none(part, reference) for part in losses.chunk(seeds)]
    known = [each for each in found if each is not None]
    return sum(known) / seeds if len(known) == seeds else None


def build_front(
    settings: Settings,
    index: int,
    stages: Sequence[Snapshot],
    trace: EpochHistory,
    strategy: str,
    seconds: float,
    complete: bool,
    ended: str,
    remarks: Sequence[str] = (),
) -> Front:
    """The front of one of the seeds, with what was kept on the way as its snapshot."""
    count = len(settings.subproblems)
    part = slice(index * count, (index + 1) * count)
    front = None
    for stage in stages:
        front = Front(
            problem=settings.problem.name,
            method=settings.method.name,
            tasks=tuple(settings.problem.tasks),
            reading=settings.method.reading,
            preferences=settings.vectors[index],
            subproblems=tuple(settings.subproblems),
            history=trace.part(part, settings.dtype),
            seed=settings.seeds[index],
            seconds=seconds,
            model_factory=settings.problem.model,
            snapshot=front,
            better={name: metric.better for name, metric in settings.problem.metrics.items()},
            complete=complete,
            strategy=strategy,
            reference=trace.reference(settings.problem, part),
            made_by=made_by(),
            remarks=tuple(remarks) if stage is stages[-1] else (),
            ended=ended,
            **stage.part(part),
        )
    assert front is not None
    return front


def _concat_rows(parts: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The rows of several groups in one."""
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
