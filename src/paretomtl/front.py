"""The result of training: a set of solutions, one per subproblem, spread over the Pareto front."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from paretomtl._extras import require
from paretomtl.core import in_region, nondominated


@dataclass(frozen=True, repr=False, eq=False)
class Front:
    """K solutions and how they came about.

    Attributes:
        problem: its name.
        method: its name.
        tasks: the names of the m tasks.
        reading: what the rows of ``preferences`` mean: "direction", "importance" or "start".
        preferences: all rows ``[K, m]``.
        subproblems: which of them were trained, in the order of everything below.
        losses: by split, ``[K, m]``.
        scale: the factors ``[K, m]`` by which losses were multiplied before regions were decided; None for none.
        status: one word per solution: "feasible", "infeasible", "critical", "negative", "trained" or "non-finite".
        since: the step since which each solution had the status of its last step; None for methods without regions.
        parameters: the trained parameters and buffers, stacked ``[K, ...]``, by name.
        history: "losses" and "weights" before each step, ``[T, K, m]``.
        seed: model k started from (seed, k).
        seconds: how long training took; solutions of several seeds trained together share it.
        snapshot: the front right before the constraints were dropped, where the method drops them.
    """

    problem: str
    method: str
    tasks: tuple[str, ...]
    reading: str
    preferences: Tensor
    subproblems: tuple[int, ...]
    losses: Mapping[str, Tensor]
    scale: Tensor | None
    status: Sequence[str]
    since: Sequence[int] | None
    parameters: Mapping[str, Tensor]
    history: Mapping[str, Tensor]
    seed: int
    seconds: float
    model_factory: Callable[[], nn.Module]
    snapshot: Front | None = None

    def __len__(self) -> int:
        return len(self.subproblems)

    def model(self, k: int) -> nn.Module:
        """The trained model of subproblem k, in eval mode."""
        if k not in self.subproblems:
            raise IndexError(f"'k' must be one of the subproblems trained, {list(self.subproblems)}. Got {k} instead.")
        row = self.subproblems.index(k)
        with torch.random.fork_rng(devices=list(range(torch.cuda.device_count()))):
            model = self.model_factory()
        model.to(next(iter(self.parameters.values())).dtype)
        model.load_state_dict({name: tensor[row] for name, tensor in self.parameters.items()}, strict=False)
        return model.eval()

    def nondominated(self, split: str = "train") -> Tensor:
        """Which solutions no other one dominates, ``[K]`` bool."""
        return nondominated(self._losses(split))

    def in_region(self, split: str = "train") -> Tensor:
        """Which solutions lie in the region of their own preference vector, ``[K]`` bool, scaled as in training."""
        if self.reading != "direction":
            raise ValueError(f"regions need preferences that are directions; those of '{self.method}' are not.")
        everyone = torch.full((len(self.preferences), len(self.tasks)), torch.nan, dtype=torch.float64)
        everyone[list(self.subproblems)] = self._losses(split).double() * (1.0 if self.scale is None else self.scale)
        return in_region(self.preferences, everyone)[list(self.subproblems)]

    def hypervolume(self, reference: Sequence[float], split: str = "train") -> float:
        """The volume between the solutions and a reference point that they should dominate (extra ``indicators``)."""
        if len(reference) != len(self.tasks):
            raise ValueError(
                f"'reference' must have one number per task ({len(self.tasks)}). Got {len(reference)} instead."
            )
        moocore = require("moocore", "indicators")
        losses = self._losses(split).double()
        return float(moocore.hypervolume(losses[losses.isfinite().all(-1)].numpy(), ref=list(reference)))

    def _losses(self, split: str) -> Tensor:
        if split not in self.losses:
            raise ValueError(f"'split' must be one of {list(self.losses)}. Got {split!r} instead.")
        return self.losses[split]

    def __repr__(self) -> str:
        names = " ".join(f"{task if len(task) < 10 else task[:8] + '…':>9}" for task in self.tasks)
        lines = [f"Front of {len(self)} solutions: {self.problem}, {self.method}, seed {self.seed}"]
        lines.append(f"  k  {self.reading:<{8 * len(self.tasks)}} {names}  status")
        kept = self.nondominated()
        for i, k in enumerate(self.subproblems):
            row = " ".join(f"{value:7.3f}" for value in self.preferences[k].tolist())
            losses = " ".join(f"{value:9.4g}" for value in self.losses["train"][i].tolist())
            lines.append(f"{k:3d}  {row}  {losses}  {self.status[i]}{'' if kept[i] else ', dominated'}")
        return "\n".join(lines)
