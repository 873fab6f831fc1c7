"""The training loop (paper, algorithm 1)."""

from __future__ import annotations

import contextlib

import torch

from paretomtl._support.random_state import isolated_randomness
from paretomtl.front import Front
from paretomtl.runs.folder import RunFolder
from paretomtl.training.progress.callbacks import Callback
from paretomtl.training.run.start import start_run
from paretomtl.training.run.stopping import close_all
from paretomtl.training.settings.settings import Settings
from paretomtl.training.torch_modes import library_modes


def train_fronts(
    settings: Settings, folder: RunFolder | None, resume: bool, checkpoint_seconds: float, listeners: list[Callback]
) -> list[Front]:
    """Train all models: every epoch, every batch, every model (paper, algorithm 1).

    Args:
        settings: of the run.
        folder: of the run; None for one that stores nothing.
        resume: whether to go on with the run in the folder.
        checkpoint_seconds: the time between checkpoints.
        listeners: called with reports, and closed at the end.

    Returns:
        A front for each seed.
    """
    on_gpu = settings.device.type == "cuda"
    here = torch.cuda.device(settings.device) if on_gpu else contextlib.nullcontext()
    closing = contextlib.nullcontext() if folder is None else contextlib.closing(folder)
    with here, isolated_randomness(settings.seeds[0]), library_modes(settings.precision), closing:
        try:
            run = start_run(settings, folder, resume, checkpoint_seconds, listeners)
        except BaseException as error:
            close_all(listeners, error)
            raise
        with run:
            if run.finished is not None:
                return [run.finished]
            while run.ended is None and not run.stopping:
                for batch in run.batches():
                    run.take_step(batch)
                    if run.stopping or run.ended is not None:
                        return run.fronts()
                run.after_epoch()
            return run.fronts()
