"""Train the same fronts in several checkouts on this machine, and compare them bit by bit.

    python tools/same_bits.py --tree ../other --tree .

There are two problems, three methods and both strategies. Each checkout trains in its own process. A checksum covers
the losses on every split, the history and all weights. The exit code is 1 if any differ.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

TRAIN = """
import hashlib, json, sys
import torch, paretomtl as pm

torch.set_num_threads(1)


def checksum(front):
    tensors = {f"{split} losses": losses for split, losses in front.losses.items()}
    tensors |= {f"history {name}": values for name, values in front.history.items()}
    tensors |= {f"{k} {name}": t for k in front.subproblems for name, t in front.state_dict(k).items()}
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode() + tensors[name].detach().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


sums = {}
for problem, epochs in {"synthetic": 200, "multi-digits": 2}.items():
    for method in ("pareto-mtl", "linear", "mgda"):
        rows = [[1 - k / 4, k / 4] for k in range(5)] if method == "linear" else 5  # layouts of weights have changed
        for strategy in ("sequential", "batched"):
            front = pm.fit(pm.problems.PROBLEMS[problem](), method, rows, epochs=epochs, strategy=strategy, seed=3,
                           workers=1, device="cpu", progress="quiet")
            sums[f"{problem} {method} {strategy}"] = checksum(front)
print(json.dumps(sums))
"""


def checksums(tree: Path) -> dict[str, str]:
    """The checksum of each front that a checkout trains."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", TRAIN], capture_output=True, text=True, env=environment, check=False
    )
    if done.returncode:
        sys.exit(f"Training failed in {tree}:\n{done.stderr}")
    sums: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return sums


def main() -> None:
    """The command line of this script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, action="append", required=True, help="A checkout; two or more.")
    trees = [tree.resolve() for tree in parser.parse_args().tree]
    if len(trees) < 2:
        parser.error(f"--tree must be given at least twice. Got {len(trees)}.")
    results = [checksums(tree) for tree in trees]
    differ = 0
    for name in results[0]:
        same = len({result.get(name) for result in results}) == 1
        differ += not same
        print(f"{name:<36}{'same' if same else 'DIFFERENT'}  {'  '.join(result.get(name, '-') for result in results)}")
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
