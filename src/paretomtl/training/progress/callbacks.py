"""Callbacks: the report of an epoch, the functions that are called with it, and how they are called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from torch import Tensor

from paretomtl._support.argument_checks import quote
from paretomtl._support.signatures import check_takes
from paretomtl._support.splits import ranking_split
from paretomtl._support.tensor_json import to_numbers


@dataclass(frozen=True)
class Report:
    """The progress of a run at the end of an epoch.

    Attributes:
        epoch: how many epochs are done.
        epochs: how many are planned.
        step: how many steps are done.
        seconds: how long training took so far.
        tasks: their names.
        subproblems: which are trained, in the order of everything below.
        losses: mean training losses over the epoch's batches, ``[K, m]``.
        weights: mean weights over the epoch's batches, ``[K, m]``.
        val_losses: losses on the validation split, ``[K, m]``; None without one.
        val_metrics: metrics on the validation split, ``[K]`` each.
        hypervolume: of the losses on ``split``, with respect to ``reference``; None without moocore or a reference, and
            if it would take long: for more than 100 models of five or six tasks, or more than 20 of seven or more.
        reference: the reference point of the hypervolume.
        frozen: the models whose losses were not finite.
        scale: the factors ``[K, m]`` that the method multiplies the losses by; None for none.
        note: the progress of the shards, in a run in shards. Its epoch is then the mean over all models, and
            losses of those that have not begun are NaN.
        seeds: the seed of each row under :func:`~paretomtl.fit_seeds`; empty for one seed. There is a row for every
            model of every seed: all of the first seed, then those of the next one. K above is then the number of seeds
            times that of models, ``subproblems`` repeats itself, and ``hypervolume`` is the mean over seeds.
    """

    epoch: int
    epochs: int
    step: int
    seconds: float
    tasks: Sequence[str]
    subproblems: Sequence[int]
    losses: Tensor
    weights: Tensor
    val_losses: Tensor | None
    val_metrics: dict[str, Tensor]
    hypervolume: float | None
    reference: Sequence[float] | None
    frozen: Sequence[int]
    scale: Tensor | None = None
    note: str = ""
    seeds: Sequence[int] = ()

    @property
    def remaining(self) -> float:
        """The seconds that the remaining epochs will take, if they are like those so far."""
        return self.seconds / self.epoch * (self.epochs - self.epoch)

    def numbers(self) -> dict[str, Any]:
        """Everything as numbers and lists, for a log; NaN and infinity as None."""
        numbers: dict[str, Any] = {
            "epoch": self.epoch,
            "epochs": self.epochs,
            "step": self.step,
            "seconds": round(self.seconds, 3),
            "losses": to_numbers(self.losses),
            "weights": to_numbers(self.weights),
            "split": self.split,
            "hypervolume": self.hypervolume,
            "reference": None if self.reference is None else list(self.reference),
            "frozen": list(self.frozen),
            **({"note": self.note} if self.note else {}),
            **({"seeds": list(self.seeds)} if self.seeds else {}),
        }
        if self.scale is not None:
            numbers["scale"] = to_numbers(self.scale)
        if self.val_losses is not None:
            numbers["val_losses"] = to_numbers(self.val_losses)
            numbers["val_metrics"] = {name: to_numbers(values) for name, values in self.val_metrics.items()}
        return numbers

    @property
    def split(self) -> str:
        """The split that ranks, whose hypervolume and losses are shown; losses on "train" are means over batches."""
        return ranking_split(["train"] if self.val_losses is None else ["train", "val"])

    def quote(self) -> Tensor:
        """The losses to show, on ``split``."""
        return self.losses if self.val_losses is None else self.val_losses


Callback: TypeAlias = Callable[[Report], bool | None]
"""Called with a :class:`Report` at the end of an epoch; one that returns True stops the run after this epoch.

If it has ``tick(share, seconds)``, this is called about once a second, with the share of the steps that are done and
how long they took. If it has ``close()``, this is called at the end of the run.
"""


def check_callbacks(callbacks: Sequence[Callback]) -> None:
    """Refuse callbacks that could not be called with a report at the end of the first epoch."""
    if not isinstance(callbacks, Iterable) or isinstance(callbacks, str):
        raise TypeError(f"'callbacks' must be a list of functions of a report. Got {quote(callbacks)} instead.")
    for callback in callbacks:
        if isinstance(callback, type):
            raise TypeError(f"'callbacks' must be functions of a report. Got the class {callback.__name__} instead.")
        if not callable(callback):
            raise TypeError(f"'callbacks' must be functions of a report. Got {type(callback).__name__} instead.")
        check_takes("callbacks", callback, "be functions of a report", "report")


def notify(listeners: Sequence[Callback], report: Report) -> bool:
    """Call all listeners with a report; return whether one wants to stop. If one raises, a note says when."""
    stop = False
    for listener in listeners:
        try:
            answer = listener(report)
            if answer is not None and not isinstance(answer, bool):
                raise TypeError(
                    f"'callbacks' must return None, or True to stop after this epoch. {_name(listener)} returned "
                    f"{answer!r:.80} instead."
                )
        except Exception as error:
            error.add_note(f"This came from a callback at the end of epoch {report.epoch}.")
            raise
        stop = stop or answer is True
    return stop


def tick(listeners: Sequence[Callback], share: float, seconds: float) -> None:
    """Call ``tick`` inside an epoch on listeners that have it."""
    for listener in listeners:
        if hasattr(listener, "tick"):
            listener.tick(share, seconds)


def close(listeners: Sequence[Callback]) -> None:
    """Close all listeners that have ``close``, even if one fails."""
    failures = []
    for listener in listeners:
        try:
            if hasattr(listener, "close"):
                listener.close()
        except Exception as error:
            failures.append(error)
    if failures:
        raise failures[0]


def _name(listener: Callback) -> str:
    """The name of a callback for users: its own, or that of its class."""
    name = getattr(listener, "__qualname__", None)
    return f"'{name}'" if isinstance(name, str) else f"A callback of the class '{type(listener).__qualname__}'"
