"""Do the models of Pareto MTL stay in their regions? The paper's form, returns to the initial phase, and variants.

    python benchmarks/regions.py                    # writes benchmarks/results/regions.json; about half an hour
    python benchmarks/regions.py --parts synthetic  # only this part; the stored rows of the others are kept
    python benchmarks/regions.py --out FOLDER

- `synthetic`: the paper's synthetic problem, ten even vectors, 1,000 steps, 20 seeds, five optimizers.
- `noisy`: the same with centres that differ from sample to sample (standard deviation 0.05 in each coordinate), batches
  of 8 of 512 samples, 1,024 steps.
- `digits`: the problem multi-digits with its recipe, five seeds; for even vectors, of which some cannot be reached, and
  for the directions of the losses that interior linear weights reached.

`in_region` is the share of models whose losses on the whole training split are in their regions. `returned` is the
largest number of steps that a model spent on returns. Hypervolumes are at (1, 1), for digits at (2, 2).
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import paretomtl as pm
from paretomtl.compare import Row, environment
from paretomtl.compare.row_store import update_rows
from paretomtl.core import Phase, constraint_values, in_region
from paretomtl.core._regions import slack
from paretomtl.methods import State
from paretomtl.methods.inputs import SafeStep
from paretomtl.problems._synthetic import simplex_centres
from paretomtl.training.fit_to_end import fit_seeds_to_end

DIMENSION, SAMPLES, BATCH, DEVIATION = 20, 512, 8, 0.05
MEAN = "mean of the losses"


@dataclass(frozen=True)
class Watched(pm.ParetoMTL):
    """Pareto MTL that reports the steps that each model spent on returns."""

    def measured(self, state: State) -> dict[str, Tensor]:
        return {"returned": state["returned"].clamp_min(0)} if "returned" in state else {}


@dataclass(frozen=True)
class Hesitant(Watched):
    """A model returns only if a constraint is violated by more than a share of its slack, or by a running mean."""

    beyond: float = 0.0
    decay: float = 0.0

    def init(self, preferences: Tensor) -> State:
        state = super().init(preferences)
        return {**state, MEAN: torch.zeros_like(state["losses"])} if self.decay else state

    def _weigh(self, step: SafeStep, state: State) -> tuple[Tensor, State]:
        if self.decay:
            known = state[MEAN].any(-1, keepdim=True)
            mean = self.decay * state[MEAN] + (1 - self.decay) * step.losses
            state = {**state, MEAN: torch.where(known, mean, step.losses)}
        return super()._weigh(step, state)

    def _returning(self, step: SafeStep, state: State, losses: Tensor) -> Tensor | None:
        allowed = super()._returning(step, state, losses)
        rows = state["rows"]
        values = constraint_values(rows, state.get(MEAN, losses))
        far = (values > self.beyond * slack(rows)).any(-1) | (state["phase"] == Phase.INITIAL.value)
        return None if allowed is None else allowed & far


WAYS: dict[str, Callable[..., pm.ParetoMTL]] = {
    "paper": lambda **options: Watched(return_share=None, **options),
    "share 0.05": lambda **options: Watched(return_share=0.05, **options),
    "share 0.2": lambda **options: Watched(return_share=0.2, **options),
    "no limit": lambda **options: Watched(return_share=1.0, **options),
    "beyond 0.1 of the slack": lambda **options: Hesitant(return_share=0.2, beyond=0.1, **options),
    "beyond 0.3 of the slack": lambda **options: Hesitant(return_share=0.2, beyond=0.3, **options),
    "running mean 0.9": lambda **options: Hesitant(return_share=0.2, decay=0.9, **options),
}
COMPARED = "Adam 0.02"  # the optimizer with which all ways are compared
OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "SGD 1.0": lambda parameters: torch.optim.SGD(parameters, lr=1.0),
    "SGD 0.1, momentum 0.9": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "Adam 0.02": lambda parameters: torch.optim.Adam(parameters, lr=0.02),
    "Adam 0.005": lambda parameters: torch.optim.Adam(parameters, lr=0.005),
    "Adam 0.001": lambda parameters: torch.optim.Adam(parameters, lr=0.001),
}


class Constant(nn.Module):
    """A point in parameter space, whatever the batch is."""

    def __init__(self) -> None:
        super().__init__()
        self.point = nn.Parameter(torch.empty(DIMENSION).uniform_(-0.5, 0.5))

    def forward(self, batch: Tensor) -> Tensor:
        return self.point.expand(len(batch), -1)


def noisy_synthetic() -> pm.Problem:
    g = torch.Generator().manual_seed(0)
    noise = DEVIATION * torch.randn(SAMPLES, 2, DIMENSION, generator=g, dtype=torch.float64)
    centres = simplex_centres(DIMENSION, 2) + noise - noise.mean(0)

    def losses(points: Tensor, targets: Tensor) -> Tensor:
        return -torch.expm1(-(points[:, None] - targets).square().sum(-1)).mean(0)

    inputs = torch.zeros(SAMPLES, 1, dtype=torch.float64)
    return pm.Problem(Constant, losses, train=(inputs, centres), tasks=("f1", "f2"), name="synthetic-noisy")


def synthetic(seeds: int) -> Iterator[list[Row]]:
    for optimizer, make in OPTIMIZERS.items():
        for way in WAYS if optimizer == COMPARED else ("paper", "share 0.05", "share 0.2"):
            options: Any = {"epochs": 1000, "optimizer": make, "precision": "float64"}
            fronts = fit(pm.problems.synthetic(), WAYS[way](), pm.preferences.even(10, 2), seeds, options)
            yield rows_of("synthetic", way, fronts, optimizer=optimizer)


def noisy(seeds: int) -> Iterator[list[Row]]:
    for optimizer, make in OPTIMIZERS.items():
        for way in WAYS if optimizer == COMPARED else ("paper", "share 0.05", "share 0.2"):
            options: Any = {"epochs": 16, "batch_size": BATCH, "optimizer": make, "precision": "float64"}
            fronts = fit(noisy_synthetic(), WAYS[way](), pm.preferences.even(10, 2), seeds, options)
            yield rows_of("noisy", way, fronts, optimizer=optimizer)


def digits(seeds: int) -> Iterator[list[Row]]:
    problem = pm.problems.multi_digits()
    first = torch.linspace(0.1, 0.9, 5, dtype=torch.float64)
    probe = fit(problem, pm.Linear(), torch.stack([first, 1 - first], -1), 1, {})[0].losses["train"].double()
    vectors = {"even": pm.preferences.even(5, 2), "reached": probe / probe.norm(dim=-1, keepdim=True)}
    for name, rows in vectors.items():
        for way in ("share 0.05", "paper", "share 0.2", "no limit"):
            fronts = fit(problem, WAYS[way](rescale=True), rows, seeds, {})
            yield rows_of("digits", way, fronts, vectors=name, optimizer="AdamW 0.003")


PARTS: dict[str, tuple[Callable[[int], Iterator[list[Row]]], int]] = {
    "synthetic": (synthetic, 20),
    "noisy": (noisy, 20),
    "digits": (digits, 5),
}


def fit(problem: pm.Problem, method: Any, vectors: Tensor, seeds: int, options: dict[str, Any]) -> list[pm.Front]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of models outside their regions, which are counted here
        always: Any = {"seeds": range(seeds), "strategy": "batched", "device": "cpu", "progress": "quiet"}
        return fit_seeds_to_end(problem, method, vectors, **always, **options)


def rows_of(part: str, way: str, fronts: list[pm.Front], **more: str) -> list[Row]:
    rows: list[Row] = []
    reference = [2.0, 2.0] if part == "digits" else [1.0, 1.0]
    for seed, front in enumerate(fronts):
        returned = front.measured.get("returned")
        inside = in_region(front.preferences.double(), front.losses["train"].double())
        row = {
            "part": part,
            **more,
            "way": way,
            "seed": seed,
            "in_region": round(float(inside.double().mean()), 4),
            "returned": 0 if returned is None else int(returned.max()),
            "reference": reference,
            **{f"{split}_hypervolume": round(front.hypervolume(reference, split=split), 5) for split in front.losses},
            "preferences": front.preferences.tolist(),
            "train_losses": [[round(loss, 6) for loss in row] for row in front.losses["train"].tolist()],
            **environment(),
        }
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    for part in asked.parts:
        measure, seeds = PARTS[part]
        for rows in measure(seeds):
            report(rows)
            store(rows, asked.out / "regions.json")


def store(rows: list[Row], path: Path) -> None:
    """Replace the stored rows of one setting."""

    def setting(row: Row) -> tuple[str, ...]:
        return tuple(row.get(name, "") for name in ("part", "vectors", "optimizer", "way"))

    def change(stored: list[Row]) -> list[Row]:
        kept = [row for row in stored if setting(row) != setting(rows[0])] + rows
        return sorted(kept, key=lambda row: list(PARTS).index(row["part"]))

    update_rows(path, "regions", "python benchmarks/regions.py", change)


def report(rows: list[Row]) -> None:
    means = {
        name: round(sum(row[name] for row in rows) / len(rows), 4)
        for name in rows[0]
        if name == "in_region" or name.endswith("hypervolume")
    }
    what = [rows[0][name] for name in ("part", "vectors", "optimizer", "way") if name in rows[0]]
    print(*what, means, "returned", max(row["returned"] for row in rows), flush=True)


if __name__ == "__main__":
    main()
