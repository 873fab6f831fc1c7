"""History of a run: losses and weights, summed over the current epoch, and means of the epochs so far.

It holds means over the steps of each epoch rather than every step, so that it stays small enough for a checkpoint.
For a problem without data an epoch is one step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from paretomtl.engine.gradients import zero
from paretomtl.engine.step import StepRecord
from paretomtl.problems import Problem

_CAPACITY = 16  # rows of a new table


class GrowingTensor:
    """Tensors of one shape, added one by one to one piece of memory, which doubles when it is full.

    A separate tensor for each epoch would take a hundred times the memory of its numbers.

    Args:
        rows: the initial rows, ``[T, ...]``, if any.
    """

    def __init__(self, rows: Tensor | None = None) -> None:
        self._memory = rows
        self._count = 0 if rows is None else len(rows)

    def __len__(self) -> int:
        return self._count

    def add(self, row: Tensor) -> None:
        """Add a row; nothing waits for the device."""
        if self._memory is None:
            self._memory = row.new_empty((_CAPACITY, *row.shape))
        elif self._count == len(self._memory):
            self._memory = torch.cat([self._memory, self._memory.new_empty((max(_CAPACITY, self._count), *row.shape))])
        self._memory[self._count] = row
        self._count += 1

    def rows(self) -> Tensor:
        """All rows, ``[T, ...]``; there must be at least one."""
        assert self._memory is not None
        return self._memory[: self._count]


class EpochHistory:
    """Means of losses and weights over the steps of each epoch, for all K models.

    Args:
        rows: K.
        tasks: m.
        device: where the models are; nothing here waits for it.
        reference: the reference point of models that started from a front; None if they started untrained.
    """

    def __init__(self, rows: int, tasks: int, device: torch.device, reference: tuple[float, ...] | None = None) -> None:
        self._reference = reference
        zeros = torch.zeros(rows, tasks, dtype=torch.float64, device=device)
        self._losses, self._weights, self._present = zeros, zeros.clone(), zeros.clone()
        self._steps = 0
        self._history = {name: GrowingTensor() for name in ("losses", "weights", "val")}
        self._first: Tensor | None = None
        self._complete = torch.ones((), dtype=torch.bool, device=device)
        self._ever = torch.zeros(tasks, dtype=torch.bool, device=device)

    def add(self, records: Sequence[StepRecord]) -> None:
        """Add a step of all groups, in place. Rows of shared models count for all the models that they stand for."""
        losses, present, weights = (
            parts[0] if len(parts) == 1 else torch.cat(parts)
            for parts in zip(*((part.losses, part.present, part.weights) for part in records), strict=True)
        )
        copies = len(self._losses) // len(losses)
        if copies > 1:
            losses, present, weights = (rows.repeat_interleave(copies, 0) for rows in (losses, present, weights))
        if self._first is None:
            self._first = losses.clone()
        self._losses += torch.where(present, losses, zero(losses.device))
        self._weights += weights
        self._present += present

    def count(self) -> None:
        """Count a step that was added, here or by a replay."""
        self._steps += 1

    def end_epoch(self) -> None:
        """Turn the sums into means."""
        self._history["losses"].add(self._losses / self._present)
        self._history["weights"].add(self._weights / max(self._steps, 1))
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
        self._history["val"].add(losses)

    def validation(self) -> Tensor:
        """The losses on validation of all epochs so far, ``[T, K, m]``, on the CPU."""
        return self._history["val"].rows()

    def last(self, name: str) -> Tensor:
        """The means of the last epoch, on the CPU."""
        return self._history[name].rows()[-1].clone().cpu()

    def labelled(self) -> Tensor:
        """The tasks that ever had labels, ``[m]`` bool, on the CPU."""
        return (self._ever | (self._present > 0).any(0)).cpu()

    def reference(self, problem: Problem, rows: slice = slice(None)) -> tuple[float, ...] | None:
        """That of the problem, of a warm start, or the largest losses of the first step; None without labels."""
        if problem.reference is not None:
            return tuple(problem.reference)
        if self._reference is not None:
            return self._reference
        if self._first is None or not bool(self._first[rows].isfinite().all()):
            return None
        return tuple(self._first[rows].double().amax(0).tolist())

    def part(self, rows: slice, dtype: torch.dtype) -> dict[str, Tensor]:
        """All epochs of some models, ``[T, K, m]``, on the CPU."""
        empty = self._losses[None, rows][:0].to("cpu", dtype)
        return {
            name: table.rows()[:, rows].to("cpu", dtype, copy=True) if len(table) else empty
            for name, table in self._history.items()
            if len(table) or name != "val"
        }

    def state(self) -> dict[str, Any]:
        """The state, for a checkpoint."""
        return {
            "losses": self._losses,
            "weights": self._weights,
            "present": self._present,
            "steps": self._steps,
            "first": self._first,
            "ever": self._ever,
            "history": {name: table.rows() for name, table in self._history.items() if len(table)},
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Restore the state of a checkpoint."""
        device = self._losses.device
        tables = [] if state["first"] is None else [state["first"][None]]
        if any(table.shape[1:] != self._losses.shape for table in (*tables, *state["history"].values())):
            raise ValueError("the history has another number of models or tasks")
        for name in ("losses", "weights", "present", "ever"):
            getattr(self, f"_{name}").copy_(state[name])
        self._steps = state["steps"]
        self._first = None if state["first"] is None else state["first"].to(device)
        for name, table in state["history"].items():  # validation losses stay on the CPU
            self._history[name] = GrowingTensor(table if name == "val" else table.to(device))
