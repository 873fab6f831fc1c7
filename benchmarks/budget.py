"""Time budgets: does `fit(minutes=...)` end when it should?

    python benchmarks/budget.py                       # writes benchmarks/results/budget.json; 45 minutes
    python benchmarks/budget.py --minutes 1           # 1, 3 and 10 minutes by default
    python benchmarks/budget.py --minutes 1 --device cuda

The wall time of a whole call, with its trial, its set-up and its last evaluation, over the time that was asked for. The
number of models and of epochs is left to the budget. Rows of the same problem, time and device are replaced. The
machine should be idle: other work makes a run slower than its trial, and it then ends before its last epoch.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import paretomtl as pm
from paretomtl.compare import Row, environment, load_rows, save_rows

PROBLEMS = {
    "synthetic": pm.problems.synthetic,
    "quadratic": pm.problems.quadratic,
    "multi-digits": pm.problems.multi_digits,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--minutes", type=float, action="append")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    path = options.out / "budget.json"
    rows = load_rows(path) if path.exists() else []
    for minutes in options.minutes or [1.0, 3.0, 10.0]:
        for name in PROBLEMS:
            key = {"problem": name, "minutes": minutes, "device": options.device}
            rows = [row for row in rows if not key.items() <= row.items()]
            rows.append({**key, **measure(name, minutes, options.device), **environment()})
            save_rows(path, "budget", "python benchmarks/budget.py", rows)


def measure(name: str, minutes: float, device: str) -> Row:
    """One run."""
    began = time.perf_counter()
    front = pm.fit(PROBLEMS[name](), minutes=minutes, device=device, progress="quiet")
    seconds = time.perf_counter() - began
    row = {
        "seconds": round(seconds, 2),
        "share": round(seconds / (60.0 * minutes), 4),
        "models": len(front),
        "epochs": len(front.history["losses"]),
        "ended": front.ended,
        "plan": front.decisions[0],
        "threads": torch.get_num_threads(),
    }
    print(name, minutes, row, flush=True)
    return row


if __name__ == "__main__":
    main()
