"""Many tasks: the synthetic problem with 2 to 10 objectives, and 5 to 100 preference vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from paretomtl._support.imports.optional_packages import require
from paretomtl._support.significance import mean
from paretomtl.compare.row_store import Row, numbers
from paretomtl.core import preferences
from paretomtl.front import Front
from paretomtl.front.indicators import igd_plus
from paretomtl.methods import ParetoMTL, describe
from paretomtl.paper.number_text import plus_minus
from paretomtl.paper.panels import caption, grid, legend
from paretomtl.paper.rows import column
from paretomtl.paper.study import Size, Study
from paretomtl.problems import synthetic
from paretomtl.training.fit_to_end import fit_seeds_to_end

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TASKS = (2, 3, 4, 6, 10)
COUNTS = (5, 15, 25, 50, 100)
_FRONT = 20_000  # about how many points of the true front to cover; IGD+ depends on their density
_FINAL, _BEFORE = "final", "snapshot"
_COLOURS = ("#0a2a5e", "#0b5fa5", "#1b8a8f", "#c98a00", "#c1272d")
_MARKERS = ("o", "s", "^", "D", "v")
_SOLID: dict[str, Any] = {"linestyle": "-", "linewidth": 1.4}
_DASHED: dict[str, Any] = {"linestyle": (0, (5, 2)), "linewidth": 1.0}
_DOTTED: dict[str, Any] = {"linestyle": (0, (1, 1.6)), "linewidth": 1.1}
_DISTANCES = ("(solid), before the release (dashed), and of the", "points of the front nearest to the rays (dotted)")
_SHARES = ("the front meets (dotted), and of solutions in", "their own region before the release (solid)")


@dataclass(frozen=True)
class ManyCell:
    """A number of vectors for a number of objectives; constraints are dropped for the last quarter of the steps.

    Attributes:
        tasks: the number of objectives.
        count: the number of vectors.
        seeds: the number of seeds.
        steps: the steps of gradient descent, at most half of them in the initial phase.
        gathered: how far vectors are drawn towards the diagonal, as by :func:`paretomtl.preferences.biased`.
    """

    tasks: int
    count: int
    seeds: int = 3
    steps: int = 400
    gathered: float = 0.0

    @property
    def vectors(self) -> Tensor:
        """The preference vectors."""
        start, middle = preferences.lattice_or_energy(self.count, self.tasks), preferences.even(1, self.tasks)[0]
        return preferences.drawn_towards(start, middle, self.gathered)

    @property
    def method(self) -> ParetoMTL:
        """Pareto MTL until feasible, then released, so that solutions outside their region return to the front."""
        return ParetoMTL(initial_steps=self.steps // 2, release_steps=self.steps // 4, return_share=None)

    @property
    def name(self) -> str:
        return f"{self.tasks} objectives / {self.count} vectors{' / gathered' if self.gathered else ''}"

    @property
    def settings(self) -> str:
        how = f", gathered by {self.gathered:g}" if self.gathered else ""
        return (
            f"tasks={self.tasks}; preferences={self.count}{how}; method={describe(self.method)}; steps={self.steps}; "
            "optimizer=SGD, rate 1"
        )

    @property
    def stages(self) -> tuple[str, ...]:
        return ("final", "snapshot")

    def run(self, data: Path | None, seeds: Sequence[int]) -> list[Row]:
        """Two rows per seed: before and after the constraints are dropped. ``data`` is not used."""
        require("moocore", "indicators")  # fail now rather than after training
        problem = synthetic(tasks=self.tasks)
        fronts = fit_seeds_to_end(
            problem,
            self.method,
            self.vectors,
            epochs=self.steps,
            seeds=seeds,
            optimizer=lambda parameters: torch.optim.SGD(parameters, lr=1.0),
            device="cpu",
            precision="float64",
        )
        assert problem.truth is not None
        points = problem.truth.front(_FRONT)
        met, best = _possible(self.vectors, points)
        rows = []
        for front in fronts:
            assert front.snapshot is not None
            stages = (("final", front), ("snapshot", front.snapshot))
            rows += [self._row(each, stage, points, met, best) for stage, each in stages]
        return rows

    def _row(self, front: Front, stage: str, points: Tensor, met: int, best: float) -> Row:
        return {
            "stage": stage,
            "problem": front.problem,
            "method": front.method,
            "recipe": "until feasible, then released",
            "tasks": self.tasks,
            "preferences": self.count,
            "gathered": self.gathered,
            "epochs": self.steps,
            "seed": front.seed,
            "igd_plus": round(front.igd_plus(points, "train"), 5),
            "igd_plus_on_rays": round(best, 5),
            "regions_met": met,
            "in_region": front.region_hits("train"),
            "nondominated": int(front.nondominated("train").sum()),
            "losses": numbers(front.losses["train"]),
            "status": list(front.status),
            "seconds": round(front.seconds, 2),
        }


def _possible(vectors: Tensor, points: Tensor) -> tuple[int, float]:
    """How many regions the true front meets, and the IGD+ of its points nearest to the rays."""
    cosines = torch.nn.functional.normalize(points, dim=-1) @ vectors.T
    nearest = points[cosines.argmax(0)]
    return len(set(cosines.argmax(-1).tolist())), igd_plus(nearest, points)


def cells(size: Size = "full") -> list[ManyCell]:
    """Every number of objectives with every number of vectors, even and gathered; fewer cells and steps if smaller."""
    if size == "full":
        even = [ManyCell(tasks, count) for tasks in TASKS for count in COUNTS]
        return even + [ManyCell(tasks, count, gathered=0.5) for tasks in TASKS[1:] for count in COUNTS]
    seeds, steps = (2, 400) if size == "quick" else (1, 20)
    return [ManyCell(tasks, count, seeds, steps) for tasks in (2, 3, 6) for count in (5, 15)]


def facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Coverage against the number of vectors, for each number of objectives."""
    results = []
    for tasks, gathered in sorted({(row["tasks"], row["gathered"]) for row in rows}):
        for count in sorted({row["preferences"] for row in rows if row["tasks"] == tasks}):
            mine = [r for r in rows if (r["tasks"], r["preferences"], r["gathered"]) == (tasks, count, gathered)]
            final, before = ([row for row in mine if row["stage"] == stage] for stage in ("final", "snapshot"))
            if not mine:
                continue
            results.append(
                (
                    f"{tasks} objectives, {count} vectors{', gathered' if gathered else ''}",
                    f"IGD+ {plus_minus(column(final, 'igd_plus'))}, {mean(column(before, 'igd_plus')):.3f} before "
                    f"the release, {final[0]['igd_plus_on_rays']:.3f} for the points of the front nearest to "
                    f"the rays; the front meets {final[0]['regions_met']} of {count} regions, "
                    f"{mean(column(before, 'in_region')):.1f} solutions are in their own",
                )
            )
    return results


def _draw_coverage(rows: Sequence[Row]) -> Figure | None:
    """A line of panels for even vectors, and one for gathered ones, on the same scales."""
    ways = sorted({_gathered(row) for row in rows})
    if not ways:
        return None
    figure, axes = grid(len(ways), 2, width=4.4, height=4.3, below=0.9)
    looks = {tasks: i for i, tasks in enumerate(sorted({row["tasks"] for row in rows}))}
    counts = sorted({row["preferences"] for row in rows})
    for i, gathered in enumerate(ways):
        mine = [row for row in rows if _gathered(row) == gathered]
        left, right = axes[2 * i : 2 * i + 2]
        for tasks, look in looks.items():
            _draw_objectives(left, right, [row for row in mine if row["tasks"] == tasks], look)
        vectors = "gathered vectors" if gathered else "even vectors"
        caption(left, 2 * i, f"{vectors}: IGD+ of the solutions at the end", *_DISTANCES)
        caption(right, 2 * i + 1, f"{vectors}: share of the regions that", *_SHARES)
    _match_scales(axes, counts)
    for tasks, look in looks.items():
        axes[0].plot([], [], label=f"{tasks} objectives", linewidth=1.4, **_marks(look))
    legend(figure, "Means over seeds.", columns=5)
    return figure


def _gathered(row: Row) -> float:
    """How far the vectors of a row are drawn towards the middle."""
    return float(row.get("gathered", 0))


def _marks(look: int) -> dict[str, Any]:
    return {"color": _COLOURS[look % len(_COLOURS)], "marker": _MARKERS[look % len(_MARKERS)], "markersize": 4.5}


def _draw_objectives(left: Axes, right: Axes, rows: Sequence[Row], look: int) -> None:
    """Draw the lines of one number of objectives: IGD+ and shares."""
    marks = _marks(look)
    colour = {"color": marks["color"]}
    _draw_line(left, rows, lambda row: row["igd_plus"], stage=_FINAL, **_SOLID, **marks)
    _draw_line(left, rows, lambda row: row["igd_plus"], stage=_BEFORE, **_DASHED, **colour)
    _draw_line(left, rows, lambda row: row["igd_plus_on_rays"], **_DOTTED, **colour)
    hollow = {**marks, "markerfacecolor": "white"}
    _draw_line(right, rows, lambda row: row["regions_met"] / row["preferences"], **_DOTTED, **colour)
    _draw_line(right, rows, lambda row: row["in_region"] / row["preferences"], stage=_BEFORE, **_SOLID, **hollow)


def _match_scales(axes: Sequence[Axes], counts: Sequence[int]) -> None:
    """Give all panels of a column the same scales."""
    ticker = require("matplotlib.ticker", "figures")
    for axis in axes:
        axis.set_xscale("log")
        axis.set_xticks(counts, [str(count) for count in counts])
        axis.set_xticks([], minor=True)
        axis.set_xlim(counts[0] / 1.15, counts[-1] * 1.15)
        axis.set_xlabel("preference vectors")
    for axis in axes[::2]:
        axis.set_yscale("log", subs=[])
        axis.set_ylabel("IGD+")
        axis.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    ends = [axis.get_ylim() for axis in axes[::2]]
    for axis in axes[::2]:
        axis.set_ylim(min(low for low, _ in ends), max(high for _, high in ends))
    for axis in axes[1::2]:
        axis.set(ylabel="share", ylim=(0, 1.05))


def _draw_line(
    axis: Axes, rows: Sequence[Row], value: Callable[[Row], float | None], stage: str | None = None, **style: Any
) -> None:
    """Draw the mean over seeds against the number of vectors, of one stage or of any."""
    results: dict[int, list[float]] = {}
    for row in rows:
        number = value(row)
        if stage in (None, row["stage"]) and number is not None and math.isfinite(number):
            results.setdefault(row["preferences"], []).append(number)
    counts = sorted(results)
    if counts:
        axis.plot(counts, [mean(results[count]) for count in counts], **style)


STUDY = Study(cells=cells, facts=facts, figures={"many-tasks": _draw_coverage})
