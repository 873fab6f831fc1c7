"""What the steps of a run saw: sums over the current epoch, and the epochs so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from paretomtl.problems import Problem
from paretomtl.training._gradients import zero
from paretomtl.training._step import Taken


class Trace:
    """Means of losses and weights over the steps of each epoch, for all K models.

    Args:
        rows: K.
        tasks: m.
        device: where the models are; nothing here waits for it.
    """

    def __init__(self, rows: int, tasks: int, device: torch.device) -> None:
        zeros = torch.zeros(rows, tasks, dtype=torch.float64, device=device)
        self._losses, self._weights, self._present = zeros, zeros.clone(), zeros.clone()
        self._steps = 0
        self._history: dict[str, list[Tensor]] = {"losses": [], "weights": [], "val": []}
        self._first: Tensor | None = None
        self._complete = torch.ones((), dtype=torch.bool, device=device)
        self._ever = torch.zeros(tasks, dtype=torch.bool, device=device)

    def add(self, taken: Sequence[Taken]) -> None:
        """Add a step of all groups, in place."""
        losses, present, weights = (
            parts[0] if len(parts) == 1 else torch.cat(parts)
            for parts in zip(*((part.losses, part.present, part.weights) for part in taken), strict=True)
        )
        if self._first is None:
            self._first = losses.clone()
        self._losses += torch.where(present, losses, zero(losses.device))
        self._weights += weights
        self._present += present

    def count(self) -> None:
        """Count a step that was added, here or by a replay of what was captured."""
        self._steps += 1

    def end_epoch(self) -> None:
        """Turn the sums into means."""
        self._history["losses"].append(self._losses / self._present)
        self._history["weights"].append(self._weights / max(self._steps, 1))
        self._ever |= (self._present > 0).any(0)
        self._complete = (self._present == self._steps).all()
        for sums in (self._losses, self._weights, self._present):
            sums.zero_()
        self._steps = 0

    def complete(self) -> bool:
        """Whether all tasks had labels in every step of the last epoch."""
        return bool(self._complete)

    def add_validation(self, losses: Tensor) -> None:
        """Keep the losses on validation, once an epoch."""
        self._history["val"].append(losses)

    def last(self, name: str) -> Tensor:
        """The means of the last epoch, on the CPU."""
        return self._history[name][-1].cpu()

    def labelled(self) -> Tensor:
        """The tasks that ever had labels, ``[m]`` bool, on the CPU."""
        return (self._ever | (self._present > 0).any(0)).cpu()

    def reference(self, problem: Problem, rows: slice = slice(None)) -> tuple[float, ...] | None:
        """The problem's own reference, or the largest losses of the first step; None where a task had no labels."""
        if problem.reference is not None:
            return tuple(problem.reference)
        if self._first is None or not bool(self._first[rows].isfinite().all()):
            return None
        return tuple(self._first[rows].double().amax(0).tolist())

    def part(self, rows: slice, dtype: torch.dtype) -> dict[str, Tensor]:
        """All epochs of some models, ``[T, K, m]``, on the CPU."""
        empty = self._losses[None, rows][:0].to("cpu", dtype)
        return {
            name: torch.stack([table[rows].to("cpu", dtype) for table in tables]) if tables else empty
            for name, tables in self._history.items()
            if tables or name != "val"
        }

    def state(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {
            "losses": self._losses,
            "weights": self._weights,
            "present": self._present,
            "steps": self._steps,
            "first": self._first,
            "ever": self._ever,
            "history": {name: torch.stack(tables) for name, tables in self._history.items() if tables},
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """From a checkpoint."""
        device = self._losses.device
        tables = [] if state["first"] is None else [state["first"][None]]
        if any(table.shape[1:] != self._losses.shape for table in (*tables, *state["history"].values())):
            raise ValueError("the trace is not of as many subproblems and tasks")
        for name in ("losses", "weights", "present", "ever"):
            getattr(self, f"_{name}").copy_(state[name])
        self._steps = state["steps"]
        self._first = None if state["first"] is None else state["first"].to(device)
        for name, table in state["history"].items():  # those of evaluations are on the CPU
            self._history[name] = list(table if name == "val" else table.to(device))
