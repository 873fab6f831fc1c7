"""Run the studies of the paper where only torch and numpy are installed, such as on a borrowed GPU.

    python experiments/run.py images-lenet ablation-init --out FOLDER --seconds 500
    python experiments/run.py images-lenet --only multi-mnist --data FOLDER

What is stored in the folder already is kept; rows are stored after each cell. Claims, tables and figures are up to
`paretomtl reproduce NAME --draw --out FOLDER`.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from paretomtl.paper import STUDIES, run_study


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=list(STUDIES), metavar="NAME")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--size", choices=("full", "quick", "smoke"), default="full")
    parser.add_argument("--seeds", type=int, help="how many of every cell, in place of the study's own number")
    parser.add_argument("--seconds", type=float, help="begin no cell that would end later, for all studies together")
    parser.add_argument("--only", help="the cells whose name contains this")
    parser.add_argument("--data", type=Path, help="where the canvases are")
    parser.add_argument("--beside", type=int, default=0, help="how many other processes train on the same GPU")
    arguments = parser.parse_args()
    began = time.monotonic()
    for name in arguments.names:
        left = None if arguments.seconds is None else max(0.0, arguments.seconds - (time.monotonic() - began))
        found = run_study(
            name,
            STUDIES[name],
            arguments.out,
            size=arguments.size,
            seeds=arguments.seeds,
            seconds=left,
            only=arguments.only,
            data=arguments.data,
            beside=arguments.beside,
            command=f"python experiments/run.py {name}",
            log=lambda text: print(f"{time.monotonic() - began:6.0f} s  {text}", flush=True),
        )
        print(f"{name}: {len(found.rows)} rows; missing {len(found.missing)} cells: {', '.join(found.missing)}")


if __name__ == "__main__":
    main()
