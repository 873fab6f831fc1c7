"""How long Python, an import and a command take to start, as ratios to ``import torch``.

    python benchmarks/startup.py                       # writes benchmarks/results/startup.json
    python benchmarks/startup.py --tree ../old         # measures another checkout in the same run, too
    python benchmarks/startup.py --rounds 15 --out FOLDER

Each call is a separate process. Calls take turns in a random order, so that other work on the machine affects all of
them alike. A warm-up round compiles the modules and fills the system's file cache. Ratios are those of medians, for
wall-clock time and for CPU time; the latter does not depend on other work. ``show`` prints a front of five models,
which each checkout trained for itself.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from paretomtl._support.version import code_of, commit_of
from paretomtl.compare import Row, environment, save_rows

ROOT = Path(__file__).parents[1]
ROUNDS = 9
TORCH = "import torch"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, action="append", default=[], help="another checkout to measure")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each call is made")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    options = parser.parse_args()
    trees = [ROOT, *(tree.resolve() for tree in options.tree)]
    with tempfile.TemporaryDirectory() as folder:
        calls = {(None, name): arguments for name, arguments in _plain().items()}
        for number, tree in enumerate(trees):
            run = Path(folder) / str(number)
            _start(["-m", "paretomtl", "run", "synthetic", "--epochs", "20", "--out", str(run)], tree)
            calls |= {(tree, name): arguments for name, arguments in _of_paretomtl(run).items()}
        times = _take_turns(calls, options.rounds)
        loaded = {key: _loaded(arguments, key[0]) for key, arguments in calls.items()}
    clock = {key: statistics.median(wall for wall, _ in values) for key, values in times.items()}
    processor = {key: statistics.median(cpu for _, cpu in values) for key, values in times.items()}
    torch = (None, TORCH)
    rows: list[Row] = []
    for key in calls:
        tree, name = key
        modules, heavy = loaded[key]
        row = {
            "what": "start",
            "call": name,
            "commit": None if tree is None else commit_of(tree / "src" / "paretomtl"),
            "code": None if tree is None else code_of(tree / "src" / "paretomtl"),
            "seconds": round(clock[key], 4),
            "cpu_seconds": round(processor[key], 4),
            "over_torch": round(clock[key] / clock[torch], 3),
            "cpu_over_torch": round(processor[key] / processor[torch], 3),
            "rounds": options.rounds,
            "paretomtl_modules": modules,
            "loads": heavy,
        }
        rows.append({**row, **environment()})
        where = "" if tree is None else f"  {tree.name}"
        print(
            f"{name:<32} {row['seconds']:7.3f} s {row['over_torch']:6.2f}x  processor {row['cpu_seconds']:7.3f} s "
            f"{row['cpu_over_torch']:6.2f}x  {modules:3} modules, {', '.join(heavy) or 'none heavy'}{where}"
        )
    others = " --tree OTHER" * len(options.tree)
    save_rows(options.out / "startup.json", "startup", f"python benchmarks/startup.py{others}", rows)


def _plain() -> dict[str, list[str]]:
    return {"pass": ["-c", "pass"], TORCH: ["-c", TORCH]}


def _of_paretomtl(run: Path) -> dict[str, list[str]]:
    command = ["-m", "paretomtl"]
    return {
        "import paretomtl": ["-c", "import paretomtl"],
        "from paretomtl import fit": ["-c", "from paretomtl import fit"],
        "paretomtl --help": [*command, "--help"],
        "paretomtl run --help": [*command, "run", "--help"],
        "paretomtl --version": [*command, "--version"],
        "paretomtl run --no-such-option": [*command, "run", "--no-such-option"],
        "paretomtl list": [*command, "list"],
        "paretomtl show RUN": [*command, "show", str(run)],
    }


def _take_turns(
    calls: dict[tuple[Path | None, str], list[str]], rounds: int
) -> dict[tuple[Path | None, str], list[tuple[float, float]]]:
    """Wall-clock seconds and CPU seconds of every call in every round but the first."""
    times: dict[tuple[Path | None, str], list[tuple[float, float]]] = {key: [] for key in calls}
    chance = random.Random(0)
    for turn in range(1 + rounds):
        for key in chance.sample(list(calls), len(calls)):
            before, began = os.times(), time.perf_counter()
            _start(calls[key], key[0])
            seconds, after = time.perf_counter() - began, os.times()
            if turn:
                cpu = after.children_user + after.children_system - before.children_user - before.children_system
                times[key].append((seconds, cpu))
    return times


def _start(arguments: list[str], tree: Path | None) -> str:
    """Run Python with these arguments on the code of a checkout; return its standard error."""
    env = {**os.environ, "PYTHONPATH": "" if tree is None else str(tree / "src")}
    done = subprocess.run(
        [sys.executable, *arguments], env=env, cwd=tempfile.gettempdir(), capture_output=True, check=False
    )
    if done.returncode not in (0, 2):
        raise RuntimeError(f"{' '.join(arguments)} ended with {done.returncode}: {done.stderr.decode()}")
    return done.stderr.decode()


def _loaded(arguments: list[str], tree: Path | None) -> tuple[int, list[str]]:
    """How many modules of paretomtl a call loads, and which heavy third-party packages."""
    lines = _start(["-X", "importtime", *arguments], tree).splitlines()
    modules = {match[1] for line in lines if (match := re.match(r"import time:.*\|\s*(\S+)$", line))}
    heavy = [name for name in ("torch", "numpy", "matplotlib", "plotly", "rich") if name in modules]
    return sum(name.split(".")[0] == "paretomtl" for name in modules), heavy


if __name__ == "__main__":
    main()
