"""The cost of inspecting a front of large models: seconds and peak memory of commands that need no weights.

    python benchmarks/reading.py                       # writes benchmarks/results/reading.json
    python benchmarks/reading.py --tree ../old         # measures another checkout in the same run, too
    python benchmarks/reading.py --models 25 --megabytes 50 --rounds 5 --out FOLDER

Each checkout stores its own front, in its own format. Each call is a separate process; calls take turns in a random
order. Seconds are medians over rounds, of wall-clock time and CPU time. Memory is the largest resident set of any
round, shown next to that of ``import torch``. ``state_dict(k)`` reads one model.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from paretomtl._support.version import code_of, commit_of
from paretomtl.compare import Row, environment, save_rows

ROOT = Path(__file__).parents[1]
TORCH = "import torch"
MEASURED = """
import json, os, resource, time
began = time.perf_counter()
{code}
used = os.times()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
with open({result!r}, "w") as file:
    json.dump([time.perf_counter() - began, used.user + used.system, peak], file)
"""
COMMAND = """
import sys
from paretomtl.cli import main
sys.argv = ["paretomtl", {arguments}]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""
STORE = """
import torch, paretomtl as pm

class Large(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand({numbers}))

def losses(model, batch):
    place = model.weight[:2].mean()
    return torch.stack([(place - 0.2) ** 2, (place - 0.8) ** 2])

problem = pm.Problem(model=Large, losses=losses, tasks=["left", "right"])
front = pm.Front.from_models([{{"weight": torch.rand({numbers})}} for _ in range({models})], problem)
front.save({folder!r})
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, action="append", default=[], help="another checkout to measure")
    parser.add_argument("--models", type=int, default=25, help="how many models the front has")
    parser.add_argument("--megabytes", type=int, default=50, help="the size of each")
    parser.add_argument("--rounds", type=int, default=5, help="how often each call is made")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        calls: dict[tuple[Path, str], str] = {(ROOT, TORCH): TORCH}
        for number, tree in enumerate([ROOT, *(tree.resolve() for tree in options.tree)]):
            place = Path(folder) / str(number)
            numbers = options.megabytes * 250_000
            _run(STORE.format(numbers=numbers, models=options.models, folder=str(place)), tree, place)
            calls |= {(tree, name): code for name, code in _calls(place).items()}
        found = _take_turns(calls, options.rounds, Path(folder))
    rows: list[Row] = []
    for (tree, name), measured in found.items():
        clock, processor, peak = zip(*measured, strict=True)
        row = {
            "what": "reading",
            "call": name,
            "models": options.models,
            "megabytes": options.megabytes,
            "commit": commit_of(tree / "src" / "paretomtl"),
            "code": code_of(tree / "src" / "paretomtl"),
            "seconds": round(statistics.median(clock), 3),
            "cpu_seconds": round(statistics.median(processor), 3),
            "peak_megabytes": round(max(peak)),
            "rounds": options.rounds,
        }
        rows.append({**row, **environment()})
        print(
            f"{name:<28} {row['seconds']:7.2f} s  processor {row['cpu_seconds']:7.2f} s  "
            f"peak {row['peak_megabytes']:6} MB  {tree.name}"
        )
    others = " --tree OTHER" * len(options.tree)
    save_rows(options.out / "reading.json", "reading", f"python benchmarks/reading.py{others}", rows)


def _calls(place: Path) -> dict[str, str]:
    run = repr(str(place))
    page = repr(str(place.with_suffix(".html")))
    return {
        "paretomtl show": COMMAND.format(arguments=f'"show", {run}'),
        "paretomtl select": COMMAND.format(arguments=f'"select", {run}, "--max-regret"'),
        "paretomtl report": COMMAND.format(arguments=f'"report", {run}, "--out", {page}'),
        "one look of watch": (
            "from pathlib import Path\nfrom paretomtl.report.page._server import Watched\n"
            f"Watched([Path({run})]).data()"
        ),
        "Front.load": f"import paretomtl as pm\npm.Front.load({run})",
        "Front.load, state_dict(k)": f"import paretomtl as pm\npm.Front.load({run}).state_dict(3)",
    }


def _take_turns(
    calls: dict[tuple[Path, str], str], rounds: int, folder: Path
) -> dict[tuple[Path, str], list[tuple[float, float, float]]]:
    """Wall-clock seconds, CPU seconds and peak megabytes of every call in every round but the first."""
    found: dict[tuple[Path, str], list[tuple[float, float, float]]] = {key: [] for key in calls}
    chance = random.Random(0)
    for turn in range(1 + rounds):
        for key in chance.sample(list(calls), len(calls)):
            measured = _run(calls[key], key[0], folder / "call")
            if turn:
                found[key].append(measured)
    return found


def _run(code: str, tree: Path, place: Path) -> tuple[float, float, float]:
    """Run Python code on a checkout; return wall-clock seconds, CPU seconds and peak megabytes."""
    result = place.with_suffix(".json")
    code = MEASURED.format(code=code, result=str(result))
    env = {**os.environ, "PYTHONPATH": str(tree / "src")}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=env, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"Python ended with {done.returncode}: {done.stderr.decode()}")
    clock, processor, peak = json.loads(result.read_text(encoding="utf-8"))
    return clock, processor, peak


if __name__ == "__main__":
    main()
