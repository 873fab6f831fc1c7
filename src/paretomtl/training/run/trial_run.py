"""Trial runs: the first steps of a run, to measure them. Nothing is stored, and nothing is said."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

import torch

from paretomtl._support.random_state import isolated_randomness, own_states_kept
from paretomtl.training.run.start import start_run
from paretomtl.training.run.training_run import TrainingRun
from paretomtl.training.settings.settings import Settings
from paretomtl.training.torch_modes import library_modes


@contextlib.contextmanager
def trial_run(settings: Settings) -> Iterator[TrainingRun]:
    """A run of these settings, up to its first step."""
    on_gpu = settings.device.type == "cuda"
    here = torch.cuda.device(settings.device) if on_gpu else contextlib.nullcontext()
    with here, isolated_randomness(settings.seeds[0]), library_modes(settings.precision), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the run itself will say the same
        with own_states_kept(settings.sources), start_run(settings) as run:
            yield run
