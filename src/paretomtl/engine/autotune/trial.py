"""Trials on copies of the models, before a run: their result, and the setting they run in."""

from __future__ import annotations

import contextlib
import gc
import warnings
from collections.abc import Iterator

import torch

from paretomtl._support.random_state import isolated_randomness
from paretomtl.engine.autotune.no_dropout import NoDropout

_BRANCHES = ("data-dependent control flow", "calling .item() on a Tensor")  # what vmap says, asking for an issue there


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Warnings of a trial are not the user's; random layers let everything pass, so that two trials can be compared."""
    with warnings.catch_warnings(), NoDropout(), isolated_randomness():
        warnings.simplefilter("ignore")
        yield


def first_line(error: Exception) -> str:
    """What went wrong, as a reason to give."""
    if any(said in str(error) for said in _BRANCHES):
        return (
            "the model or the losses ask a tensor for its value (a branch on data, .item()), which a stack cannot give"
        )
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return f"{type(error).__name__}: {lines[0].rstrip('.')}"


def release_memory() -> None:
    """Collect garbage, and hand cached memory back to the device."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
