"""What large models are said to need before it is allocated, and what they take."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

CODE = """
import resource, sys, warnings
import torch, paretomtl as pm
from torch import nn

torch.set_num_threads(1)
layers, limit, strategy, method = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3], sys.argv[4]
made = []

class Net(nn.Sequential):
    def __init__(self):
        made.append(1)
        super().__init__(*[nn.Linear(1536, 1536) for _ in range(layers)], nn.Linear(1536, 2))

size = sum(p.nbytes for p in Net().parameters())
x, y = torch.randn(8, 1536), torch.randn(8, 2)
quiet = {"batch_size": 8, "device": "cpu", "progress": "quiet"}
loss = lambda o, t: (o - t).square().mean(0)
pm.fit(pm.Problem(lambda: nn.Linear(1536, 2), loss, ["a", "b"], train=(x, y)), "linear", 2, epochs=1, **quiet)
read = lambda path, name: 1024 * int((words := open(path).read().split())[words.index(name) + 1])
if limit:
    most = read("/proc/self/status", "VmSize:") + int(limit * size)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
before = read("/proc/self/status", "VmRSS:")
problem = pm.Problem(Net, loss, ["a", "b"], train=(x, y))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    made.clear()
    try:
        front = pm.fit(problem, method, 3, epochs=2, strategy=strategy, **quiet)
        print(front.strategy)
    except Exception as error:
        print(type(error).__name__, error)
print(round((read("/proc/self/status", "VmHWM:") - before) / size, 1), len(made))
print(*(each.message for each in caught))
"""


def run(layers: int, limit: float, strategy: str, method: str) -> list[str]:
    words = [sys.executable, "-c", CODE, str(layers), str(limit), strategy, method]
    system = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}  # what is freed goes back to the system
    return subprocess.run(words, capture_output=True, text=True, check=True, env=system).stdout.split("\n", 2)


@pytest.mark.system
@pytest.mark.parametrize("strategy", ["sequential", "auto"])
def test_large_models_one_after_another_take_what_training_takes(strategy: str) -> None:
    words, sizes, said = run(4, 0, strategy, "linear")
    assert words.startswith("sequential")
    assert strategy == "sequential" or "slower as a stack" in words
    assert float(sizes.split()[0]) < 15  # 3 · (parameters, those before, two of Adam) + gradients, and temporaries
    assert not said.strip()


def test_what_does_not_fit_is_said_before_it_is_allocated() -> None:
    *_, said = run(4, 11, "sequential", "pareto-mtl")
    assert "3 models of 0.04 GB to train need about 0.5 GB with Adam" in said
    assert "Train some at a time (only=[0, 1], and Front.joined)" in said


@pytest.mark.system
def test_a_stack_that_does_not_fit_is_not_tried() -> None:
    words, sizes, _ = run(4, 30, "batched", "linear")
    assert "a trial of 3 stacked models would take about 1.8 GB" in words
    assert float(sizes.split()[0]) < 10
