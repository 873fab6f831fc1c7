"""The probe of a run: its first part, in which a method measures before it settles what models are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from paretomtl.methods import Method


@dataclass(frozen=True)
class Probe:
    """The place in a run where a probe ends. It follows from the plan alone, so that a resumed run agrees.

    Attributes:
        steps: the number of steps of the probe; 0 if the steps of an epoch are unknown.
        epochs: the number of epochs of the probe in that case.
    """

    steps: int
    epochs: int

    @classmethod
    def of(cls, method: Method, total: int, epochs: int) -> Self | None:
        """The probe of a run of ``total`` steps, 0 if unknown, in ``epochs`` epochs; None if the method has none."""
        if method.probe_share is None:
            return None
        return cls(method.probe_steps(total), method.probe_steps(epochs))

    def ends_before(self, number: int, epoch: int, step: int) -> bool:
        """Whether the probe ends right before a step.

        Args:
            number: the number of steps before it.
            epoch: the number of epochs before it.
            step: the number of steps before it in its epoch.
        """
        return number == self.steps if self.steps else epoch == self.epochs and step == 0
