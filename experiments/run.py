"""Run the studies of the paper with only torch and numpy installed, such as on a borrowed GPU.

    python experiments/run.py images-lenet ablation-init --out FOLDER --seconds 500
    python experiments/run.py images-lenet --only multi-mnist --data FOLDER

Rows that the folder has are kept; rows are stored after each cell. `paretomtl reproduce NAME --draw --out FOLDER`
prints the claims and draws the figures.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from paretomtl.paper import STUDIES
from paretomtl.paper.runner import run_study


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=list(STUDIES), metavar="NAME")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--size", choices=("full", "quick", "smoke"), default="full")
    parser.add_argument("--seeds", type=int, help="seeds of every cell, in place of the study's own number")
    parser.add_argument(
        "--seconds", type=float, help="start no cell that would end later than this, for all studies together"
    )
    parser.add_argument("--only", help="train only cells whose name contains this")
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--other-processes", type=int, default=0, help="how many other processes train on the same GPU")
    arguments = parser.parse_args()
    began = time.monotonic()
    for name in arguments.names:
        left = None if arguments.seconds is None else max(0.0, arguments.seconds - (time.monotonic() - began))
        stored = run_study(
            name,
            STUDIES[name],
            arguments.out,
            size=arguments.size,
            seeds=arguments.seeds,
            seconds=left,
            only=arguments.only,
            data=arguments.data,
            other_processes=arguments.other_processes,
            command=f"python experiments/run.py {name}",
            log=lambda text: print(f"{time.monotonic() - began:6.0f} s  {text}", flush=True),
        )
        print(f"{name}: {len(stored.rows)} rows; missing {len(stored.missing)} cells: {', '.join(stored.missing)}")


if __name__ == "__main__":
    main()
