"""The identity of a run: its configuration, and the losses of its first model, which identify it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from paretomtl.engine.batches.base import Batches
from paretomtl.engine.model_group import Group
from paretomtl.runs.folder import RunFolder
from paretomtl.training.preflight.loss_units import FirstLosses, scale_in_words, settles_scale
from paretomtl.training.run.extend import stored_plan
from paretomtl.training.settings.fingerprint import measure_start
from paretomtl.training.settings.settings import Settings


@dataclass(frozen=True)
class RunIdentity:
    """The identity of a run that is about to train.

    Attributes:
        settings: of the run.
        splits: the data.
        module: the first model, untrained.
        group: the group that it belongs to.
        first_losses: of untrained models, from which a scale may follow.
    """

    settings: Settings
    splits: Mapping[str, Batches]
    module: nn.Module
    group: Group
    first_losses: FirstLosses

    def config(self, settings: Settings) -> dict[str, Any]:
        """The configuration of a run of these settings, which must be the same for it to be resumed."""
        steps = self.splits["train"].count_steps(settings.epochs)
        return settings.config(self.module, self.group, self.splits, steps)

    def start(self, config: Mapping[str, Any]) -> dict[str, Any] | None:
        """Losses and metrics of the untrained first model; None if the data differ from draw to draw."""
        return measure_start(self.settings.problem, self.module, self.splits["train"], config)

    def scaling(self) -> dict[str, str]:
        """The effect of ``scale="auto"``, for a log; empty for other scales."""
        settled = settles_scale(self.settings.method)
        return {"scaling": scale_in_words(self.first_losses[0])} if settled else {}


def check_asked(folder: RunFolder, stored: Mapping[str, Any], settings: Settings) -> None:
    """Refuse settings that are not those of the run in a folder, before data and models are made."""
    asked = stored_plan(stored, settings).asked()
    folder.check({name: value for name, value in stored.items() if name in asked}, asked)
