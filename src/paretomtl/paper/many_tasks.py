"""How many preferences: the synthetic problem with more and more objectives, and more and more vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from paretomtl import preferences
from paretomtl._support.optional import require
from paretomtl.compare.row_store import Row, numbers
from paretomtl.core.preferences import drawn_towards
from paretomtl.front import Front
from paretomtl.front.indicators import igd_plus
from paretomtl.methods import ParetoMTL, describe
from paretomtl.paper.statistics import column, mean, plus_minus
from paretomtl.paper.study import Claim, Size
from paretomtl.problems import synthetic
from paretomtl.training._fit import fit_seeds_whole

TASKS = (2, 3, 4, 6, 10)
COUNTS = (5, 15, 25, 50, 100)
_FRONT = 20_000  # points of the true front that are to be covered, about; IGD+ depends on how dense they are


@dataclass(frozen=True)
class ManyCell:
    """So many vectors for so many objectives; the constraints are dropped for the last quarter of the steps.

    Attributes:
        tasks: the number of objectives.
        count: the number of vectors.
        seeds: how many.
        steps: of gradient descent, half of them for the initial phase at most.
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
        return drawn_towards(start, middle, self.gathered)

    @property
    def method(self) -> ParetoMTL:
        """Until feasible, then released: what does not meet its region returns to the front."""
        return ParetoMTL(initial_steps=self.steps // 2, release_steps=self.steps // 4)

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
        """Two rows per seed: before and after the constraints are dropped. There are no ``data``."""
        require("moocore", "indicators")  # rather now than after training
        problem = synthetic(tasks=self.tasks)
        fronts = fit_seeds_whole(
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
    """How many regions the true front meets, and the IGD+ of the points of it that are nearest to the rays."""
    cosines = torch.nn.functional.normalize(points, dim=-1) @ vectors.T
    nearest = points[cosines.argmax(0)]
    return len(set(cosines.argmax(-1).tolist())), igd_plus(nearest, points)


def cells(size: Size = "full") -> list[ManyCell]:
    """Every number of objectives with every number of vectors, even and gathered; some of them; a few steps of some."""
    if size == "full":
        even = [ManyCell(tasks, count) for tasks in TASKS for count in COUNTS]
        return even + [ManyCell(tasks, count, gathered=0.5) for tasks in TASKS[1:] for count in COUNTS]
    seeds, steps = (2, 400) if size == "quick" else (1, 20)
    return [ManyCell(tasks, count, seeds, steps) for tasks in (2, 3, 6) for count in (5, 15)]


def claims(rows: Sequence[Row]) -> list[Claim]:
    """The paper says nothing on it."""
    return []


def facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Coverage against the number of vectors, for each number of objectives."""
    found = []
    for tasks, gathered in sorted({(row["tasks"], row["gathered"]) for row in rows}):
        for count in sorted({row["preferences"] for row in rows if row["tasks"] == tasks}):
            mine = [r for r in rows if (r["tasks"], r["preferences"], r["gathered"]) == (tasks, count, gathered)]
            final, before = ([row for row in mine if row["stage"] == stage] for stage in ("final", "snapshot"))
            if not mine:
                continue
            found.append(
                (
                    f"{tasks} objectives, {count} vectors{', gathered' if gathered else ''}",
                    f"IGD+ {plus_minus(column(final, 'igd_plus'))}, {mean(column(before, 'igd_plus')):.3f} before "
                    f"the release, {final[0]['igd_plus_on_rays']:.3f} for the points of the front nearest to "
                    f"the rays; the front meets {final[0]['regions_met']} of {count} regions, "
                    f"{mean(column(before, 'in_region')):.1f} solutions are in their own",
                )
            )
    return found
