"""What the steps of a run saw: sums over the current epoch, and the epochs so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from paretomtl.problems import Problem
from paretomtl.training._step import Taken


class Trace:
    """Means of losses and weights over the steps of each epoch, for all K models.

    Args:
        rows: K.
        tasks: m.
        device: where the models are; nothing here waits for it.
    """

    def __init__(self, rows: int, tasks: int, device: torch.device) -> None:
        self._zeros = torch.zeros(rows, tasks, dtype=torch.float64, device=device)
        self._losses = self._weights = self._present = self._zeros
        self._steps = 0
        self._history: dict[str, list[Tensor]] = {"losses": [], "weights": [], "val": []}
        self._first: Tensor | None = None
        self._ever = torch.zeros(tasks, dtype=torch.bool, device=device)

    def add(self, taken: Sequence[Taken]) -> Tensor:
        """Add a step of all groups; return which tasks had labels, ``[K, m]``."""
        losses = torch.cat([part.losses for part in taken])
        present = torch.cat([part.present for part in taken])
        if self._first is None:
            self._first = losses
        self._losses = self._losses + torch.where(present, losses, 0.0)
        self._weights = self._weights + torch.cat([part.weights for part in taken])
        self._present = self._present + present
        self._ever = self._ever | present.any(0)
        self._steps += 1
        return present

    def end_epoch(self) -> None:
        """Turn the sums into means."""
        self._history["losses"].append(self._losses / self._present)
        self._history["weights"].append(self._weights / max(self._steps, 1))
        self._start_epoch()

    def add_validation(self, losses: Tensor) -> None:
        """Keep the losses on validation, once an epoch."""
        self._history["val"].append(losses)

    def last(self, name: str) -> Tensor:
        """The means of the last epoch, on the CPU."""
        return self._history[name][-1].cpu()

    def labelled(self) -> Tensor:
        """The tasks that ever had labels, ``[m]`` bool, on the CPU."""
        return self._ever.cpu()

    def reference(self, problem: Problem, rows: slice = slice(None)) -> tuple[float, ...] | None:
        """The problem's own reference, or the largest losses of the first step; None where a task had no labels."""
        if problem.reference is not None:
            return tuple(problem.reference)
        if self._first is None or not bool(self._first[rows].isfinite().all()):
            return None
        return tuple(self._first[rows].double().amax(0).tolist())

    def part(self, rows: slice, dtype: torch.dtype) -> dict[str, Tensor]:
        """All epochs of some models, ``[T, K, m]``, on the CPU."""
        empty = self._zeros[None, rows][:0].to("cpu", dtype)
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
        device = self._zeros.device
        self._losses, self._weights, self._present = (state[n].to(device) for n in ("losses", "weights", "present"))
        self._steps = state["steps"]
        self._first = None if state["first"] is None else state["first"].to(device)
        self._ever = state["ever"].to(device)
        self._history |= {name: list(table.to(device)) for name, table in state["history"].items()}

    def _start_epoch(self) -> None:
        self._losses = self._weights = self._present = self._zeros
        self._steps = 0
