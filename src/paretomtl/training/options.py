"""The options of training, each declared once: name, default, meaning and rule.

:func:`~paretomtl.fit`, :func:`~paretomtl.fit_seeds` and ``paretomtl run`` have parameters of these names with these
defaults, which a test compares. The meanings are also the help of the command line. The module imports no torch,
because ``paretomtl --help`` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, Self

if TYPE_CHECKING:
    from pathlib import Path

    import torch
    from torch import Tensor

    from paretomtl.engine.processes import Distributed
    from paretomtl.engine.strategy import Strategy
    from paretomtl.front import Front
    from paretomtl.methods import Method
    from paretomtl.problems import OptimizerFactory, SchedulerFactory
    from paretomtl.runs.folder import RunFolder
    from paretomtl.training.progress.callbacks import Callback
    from paretomtl.training.progress.display import ProgressStyle
    from paretomtl.training.shards.executor import Executor


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """The options of a run, as the user gave them. :data:`RULES` says what each means.

    Example:
        >>> TrainingOptions(epochs=3).strategy
        'auto'
        >>> RULES["strategy"].meaning
        'How the models are executed: auto, sequential, batched or graphed.'
    """

    method: str | Method = "auto"
    preferences: int | str | Tensor | Sequence[Sequence[float]] | None = None
    epochs: int | None = None
    minutes: float | None = None
    batch_size: int | None = None
    seed: int = 0
    optimizer: OptimizerFactory | None = None
    scheduler: SchedulerFactory | None = None
    schedule: str = "epoch"
    strategy: Strategy = "auto"
    device: torch.device | str | None = None
    precision: str = "float32"
    clip_norm: float | None = None
    compile: bool | Mapping[str, Any] = False
    keep: str = "last"
    patience: int | None = None
    start: Front | None = None
    branch: float | None = None
    average: float | None = None
    only: Sequence[int] | None = None
    weigh_every: int = 1
    workers: int | None = None
    accumulate: int = 1
    distributed: Distributed = True
    executor: Executor | None = None
    out: str | Path | RunFolder | None = None
    resume: bool = False
    checkpoint_seconds: float = 30.0
    progress: ProgressStyle = "auto"
    callbacks: Sequence[Callback] = ()

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Self:
        """The options among the arguments of a function, given as its ``locals()``."""
        return cls(**{name: arguments[name] for name in DEFAULTS if name in arguments})


DEFAULTS: Mapping[str, Any] = {each.name: each.default for each in fields(TrainingOptions)}
"""The default of each option."""


@dataclass(frozen=True)
class Rule:
    """The meaning of an option, and the values that it may have.

    Attributes:
        meaning: one line, also the help of the command line.
        choices: the allowed texts; empty for options without a fixed choice.
        number: the allowed numbers; the value None is allowed only if it is the default.
        stored: the type of its value in ``asked.json``; None for options that are not stored there.
    """

    meaning: str
    choices: tuple[str, ...] = ()
    number: Literal["count", "positive", "share"] | None = None
    stored: type | UnionType | None = None


_STRATEGIES = ("auto", "sequential", "batched", "graphed")
_PRECISIONS = ("bfloat16", "float32", "float64", "tf32")

RULES: Mapping[str, Rule] = {
    "method": Rule("Method, by its name or configured."),
    "preferences": Rule(
        "Number of models, their preference vectors, or reachable[:COUNT]; default: by the number of tasks."
    ),
    "epochs": Rule("Number of epochs; default: the problem's recipe.", number="count", stored=int | None),
    "minutes": Rule(
        "Time budget in minutes, from which the number of models and epochs follow unless given; default: none.",
        number="positive",
        stored=float | None,
    ),
    "batch_size": Rule(
        "Batch size; default: the problem's recipe. DataLoaders have their own.", number="count", stored=int | None
    ),
    "seed": Rule("Random seed of initial weights, data order and dropout.", stored=int),
    "optimizer": Rule("Factory of optimizers; default: the problem's recipe."),
    "scheduler": Rule("Factory of schedulers; default: the problem's recipe."),
    "schedule": Rule("When the scheduler steps: each epoch or each step.", ("epoch", "step")),
    "strategy": Rule("How the models are executed: auto, sequential, batched or graphed.", _STRATEGIES, stored=str),
    "device": Rule("Device: cpu or cuda; default: the GPU if there is one.", stored=str | None),
    "precision": Rule("Precision: float32, tf32, bfloat16 or float64.", _PRECISIONS, stored=str),
    "clip_norm": Rule(
        "Largest norm of each model's gradient; default: that of the recipe, or none.",
        number="positive",
        stored=float | None,
    ),
    "compile": Rule("Run the models through torch.compile.", stored=bool),
    "keep": Rule("Epoch whose models are kept: last, or best on validation.", ("last", "best"), stored=str),
    "patience": Rule(
        "Stop when no model improved on validation in this many epochs; goes well with keeping the best epoch.",
        number="count",
        stored=int | None,
    ),
    "start": Rule("Front whose weights the models begin with."),
    "branch": Rule(
        "Share of the run that one model trains for all, before they branch; default: none.",
        number="share",
        stored=float | None,
    ),
    "average": Rule(
        "Average the weights over recent steps, a share of those so far; default: no average.",
        number="share",
        stored=float | None,
    ),
    "only": Rule("Models to train, against the regions of all; default: all."),
    "weigh_every": Rule(
        "Compute the task weights every N steps; more than 1 is an approximation.", number="count", stored=int
    ),
    "workers": Rule(
        "Number of models trained in parallel on a CPU; default: measured, with the strategy auto.",
        number="count",
        stored=int | None,
    ),
    "accumulate": Rule(
        "Micro-batches per step: parts of a batch, or batches of a DataLoader.", number="count", stored=int
    ),
    "distributed": Rule("Processes that share each batch; default: all that torchrun started."),
    "executor": Rule("Where shards of the run are trained; default: here, as one."),
    "out": Rule("Folder of the run; default: none, and nothing is stored."),
    "resume": Rule("Resume from the folder's last checkpoint; the number of epochs may be raised."),
    "checkpoint_seconds": Rule("Least time between checkpoints, in seconds."),
    "progress": Rule("Progress display: auto, rich, notebook, plain or quiet."),
    "callbacks": Rule("Functions that are called with a report at the end of epochs."),
}
"""The rule of each option."""

STORED: Mapping[str, Any] = {name: rule.stored for name, rule in RULES.items() if rule.stored is not None}
"""The options that ``asked.json`` has, and their types there."""
