"""How many preferences: the synthetic problem with more and more objectives, and more and more vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from paretomtl import preferences
from paretomtl._extras import require
from paretomtl.experiments._statistics import column, mean, plus_minus
from paretomtl.experiments._store import Row, numbers
from paretomtl.experiments._study import Claim, Size
from paretomtl.front import Front
from paretomtl.methods import ParetoMTL, in_words
from paretomtl.problems import Truth, synthetic
from paretomtl.training import fit_seeds

TASKS = (2, 3, 4, 6, 10)
COUNTS = (5, 15, 25, 50, 100)
_FRONT = 20_000  # points of the true front that are to be covered, about; IGD+ depends on how dense they are


@dataclass(frozen=True)
class ManyCell:
    """Even vectors for so many objectives; the constraints are dropped for the last quarter of the steps.

    Attributes:
        tasks: the number of objectives.
        count: the number of vectors.
        seeds: how many.
        steps: of gradient descent, half of them for the initial phase at most.
    """

    tasks: int
    count: int
    seeds: int = 3
    steps: int = 400

    @property
    def method(self) -> ParetoMTL:
        """Until feasible, then released: what does not meet its region returns to the front."""
        return ParetoMTL(initial_steps=self.steps // 2, release_steps=self.steps // 4)

    @property
    def name(self) -> str:
        return f"{self.tasks} objectives / {self.count} vectors"

    @property
    def settings(self) -> str:
        return (
            f"tasks={self.tasks}; preferences={self.count}; method={in_words(self.method)}; steps={self.steps}; "
            "optimizer=SGD, rate 1"
        )

    @property
    def stages(self) -> tuple[str, ...]:
        return ("final", "snapshot")

    def run(self, data: Path | None = None) -> list[Row]:
        """Two rows per seed: before and after the constraints are dropped. There are no ``data``."""
        require("moocore", "indicators")  # rather now than after training
        problem = synthetic(tasks=self.tasks)
        fronts = fit_seeds(
            problem,
            self.method,
            self.count,
            epochs=self.steps,
            seeds=range(self.seeds),
            optimizer=lambda parameters: torch.optim.SGD(parameters, lr=1.0),
            device="cpu",
            precision="float64",
        )
        assert problem.truth is not None
        points = problem.truth.front(_FRONT)
        met, best = _possible(problem.truth, self.count, self.tasks, points)
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
            "epochs": self.steps,
            "seed": front.seed,
            "igd_plus": round(front.igd_plus(points), 5),
            "igd_plus_on_rays": round(best, 5),
            "regions_met": met,
            "in_region": front.region_hits(),
            "nondominated": int(front.nondominated().sum()),
            "losses": numbers(front.losses["train"]),
            "status": list(front.status),
            "seconds": round(front.seconds, 2),
        }


def _possible(truth: Truth, count: int, tasks: int, points: Tensor) -> tuple[int, float]:
    """How many regions the true front meets, and the IGD+ of the points of it that are nearest to the rays."""
    vectors = preferences.even(count, tasks)
    cosines = torch.nn.functional.normalize(points, dim=-1) @ vectors.T
    nearest = points[cosines.argmax(0)]
    moocore = require("moocore", "indicators")
    return len(set(cosines.argmax(-1).tolist())), float(moocore.igd_plus(nearest.numpy(), ref=points.numpy()))


def cells(size: Size = "full") -> list[ManyCell]:
    """Every number of objectives with every number of vectors; some of them; or a few steps of some."""
    if size == "full":
        return [ManyCell(tasks, count) for tasks in TASKS for count in COUNTS]
    seeds, steps = (2, 400) if size == "quick" else (1, 20)
    return [ManyCell(tasks, count, seeds, steps) for tasks in (2, 3, 6) for count in (5, 15)]


def claims(rows: Sequence[Row]) -> list[Claim]:
    """The paper says nothing on it."""
    return []


def facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Coverage against the number of vectors, for each number of objectives."""
    found = []
    for tasks in sorted({row["tasks"] for row in rows}):
        for count in sorted({row["preferences"] for row in rows if row["tasks"] == tasks}):
            mine = [row for row in rows if (row["tasks"], row["preferences"]) == (tasks, count)]
            final, before = ([row for row in mine if row["stage"] == stage] for stage in ("final", "snapshot"))
            found.append(
                (
                    f"{tasks} objectives, {count} vectors",
                    f"IGD+ {plus_minus(column(final, 'igd_plus'))}, {mean(column(before, 'igd_plus')):.3f} before "
                    f"the release, {final[0]['igd_plus_on_rays']:.3f} for the points of the front nearest to "
                    f"the rays; the front meets {final[0]['regions_met']} of {count} regions, "
                    f"{mean(column(before, 'in_region')):.1f} solutions are in their own",
                )
            )
    return found
