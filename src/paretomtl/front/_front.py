"""The front, the result of training: models spread over the Pareto front, one per preference."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from paretomtl._support.argument_checks import as_whole, quote
from paretomtl._support.files.paths import as_path
from paretomtl._support.imports import facade
from paretomtl._support.imports.optional_packages import require
from paretomtl._support.random_state import isolated_randomness
from paretomtl._support.splits import training_split
from paretomtl._support.terminal import escaped
from paretomtl.core import in_region, nondominated
from paretomtl.core import preferences as vectors
from paretomtl.front import indicators
from paretomtl.front._comparison_methods import FrontComparison
from paretomtl.front._data import finite_losses, losses_on, scaled_losses
from paretomtl.front._extensions import FrontExtensions
from paretomtl.front.choosing import bounds as _bounds
from paretomtl.front.choosing import selection
from paretomtl.front.choosing.candidates import CandidateTable, Choice, build_table
from paretomtl.front.choosing.selection import ByTask
from paretomtl.front.html import front_html
from paretomtl.front.models import NoModels
from paretomtl.front.storage.csv_table import is_table
from paretomtl.front.storage.front_folder import read_front, write_front
from paretomtl.front.text_table import front_text, scaling_text

if TYPE_CHECKING:
    from paretomtl.problems import Problem


@dataclass(frozen=True, repr=False, eq=False)
class Front(FrontComparison, FrontExtensions):
    """K models and how they came about.

    Attributes:
        problem: the name of the problem.
        method: the name of the method.
        tasks: the names of the m tasks.
        reading: what the rows of ``preferences`` mean: "direction", "importance" or "start"; "none" without any.
        preferences: all rows ``[K, m]``; ``[K, 0]`` without any.
        subproblems: the rows that were trained; all fields below are in this order.
        losses: by split, ``[K, m]``, measured in eval mode on the whole split.
        scale: the factors ``[K, m]`` by which losses were multiplied before regions or weights were computed; None
            without scaling.
        ideal: the point that was subtracted from the losses before that; None for zero.
        status: one word per model: "feasible", "infeasible", "critical", "negative", "trained" or "non-finite"; for
            models that were trained elsewhere "given", "evaluated" or "non-finite"; "training" during a run.
        since: the step since which each model has had its last status; None for methods without regions.
        history: "losses" and "weights", means over the steps of each epoch, and "val" losses if there is a
            validation split, ``[T, K, m]``.
        seed: of the run; None for models that were trained elsewhere.
        seconds: the training time; seeds that were trained together share it.
        models: the store of the weights, which loads them lazily; see :class:`~paretomtl.front.ModelStore`.
        model_factory: makes a model; None for a front that was loaded without its problem.
        snapshot: the front right before the constraints were dropped, if the method drops them.
        metrics: by split and name, ``[K]``.
        better: for each metric, whether "higher" or "lower" is better.
        epochs: the epoch that each model is from.
        complete: whether training reached its last epoch, or ended by patience; False if it was stopped early.
        ended: why training ended, such as "after 30 epochs"; empty for fronts of earlier versions.
        strategy: how the models were trained, and why that way.
        reference: the default of :meth:`hypervolume`.
        measured: measurements that the method took during training, by name, ``[K, ...]``; empty for most methods.
        decisions: the choices that the method made during the run, in words; empty for most methods.
        remarks: the warnings of the run about this front, one line each; empty for most fronts.
        made_by: the versions of this library and of torch, commit and checksum of the source; empty if unknown.
        names: the names of the models, if they were given; see :meth:`from_losses`.
        data: by split, a checksum of the data that losses were measured on; without splits whose samples are random.
        probes: by split, losses ``[K, m]`` on a few of its samples, by which :meth:`model` checks loaded models.
        checked_by: the problem that a front was loaded with, by which :meth:`model` checks them; otherwise None.
        model_seeds: the random state that the factory made each model from, ``[K]``: one for all models that branch,
            and that of the model that a warm start begins with. By default, model k has its own of (seed, k).
    """

    snapshot: Front | None = None

    def state_dict(self, k: int) -> dict[str, Tensor]:
        """Return parameters and buffers of model k, by name; a stored front reads them from its file."""
        return {name: tensor.clone() for name, tensor in self.models.weights(self._row_of_model(k)).items()}

    def model(self, k: int) -> nn.Module:
        """Build the trained model k, in eval mode, on the CPU.

        A front that was loaded with a problem runs the model on a few samples of a split. A ValueError says if its
        losses are not those of the trained model. A warning names splits whose data are not those of the front.
        """
        row = self._row_of_model(k)
        with isolated_randomness(self.model_seeds[row]), torch.inference_mode(False):
            model = self.models.build(row, self.model_factory)
        if self.checked_by is not None:
            self._check_model(model, row)
        return model

    @functools.cached_property
    def _check_model(self) -> Callable[[nn.Module, int], None]:
        check: Callable[[nn.Module, int], None] = facade.model_check(self, self.checked_by)
        return check

    def nondominated(self, split: str | None = None) -> Tensor:
        """Whether each model is non-dominated, ``[K]`` bool; on :attr:`ranking_split` by default."""
        return nondominated(losses_on(self, split))

    def in_region(self, split: str | None = None) -> Tensor:
        """Whether each model lies in the region of its own preference vector, ``[K]`` bool, scaled as in training.

        Uses training losses by default, if there are any, because regions are constraints of training.
        """
        self._check_directions("regions")
        everyone = torch.full((len(self.preferences), len(self.tasks)), torch.nan, dtype=torch.float64)
        everyone[list(self.subproblems)] = scaled_losses(self, split or training_split(self.losses))
        return in_region(self.preferences, everyone)[list(self.subproblems)]

    def region_hits(self, split: str | None = None) -> int:
        """Count the models in the region of their own preference vector, by training losses by default."""
        return int(self.in_region(split).sum())

    def angle(self, split: str | None = None) -> Tensor:
        """The angle in degrees between each loss vector and its preference vector, ``[K]``.

        Uses training losses by default, if there are any, scaled as in training.
        """
        self._check_directions("angles")
        return indicators.angles(
            scaled_losses(self, split or training_split(self.losses)), self.preferences[list(self.subproblems)]
        )

    def hypervolume(self, reference: Sequence[float] | None = None, split: str | None = None) -> float:
        """The volume between the models and a reference point that they should dominate (extra ``indicators``).

        Args:
            reference: one loss per task. By default the problem's own, or else, for each task, the largest loss of the
                untrained models on the first batch, or a point just beyond the front where most of it is above that.
                Compare hypervolumes only for the same reference.
            split: the split to measure on; :attr:`ranking_split` by default.
        """
        return indicators.front_hypervolume(self, reference, split)

    def box_share(self, reference: Sequence[float] | None = None, split: str | None = None) -> float:
        """The hypervolume divided by the volume of the box that the front leaves open (extra ``indicators``).

        The box reaches from the ideal point z, the best loss of the front in each task, to the reference point r:
        hypervolume / Π_i (r_i - z_i), from 0 to 1. It is 1 if one model is best in every task, so that there is
        nothing to trade. Losses and reference in other units have the same share.

        Args:
            reference: as in :meth:`hypervolume`; some model must be better in every task.
            split: the split to measure on; :attr:`ranking_split` by default.

        Example:
            >>> import paretomtl as pm
            >>> front = pm.Front.from_losses([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]], tasks=["a", "b"], reference=[2, 2])
            >>> front.hypervolume(), front.box_share()
            (3.25, 0.8125)
        """
        return indicators.front_box_share(self, reference, split)

    def spread(self, split: str | None = None) -> float:
        """The diagonal of the smallest box around the non-dominated models (Zitzler 1999).

        Uses losses on :attr:`ranking_split` by default.
        """
        return indicators.spread(finite_losses(self, split))

    def select(
        self,
        *,
        direction: ByTask | None = None,
        importance: ByTask | None = None,
        knee: bool = False,
        max_regret: bool = False,
        bounds: Mapping[str, float] | None = None,
        at_least: Mapping[str, float] | None = None,
        at_most: Mapping[str, float] | None = None,
        best: str | None = None,
        split: str | None = None,
    ) -> Choice:
        """Choose a model and give the reason: by one of the first four rules or by ``best``, optionally in bounds.

        The first four rules choose only among non-dominated models. Within bounds, a model counts as dominated
        only by others within them.

        Args:
            direction: the model whose loss vector is nearest to this direction, by angle; a list, or a dictionary by
                task. A large entry allows a large loss: (0, 1) favours the first task.
            importance: the model with the least weighted sum of losses, scaled as in training; the weights are a
                list, or a dictionary by task. A large entry asks for a small loss.
            knee: the model farthest below the chord through the best of each task, where giving up a little of one
                task gains most of another. A front at most a hundredth of its range below the chord has no knee.
            max_regret: the model whose largest regret is smallest (Savage 1951). The regret of model k in task i
                is (L_ki - best_i) / (worst_i - best_i), with the best and the worst loss of the front in that task; 0
                where they are the same. Models with a loss above ``reference``, such as diverged ones, are left out
                of this rule and of the knee, unless all are above it.
            bounds: limits by name: a maximum for losses and for metrics where lower is better, a minimum for other
                metrics. A name is a task, which stands for its loss, or a metric. Otherwise ``loss:TASK`` is the loss
                of a task, and ``WHAT:TASK`` is the metric ``TASK WHAT``.
            at_least: by name, the minimum of a loss or metric, whichever direction is better.
            at_most: by name, the maximum.
            best: the task or metric to choose by, among all models or those within the bounds. If no model
                satisfies the bounds, the answer of every rule names the nearest one. Its largest miss is smallest,
                where each miss is divided by the range of its name over the front.
            split: the split to choose on; :attr:`ranking_split` by default.

        Example:
            >>> import paretomtl as pm
            >>> options = {"epochs": 300, "progress": "quiet", "device": "cpu"}
            >>> front = pm.fit(pm.problems.quadratic(), "pareto-mtl", preferences=5, **options)
            >>> front.select(direction=[1.0, 1.0]).k
            2
            >>> front.select(knee=True).k
            2
        """
        bounded = any(given is not None for given in (bounds, at_least, at_most))
        rules = {
            "direction": direction,
            "importance": importance,
            "knee": knee or None,
            "max_regret": max_regret or None,
        }
        given = {**rules, "bounds": bounded or None, "best": best}
        chosen = [name for name, value in given.items() if value is not None]
        if len([name for name in chosen if name != "bounds"]) != 1:
            rule = f"one of {', '.join(rules)}, best must be given, with bounds or without"
            found, example = str(chosen or "none"), "write select(knee=True) (--knee), for example"
            if chosen == ["bounds"]:
                found = "bounds alone, which several models may satisfy"
                example = "write best=NAME (--best NAME) or max_regret=True (--max-regret)"
            raise ValueError(f"{rule}. Got {found} instead: {example}.")
        table = build_table(self, split)
        limits = _bounds.bounds_of(table, bounds, at_least, at_most)
        if best is not None:
            return _bounds.within_bounds(table, limits, best)
        kept = _bounds.bounded_table(table, limits)
        if not isinstance(kept, CandidateTable):
            return kept
        table = kept
        if direction is not None:
            return selection.by_direction(table, scaled_losses(self, table.split), direction)
        if importance is not None:
            return selection.by_importance(table, self.scale, importance)
        return selection.knee(table) if knee else selection.least_regret(table)

    def to_frame(self) -> Any:
        """A pandas table (extra ``frames``), one row per model: preference, losses and metrics by split, status."""
        columns: dict[str, Any] = {"k": list(self.subproblems)}
        columns |= {"name": list(self.names)} if self.names else {}
        chosen = self.preferences[list(self.subproblems)]
        tasks = self.tasks if self.reading != "none" else ()
        columns |= {f"{self.reading} {task}": chosen[:, i].tolist() for i, task in enumerate(tasks)}
        for split, losses in self.losses.items():
            columns |= {f"{split} {task}": losses[:, i].tolist() for i, task in enumerate(self.tasks)}
            columns |= {f"{split} {name}": values.tolist() for name, values in self.metrics.get(split, {}).items()}
            columns[f"{split} nondominated"] = self.nondominated(split).tolist()
        columns |= {"status": list(self.status), "epoch": list(self.epochs) or None}
        return require("pandas", "frames").DataFrame(columns).set_index("k")

    def plot(self, path: str | Path | None = None, *, split: str | None = None, dark: bool = False) -> Any:
        """Plot the losses of the models for a paper (extra ``figures``), with a caption that says what is seen.

        Two tasks are a plane, three are all pairs of them, more are parallel coordinates. PDF files embed their fonts.

        Args:
            path: the file to write; its suffix, such as ``.pdf``, ``.svg`` or ``.png``, sets the format.
            split: the split to plot; by default :attr:`ranking_split`, and test in a second panel.
            dark: whether to plot for a dark background.

        Returns:
            A matplotlib figure; closed if it was written to ``path``.
        """
        return facade.draw_front(self, path, split=split, dark=dark)

    def figure(self, *, split: str | None = None, metrics: bool | None = None) -> Any:
        """Draw the front for a screen (extra ``report``): two tasks in a plane, three in pairs, more in parallel.

        Args:
            split: the split to draw; :attr:`ranking_split` by default.
            metrics: whether to draw metrics, named after their tasks, or losses; metrics where there are any by
                default.

        Returns:
            A plotly figure.
        """
        return facade.interactive_front(self, split=split, metrics=metrics)

    def explore(self, *, name: str = "front", height: int = 900) -> Any:
        """Make the page of this front, inline in a notebook (extra ``report``); see docs/guides/explorer.md.

        Args:
            name: what the page calls the front. Its command selects from a folder of that name, so save it there.
            height: of the page in the notebook, in pixels.

        Returns:
            An object that a notebook shows inline; ``save(path)`` writes it as an HTML file.
        """
        return facade.explore(self, name=name, height=height)

    def around(self, k: int, count: int = 5, *, angle: float | None = None, split: str | None = None) -> Tensor:
        """Return preferences ``[count, m]`` around a model that a user likes, for a new run (paper, section 4.2.3).

        New directions surround the model's loss vector, scaled as in training. New importances surround its own.
        Train them with a method that reads rows as this front does (``reading``). "auto" takes importances; where it
        chose rays, its fronts have directions: train those with "p-norm" or "pareto-mtl".

        Args:
            k: the model.
            count: how many.
            angle: the largest deviation in degrees; by default half the angle to the nearest other model, and at
                least 2.
            split: the split of the losses; :attr:`ranking_split` by default.

        Example:
            >>> import paretomtl as pm
            >>> front = pm.fit(pm.problems.quadratic(), preferences=5, epochs=300, progress="quiet", device="cpu")
            >>> front.around(2, 3, angle=5.0).shape
            torch.Size([3, 2])
        """
        row = self._row(k)
        if self.reading in ("start", "none"):
            those = "This front has none" if self.reading == "none" else f"Those of '{self.method}' are starts"
            raise ValueError(f"'k' must be of a front with preferences to choose. {those}.")
        places = (
            self.preferences[list(self.subproblems)] if self.reading == "importance" else scaled_losses(self, split)
        )
        if not bool(places[row].isfinite().all()) or not bool((places[row] > 0).any()):
            raise ValueError(f"'k' must be a model with finite losses that are not all zero. Got {k}.")
        others = [i for i in range(len(places)) if i != row and bool(places[i].isfinite().all())]
        if angle is None:
            gaps = [float(indicators.angles(places[[i]], places[[row]])[0]) for i in others]
            angle = max(2.0, min((gap for gap in gaps if gap > 0), default=20.0) / 2)
        rows = vectors.around(places[row].clamp_min(0.0), count, angle=angle)
        return rows if self.reading == "direction" else rows / rows.sum(-1, keepdim=True)

    def save(self, path: str | Path) -> None:
        """Write the front into a folder: ``front.json``, and files of tensors for its history and its models.

        A crash leaves either the old front or the new one. A front that has only losses is just ``front.json``.
        """
        folder = as_path("path", path)
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"'path' must be a folder. Got the file '{folder}' instead.")
        if self.models and not self.models.kind:
            reason = (
                "the models are not stored, because 'problem.model' does not make them; their losses and metrics are."
            )
            warnings.warn(f"{reason} Keep your own checkpoints.", stacklevel=2)
        write_front(self, folder)

    @classmethod
    def load(cls, path: str | Path, problem: Problem | None = None) -> Front:
        """Read a front that :meth:`save` wrote, a run's folder, or a table of losses.

        Reads the numbers now. Models are loaded lazily, one by one.

        Args:
            path: the folder, or a ``.csv`` file with a line for each model and a column for each task.
            problem: the problem whose ``model`` makes the models, which :meth:`model` checks; without it, use
                :meth:`state_dict`.
        """
        if problem is not None and not (hasattr(problem, "tasks") and hasattr(problem, "model")):
            raise TypeError(f"'problem' must be a Problem. Got {type(problem).__name__} instead.")
        place = as_path("path", path)
        if is_table(place):
            return cls.from_table(place)
        fields = read_front(place, None if problem is None else tuple(problem.tasks))
        return cls._made(fields, problem)

    @classmethod
    def _made(cls, fields: dict[str, Any], problem: Problem | None) -> Front:
        inner = fields.pop("snapshot")
        factory = None if problem is None else problem.model
        snapshot = None if inner is None else cls._made(inner, problem)
        return cls(**fields, model_factory=factory, checked_by=problem, snapshot=snapshot)

    def _row(self, k: int) -> int:
        k = as_whole(k)
        if not isinstance(k, int) or isinstance(k, bool) or k not in self.subproblems:
            raise IndexError(f"'k' must be one of the models trained, {[*self.subproblems]}. Got {quote(k)} instead.")
        return self.subproblems.index(k)

    def _row_of_model(self, k: int) -> int:
        row = self._row(k)
        if isinstance(self.models, NoModels):
            named = f" ({self.names[row]})" if self.names else ""
            raise ValueError(f"'k' must be of a front that has weights. Got model {k}{named} of {self.models.reason}")
        return row

    def _check_directions(self, what: str) -> None:
        if self.reading != "direction":
            those = "this front has none" if self.reading == "none" else f"those of '{self.method}' are not"
            raise ValueError(f"{what} need preferences that are directions; {those}. Those of 'pareto-mtl' are.")

    def scaling(self) -> str:
        """Describe the loss factors of training in a sentence; empty without scaling."""
        return scaling_text(self)

    def __repr__(self) -> str:
        return escaped(front_text(self))

    def _repr_html_(self) -> str:
        """The table that notebooks show."""
        return front_html(self)
