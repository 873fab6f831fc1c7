"""The paper's synthetic example (section 5, supplement 1, 4 and 5; figures 2, 6, 11 and 12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from paretomtl.compare.row_store import Row, numbers
from paretomtl.core import preferences
from paretomtl.front import Front
from paretomtl.front.indicators import hypervolume
from paretomtl.methods import MGDA, Method, ParetoMTL, RandomSearch, describe
from paretomtl.paper.claims import Claim, judge
from paretomtl.paper.study import Size, Study
from paretomtl.paper.synthetic_figures import FIGURES
from paretomtl.problems import TrueFront, synthetic
from paretomtl.training.fit_to_end import fit_seeds_to_end

PLATEAU = 0.95
"""If all losses are above this, gradients have vanished: no step leads back."""


@dataclass(frozen=True)
class SyntheticCell:
    """One method on one variant of the problem, for several seeds.

    Attributes:
        part: the part of the study; tables and figures pick rows by it.
        method: the configured method.
        preferences: the number of vectors, or the vectors.
        epochs: the number of steps.
        learning_rate: that of gradient descent; methods whose weights sum to m take 1/m of the others'.
        seeds: the number of seeds.
        tasks: the number of objectives.
        ratio: the difficulty of the first objective over that of the others.
        half: the half width of the cube of starts.
    """

    part: str
    method: Method
    preferences: int | Tensor
    epochs: int
    learning_rate: float = 1.0
    seeds: int = 20
    tasks: int = 2
    ratio: float = 1.0
    half: float = 0.5

    @property
    def name(self) -> str:
        count = self.preferences if isinstance(self.preferences, int) else len(self.preferences)
        kind = "" if isinstance(self.preferences, int) or self.preferences[0, 0] == 1.0 else " gathered"
        marks = [
            f"ratio {self.ratio:g}" if self.ratio != 1.0 else "",
            f"half {self.half:g}" if self.half != 0.5 else "",
        ]
        return " / ".join(filter(None, (self.part, self.method.name, f"{count}{kind}", *marks)))

    @property
    def settings(self) -> str:
        rows = self.preferences if isinstance(self.preferences, int) else numbers(self.preferences)
        fields = {
            "tasks": self.tasks,
            "ratio": self.ratio,
            "half": self.half,
            "method": describe(self.method),
            "preferences": rows,
            "steps": self.epochs,
            "optimizer": f"SGD, rate {self.learning_rate:g}",
        }
        return "; ".join(f"{name}={value}" for name, value in fields.items())

    @property
    def stages(self) -> tuple[str, ...]:
        released = isinstance(self.method, ParetoMTL) and self.method.release_steps > 0
        return ("final", "snapshot") if released else ("final",)

    def run(self, data: Path | None, seeds: Sequence[int]) -> list[Row]:
        """One row per seed, and one more if a snapshot was taken before a release. ``data`` is not used."""
        problem = synthetic(tasks=self.tasks, difficulties=[self.ratio] + [1.0] * (self.tasks - 1), half=self.half)
        fronts = fit_seeds_to_end(
            problem,
            self.method,
            self.preferences,
            epochs=self.epochs,
            seeds=seeds,
            optimizer=lambda parameters: torch.optim.SGD(parameters, lr=self.learning_rate),
            device="cpu",
            precision="float64",
        )
        stages = [(front.snapshot, "snapshot") for front in fronts if front.snapshot is not None]
        stages += [(front, "final") for front in fronts]
        assert problem.truth is not None
        distances = problem.truth.distance(torch.cat([front.losses["train"] for front, _ in stages]))
        reachable = _meets_front(problem.truth, fronts[0]) if self.method.reading == "direction" else None
        return [
            _row(self, front, stage, distance, reachable)
            for (front, stage), distance in zip(stages, distances.reshape(len(stages), -1), strict=True)
        ]


def cells(size: Size = "full") -> list[SyntheticCell]:
    """The whole study; or the study with fewer seeds, or with few seeds and steps."""
    until_feasible = ParetoMTL(initial_steps=200, return_share=None)
    released = ParetoMTL(initial_steps=200, release_steps=100, return_share=None)
    sets = [preferences.even(5, 2), preferences.even(8, 2), preferences.biased(5, [1.0, 2.0])]
    three = preferences.lattice_or_energy(15, 3)
    gathered = preferences.drawn_towards(three, preferences.even(1, 3)[0], 0.6)
    study = [
        SyntheticCell("convergence", RandomSearch(), 100, 300, learning_rate=0.5, seeds=1),
        SyntheticCell("convergence", MGDA(), 10, 300),
        SyntheticCell("convergence", until_feasible, 10, 300),
        SyntheticCell("paper schedule", ParetoMTL(initial_steps=20, return_share=None), 10, 100),
        SyntheticCell("no initial phase", ParetoMTL(initial_steps=0, return_share=None), 10, 300),
        SyntheticCell("release", released, 10, 400),
        SyntheticCell("plateau", until_feasible, 10, 300, seeds=100),
        SyntheticCell("plateau", until_feasible, 10, 300, seeds=100, half=0.3),
        *[SyntheticCell("preferences", until_feasible, vectors, 300) for vectors in sets],
        SyntheticCell("three objectives", until_feasible, three, 300, tasks=3),
        SyntheticCell("three objectives", until_feasible, gathered, 300, tasks=3),
        SyntheticCell("three objectives, released", released, three, 400, tasks=3),
        *[
            SyntheticCell("difficulty", method, 10, epochs, learning_rate=step / ratio, ratio=ratio)
            for ratio, epochs in ((1.0, 300), (2.0, 300), (10.0, 1000), (50.0, 1000))
            for method, step in ((RandomSearch(), 0.5), (MGDA(), 1.0), (until_feasible, 1.0))
        ],
        SyntheticCell("difficulty, scaled", replace(until_feasible, scale=(1 / 50, 1.0)), 10, 300, ratio=50.0),
    ]
    if size == "full":
        return study
    seeds, steps = (5, 1000) if size == "quick" else (2, 110)
    return [replace(cell, seeds=min(cell.seeds, seeds), epochs=min(cell.epochs, steps)) for cell in study]


def _row(cell: SyntheticCell, front: Front, stage: str, distance: Tensor, reachable: int | None) -> Row:
    losses = front.losses["train"]
    reference = [cell.ratio] + [1.0] * (cell.tasks - 1)
    return {
        "part": cell.part,
        "problem": front.problem,
        "tasks": cell.tasks,
        "ratio": cell.ratio,
        "half": cell.half,
        "method": front.method,
        "recipe": repr(cell.method),
        "learning_rate": cell.learning_rate,
        "preferences": len(front),
        "epochs": cell.epochs,
        "seed": front.seed,
        "stage": stage,
        "hypervolume": round(front.hypervolume(reference, "train"), 6),
        "reference": reference,
        "in_region": None if reachable is None else int(front.in_region("train").sum()),
        "reachable": reachable,
        "distance": float(f"{float(distance.max()):.3g}"),
        "near_front": int((distance <= 1e-3 * cell.ratio).sum()),
        "on_plateau": int(((losses / torch.tensor(reference)).min(-1).values > PLATEAU).sum()),
        "vectors": numbers(front.preferences),
        "losses": numbers(losses),
        "status": list(front.status),
        "seconds": round(front.seconds, 3),
    }


def _meets_front(truth: TrueFront, front: Front) -> int:
    """How many regions the true front passes through."""
    points = truth.front(5000) * (1.0 if front.scale is None else front.scale[0])
    return len(set((points @ front.preferences.T).argmax(-1).tolist()))


def claims(rows: Sequence[Row]) -> list[Claim]:
    """The paper's claims on this problem, judged only by the rows."""
    linear, mgda = _pick(rows, "convergence", "random-search"), _pick(rows, "convergence", "mgda")
    pareto, bare = _pick(rows, "convergence", "pareto-mtl"), _pick(rows, "no initial phase", "pareto-mtl")
    volumes = [_mean(part, "hypervolume") for part in (linear, mgda, pareto, bare)]
    ends = _losses(linear).min(-1).values
    middle = _losses(mgda)
    reached = [float(_losses(part)[:, [0, -1]].min(-1).values.mean()) for part in (bare, pareto)]
    ratios = (1.0, 2.0, 10.0, 50.0)
    stretched = [_mean(_pick(rows, "difficulty", "pareto-mtl", ratio=r), "hypervolume") / r for r in ratios]
    scaled = _mean(_pick(rows, "difficulty, scaled", "pareto-mtl"), "hypervolume") / 50.0
    leans = [_leans_to_first(_pick(rows, "difficulty", name, ratio=50.0)) for name in ("mgda", "pareto-mtl")]
    sets = _by_set(_pick(rows, "preferences", "pareto-mtl"))
    fine = all(volume > 0.9 * stretched[0] for volume in stretched[1:3])
    return [
        Claim(
            "section 5, figure 2a",
            "linear scalarization finds only the ends of the concave front",
            f"{int((ends < 0.05).sum())} of {ends.numel()} random weights end with a loss under 0.05",
            judge(bool((ends < 0.05).all())),
        ),
        Claim(
            "section 5, figure 2b",
            "MOO-MTL finds similar trade-offs in the middle",
            f"all losses of {len(mgda)} x 10 runs lie between {float(middle.min()):.2f} and {float(middle.max()):.2f}",
            judge(bool((middle.min() > 0.4) & (middle.max() < 0.85))),
        ),
        Claim(
            "section 5, figure 2c",
            "Pareto MTL covers the front",
            f"{_share(pareto)} in their own region; hypervolume {volumes[2]:.3f} of the front's {_front_volume(2):.3f} "
            f"(MOO-MTL {volumes[1]:.3f}, linear {volumes[0]:.3f})",
            judge(volumes[2] > 1.5 * max(volumes[:2])),
        ),
        Claim(
            "supplement 1, figure 6",
            "without the initial phase the ends are lost",
            f"best loss at the two ends: {reached[0]:.2f} without, {reached[1]:.2f} with; "
            f"{_share(bare)} in their own region without",
            judge(reached[0] > 5 * reached[1]),
        ),
        Claim(
            "supplement 1, figure 6",
            "without the initial phase it still beats MOO-MTL",
            f"hypervolume {volumes[3]:.3f} against {volumes[1]:.3f}",
            judge(volumes[3] > volumes[1]),
        ),
        Claim(
            "supplement 4, figure 11",
            "difficulty ratios 2 and 10 are fine, 50 is not",
            "hypervolume over the ratio: "
            + ", ".join(f"{volume:.3f} at {ratio:.0f}" for ratio, volume in zip(ratios, stretched, strict=True))
            + f"; with the losses scaled back {scaled:.3f} at 50",
            judge(fine and stretched[3] < 0.9 * stretched[0], stretched[3] < 0.9 * stretched[0]),
        ),
        Claim(
            "supplement 4",
            "at ratio 50 MOO-MTL leans to task 1, Pareto MTL to task 2",
            f"relatively better at task 1: {leans[0]:.0%} of MOO-MTL's solutions, {leans[1]:.0%} of Pareto MTL's",
            "the other way round" if leans[0] < 0.5 < leans[1] else judge(leans[1] < 0.5 < leans[0]),
        ),
        Claim(
            "supplement 5, figure 12",
            "solutions follow any set of preference vectors",
            "in their own region: " + ", ".join(f"{_share(part)} ({name})" for name, part in sets.items()),
            judge(all(row["in_region"] == row["preferences"] for part in sets.values() for row in part)),
        ),
    ]


def facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Other measurements, as pairs of a description and its numbers."""
    schedules = {"paper schedule": "100 steps, 20 of them initial", "convergence": "300 steps, at most 200 initial"}
    results = []
    for part, name in schedules.items():
        runs = _pick(rows, part, "pareto-mtl")
        results.append((f"Pareto MTL, {name}, {len(runs)} seeds", _coverage(runs)))
    on_rays, best = _ten_points()
    results.append(("ten points of the true front", f"hypervolume {on_rays:.4f} on the rays, {best:.4f} at best"))
    for half in (0.5, 0.3):
        runs = _pick(rows, "plateau", "pareto-mtl", half=half)
        count = sum(row["on_plateau"] for row in runs)
        figure = f"{count} of {_total(runs)} subproblems end on the plateau where both losses are near 1"
        results.append((f"starts in [-{half}, {half}]^20, {len(runs)} seeds", figure))
    for part in ("release", "three objectives, released"):
        before, after = ([r for r in rows if r["part"] == part and r["stage"] == s] for s in ("snapshot", "final"))
        stuck = [sum(row["on_plateau"] for row in stage) for stage in (before, after)]
        near = [_mean(stage, "near_front") for stage in (before, after)]
        volume = [_mean(stage, "hypervolume") for stage in (before, after)]
        results.append(
            (
                f"100 released steps at the end, {after[0]['tasks']} objectives",
                f"before and after: on the plateau {stuck[0]} and {stuck[1]} of {_total(after)}; at most 1e-3 from the "
                f"front {near[0]:.1f} and {near[1]:.1f} of {after[0]['preferences']}; "
                f"hypervolume {volume[0]:.3f} and {volume[1]:.3f}",
            )
        )
    whole = _front_volume(3)
    for name, runs in _by_set(_pick(rows, "three objectives", "pareto-mtl")).items():
        results.append(
            (
                f"three objectives, {name}, {len(runs)} seeds",
                f"the front meets {runs[0]['reachable']} of {runs[0]['preferences']} regions; "
                f"{_mean(runs, 'in_region'):.1f} solutions in their own region, "
                f"{_mean(runs, 'near_front'):.1f} at most 1e-3 from the front; "
                f"hypervolume {_mean(runs, 'hypervolume'):.3f} of the front's {whole:.3f}",
            )
        )
    return results


def _coverage(runs: Sequence[Row]) -> str:
    """How many solutions are in their own region, per seed and in all, how far from the front, and the hypervolume."""
    volumes = torch.tensor([row["hypervolume"] for row in runs])
    inside = [row["in_region"] for row in runs]
    distances = sorted(row["distance"] for row in runs)
    near = sum(distance <= 1e-3 for distance in distances)
    whole = sum(row["in_region"] == row["preferences"] and row["distance"] <= 1e-3 for row in runs)
    return (
        f"{min(inside)} to {max(inside)} of {runs[0]['preferences']} in their own region, {_share(runs)} in all; "
        f"farthest from the front at most {distances[near - 1] if near else distances[0]:.0e} in {near} seeds, "
        f"{distances[-1]:.2g} in the worst; both as wanted in {whole} seeds; "
        f"hypervolume {volumes.mean():.4f} ± {volumes.std():.4f} [{volumes.min():.4f}, {volumes.max():.4f}]"
    )


def _ten_points() -> tuple[float, float]:
    """Hypervolumes of ten points of the front for two objectives: those nearest to the even rays, and the best ten.

    Dynamic programming finds the best among 1,000 points: with the points sorted along the front, each adds a rectangle
    that depends only on its successor.
    """
    truth = synthetic().truth
    assert truth is not None
    front = truth.front(1000)
    front = front[front[:, 0].argsort()]
    nearest = (torch.nn.functional.normalize(front, dim=-1) @ preferences.even(10, 2).T).argmax(0)
    on_rays = hypervolume(front[nearest], [1.0, 1.0])
    width = front[None, :, 0] - front[:, None, 0]
    added = torch.where(width > 0, width * (1.0 - front[:, None, 1]), -torch.inf)
    best = torch.zeros(len(front), dtype=torch.float64)
    for _ in range(9):
        best = (best[:, None] + added).amax(0)
    last = (1.0 - front[:, 0]) * (1.0 - front[:, 1])
    return on_rays, float((best + last).max())


def _front_volume(tasks: int) -> float:
    """The hypervolume of the whole front of equal difficulties: a lower bound, from points on it."""
    truth = synthetic(tasks=tasks).truth
    assert truth is not None
    return hypervolume(truth.front(20_000), [1.0] * tasks)


def _pick(rows: Sequence[Row], part: str, method: str, **fields: float) -> list[Row]:
    """Final rows of one part and method."""
    results = [
        row
        for row in rows
        if row["part"] == part
        and row["method"] == method
        and row["stage"] == "final"
        and all(row[name] == value for name, value in fields.items())
    ]
    if not results:
        raise ValueError(f"'rows' must hold the part '{part}' of '{method}'. Got none.")
    return results


def _losses(rows: Sequence[Row]) -> Tensor:
    return torch.tensor([row["losses"] for row in rows], dtype=torch.float64)


def _mean(rows: Sequence[Row], field: str) -> float:
    return float(sum(row[field] for row in rows)) / len(rows)


def _share(rows: Sequence[Row]) -> str:
    return f"{sum(row['in_region'] for row in rows)} of {_total(rows)}"


def _total(rows: Sequence[Row]) -> int:
    return sum(row["preferences"] for row in rows)


def _leans_to_first(rows: Sequence[Row]) -> float:
    """The share of solutions that are better at the first task than at the second, relative to the largest losses."""
    losses = _losses(rows) / torch.tensor(rows[0]["reference"], dtype=torch.float64)
    return float((losses[..., 0] < losses[..., 1]).double().mean())


def _by_set(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows by their set of preference vectors: even sets start on an axis."""
    results: dict[str, list[Row]] = {}
    for row in rows:
        kind = "even" if row["vectors"][0][0] == 1.0 else "biased"
        results.setdefault(f"{row['preferences']} {kind}", []).append(row)
    return results


STUDY = Study(cells=cells, claims=claims, facts=facts, figures=FIGURES)
