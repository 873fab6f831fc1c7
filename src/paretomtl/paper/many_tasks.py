"""Many tasks: the synthetic problem with 2 to 10 objectives, and 5 to 100 preference vectors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
from paretomtl.paper.panels import grid, panel_title
from paretomtl.paper.rows import column
from paretomtl.paper.study import Size, Study
from paretomtl.problems import synthetic
from paretomtl.report.figures.style import SMALL, add_caption
from paretomtl.training.fit_to_end import fit_seeds_to_end

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TASKS = (2, 3, 4, 6, 10)
COUNTS = (5, 15, 25, 50, 100)
_FRONT = 20_000  # about how many points of the true front to cover; IGD+ depends on their density
_FINAL, _BEFORE = "final", "snapshot"
_COLOURS = ("#3b0f70", "#8c2981", "#c8386b", "#c2501a", "#8a6a00")
_MARKERS = ("o", "s", "^", "D", "v")
_SHADE = "#3f7fbf"
_ASIDE = 1.035  # the factor between the places of lines on the horizontal axis


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
    """The gap to the front above, and the regions below, for even vectors and for gathered ones."""
    ways = sorted({_gathered(row) for row in rows})
    if not ways:
        return None
    figure, axes = grid(2, len(ways), height=2.55)
    tasks = sorted({row["tasks"] for row in rows})
    for gathered, above, below in zip(ways, axes[: len(ways)], axes[len(ways) :], strict=True):
        mine = [row for row in rows if _gathered(row) == gathered]
        _draw_gaps(above, mine, tasks)
        _draw_regions(below, mine)
        vectors = "Gathered vectors" if gathered else "Even vectors"
        panel_title(above, vectors, "hollow: before the constraints are dropped")
        panel_title(below, f"{vectors}: regions", "% that the front meets | % of models in their own")
    top = max(axis.get_ylim()[1] for axis in axes[: len(ways)])
    for axis in axes[: len(ways)]:
        axis.set_ylim(-0.05 * top, top)
    axes[0].set_ylabel("gap to the true front (IGD+)")
    add_caption(
        figure,
        _finding([row for row in rows if _gathered(row) == ways[0]]),
        "The gap is by how much the nearest model is worse, on average over all points of the true front. All numbers "
        f"are means over {len({row['seed'] for row in rows})} seeds.",
    )
    return figure


def _finding(rows: Sequence[Row]) -> str:
    """By how much the gap falls from the fewest vectors to the most, for the fewest tasks and for the most."""
    counts = sorted({row["preferences"] for row in rows})
    few, many = counts[0], counts[-1]
    falls = []
    for tasks in sorted({row["tasks"] for row in rows}):
        gaps = _means([row for row in rows if row["tasks"] == tasks], "igd_plus", _FINAL)
        if few in gaps and many in gaps and 0 < gaps[many] < gaps[few]:
            falls.append(f"{100 - 100 * gaps[many] / gaps[few]:.0f} % with {tasks} tasks")
    if len(falls) < 2:
        return "The gap to the true front, and the regions that it meets"
    return f"From {few} to {many} models, the gap falls by {falls[0]}, by {falls[-1]}"


def _gathered(row: Row) -> float:
    """How far the vectors of a row are drawn towards the middle."""
    return float(row.get("gathered", 0))


def _draw_gaps(axis: Axes, rows: Sequence[Row], tasks: Sequence[int]) -> None:
    """Draw IGD+ against the number of vectors: a line for each number of tasks, with its name at the end."""
    ends: dict[str, tuple[float, str]] = {}
    for look, count in enumerate(tasks):
        mine = [row for row in rows if row["tasks"] == count]
        after, before = (_means(mine, "igd_plus", stage) for stage in (_FINAL, _BEFORE))
        aside = _ASIDE ** (look - (len(tasks) - 1) / 2)
        colour, marker = _COLOURS[look % len(_COLOURS)], _MARKERS[look % len(_MARKERS)]
        axis.plot([aside * x for x in after], list(after.values()), color=colour, marker=marker, markersize=5)
        for x in sorted(after.keys() & before.keys()):
            axis.plot([aside * x] * 2, [after[x], before[x]], color=colour, linewidth=0.8, zorder=0)
        hollow: dict[str, Any] = {"facecolor": "white", "edgecolor": colour, "linewidth": 0.9, "s": 14, "zorder": 1}
        axis.scatter([aside * x for x in before], list(before.values()), marker=marker, **hollow)
        if after:
            ends[f"{count} tasks"] = (after[max(after)], colour)
    _set_counts(axis, rows)
    _name_ends(axis, ends, 1.17 * max(row["preferences"] for row in rows))


def _set_counts(axis: Axes, rows: Sequence[Row]) -> None:
    """Scale the horizontal axis, with room for names at its end."""
    counts = sorted({row["preferences"] for row in rows})
    axis.set_xscale("log")
    axis.set_xticks(counts, [str(count) for count in counts])
    axis.set_xticks([], minor=True)
    axis.set_xlim(counts[0] / 1.2, counts[-1] * 2.0)
    axis.set_xlabel("preference vectors")


def _name_ends(axis: Axes, ends: Mapping[str, tuple[float, str]], x: float) -> None:
    """Write the names of lines at their ends, so far apart that none covers another."""
    least = 0.078 * axis.get_ylim()[1]
    lowest = -math.inf
    for name, (height, colour) in sorted(ends.items(), key=lambda item: item[1]):
        lowest = max(height, lowest + least)
        axis.text(x, lowest, name, color=colour, fontsize=SMALL, va="center")


def _draw_regions(axis: Axes, rows: Sequence[Row]) -> None:
    """Draw a table of two shares in percent, the darker the more regions the front meets."""
    patches = require("matplotlib.patches", "figures")
    tasks, counts = (sorted({row[name] for row in rows}) for name in ("tasks", "preferences"))
    for y, each in enumerate(tasks):
        mine = [row for row in rows if row["tasks"] == each]
        met, inside = _means(mine, "regions_met"), _means(mine, "in_region", _BEFORE)
        for x, count in enumerate(counts):
            if count not in met:
                continue
            share = met[count] / count
            cell = {"color": _SHADE, "alpha": 0.55 * share, "linewidth": 0}  # text on the darkest can still be read
            axis.add_patch(patches.Rectangle((x - 0.5, y - 0.5), 1, 1, **cell))
            own = f"{100 * inside[count] / count:.0f}" if count in inside else "?"
            axis.text(x, y, f"{100 * share:.0f} | {own}", ha="center", va="center", fontsize=SMALL)
    axis.set_xticks(range(len(counts)), [str(count) for count in counts])
    axis.set_yticks(range(len(tasks)), [f"{each} tasks" for each in tasks])
    axis.set(xlim=(-0.5, len(counts) - 0.5), ylim=(-0.5, len(tasks) - 0.5), xlabel="preference vectors")
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)


def _means(rows: Sequence[Row], field: str, stage: str | None = None) -> dict[int, float]:
    """The means over seeds by the number of vectors, of one stage or of any."""
    known: dict[int, list[float]] = {}
    for row in sorted(rows, key=lambda row: int(row["preferences"])):
        if stage in (None, row["stage"]) and row[field] is not None and math.isfinite(row[field]):
            known.setdefault(row["preferences"], []).append(row[field])
    return {count: mean(values) for count, values in known.items()}


STUDY = Study(cells=cells, facts=facts, figures={"many-tasks": _draw_coverage})
