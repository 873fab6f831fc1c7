"""What the middle and inner vectors of an even set gain for three tasks and more, and what they cost in distance.

    python benchmarks/layouts.py      # writes benchmarks/results/layouts.json

The synthetic problem, 400 steps of gradient descent, the constraints dropped for the last 100 of them; three seeds.
`layout` is `preferences.even`, or `preferences.lattice_or_energy`, which may lack a middle.

- `least_angle`: the smallest angle between two vectors, in degrees; `positive`: the number of vectors without a zero.
- `regions_met`: the regions that the true front meets; `in_region`: solutions in their own region before the release;
  `igd_plus`: IGD+ after it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import paretomtl as pm
from paretomtl.compare import Row, environment, save_rows
from paretomtl.preferences import even, lattice_or_energy, usual_count
from paretomtl.training import fit_seeds

TASKS, SEEDS, STEPS, POINTS = (3, 4, 5, 6), 3, 400, 5_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    out = parser.parse_args().out / "layouts.json"
    rows = [row for tasks in TASKS for layout in (even, lattice_or_energy) for row in measure(layout, tasks)]
    for row in rows:
        print({name: row[name] for name in ("tasks", "layout", "seed", "least_angle", "positive", "igd_plus")})
    save_rows(out, "layouts", "python benchmarks/layouts.py", rows)


def measure(layout, tasks: int) -> list[Row]:  # type: ignore[no-untyped-def]
    """One row per seed."""
    problem, vectors = pm.problems.synthetic(tasks=tasks), layout(usual_count(tasks), tasks)
    assert problem.truth is not None
    points = problem.truth.front(POINTS)
    fronts = fit_seeds(
        problem,
        pm.ParetoMTL(initial_steps=STEPS // 2, release_steps=STEPS // 4),
        vectors,
        seeds=range(SEEDS),
        epochs=STEPS,
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=1.0),
        device="cpu",
        precision="float64",
    )
    angles = (vectors @ vectors.T).fill_diagonal_(-1.0).clamp(-1.0, 1.0).acos().rad2deg()
    about = {
        "tasks": tasks,
        "layout": layout.__name__,
        "preferences": len(vectors),
        "least_angle": round(float(angles.min()), 2),
        "positive": int((vectors > 1e-6).all(-1).sum()),
        "regions_met": len(set((points @ vectors.T).argmax(-1).tolist())),
    }
    found = []
    for front in fronts:
        assert front.snapshot is not None
        measured = {"in_region": front.snapshot.region_hits(), "igd_plus": round(front.igd_plus(points), 5)}
        found.append({**about, "seed": front.seed, **measured, **environment()})
    return found


if __name__ == "__main__":
    main()
