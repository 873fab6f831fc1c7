"""Snapshots: all models of a run at one moment, with their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from paretomtl.engine.coupling import slices
from paretomtl.engine.evaluate import Scores
from paretomtl.engine.model_group import Group
from paretomtl.engine.models.modules import frozen_tensors
from paretomtl.front.models import StackedModels
from paretomtl.methods import Method, State, slice_state


@dataclass(frozen=True)
class Snapshot:
    """All models at one moment: final, then also with losses on a few samples, or before constraints are dropped."""

    losses: dict[str, Tensor]
    metrics: dict[str, dict[str, Tensor]]
    status: list[str]
    since: list[int] | None
    scale: Tensor | None
    epochs: list[int]
    parameters: dict[str, Tensor]
    ideal: tuple[float, ...] | None = None
    measured: dict[str, Tensor] = field(default_factory=dict)
    directions: Tensor | None = None
    decisions: list[list[str]] = field(default_factory=list)
    probes: dict[str, Tensor] = field(default_factory=dict)

    @classmethod
    def of(cls, method: Method, groups: Sequence[Group], scores: Mapping[str, Scores], epochs: list[int]) -> Snapshot:
        """The current models, with scores that were just measured."""
        state = concat_rows([group.state for group in groups])
        alive = torch.cat([group.active for group in groups]).cpu()
        losses = scores["train"].losses
        directions = method.directions_of(state)
        fronts = slices(len(alive), groups[0].front_size)
        measured = None if bool(losses.isnan().all()) else losses
        words = method.status({name: tensor.cpu() for name, tensor in state.items()}, measured)
        return cls(
            losses={split: score.losses for split, score in scores.items()},
            metrics={split: score.metrics for split, score in scores.items() if score.metrics},
            status=[word if living else "non-finite" for word, living in zip(words, alive.tolist(), strict=True)],
            since=method.since(state),
            scale=scale_now(method, state),
            ideal=method.ideal,
            measured={name: tensor.cpu() for name, tensor in method.measured(state).items()},
            directions=None if directions is None else directions.cpu(),
            decisions=[list(method.decisions(slice_state(state, rows))) for rows in fronts],
            epochs=epochs,
            parameters={
                **{n: t.cpu() for n, t in concat_rows([group.solution() for group in groups]).items()},
                **{n: t.cpu().expand(len(alive), *t.shape) for n, t in frozen_tensors(groups[0].models.module).items()},
            },
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
            "probes": {split: losses[rows] for split, losses in self.probes.items()},
            "models": StackedModels({name: tensor[rows] for name, tensor in self.parameters.items()}),
        }


def scale_now(method: Method, state: State) -> Tensor | None:
    """The factors ``[K, m]`` that the method multiplies the losses by, on the CPU; None for none."""
    scale = method.scale_of(state)
    return None if scale is None else scale.cpu()


def concat_rows(parts: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The rows of several groups in one."""
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
