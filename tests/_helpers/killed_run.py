"""A run that is killed repeatedly: prints how often, and the checksum of its final front.

    python killed_run.py FOLDER KILLS SEED

Every child trains with resume=True in the same folder; it is killed with SIGKILL after a random while, and the last one
may finish. With KILLS 0 nothing is killed.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import sys
import time
from pathlib import Path

import torch

import paretomtl as pm
from _helpers.networks import Dropped, classes, problem


def adam(parameters: object) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=0.01)  # type: ignore[arg-type]


def train(folder: Path) -> None:
    torch.set_num_threads(1)
    pm.fit(
        problem(Dropped, val=classes(50, seed=1)),
        "pareto-mtl",
        3,
        epochs=25,
        batch_size=16,
        optimizer=adam,
        scheduler=lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [5, 15]),
        keep="best",
        strategy="sequential",
        device="cpu",
        out=folder,
        resume=True,
        checkpoint_seconds=0.0,
        progress="quiet",
    )


def checksum(folder: Path) -> str:
    """The checksum of everything in a front except for its duration."""
    front = pm.Front.load(folder)
    digest = hashlib.sha256()
    for name, tensor in sorted({**front.models.stacked(), **front.history}.items()):
        digest.update(name.encode() + tensor.numpy().tobytes())
    for split in ("train", "val"):
        digest.update(front.losses[split].numpy().tobytes())
    digest.update(repr((front.status, front.since, front.epochs)).encode())
    return digest.hexdigest()


def main() -> None:
    folder, kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    chance = random.Random(seed)
    done = 0
    adam([torch.zeros(1, requires_grad=True)])  # imports what optimizers need, so that children die in training
    while True:
        child = os.fork()
        if child == 0:
            train(folder)
            os._exit(0)
        if done < kills:
            time.sleep(chance.uniform(0.0, 0.15))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            done += 1
        elif status != 0:
            sys.exit(1)
        else:
            break
    sys.stdout.write(f"{done} {checksum(folder)}\n")


if __name__ == "__main__":
    main()
