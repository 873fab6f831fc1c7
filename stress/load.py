"""Load: 500 subproblems in one run, whole and in shards; and 10,000 steps without growth of memory.

    python stress/load.py                 # writes stress/results/load.json
    python stress/load.py --only soak --out FOLDER

Each row is measured in a separate process, and stored at once. The soak trains three models for 10,000 steps with
evaluation, reports and checkpoints, and samples its resident memory at every epoch. After the first fifth, the samples
are averaged in 20 blocks; a straight line through these has a slope with a 95 % interval (t with 18 degrees of
freedom), which is given as growth over 10,000 steps. It fails if growth is proven, that is if the lower end is above
1 MiB.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import paretomtl as pm
from paretomtl.compare import Row, environment, load_rows, save_rows
from paretomtl.training import Report, SerialExecutor

MANY, STEPS, BLOCKS = 500, 10_000, 20
STUDENT = 2.101  # t with 18 degrees of freedom, 97.5 %
MIB = 2**20


def losses(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs - targets).square().mean(0)


def problem(samples: int) -> pm.Problem:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(samples, 8, generator=g)
    y = torch.stack([x.sum(-1).tanh(), x.prod(-1).tanh()], -1)
    half = samples // 2

    def model() -> nn.Module:
        return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2))

    return pm.Problem(model, losses, ["sum", "product"], train=(x[:half], y[:half]), val=(x[half:], y[half:]))


def many(way: str) -> Row:
    """500 subproblems, each a small network: as one, or in shards."""
    executors: dict[str, Any] = {
        "one": lambda: None,
        "shards of 50 here": lambda: SerialExecutor(50),
        "shards on Ray": pm.RayExecutor,
    }
    with tempfile.TemporaryDirectory() as place:
        began = time.monotonic()
        front = pm.fit(
            problem(1024), preferences=MANY, epochs=10, batch_size=128, device="cpu", progress="quiet",
            executor=executors[way](), out=Path(place) / "run",
        )  # fmt: skip
        seconds = time.monotonic() - began
        stored = sum(path.stat().st_size for path in Path(place).rglob("*") if path.is_file())
        again = pm.Front.load(Path(place) / "run")
    assert front.complete
    assert len(front) == len(again) == MANY
    return {
        "what": "500 subproblems",
        "way": way,
        "preferences": MANY,
        "steps": 40,
        "strategy": front.strategy,
        "finite": bool(front.losses["train"].isfinite().all()),
        "in_region": front.region_hits("train"),
        "nondominated": int(front.nondominated("train").sum()),
        "stored_mib": round(stored / MIB, 1),
        "seconds": round(seconds, 2),
    }


def soak(way: str) -> Row:
    """Many steps, with everything that a run does on the way; memory is sampled at the end of every epoch."""
    sizes: list[float] = []
    page = resource.getpagesize()

    def sample(report: Report) -> None:
        sizes.append(int(Path("/proc/self/statm").read_text().split()[1]) * page / MIB)

    with tempfile.TemporaryDirectory() as place:
        began = time.monotonic()
        front = pm.fit(
            problem(640), preferences=3, epochs=STEPS // 10, batch_size=32, device="cpu", progress="quiet",
            strategy=way, out=place, checkpoint_seconds=1.0, callbacks=[sample],
        )  # fmt: skip
        seconds = time.monotonic() - began
    assert front.complete
    kept = sizes[len(sizes) // 5 :]
    length = len(kept) // BLOCKS
    means = [statistics.fmean(kept[i * length : (i + 1) * length]) for i in range(BLOCKS)]
    places = [(i + 0.5) * length * 10 for i in range(BLOCKS)]
    growth, error = line(places, means)
    return {
        "what": "soak",
        "way": way,
        "preferences": 3,
        "steps": STEPS,
        "samples": len(sizes),
        "first_mib": round(means[0], 2),
        "last_mib": round(means[-1], 2),
        "growth_mib": round(growth, 3),
        "growth_low_mib": round(growth - STUDENT * error, 3),
        "growth_high_mib": round(growth + STUDENT * error, 3),
        "grows": growth - STUDENT * error > 1.0,
        "seconds": round(seconds, 2),
    }


def line(x: list[float], y: list[float]) -> tuple[float, float]:
    """The slope of least squares and its standard error, both over all steps of the soak."""
    mean_x, mean_y = statistics.fmean(x), statistics.fmean(y)
    spread = sum((a - mean_x) ** 2 for a in x)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread
    rest = [b - mean_y - slope * (a - mean_x) for a, b in zip(x, y, strict=True)]
    error = math.sqrt(sum(r * r for r in rest) / (len(x) - 2) / spread)
    return STEPS * slope, STEPS * error


def in_a_process(what: str, way: str) -> Row:
    """A row, with the peak memory of the process that made it, without that of Ray workers."""
    command = [sys.executable, __file__, "--row", what, way]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[-1]
    return dict(json.loads(printed))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--only", choices=("many", "soak"))
    parser.add_argument("--row", nargs=2, metavar=("WHAT", "WAY"), help="measure one row, and print it")
    asked = parser.parse_args()
    if asked.row is not None:
        what, way = asked.row
        row = many(way) if what == "many" else soak(way)
        print(json.dumps({**row, "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)}))
        return
    ways = [("many", way) for way in ("one", "shards of 50 here", "shards on Ray")]
    ways += [("soak", way) for way in ("batched", "sequential")]
    if importlib.util.find_spec("ray") is None:
        ways.remove(("many", "shards on Ray"))
    path = asked.out / "load.json"
    rows = load_rows(path) if path.exists() else []
    for what, way in ways:
        if asked.only in (None, what):
            row = {**in_a_process(what, way), "load": round(os.getloadavg()[0], 2), **environment()}
            print(row, flush=True)
            rows = [old for old in rows if (old["what"], old["way"]) != (row["what"], row["way"])] + [row]
            save_rows(path, "load", "python stress/load.py", rows)
    sys.exit(1 if any(row.get("grows") for row in rows) else 0)


if __name__ == "__main__":
    main()
