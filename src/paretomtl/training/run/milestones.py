"""Milestones of a run: where its models branch, where a probe ends, where a snapshot is kept.

They follow from the plan alone, so that a resumed run agrees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from paretomtl.methods import Method


@dataclass(frozen=True)
class Milestone:
    """A place between two steps.

    Attributes:
        steps: the number of steps before it; 0 if the steps of an epoch are unknown.
        epochs: the number of epochs before it in that case.
    """

    steps: int
    epochs: int

    def is_before(self, number: int, epoch: int, step: int) -> bool:
        """Whether it lies right before a step.

        Args:
            number: the number of steps before that one.
            epoch: the number of epochs before it.
            step: the number of steps before it in its epoch.
        """
        return number == self.steps if self.steps else epoch == self.epochs and step == 0


@dataclass(frozen=True)
class Milestones:
    """The milestones of a run. A method begins where the models branch, and plans the rest of the run.

    Attributes:
        branch: where the models branch; None if they never share a start.
        probe_end: where the probe of the method ends; None if it has none.
        snapshots: the steps before which a snapshot is kept.
    """

    branch: Milestone | None
    probe_end: Milestone | None
    snapshots: frozenset[int]

    @classmethod
    def of(cls, method: Method, branch: float | None, total: int, epochs: int) -> Self:
        """The milestones of a run of ``total`` steps, 0 if unknown, in ``epochs`` epochs.

        Args:
            method: that of the run.
            branch: the share of the run that its models share; None for none.
            total: the number of planned steps.
            epochs: the number of planned epochs.
        """
        start = Milestone(0, 0) if branch is None else Milestone(_part(branch, total), _part(branch, epochs))
        length, unit = (total, "steps") if total else (epochs, "epochs of unknown length")
        if branch is not None and (start.steps if total else start.epochs) >= length:
            raise ValueError(
                f"'branch' must leave at least one step to each model after it, or one epoch of unknown length. Got "
                f"{branch} of {length} {unit} instead: take a smaller share, or more epochs."
            )
        steps, rest = total - start.steps, epochs - start.epochs
        probe_end = None
        if method.probe_share is not None:
            probe_end = Milestone(
                start.steps + method.probe_steps(steps) if total else 0, start.epochs + method.probe_steps(rest)
            )
        snapshots = frozenset(start.steps + number for number in method.snapshots(steps))
        return cls(None if branch is None else start, probe_end, snapshots)


def _part(share: float, count: int) -> int:
    """A share of some steps: at least one of them, none of none."""
    return min(count, max(1, round(share * count)))
