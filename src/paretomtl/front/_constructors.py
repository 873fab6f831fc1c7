"""Constructors of fronts for models that were trained elsewhere: from losses, a table, or the models themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn

from paretomtl._support.argument_checks import quote
from paretomtl._support.files.paths import as_path
from paretomtl._support.imports import facade
from paretomtl._support.splits import SPLITS
from paretomtl.front._constructor_checks import (
    better_by_name,
    check_finite,
    check_splits,
    distinct_names,
    loss_table,
    metrics_by_split,
    preference_rows,
    reference_point,
    task_names,
)
from paretomtl.front._data import FrontData
from paretomtl.front.storage.csv_table import read_table

if TYPE_CHECKING:
    from paretomtl.problems import Problem


class FrontConstructors(FrontData):
    """Constructors of a :class:`paretomtl.Front` from models that were trained elsewhere."""

    @classmethod
    def from_losses(
        cls,
        losses: Any,
        *,
        tasks: Sequence[str],
        metrics: Any = None,
        better: str | Mapping[str, str] | None = None,
        preferences: Any = None,
        reading: str | None = None,
        names: Sequence[str] | None = None,
        problem: str = "problem",
        method: str = "given",
        reference: Sequence[float] | None = None,
    ) -> Self:
        """Build a front from the losses of models that were trained elsewhere, to choose from, plot and compare.

        Args:
            losses: ``[K, m]``, a row for each model: a tensor, an array, nested lists, or a pandas table with a column
                for each task. They count as validation losses, by which models are chosen. For another split, or
                several, pass a dictionary: ``{"val": ..., "test": ...}``. All losses must be finite.
            tasks: the names of the m losses.
            metrics: by name, ``[K]`` each; by split and name if there are several splits. NaN means unknown.
            better: whether "higher" or "lower" metrics are better: one word for all, or a dictionary by name.
            preferences: ``[K, m]``, if the models were trained for preferences. Without them, a front has no angles and
                no regions; everything else works.
            reading: what ``preferences`` mean, "direction" or "importance".
            names: the names of the models, such as "alpha=0.1", for tables, pages and reasons.
            problem: the name of the problem in tables and on pages.
            method: the name of the training method there.
            reference: the default of :meth:`Front.hypervolume`.

        Example:
            >>> import paretomtl as pm
            >>> front = pm.Front.from_losses(
            ...     [[0.2, 0.9], [0.4, 0.4], [0.9, 0.3]], tasks=["left", "right"], names=["small", "middle", "large"]
            ... )
            >>> front.select(max_regret=True).reason[:20]
            'Model 1 (middle): it'
        """
        tasks = task_names(tasks)
        given = losses if isinstance(losses, Mapping) else {"val": losses}
        check_splits(given)
        tables = {split: loss_table(given[split], split, tasks) for split in SPLITS if split in given}
        count = len(next(iter(tables.values())))
        for split, table in tables.items():
            if len(table) != count:
                counts = ", ".join(f"{len(each)} on {name}" for name, each in tables.items())
                raise ValueError(f"'losses' must have a row for each model on every split. Got {counts}.")
            check_finite(split, table, tasks, names)
        measured = metrics_by_split(metrics, list(tables), tasks, count)
        return cls._build(
            tables,
            tasks=tasks,
            metrics=measured,
            better=better_by_name(better, measured),
            preferences=preferences,
            reading=reading,
            names=names,
            problem=problem,
            method=method,
            reference=reference,
            status=["given"] * count,
        )

    @classmethod
    def from_table(cls, path: str | Path) -> Self:
        """Build a front from a CSV file. :meth:`Front.load` and all commands read such files too.

        Args:
            path: the file. Its first line names the columns: ``name`` holds the names of models, ``higher:NAME`` and
                ``lower:NAME`` hold metrics and say what is better, and every other column holds the loss of a task.
                Losses count as validation losses.
        """
        place = as_path("path", path)
        arguments = read_table(place)
        try:
            return cls.from_losses(arguments.pop("losses"), **arguments)
        except (TypeError, ValueError) as error:
            raise ValueError(f"'{place}' must be a table of losses: {error}") from None

    @classmethod
    def from_models(
        cls,
        models: Sequence[nn.Module | Mapping[str, Tensor]],
        problem: Problem,
        *,
        preferences: Any = None,
        reading: str | None = None,
        names: Sequence[str] | None = None,
        method: str = "given",
        reference: Sequence[float] | None = None,
        batch_size: int | None = None,
        device: torch.device | str | None = None,
    ) -> Self:
        """Build a front from models that were trained elsewhere: measure them on all splits, as :func:`fit` does.

        The models do not change: copies are measured, in eval mode and each in its own dtype. A model whose losses are
        not finite is kept, with the status "non-finite".

        Args:
            models: modules, or state dictionaries for ``problem.model``. Modules may differ in architecture.
            problem: the problem that has the splits, losses and metrics.
            preferences: ``[K, m]``, if the models were trained for preferences.
            reading: what ``preferences`` mean, "direction" or "importance".
            names: the names of the models, such as those of their files, for tables, pages and reasons.
            method: the name of the training method there.
            reference: the default of :meth:`Front.hypervolume`; the problem's own by default.
            batch_size: samples in a batch; by default as in the problem's recipe.
            device: where to measure; by default where each model is.

        The front contains the weights, and stores them, if ``problem.model`` makes all of these models: it has their
        parameters and reproduces their losses. Otherwise the front keeps copies of the modules in memory, and
        :meth:`Front.save` stores only numbers.

        Example:
            >>> import paretomtl as pm
            >>> problem = pm.problems.quadratic()
            >>> front = pm.Front.from_models([problem.model(), problem.model()], problem, names=["first", "second"])
            >>> front.names
            ('first', 'second')
        """
        evaluated = facade.evaluate_models(models, problem, batch_size=batch_size, device=device)
        return cls._build(
            preferences=preferences,
            reading=reading,
            names=names,
            tasks=tuple(problem.tasks),
            problem=problem.name,
            method=method,
            reference=problem.reference if reference is None else reference,
            **evaluated,
        )

    @classmethod
    def _build(
        cls,
        losses: Mapping[str, Tensor],
        *,
        tasks: tuple[str, ...],
        preferences: Any,
        reading: str | None,
        names: Sequence[str] | None,
        problem: str,
        method: str,
        reference: Sequence[float] | None,
        **fields: Any,
    ) -> Self:
        count = len(next(iter(losses.values())))
        for name, value in (("problem", problem), ("method", method)):
            if not isinstance(value, str):
                raise TypeError(f"'{name}' must be a string. Got {quote(value)} instead.")
        rows, meaning = preference_rows(preferences, reading, count, len(tasks))
        return cls(
            problem=problem,
            method=method,
            tasks=tasks,
            reading=meaning,
            preferences=rows,
            subproblems=tuple(range(count)),
            losses=losses,
            scale=None,
            since=None,
            history={},
            seed=None,
            seconds=0.0,
            reference=reference_point(reference, len(tasks)),
            names=distinct_names(names, count),
            **fields,
        )
