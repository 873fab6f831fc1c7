"""Trials on copies of the models, before a run: their result, and the conditions that they run under."""

from __future__ import annotations

import contextlib
import gc
import math
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from paretomtl._support.random_state import isolated_randomness
from paretomtl.engine.autotune.no_dropout import NoDropout

_NO_RULE = re.compile(r"[Bb]atching rule not implemented for (?:aten::)?(\w+)")
_BRANCHES = ("data-dependent control flow", "calling .item() on a Tensor")  # from vmap's errors, which ask for an issue


@dataclass(frozen=True)
class Trial:
    """Result of a trial: whether models can be trained in some way, how fast, and with which settings.

    Attributes:
        why_not: why they cannot; None if they can.
        seconds: of a step of all models; infinite where it was not measured.
        baseline: the same for the models one after another, if that was measured, too.
        most: how many models a stack has at most; None for all.
        workers: how many models step side by side.
        channels_last: whether convolutions are channels-last in memory.
        note: what the user should know about these settings.
    """

    why_not: str | None = None
    seconds: float = math.inf
    baseline: float = math.inf
    most: int | None = None
    workers: int = 1
    channels_last: bool = False
    note: str = ""


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hide warnings, which do not concern the user, and switch dropout off, so that two trials can be compared."""
    with warnings.catch_warnings(), NoDropout(), isolated_randomness():
        warnings.simplefilter("ignore")
        yield


def describe_error(error: Exception) -> str:
    """An error in one line, as a reason against a way to train."""
    if any(text in str(error) for text in _BRANCHES):
        return (
            "the model or the losses ask a tensor for its value (a branch on data, .item()), which a stack cannot give"
        )
    lines = str(error).strip().splitlines() or [type(error).__name__]
    unknown = _NO_RULE.search(lines[0])
    if unknown:  # of torch.func.vmap; nothing is wrong with the model
        return f"torch cannot stack the operation '{unknown[1]}'"
    return f"{type(error).__name__}: {lines[0].rstrip('.')}"


def release_memory() -> None:
    """Collect garbage, and return cached memory to the device."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
