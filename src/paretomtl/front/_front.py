"""The front, the result of training: one solution per subproblem, spread over the Pareto front."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from paretomtl._support.argument_checks import as_whole
from paretomtl._support.optional_packages import require
from paretomtl._support.paths import as_path
from paretomtl._support.random_state import isolated_randomness, model_seed, seed_everything
from paretomtl._support.splits import training_split
from paretomtl._support.terminal import escaped
from paretomtl.core import in_region, nondominated
from paretomtl.core import preferences as vectors
from paretomtl.front import _bounds, indicators, selection
from paretomtl.front import _facade as _upward
from paretomtl.front._constructors import FrontConstructors
from paretomtl.front._data import finite_losses, losses_on, scaled_losses
from paretomtl.front.candidates import Choice, build_table
from paretomtl.front.csv_table import is_table
from paretomtl.front.models import NoModels
from paretomtl.front.selection import ByTask
from paretomtl.front.storage import read_front, write_front
from paretomtl.front.text_table import front_text, scaling_text

if TYPE_CHECKING:
    from paretomtl.problems import Problem


@dataclass(frozen=True, repr=False, eq=False)
class Front(FrontConstructors):
    """K solutions and how they came about.

    Attributes:
        problem: its name.
        method: its name.
        tasks: the names of the m tasks.
        reading: what the rows of ``preferences`` mean: "direction", "importance" or "start"; "none" without any.
        preferences: all rows ``[K, m]``; ``[K, 0]`` without any.
        subproblems: which of them were trained, in the order of everything below.
        losses: by split, ``[K, m]``, of the models in eval mode on the whole split.
        scale: the factors ``[K, m]`` by which losses were multiplied before regions or weights were decided; None for
            none.
        ideal: the point that losses were counted from before that; None for zero.
        status: one word per solution: "feasible", "infeasible", "critical", "negative", "trained" or "non-finite"; of
            models that were trained elsewhere "given", "evaluated" or "non-finite"; "training" while a run goes on.
        since: the step since which each solution had the status of its last step; None for methods without regions.
        history: "losses" and "weights", means over the steps of each epoch, and "val" losses where there is such a
            split, ``[T, K, m]``.
        seed: model k started from (seed, k); None for models that were trained elsewhere.
        seconds: how long training took; solutions of several seeds trained together share it.
        models: the store of their weights, which are read when a model is asked for; see
            :class:`~paretomtl.front.ModelStore`.
        model_factory: makes a model; None for a front that was loaded without its problem.
        snapshot: the front right before the constraints were dropped, where the method drops them.
        metrics: by split and name, ``[K]``.
        better: for each metric, whether "higher" or "lower" is better.
        epochs: the epoch that each solution is from.
        complete: whether training came to an end that was asked for; False where it was stopped early.
        ended: why training ended, such as "after 30 epochs"; empty for fronts of earlier versions.
        strategy: how the models were trained, and why so.
        reference: the default of :meth:`hypervolume`.
        measured: what the method measured on the way, by name, ``[K, ...]``; empty for most methods.
        remarks: what is off in it, a line each, as the run warned; empty for most fronts.
        made_by: the versions of this library and of torch, commit and checksum of the source; empty where not known.
        names: of the solutions, one for each, where they were given; see :meth:`from_losses`.
    """

    snapshot: Front | None = None

    def state_dict(self, k: int) -> dict[str, Tensor]:
        """Parameters and buffers of subproblem k, by name; of a stored front, read now."""
        return self.models.weights(self._row_of_model(k))

    def model(self, k: int) -> nn.Module:
        """The trained model of subproblem k, in eval mode, on the CPU."""
        row = self._row_of_model(k)
        with isolated_randomness(), torch.inference_mode(False):
            seed_everything(model_seed(self.seed or 0, k))
            return self.models.build(row, self.model_factory)

    def nondominated(self, split: str | None = None) -> Tensor:
        """Which solutions no other one dominates, ``[K]`` bool, on :attr:`ranking_split` if no split is named."""
        return nondominated(losses_on(self, split))

    def in_region(self, split: str | None = None) -> Tensor:
        """Which solutions lie in the region of their own preference vector, ``[K]`` bool, scaled as in training.

        Regions are constraints of training, hence the losses on training, where there are any.
        """
        self._check_directions("regions")
        everyone = torch.full((len(self.preferences), len(self.tasks)), torch.nan, dtype=torch.float64)
        everyone[list(self.subproblems)] = scaled_losses(self, split or training_split(self.losses))
        return in_region(self.preferences, everyone)[list(self.subproblems)]

    def region_hits(self, split: str | None = None) -> int:
        """How many solutions lie in the region of their own preference vector, by their losses on training."""
        return int(self.in_region(split).sum())

    def angle(self, split: str | None = None) -> Tensor:
        """The angle in degrees between each loss vector and its preference vector, ``[K]``.

        Losses are those on training, where there are any, scaled as in training.
        """
        self._check_directions("angles")
        return indicators.angles(
            scaled_losses(self, split or training_split(self.losses)), self.preferences[list(self.subproblems)]
        )

    def hypervolume(self, reference: Sequence[float] | None = None, split: str | None = None) -> float:
        """The volume between the solutions and a reference point that they should dominate (extra ``indicators``).

        Args:
            reference: larger is worse in every task. By default the problem's own, or else, for each task, the largest
                loss of the untrained models on the first batch. Hypervolumes compare only for the same reference.
            split: whose losses; :attr:`ranking_split` by default.
        """
        return indicators.front_hypervolume(self, reference, split)

    def igd_plus(self, points: Tensor, split: str | None = None) -> float:
        """IGD+ (Ishibuchi et al. 2015): by how much the solutions fall short of points of a front, on average.

        Args:
            points: ``[n, m]``, of the true front (``problem.truth.front(1000)``) or the best that is known.
            split: whose losses; :attr:`ranking_split` by default.
        """
        return indicators.front_igd_plus(self, points, split)

    def spread(self, split: str | None = None) -> float:
        """The diagonal of the smallest box around the solutions that no other one dominates (Zitzler 1999).

        Losses are those on :attr:`ranking_split` if no split is named.
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
        """Choose a solution, and say why: by one of the first four, or by ``best``, within bounds if there are any.

        Only solutions that no other one dominates are chosen by the first four.

        Args:
            direction: the solution whose loss vector is nearest to this direction, by angle; a list, or a dictionary by
                task. A large entry allows a large loss: (0, 1) favours the first task.
            importance: the least sum of the losses, scaled as in training, weighted by these; a list, or a dictionary
                by task. A large entry asks for a small loss.
            knee: the solution farthest below the chord through the best of each task, where giving up a little of one
                task gains most of another. A concave front has none; nor has one that is lower by a hundredth at most.
            max_regret: the solution whose largest regret is smallest (Savage 1951). The regret of solution k in task i
                is (L_ki - best_i) / (worst_i - best_i), with the best and the worst loss of the front in that task; 0
                where they are the same. Solutions with a loss above ``reference``, such as diverged ones, are left out
                of this and of the knee where others are not.
            bounds: by name, what a solution must reach: at most for losses and metrics where lower is better, at least
                for others. A name is that of a task, for its loss, or of a metric; else ``loss:TASK`` is the loss of a
                task, and ``WHAT:TASK`` the metric that is called ``TASK WHAT``.
            at_least: by name, what a loss or a metric must reach at least, whatever is better.
            at_most: by name, what it may reach at most.
            best: the task or metric by which to choose among all, or among those within the bounds. Where no solution
                keeps them, the answer names the one that comes nearest: the least of the largest miss, each divided by
                the range of its name over the front.
            split: whose losses and metrics; :attr:`ranking_split` by default.

        Example:
            >>> import paretomtl as pm
            >>> front = pm.fit(pm.problems.quadratic(), preferences=5, epochs=300, progress="quiet", device="cpu")
            >>> front.select(direction=[1.0, 1.0]).k
            2
            >>> front.select(knee=True).k
            2
        """
        bounded = any(given is not None for given in (bounds, at_least, at_most))
        ways = {
            "direction": direction,
            "importance": importance,
            "knee": knee or None,
            "max_regret": max_regret or None,
        }
        given = {**ways, "bounds": bounded or None, "best": best}
        chosen = [name for name, value in given.items() if value is not None]
        if len(chosen) != 1 and chosen != ["bounds", "best"]:
            rule = f"one of {', '.join(ways)}, best must be given, and bounds with best alone"
            raise ValueError(f"{rule}. Got {chosen or 'none'} instead: write select(knee=True) (--knee), for one.")
        table = build_table(self, split)
        if bounded or best is not None:
            return _bounds.within_bounds(table, _bounds.bounds_of(table, bounds, at_least, at_most), best)
        if direction is not None:
            return selection.by_direction(table, scaled_losses(self, table.split), direction)
        if importance is not None:
            return selection.by_importance(table, self.scale, importance)
        return selection.knee(table) if knee else selection.least_regret(table)

    def to_frame(self) -> Any:
        """A pandas table (extra ``frames``), one row per solution: preference, losses and metrics by split, status."""
        columns: dict[str, Any] = {"subproblem": list(self.subproblems)}
        columns |= {"name": list(self.names)} if self.names else {}
        chosen = self.preferences[list(self.subproblems)]
        wished = self.tasks if self.reading != "none" else ()
        columns |= {f"{self.reading} {task}": chosen[:, i].tolist() for i, task in enumerate(wished)}
        for split, losses in self.losses.items():
            columns |= {f"{split} {task}": losses[:, i].tolist() for i, task in enumerate(self.tasks)}
            columns |= {f"{split} {name}": values.tolist() for name, values in self.metrics.get(split, {}).items()}
            columns[f"{split} nondominated"] = self.nondominated(split).tolist()
        columns |= {"status": list(self.status), "epoch": list(self.epochs) or None}
        return require("pandas", "frames").DataFrame(columns).set_index("subproblem")

    def plot(self, path: str | Path | None = None, *, split: str | None = None) -> Any:
        """Draw the solutions in their losses (extra ``figures``): a plane, a space, or parallel coordinates.

        Args:
            path: where to write the figure, in the format of its ending, such as ``.pdf``, ``.svg`` or ``.png``.
            split: whose losses; by default those on :attr:`ranking_split`, and those on test in a second panel.

        Returns:
            A figure of matplotlib; closed where it was written.
        """
        return _upward.draw_front(self, path, split=split)

    def around(self, k: int, count: int = 5, *, angle: float | None = None, split: str | None = None) -> Tensor:
        """Preferences around a solution that a user liked, for another run (paper, section 4.2.3): ``[count, m]``.

        Directions lie around that of the solution's loss vector, scaled as in training; importances around its own.

        Args:
            k: the subproblem.
            count: how many.
            angle: in degrees, how far they go; by default half way to the nearest other solution, at least 2 degrees.
            split: whose losses; :attr:`ranking_split` by default.

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
            raise ValueError(f"'k' must be a solution with finite losses that are not all zero. Got {k}.")
        others = [i for i in range(len(places)) if i != row and bool(places[i].isfinite().all())]
        if angle is None:
            gaps = [float(indicators.angles(places[[i]], places[[row]])[0]) for i in others]
            angle = max(2.0, min((gap for gap in gaps if gap > 0), default=20.0) / 2)
        rows = vectors.around(places[row].clamp_min(0.0), count, angle=angle)
        return rows if self.reading == "direction" else rows / rows.sum(-1, keepdim=True)

    def save(self, path: str | Path) -> None:
        """Write the front into a folder: ``front.json``, and files of tensors for its history and its models.

        A crash leaves the old one, or this. A front of losses alone is ``front.json`` alone.
        """
        folder = as_path("path", path)
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"'path' must be a folder. Got the file '{folder}' instead.")
        if self.models and not self.models.kind:
            reason = "the models are not stored, as 'problem.model' does not make them; their losses and metrics are."
            warnings.warn(f"{reason} Keep your own checkpoints.", stacklevel=2)
        write_front(self, folder)

    @classmethod
    def load(cls, path: str | Path, problem: Problem | None = None) -> Front:
        """Read a front that :meth:`save` wrote, a run's folder, or a table of losses.

        Its numbers are read now, each of its models when it is asked for.

        Args:
            path: the folder, or a ``.csv`` file with a line for each model and a column for each task.
            problem: whose models :meth:`model` makes; without it, :meth:`state_dict` has their weights.
        """
        if problem is not None and not (hasattr(problem, "tasks") and hasattr(problem, "model")):
            raise TypeError(f"'problem' must be a Problem. Got {type(problem).__name__} instead.")
        place = as_path("path", path)
        if is_table(place):
            return cls.from_table(place)
        fields = read_front(place, None if problem is None else tuple(problem.tasks))
        return cls._made(fields, None if problem is None else problem.model)

    @classmethod
    def _made(cls, fields: dict[str, Any], factory: Callable[[], nn.Module] | None) -> Front:
        inner = fields.pop("snapshot")
        return cls(**fields, model_factory=factory, snapshot=None if inner is None else cls._made(inner, factory))

    def _row(self, k: int) -> int:
        k = as_whole(k)
        if not isinstance(k, int) or isinstance(k, bool) or k not in self.subproblems:
            raise IndexError(f"'k' must be one of the subproblems trained, {[*self.subproblems]}. Got {k!r} instead.")
        return self.subproblems.index(k)

    def _row_of_model(self, k: int) -> int:
        row = self._row(k)
        if isinstance(self.models, NoModels):
            named = f" ({self.names[row]})" if self.names else ""
            raise ValueError(
                f"'k' must be of a front that has weights. Got solution {k}{named} of {self.models.reason}"
            )
        return row

    def _check_directions(self, what: str) -> None:
        if self.reading != "direction":
            those = "this front has none" if self.reading == "none" else f"those of '{self.method}' are not"
            raise ValueError(f"{what} need preferences that are directions; {those}. Those of 'pareto-mtl' are.")

    def scaling(self) -> str:
        """A sentence on the factors of the losses in training; empty where there were none."""
        return scaling_text(self)

    def __repr__(self) -> str:
        return escaped(front_text(self))
