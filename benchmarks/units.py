"""Losses in different units: Pareto MTL with unscaled losses, with scale="auto", and scaled by hand.

    python benchmarks/units.py      # writes benchmarks/results/units.json

Two regressions of random targets share one hidden unit, so they conflict. The second loss is multiplied by 4,000. Five
preferences, five seeds, 300 epochs of Adam. Losses are measured in common units, so that hypervolumes are comparable.

- `by hand`: the same problem without the factor, which scaling should match.
- `in_region`: solutions in their own region, of five; `hypervolume`: against 1 in both, about the loss of a constant
  prediction.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import paretomtl as pm
from paretomtl.compare import Row, environment, save_rows
from paretomtl.training import fit_seeds

UNIT, SEEDS, EPOCHS, MODELS, REFERENCE = 4_000.0, 5, 300, 5, (1.0, 1.0)
WAYS: dict[str, tuple[float, pm.ParetoMTL]] = {
    "as they are": (UNIT, pm.ParetoMTL()),
    "auto": (UNIT, pm.ParetoMTL(scale="auto")),
    "by hand": (1.0, pm.ParetoMTL()),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    out = parser.parse_args().out / "units.json"
    rows = [row for way in WAYS for row in measure(way)]
    for row in rows:
        print({name: row[name] for name in ("way", "seed", "in_region", "hypervolume", "spread")})
    save_rows(out, "units", "python benchmarks/units.py", rows)


def two_regressions(unit: float) -> pm.Problem:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(256, 8, generator=g)
    y = torch.tanh(x @ torch.randn(8, 2, generator=g)) + 0.1 * torch.randn(256, 2, generator=g)

    def losses(outputs: Tensor, targets: Tensor) -> Tensor:
        errors = (outputs - targets).square().mean(0)
        return torch.stack([errors[0], unit * errors[1]])

    def model() -> nn.Module:
        return nn.Sequential(nn.Linear(8, 1), nn.Tanh(), nn.Linear(1, 2))

    return pm.Problem(model, losses, train=(x, y), tasks=("a", "b"), name="two-regressions")


def measure(way: str) -> list[Row]:
    """One row per seed."""
    unit, method = WAYS[way]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "first losses differ")
        fronts = fit_seeds(
            two_regressions(unit),
            method,
            MODELS,
            seeds=range(SEEDS),
            epochs=EPOCHS,
            batch_size=64,
            optimizer=lambda parameters: torch.optim.Adam(parameters, lr=0.01),
            device="cpu",
        )
    found = []
    for front in fronts:
        losses = front.losses["train"].double() / torch.tensor([1.0, unit])
        same = dataclasses.replace(front, losses={"train": losses}, scale=None)
        measured = {
            "in_region": same.region_hits(),
            "hypervolume": round(same.hypervolume(REFERENCE), 5),
            "spread": round(same.spread(), 5),
            "nondominated": int(same.nondominated().sum()),
            "losses": [[round(value, 5) for value in row] for row in losses.tolist()],
        }
        found.append({"way": way, "seed": front.seed, **measured, **environment()})
    return found


if __name__ == "__main__":
    main()
