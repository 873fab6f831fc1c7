"""Runs in other processes, to be watched: one that trains until it is stopped, and a way to wait for it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PROBLEM = """
import time
import torch
from torch import nn
import paretomtl as pm

torch.set_num_threads(1)
torch.manual_seed(0)
x = torch.randn(60, 4)
y = torch.stack([x.sum(-1), x.prod(-1)], -1)

def losses(outputs, targets):
    time.sleep(0.01)
    return (outputs - targets).square().mean(0)

def make():
    return pm.Problem(
        lambda: nn.Linear(4, 2), losses, ["sum", "product"], train=(x[:40], y[:40]), val=(x[40:], y[40:]),
        metrics={"worst": pm.Metric(lambda o, t: (o - t).abs().max(), "lower")}, name="slow",
    )
"""


@contextmanager
def training(folder: Path, epochs: int = 100_000) -> Iterator[subprocess.Popen[str]]:
    """A process that trains or resumes a run in this folder, until it is told to stop or the block ends."""
    (folder.parent / "slow.py").write_text(PROBLEM)
    options = ["--preferences", "3", "--strategy", "sequential", "--device", "cpu", "--resume", "--progress", "quiet"]
    command = [sys.executable, "-m", "paretomtl", "run", "slow:make", "--epochs", str(epochs), "--out", folder.name]
    process = subprocess.Popen(
        [*command, *options, "--checkpoint-seconds", "0.1"],
        cwd=folder.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(found: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until a condition holds; the timeout only ends a test that would hang."""
    for _ in range(round(seconds / 0.05)):
        if found():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come")
