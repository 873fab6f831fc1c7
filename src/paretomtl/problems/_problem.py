from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from paretomtl._support.argument_checks import as_numbers, check_count, check_names, describe_value, quote
from paretomtl._support.factories import check_factories
from paretomtl._support.html_table import html_table, paragraph
from paretomtl._support.random_state import random_state, set_random_state
from paretomtl._support.signatures import check_takes
from paretomtl.methods import Method
from paretomtl.problems._description import describe_problem
from paretomtl.problems._loss_vector import as_vector
from paretomtl.problems._true_front import TrueFront
from paretomtl.problems.per_task import PerTask, as_split
from paretomtl.problems.task_losses import TaskLosses, labelled_share, make_losses, split_batch, takes_model

T = TypeVar("T")

Data: TypeAlias = Tensor | Sequence[Any] | Mapping[str, Any] | Dataset[Any] | DataLoader[Any] | PerTask | Any
"""A split: tensors, arrays or tables that share their first dimension, a Dataset, a DataLoader, or these by task."""

OptimizerFactory: TypeAlias = Callable[[Iterable[tuple[str, Tensor]]], torch.optim.Optimizer]
"""Makes an optimizer from named parameters, such as ``lambda p: torch.optim.SGD(p, lr=0.1)``.

It gets a list of pairs of a name and a tensor, like those of ``model.named_parameters()``. Optimizers of torch take
them as they are. Each pair also has the attributes of its tensor (``q.requires_grad``, ``q.ndim``), so that code for
``model.parameters()`` runs.
"""

SchedulerFactory: TypeAlias = Callable[..., torch.optim.lr_scheduler.LRScheduler]
"""Makes a learning rate scheduler, from ``(optimizer)`` or ``(optimizer, total)``.

``total`` is how many times it is going to step: the planned epochs, or the planned optimizer steps if ``schedule`` is
"step". It is passed if the factory has a second parameter that has no default or is called ``total``.
"""


@dataclass(frozen=True)
class Metric:
    """A number that people care about, measured on a whole split.

    Attributes:
        function: ``function(outputs, targets)`` for losses of that form, with the outputs and targets of the whole
            split; ``function(model, batches)`` for losses of the form ``losses(model, batch)``. Returns one number.
        better: whether "higher" or "lower" values are better.
        task: the task that it belongs to. ``function(outputs, targets)`` then sees only the outputs and targets of this
            task, on the task's own data set if it has one. With losses of the form ``losses(model, batch)`` it may be
            ``function(model, batches)``, with its first parameter called ``model``, and sees the task's own batches.
            With None it sees everything.
    """

    function: Callable[[Any, Any], Any]
    better: Literal["higher", "lower"] = "higher"
    task: str | None = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"'function' must be callable. Got {type(self.function).__name__} instead.")
        check_takes("function", self.function, "take (outputs, targets), or (model, batches)", "outputs", "targets")
        if self.better not in ("higher", "lower"):
            raise ValueError(f'\'better\' must be "higher" or "lower". Got {quote(self.better)} instead.')


@dataclass(frozen=True)
class Recipe:
    """How a problem is usually trained: the defaults that :func:`paretomtl.fit` uses for this problem.

    Attributes:
        epochs: the number of epochs; with None, the user must pass it.
        batch_size: for tensors and Datasets.
        optimizer: a factory; None is Adam with its defaults.
        scheduler: a factory, as :func:`paretomtl.fit` takes it: of ``(optimizer)``, or of ``(optimizer, total)``, where
            total is how many times it is going to step; None keeps the learning rate constant.
        schedule: whether it steps each "epoch" or each "step".
        clip_norm: the largest norm of each model's gradient; None for no limit.
        methods: configured methods that replace those of the same name.
    """

    epochs: int | None = None
    batch_size: int = 256
    optimizer: OptimizerFactory | None = None
    scheduler: SchedulerFactory | None = None
    schedule: Literal["epoch", "step"] = "epoch"
    clip_norm: float | None = None
    methods: Mapping[str, Method] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "batch_size", check_count("batch_size", self.batch_size))
        check_factories(self.optimizer, self.scheduler)
        if self.epochs is not None:
            object.__setattr__(self, "epochs", check_count("recipe.epochs", self.epochs))
        if self.schedule not in ("epoch", "step"):
            raise ValueError(f'\'schedule\' must be "epoch" or "step". Got {quote(self.schedule)} instead.')
        given = self.methods if isinstance(self.methods, Mapping) else {"": self.methods}
        for method in given.values():
            if not isinstance(method, Method):
                kind = type(method).__name__
                raise TypeError(f"'methods' must be configured methods by name. Got {kind} instead.")


@dataclass(frozen=True, repr=False)
class Problem:
    """A problem to train on: an ordinary model, its losses, and the data.

    Attributes:
        model: a factory of ``nn.Module``; called once per model, each time from its own random state.
        losses: ``losses(outputs, targets)``, where a batch is ``(inputs, targets)`` or ``(inputs, first, second, ...)``
            and outputs are ``model(inputs)``; or, if its first parameter is called ``model``, the general
            ``losses(model, batch)`` for batches of any structure. Returns the m losses ``[m]``, or a dictionary by task
            name; each a mean over samples. NaN means that a task has no labels in the batch; that step leaves it out.
            May also be a dictionary of such functions by task name, each of which returns one loss. If outputs and
            targets are dictionaries by task name, or tuples with one part for each task, each function sees its own;
            it sees anything else whole, and is refused if both ways would run with different results.
        tasks: the names of the tasks.
        train: tensors with a common first dimension (a tuple, or a dictionary for the general form), a ``Dataset``, or
            a ``DataLoader``. Arrays of NumPy and tables of pandas become tensors: integers become int64 (uint8 and bool
            stay), missing values NaN. A dictionary of data sets by task name, or a
            :class:`~paretomtl.problems.PerTask`, gives each task its own data. None for a problem without data, such as
            a function to minimise: then ``model()`` takes no argument and ``losses(outputs)`` takes one.
        val: the split that ``keep="best"`` uses.
        test: measured only at the end.
        metrics: further measurements on each split, by name.
        shared: restricts the Gramian to these parameters: a filter of their names, or prefixes of them. All others
            belong to heads, and take their own tasks' gradients with weight 1.
        representation: the name of the submodule whose output all heads share. The Gramian is then that of the
            gradients with respect to this output, an upper bound (Sener and Koltun 2018), and the encoder costs one
            backward pass instead of m. Parameters outside this submodule belong to heads.
        name: what stored results call the problem.
        reference: the point that hypervolumes are measured against by default.
        recipe: how it is usually trained.
        truth: the true front, if it is known.
        counts: ``counts(batch)``, how many samples of a batch have a label for each task, ``[m]``. Means over several
            batches (micro-batches, processes, splits) are then exact if labels are missing, and a NaN despite labels is
            recognised as a broken model. Without it, labels of a task that are not NaN count if targets are ``[n, m]``,
            one tensor for each task, or entries of a batch with the tasks' names; else all samples do.

    Example:
        >>> x, y = torch.randn(100, 3), torch.randn(100, 2)
        >>> def losses(outputs, targets):
        ...     return (outputs - targets).square().mean(0)
        >>> problem = Problem(lambda: nn.Linear(3, 2), losses, ["left", "right"], train=(x, y))
        >>> problem.tasks
        ('left', 'right')
    """

    model: Callable[[], nn.Module]
    losses: Callable[..., Tensor | Mapping[str, Tensor] | Sequence[Tensor]] | Mapping[str, Callable[..., Tensor]]
    tasks: Sequence[str]
    train: Data | None = None
    val: Data | None = None
    test: Data | None = None
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    shared: Callable[[str], bool] | Sequence[str] | None = None
    representation: str | None = None
    name: str = "problem"
    reference: Sequence[float] | None = None
    recipe: Recipe = Recipe()
    truth: TrueFront | None = None
    counts: Callable[[Any], Tensor] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.model, nn.Module) or not callable(self.model):
            copied = ", one module: write lambda: copy.deepcopy(model) to start all from it, or pass its class"
            given = type(self.model).__name__ + (copied if isinstance(self.model, nn.Module) else " instead")
            raise TypeError(f"'model' must be a function or class that makes a module. Got {given}.")
        check_takes("model", self.model, "need no arguments, such as lambda: Network(3, 2)")
        if not callable(self.losses) and not isinstance(self.losses, Mapping):
            raise TypeError(
                f"'losses' must be a function, or functions by task name. Got {type(self.losses).__name__} instead."
            )
        if isinstance(self.tasks, str):
            raise TypeError(f"'tasks' must be a list of names. Got the string {quote(self.tasks)} instead.")
        if self.counts is not None and not callable(self.counts):
            raise TypeError(f"'counts' must be a function of a batch. Got {type(self.counts).__name__} instead.")
        # The order of a set differs between processes, and losses are matched with tasks by order.
        if isinstance(self.tasks, (set, frozenset)) or not isinstance(self.tasks, Iterable):
            raise TypeError(f"'tasks' must be a list of names. Got {type(self.tasks).__name__} instead.")
        object.__setattr__(self, "tasks", tuple(self.tasks))
        for task in self.tasks:
            if not isinstance(task, str):
                raise TypeError(f"'tasks' must be names. Got {quote(task)} instead.")
        if not isinstance(self.name, str):
            raise TypeError(f"'name' must be a string. Got {quote(self.name)} instead.")
        check_names(self.tasks)
        if len(set(self.tasks)) < len(self.tasks):
            raise ValueError(f"'tasks' must be distinct names. Got {quote(list(self.tasks))} instead.")
        if self.metrics and not isinstance(self.metrics, Mapping):
            kind = type(self.metrics).__name__
            raise TypeError(
                f"'metrics' must be Metric objects by name. Got {kind} instead. Write {{'error': pm.Metric(function)}}."
            )
        for name, metric in (self.metrics or {}).items():
            if not isinstance(name, str):
                raise TypeError(f"'metrics' must have names. Got {quote(name)} instead.")
            if not isinstance(metric, Metric):
                kind = type(metric).__name__
                remedy = f" Write {{{name!r}: pm.Metric(function)}}." if callable(metric) else ""
                raise TypeError(f"'metrics' must be Metric objects. Got {kind} for {quote(name)} instead.{remedy}")
            if name in self.tasks:
                raise ValueError(
                    f"'metrics' must not have names of tasks, which stand for losses. Got {quote(name)}: add a word."
                )
            if metric.task is not None and metric.task not in self.tasks:
                raise ValueError(
                    f"'task' must be one of the tasks {list(self.tasks)}. Got {quote(metric.task)} instead."
                )
        object.__setattr__(self, "metrics", dict(self.metrics or {}))
        for split in ("train", "val", "test"):
            object.__setattr__(self, split, as_split(split, getattr(self, split), self.tasks))
        self._check_by_task()
        if self.train is None and (self.val is not None or self.test is not None):
            raise ValueError("'val' and 'test' must come with 'train'. Got None for 'train'.")
        if self.train is None and self.metrics:
            raise ValueError(f"'metrics' must come with data: 'train' is None. Got {list(self.metrics)}.")
        functions: Any = self.losses
        if self.train is None and not self.takes_model:
            check_takes("losses", functions, "take (outputs) where 'train' is None", "outputs")
        else:
            check_takes("losses", functions, "take (outputs, targets), or (model, batch)", "outputs", "targets")
        if self.shared is not None and self.representation is not None:
            raise ValueError("'shared' and 'representation' must not both be given: each says where the heads begin.")
        if isinstance(self.shared, str):
            object.__setattr__(self, "shared", (self.shared,))
        if self.shared is not None and not callable(self.shared):
            some = list(self.shared) if isinstance(self.shared, Iterable) else [self.shared]
            strangers = [type(prefix).__name__ for prefix in some if not isinstance(prefix, str)]
            if strangers:
                rule = "names of parameters or their beginnings, or a function of a name"
                raise TypeError(f"'shared' must be {rule}. Got {strangers[0]} instead.")
        if self.reference is not None:
            point = as_numbers(self.reference)
            if point is None or len(point) != len(self.tasks) or not all(map(math.isfinite, point)):
                value = self.reference if point is None else tuple(point)
                raise ValueError(f"'reference' must be {len(self.tasks)} finite numbers. Got {quote(value)} instead.")
            object.__setattr__(self, "reference", tuple(point))
        if not isinstance(self.recipe, Recipe):
            raise TypeError(
                f"'recipe' must be a Recipe. Got {type(self.recipe).__name__} instead. Write Recipe(epochs=30)."
            )

    def _check_by_task(self) -> None:
        """Combine functions by task into one, and reject options that data by task cannot be combined with."""
        by_task = any(isinstance(data, PerTask) for data in (self.train, self.val, self.test))
        if isinstance(self.losses, (Mapping, TaskLosses)):
            given = self.losses.functions if isinstance(self.losses, TaskLosses) else self.losses
            object.__setattr__(self, "losses", make_losses(given, tuple(self.tasks), by_task=by_task))
        if by_task and not self.takes_model:
            raise TypeError(
                "'losses' must be a dictionary of functions by task name, or losses(model, batch), if each task has "
                "its own data. Got losses(outputs, targets): its targets would be those of one task."
            )
        if by_task and self.representation is not None:
            raise ValueError(
                "'representation' must be None if each task has its own data: gradients for the outputs of different "
                f"samples cannot be compared. Name parameters in 'shared' instead. Got {quote(self.representation)}."
            )

    @functools.cached_property
    def takes_model(self) -> bool:
        """Whether ``losses`` has the general form ``losses(model, batch)``."""
        losses: Any = self.losses
        return takes_model(losses)

    def __repr__(self) -> str:
        """Name, tasks, and a summary of the rest, with shapes in place of data."""
        return describe_problem(vars(self))

    def _repr_html_(self) -> str:
        """The table that notebooks show."""
        title, *lines = describe_problem(vars(self)).split("\n")
        rows = [line.strip().split(": ", 1) for line in lines]
        return paragraph(f"*{title}") + html_table(["part", "what it is"], rows, text=2)

    def run(self, model: Callable[..., Any], batch: Any = None) -> tuple[Tensor, Any]:
        """The losses ``[m]`` of a model on a batch, and its outputs (None in the general form)."""
        losses, outputs = self.with_own_gradients("losses", self._run, model, batch)
        return losses if torch.is_grad_enabled() else losses.detach(), outputs

    def with_own_gradients(self, known_as: Any, function: Callable[..., T], *args: Any) -> T:
        """Call a function of the user, which may take gradients itself, such as those for inputs, also under no_grad.

        Its first call finds out whether it does. A call that is repeated for that draws the same random numbers.
        """
        taken = self._own_gradients.get(known_as)
        if torch.is_grad_enabled() or (torch.compiler.is_compiling() and not taken):
            return function(*args)
        if not taken:
            before = random_state() if taken is None else None
            try:
                result = function(*args)
                self._own_gradients[known_as] = False
                return result
            except RuntimeError as error:
                if "grad" not in str(error):  # autograd did not complain that there is no graph
                    raise
            if before is not None:
                set_random_state(before)
        with torch.enable_grad():
            result = function(*args)
        self._own_gradients[known_as] = True
        return result

    @functools.cached_property
    def _own_gradients(self) -> dict[Any, bool]:
        return {}

    def _run(self, model: Callable[..., Any], batch: Any) -> tuple[Tensor, Any]:
        outputs, losses = None, cast("Callable[..., Any]", self.losses)
        if self.takes_model:
            values = losses(model, batch)
        elif self.train is None:
            outputs = model()
            values = losses(outputs)
        else:
            inputs, targets = self.split_batch(batch)
            outputs = model(inputs)
            values = losses(outputs, targets)
        return as_vector(values, tuple(self.tasks)), outputs

    def split_batch(self, batch: Any) -> tuple[Any, Any]:
        """Inputs and targets of a batch, for losses of the form ``losses(outputs, targets)``."""
        return split_batch(batch)

    def labels_in(self, batch: Any) -> Tensor | None:
        """How many samples of a batch have a label for each task, ``[m]``; None without ``counts``."""
        if self.counts is None or batch is None:
            return None
        counted = self.counts(batch)
        try:
            labels = torch.as_tensor(counted)
        except (TypeError, ValueError, RuntimeError):
            raise TypeError(
                f"'counts' must return one number per task. Got {describe_value(counted)} instead."
            ) from None
        if labels.shape != (len(self.tasks),):
            rule = f"shape [{len(self.tasks)}], one number per task"
            raise ValueError(f"'counts' must return {rule}. Got {list(labels.shape)} instead.")
        return labels

    def labelled_share(self, batch: Any) -> Tensor | float:
        """The share of each task's labels in a batch that are not NaN, ``[m]``, as far as labels are told by task."""
        return labelled_share(batch, self.tasks, columns=not self.takes_model)

    def is_shared(self, name: str) -> bool:
        """Whether the parameter of this name is part of the Gramian, rather than of a head."""
        if self.representation is not None:
            return name.startswith(f"{self.representation}.")
        if self.shared is None:
            return True
        if callable(self.shared):
            return bool(self.shared(name))
        return any(name == prefix or name.startswith(f"{prefix.rstrip('.')}.") for prefix in self.shared)
