"""Killed Ray workers: the run ends with the same front, and only lost steps are trained twice.

    PYTHONPATH=tests python stress/ray_kills.py                 # ten kills; writes stress/results/ray-kills.json
    PYTHONPATH=tests python stress/ray_kills.py --kills 20 --seed 1 --out FOLDER

Eight subproblems train in four shards on two workers. At random moments one of the training processes is killed with
SIGKILL. Every forward pass of a training step is counted in a file, and every shard stores a checkpoint after each
step. Apart from the steps of an undisturbed run, the count may only hold steps that a kill interrupted, and the checks
at the beginning of each start. The front is compared bit by bit with that of one process without Ray.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import paretomtl as pm
from _helpers.fronts import assert_same
from _helpers.networks import sgd
from _helpers.workers import slow
from paretomtl.compare import Row, environment, save_rows
from paretomtl.runs import read_log
from paretomtl.runs.folder import RunFolder

MODELS, SIZE, STEPS = 8, 2, 3  # of the run, of a shard, of an epoch
SHARDS = MODELS // SIZE


def train(epochs: int, seconds: float = 0.0, counted: Path | None = None, **options: Any) -> pm.Front:
    return pm.fit(
        slow(seconds, counted), preferences=MODELS, epochs=epochs, batch_size=32, optimizer=sgd, device="cpu",
        strategy="sequential", checkpoint_seconds=0.0, progress="quiet", **options,
    )  # fmt: skip


class Killer(threading.Thread):
    """Kills one of the training processes from time to time, and notes which step its shard had stored."""

    def __init__(self, folder: Path, chance: random.Random, kills: int) -> None:
        super().__init__(daemon=True)
        self.folder, self.chance, self.kills = folder, chance, kills
        self.ended = threading.Event()
        self.stored: list[tuple[str, int | None]] = []

    def run(self) -> None:
        while len(self.stored) < self.kills and not self.ended.wait(self.chance.uniform(0.5, 4.0)):
            running = self.running()
            if not running:
                continue
            name = self.chance.choice(sorted(running))
            with suppress(ProcessLookupError):
                os.kill(running[name], signal.SIGKILL)
                self.stored.append((name, self.checkpoint(name, running[name])))

    def running(self) -> dict[str, int]:
        """The processes of the shards in training."""
        if not (self.folder / "log.jsonl").exists():
            return {}
        running: dict[str, int] = {}
        for event in read_log(self.folder):
            if event["event"] == "shard":
                running.pop(event["name"], None)
                if event["state"] == "running":
                    running[event["name"]] = event["pid"]
        return running

    def checkpoint(self, name: str, pid: int) -> int | None:
        """The step that a shard had stored when its process was gone; None if it had none."""
        while Path(f"/proc/{pid}").exists() and "State:\tZ" not in Path(f"/proc/{pid}/status").read_text():
            time.sleep(0.001)
        folder = self.folder / "shards" / name
        state = RunFolder(folder).load_checkpoint() if (folder / "config.json").exists() else None
        return None if state is None else state["number"]


def one_run(epochs: int, seconds: float, kills: int, chance: random.Random, whole: pm.Front) -> Row:
    """A run with at most this many kills."""
    with tempfile.TemporaryDirectory() as place, pm.RayExecutor(workers=2, shard_size=SIZE, retries=kills) as executor:
        folder, counted, calm = Path(place) / "run", Path(place) / "counted", Path(place) / "calm"
        train(1, counted=calm, executor=executor)
        checks = (calm.stat().st_size - MODELS * STEPS) / (SHARDS + 1)  # of each start, and of this process
        killer = Killer(folder, chance, kills)
        killer.start()
        began = time.monotonic()
        front = train(epochs, seconds, counted, executor=executor, out=folder)
        taken = time.monotonic() - began
        killer.ended.set()
        killer.join()
        done = len(killer.stored)
        steps = {
            name: [event["step"] for event in read_log(folder / "shards" / name) if event["event"] == "resume"]
            for name in {name for name, _ in killer.stored}
        }
        passes, needed = counted.stat().st_size, MODELS * STEPS * epochs
        allowed = done * SIZE + round(checks * (SHARDS + 1 + done))
        try:
            assert_same(front, whole)
            same = True
        except AssertionError:
            same = False
        return {
            "what": "workers killed with SIGKILL",
            "kills": done,
            "models": MODELS,
            "shards": SHARDS,
            "workers": 2,
            "epochs": epochs,
            "complete": front.complete,
            "same_front_bit_by_bit": same,
            "passes_needed": needed,
            "passes_taken": passes,
            "passes_allowed": needed + allowed,
            "nothing_trained_twice": passes <= needed + allowed,
            "killed_with_a_checkpoint": sum(step is not None for _, step in killer.stored),
            "resumed_where_it_was_stored": sum(step is not None and step in steps[n] for n, step in killer.stored),
            "seconds": round(taken, 2),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=0.04, help="of each pass")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    chance = random.Random(asked.seed)
    whole = train(asked.epochs)
    rows: list[Row] = []
    while sum(row["kills"] for row in rows) < asked.kills:
        left = asked.kills - sum(row["kills"] for row in rows)
        row = one_run(asked.epochs, asked.seconds, left, chance, whole)
        rows.append({**row, "seed": asked.seed, "load": round(os.getloadavg()[0], 2), **environment()})
        print(row, flush=True)
    save_rows(asked.out / "ray-kills.json", "ray-kills", "PYTHONPATH=tests python stress/ray_kills.py", rows)
    good = all(row["complete"] and row["same_front_bit_by_bit"] and row["nothing_trained_twice"] for row in rows)
    where = all(row["killed_with_a_checkpoint"] == row["resumed_where_it_was_stored"] for row in rows)
    sys.exit(0 if good and where else 1)


if __name__ == "__main__":
    main()
