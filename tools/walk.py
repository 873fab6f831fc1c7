"""Walks through the code: how many files a minibatch, a checkpoint or a command visits, and how often the file changes.

    python tools/walk.py                            # this checkout
    python tools/walk.py --tree ../other --tree .   # side by side
    python tools/walk.py --list "one step"          # and the calls of one walk, in their order

Each walk is executed under ``sys.setprofile``, in its own process. A call from a function of one file to one of another
is a change of file; the same pair of functions counts once, because a reader follows it once. Returns and imports do
not count. Walks begin and end with calls of the user's functions, so that checkouts of any age can be compared.
Captured steps are recorded on a CPU, where a graph only marks its replays.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

RECORD = """
import contextlib, io, json, os, pathlib, sys, tempfile, warnings
import torch
from torch import nn
import paretomtl as pm

warnings.simplefilter("ignore")
torch.set_num_threads(1)
ROOT = os.path.dirname(pm.__file__) + os.sep
events = []  # (caller, callee) of calls that change the file, and marks


def name_of(code):
    return code.co_filename[len(ROOT):] + ":" + code.co_qualname


def profile(frame, event, _):
    code = frame.f_code
    if event != "call" or not code.co_filename.startswith(ROOT) or code.co_name == "<module>":
        return
    above = frame.f_back
    while above is not None and not above.f_code.co_filename.startswith(ROOT):
        above = above.f_back
    if above is None:
        events.append(("user", name_of(code)))
    elif above.f_code.co_filename != code.co_filename and not importing(above):
        events.append((name_of(above.f_code), name_of(code)))


def importing(frame):
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(ROOT):
            return True
        frame = frame.f_back
    return False


def recorded(function):
    events.clear()
    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
    return list(events)


BATCHES, MODELS = 4, 2
generator = torch.Generator().manual_seed(0)
data = torch.randn(8 * BATCHES, 3, generator=generator), torch.randn(8 * BATCHES, 2, generator=generator)


def losses(outputs, targets):
    if torch.is_grad_enabled():
        events.append("step")
    return (outputs - targets).square().mean(0)


def problem():
    return pm.Problem(lambda: nn.Linear(3, 2), losses, ["a", "b"], train=data, val=data)


def train(epochs=2, **options):
    given = {"epochs": epochs, "batch_size": 8, "strategy": "sequential", "device": "cpu", "progress": "quiet"}
    pm.fit(problem(), "pareto-mtl", preferences=MODELS, **{**given, **options})


def steps(walk):
    return [i for i, event in enumerate(walk) if event == "step"]


def one_step(walk):  # a whole one in the middle of the last epoch
    marks = steps(walk)
    return walk[marks[-3 * MODELS]:marks[-2 * MODELS]]


def one_end(walk):  # of an epoch that is not the last
    marks = steps(walk)
    return walk[marks[-1 - BATCHES * MODELS]:marks[-BATCHES * MODELS]]


def before_steps(walk, count):
    return walk[:steps(walk)[-count * MODELS]]


def without(walk, other):
    known = set(other)
    return [event for event in walk if event not in known]


def stop(report):
    return report.epoch == 1


class Stream:
    def __init__(self, device=None):
        pass

    def wait_stream(self, other):
        pass


class Graph:
    def replay(self):
        events.append("replay")


def set_everywhere(names, value):
    for name, module in list(sys.modules.items()):
        if name.startswith("paretomtl"):
            for each in names & vars(module).keys():
                setattr(module, each, value)


def pretend_graphs():
    nothing = lambda *given, **options: None
    fakes = {"Stream": Stream, "current_stream": Stream, "stream": contextlib.nullcontext, "CUDAGraph": Graph,
             "graph": lambda *given, **options: contextlib.nullcontext(), "get_sync_debug_mode": lambda: 0,
             "memory_allocated": lambda device: 0, "max_memory_allocated": lambda device: 10,
             "memory_reserved": lambda device: 0, "mem_get_info": lambda device: (1 << 40, 1 << 40)}
    for name in ("graph_pool_handle", "set_sync_debug_mode", "synchronize", "reset_peak_memory_stats"):
        fakes[name] = nothing
    for name, fake in fakes.items():
        setattr(torch.cuda, name, fake)
    set_everywhere({"find_obstacle", "obstacle"}, nothing)
    set_everywhere({"_WARM_UP"}, 1 << 30)  # trials compare launched steps alone: a replay here computes nothing


def capture_soon(report):  # two more steps are launched, one is captured, and one replays it
    if report.epoch == 1:
        events.append("epoch")
        set_everywhere({"_WARM_UP"}, BATCHES + 2)


def captured_and_replayed(walk):
    first, second = (i for i, event in enumerate(walk) if event == "replay")
    marks = [i for i in steps(walk) if walk.index("epoch") < i < first]
    return walk[marks[len(marks) // 3]:first], walk[first:second]


def command(*arguments):
    from paretomtl.cli import main
    sys.argv = ["paretomtl", *map(str, arguments)]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as errors:
        try:
            main()
        except SystemExit as end:
            assert not end.code, errors.getvalue()


walks = {}
with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    train()  # what is made once is made here
    plain = recorded(train)
    walks["before the first step"] = before_steps(plain, 2 * BATCHES)
    walks["one step"] = one_step(plain)
    walks["one step, captured"] = walks["one step, replayed"] = []
    walks["end of an epoch"] = without(one_end(plain), walks["one step"])
    stored = recorded(lambda: train(out=folder / "a", checkpoint_seconds=0.0))
    walks["checkpoint, written"] = without(one_step(stored), one_step(plain))
    train(out=folder / "b", callbacks=[stop])
    resumed = recorded(lambda: train(out=folder / "b", resume=True))
    walks["checkpoint, resumed"] = without(before_steps(resumed, BATCHES), walks["before the first step"])
    run = folder / "run"
    walks["command run"] = recorded(
        lambda: command("run", "synthetic", "--method", "pareto-mtl", "--epochs", "3", "--preferences", "2",
                        "--strategy", "sequential", "--device", "cpu", "--out", run)
    )
    walks["command show"] = recorded(lambda: command("show", run))
    walks["command report"] = recorded(lambda: command("report", run, "--out", folder / "page.html"))
    walks["one study"] = recorded(lambda: command("reproduce", "many-tasks", "--smoke", "--seeds", "1",
                                                  "--progress", "quiet", "--out", folder / "study"))
    pretend_graphs()
    graphed = recorded(lambda: train(strategy="graphed", callbacks=[capture_soon]))
    walks["one step, captured"], walks["one step, replayed"] = captured_and_replayed(graphed)
print(json.dumps(walks))
"""


def walks_of(tree: Path) -> dict[str, list[tuple[str, str]]]:
    """The calls of each walk of a checkout that change the file, once each, in order."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    done = subprocess.run(
        [sys.executable, "-c", RECORD], capture_output=True, text=True, env=environment, check=False, cwd=tree
    )
    if done.returncode:
        sys.exit(f"Recording failed in {tree}:\n{done.stderr}")
    walks = json.loads(done.stdout.splitlines()[-1])
    return {name: list(dict.fromkeys(tuple(e) for e in walk if not isinstance(e, str))) for name, walk in walks.items()}


def files_of(walk: list[tuple[str, str]]) -> set[str]:
    """The files that a walk visits."""
    return {function.split(":")[0] for pair in walk for function in pair if function != "user"}


def main() -> None:
    """The command line of this script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, action="append", help="A checkout; default: this one.")
    parser.add_argument("--list", metavar="WALK", help="Print the calls of this walk, too.")
    options = parser.parse_args()
    trees = [tree.resolve() for tree in options.tree or [Path(__file__).parents[1]]]
    walks = [walks_of(tree) for tree in trees]
    if options.list is not None and options.list not in walks[0]:
        parser.error(f"--list must be one of {list(walks[0])}. Got {options.list!r} instead.")
    print(f"{'files / changes of file':<26}" + "".join(f"{tree.name[-22:]:>24}" for tree in trees))
    for name in walks[0]:
        counts = [(len(files_of(each[name])), len(each[name])) for each in walks]
        cells = [f"{files} / {changes}" for files, changes in counts]
        for i, count in enumerate(counts[1:], 1):
            share = " ".join(
                f"{100 * (new - old) / max(old, 1):+.0f}%" for new, old in zip(count, counts[0], strict=True)
            )
            cells[i] += f"  ({share})"
        print(f"{name:<26}" + "".join(f"{cell:>24}" for cell in cells))
    for tree, each in zip(trees, walks, strict=True):
        if options.list is not None:
            print(f"\n{tree.name}: {options.list}")
            print("\n".join(f"  {caller} -> {callee}" for caller, callee in each[options.list]))


if __name__ == "__main__":
    main()
