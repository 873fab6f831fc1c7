"""Models in the gaps of a front: what they are worth, against the same cost spent otherwise.

    python benchmarks/gaps.py                    # writes benchmarks/results/gaps.json; a quarter of an hour on one core
    python benchmarks/gaps.py --only synthetic   # one part alone: digits or synthetic

- digits: multi-digits with its recipe of 30 epochs, ten seeds; `hypervolume` on validation and `test`, at (2, 2). All
  begin with three interior weights, except "interior, 5 models". Two models are added: in the gaps of validation
  (`Front.gaps`), or at the interior weights half way. They are fresh, or begin with the nearer neighbour. `cost` counts
  epochs of one model: it is 150 for all, except where it is less on purpose. "3 models, 50 epochs" spends it on length.
- synthetic: the paper's concave problem, 1,000 steps of Adam (of SGD for Pareto MTL) with a cosine decay, ten seeds.
  Five models and three in their gaps, against eight models at once; `hypervolume` is at (1, 1), `possible` that of the
  true front, and `cost` counts steps of one model.

Seeds differ in their initial weights, and on multi-digits in the order of the data. Rows with `difference` are paired
by seed: the mean over seeds of the hypervolume less that of `against`, with half the width of its 95 % interval
(Student's t).
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import paretomtl as pm
from paretomtl._support.significance import half_width, mean
from paretomtl.compare import Row, environment, load_rows, save_rows
from paretomtl.front.indicators import hypervolume
from paretomtl.methods import Method
from paretomtl.training.fit_to_end import fit_seeds_to_end

SEEDS = range(10)
EPOCHS, STEPS = 30, 1000
PAIRS = {
    "digits": [
        ("gaps, warm", "interior, 5 models"),
        ("gaps, warm", "interior, 3 models, 50 epochs"),
        ("gaps, warm", "half way, warm"),
        ("gaps, warm", "gaps, fresh"),
        ("gaps, warm, half", "gaps, fresh"),
        ("gaps, warm, half", "interior, 5 models"),
        ("gaps, warm, quarter", "gaps, fresh"),
        ("gaps, fresh", "interior, 5 models"),
        ("gaps, fresh", "half way, fresh"),
    ],
    "synthetic": [
        (f"{method}, {one}", f"{method}, {other}")
        for method in ("auto", "pareto-mtl", "linear")
        for one, other in (
            ("gaps, warm", "8 models"),
            ("gaps, warm", "5 models"),
            ("gaps, warm", "gaps, fresh"),
            ("gaps, warm, half", "gaps, fresh"),
        )
    ],
}
QUIET: dict[str, Any] = {"device": "cpu", "progress": "quiet", "strategy": "batched"}


def main() -> None:
    parts: dict[str, Callable[[], list[Row]]] = {"digits": digits, "synthetic": synthetic}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--only", choices=parts, action="append")
    options = parser.parse_args()
    out = options.out / "gaps.json"
    torch.set_num_threads(1)
    rows = [row for row in load_rows(out) if "seed" in row] if out.exists() else []
    for part in options.only or parts:
        rows = [row for row in rows if row["part"] != part]
        rows += [{"part": part, **row, **environment()} for row in parts[part]()]
        compared = [{"part": name, **row, **environment()} for name in parts for row in differences(rows, name)]
        save_rows(out, "gaps", "python benchmarks/gaps.py", [*rows, *compared])


def digits() -> list[Row]:
    """A network on real data, by linear scalarization."""
    problem = pm.problems.multi_digits()
    rows: list[Row] = []

    def add(name: str, cost: int, front: pm.Front) -> None:
        volumes = {
            column: round(front.hypervolume([2.0, 2.0], split=split), 5)
            for column, split in (("hypervolume", "val"), ("test", "test"))
        }
        rows.append({"front": name, "seed": front.seed, "models": len(front), "cost": cost, **volumes})

    between = pm.preferences.interior(5, tasks=2)[[1, 3]]
    for seed in SEEDS:  # not as one stack, in which all seeds have the first one's order of the data
        add("interior, 5 models", 5 * EPOCHS, fit_to_end(problem, "linear", preferences=5, seed=seed, **QUIET))
        longer = fit_to_end(problem, "linear", preferences=3, seed=seed, epochs=50, **QUIET)
        add("interior, 3 models, 50 epochs", 150, longer)
        front = fit_to_end(problem, "linear", preferences=3, seed=seed, **QUIET)
        add("interior, 3 models", 3 * EPOCHS, front)
        gaps = front.gaps(2)
        half_way = {"preferences": torch.cat([front.preferences, between]), "only": [3, 4]}
        fill = {"preferences": gaps.preferences, "only": gaps.subproblems}
        for name, plan, epochs in (
            ("gaps, fresh", fill, EPOCHS),
            ("gaps, warm", {**fill, "start": gaps.start}, EPOCHS),
            ("gaps, warm, half", {**fill, "start": gaps.start}, EPOCHS // 2),
            ("gaps, warm, quarter", {**fill, "start": gaps.start}, EPOCHS // 4),
            ("half way, fresh", half_way, EPOCHS),
            ("half way, warm", {**half_way, "start": front}, EPOCHS),
        ):
            new = fit_to_end(problem, "linear", **plan, seed=seed, epochs=epochs, **QUIET)
            add(name, 3 * EPOCHS + len(new) * epochs, front.joined(new))
    report(rows)
    return rows


def synthetic() -> list[Row]:
    """A concave front: rows of auto (the p-norm), Pareto MTL and linear scalarization."""
    problem = pm.problems.synthetic()
    assert problem.truth is not None
    possible = round(hypervolume(problem.truth.front(5_000), [1.0, 1.0]), 5)
    rows: list[Row] = []

    def add(name: str, cost: int, front: pm.Front) -> None:
        volume = round(front.hypervolume([1.0, 1.0]), 5)
        known = {"hypervolume": volume, "possible": possible}
        rows.append({"front": name, "seed": front.seed, "models": len(front), "cost": cost, **known})

    adam: dict[str, Any] = {"optimizer": lambda parameters: torch.optim.Adam(parameters, lr=0.02)}
    sgd: dict[str, Any] = {"optimizer": lambda parameters: torch.optim.SGD(parameters, lr=0.2)}
    for method, own in (("auto", adam), ("pareto-mtl", sgd), ("linear", adam)):
        steps = {"scheduler": decay, "schedule": "step", **own, **QUIET}
        for front in fit_seeds_to_end(problem, method, 8, seeds=SEEDS, epochs=STEPS, **steps):
            add(f"{method}, 8 models", 8 * STEPS, front)
        for front in fit_seeds_to_end(problem, method, 5, seeds=SEEDS, epochs=STEPS, **steps):
            add(f"{method}, 5 models", 5 * STEPS, front)
            gaps = front.gaps(3)
            further: str | Method = method
            if front.decisions:
                further = pm.Auto().for_refining(front.reading, front.measured, front.scale, 0, gaps.importances)
            fill = {"preferences": gaps.preferences, "only": gaps.subproblems}
            for name, start, count in (("fresh", None, STEPS), ("warm", gaps.start, STEPS), ("half", gaps.start, 500)):
                assert front.seed is not None
                new = fit_to_end(problem, further, **fill, start=start, seed=front.seed, epochs=count, **steps)
                cost = 5 * STEPS + len(new) * count
                add(f"{method}, gaps, {'warm, half' if name == 'half' else name}", cost, front.joined(new))
    report(rows)
    return rows


def decay(optimizer: torch.optim.Optimizer, total: int) -> torch.optim.lr_scheduler.LRScheduler:
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, total)


def fit_to_end(problem: pm.Problem, method: str | Method, **options: Any) -> pm.Front:
    """A front that was trained to its end: half-trained models are no result."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "training was stopped")
        front = pm.fit(problem, method, **options)
    if not front.complete:
        raise KeyboardInterrupt
    return front


def differences(rows: Sequence[Row], part: str) -> list[Row]:
    """One row per pair of fronts and split, paired by seed."""
    found = []
    own = [row for row in rows if row["part"] == part]
    for pair in PAIRS[part]:
        for column in ("hypervolume", "test"):
            one, two = (
                {row["seed"]: row[column] for row in own if row["front"] == each and column in row} for each in pair
            )
            gains = [one[seed] - two[seed] for seed in one]
            if not gains:
                continue
            split = "test" if column == "test" else {"digits": "val", "synthetic": "train"}[part]
            row = {"front": pair[0], "against": pair[1], "split": split, "seeds": len(gains)}
            row |= {"difference": round(mean(gains), 5), "half_width": round(half_width(gains), 5)}
            print(row, flush=True)
            found.append(row)
    return found


def report(rows: Sequence[Row]) -> None:
    for name in dict.fromkeys(row["front"] for row in rows):
        own = [row for row in rows if row["front"] == name]
        columns = [column for column in ("hypervolume", "test") if column in own[0]]
        volumes = {column: round(mean([row[column] for row in own]), 4) for column in columns}
        print(name, f"cost {mean([row['cost'] for row in own]):.0f}", volumes, flush=True)


if __name__ == "__main__":
    main()
