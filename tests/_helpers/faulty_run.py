"""Runs that fail at a chosen write, and are resumed: prints the outcomes.

    python faulty_run.py FOLDER COUNT SEED

Every fault has its own folder, with a fresh or resumed run in which one system call of a write fails or is the last
one, or with the state of a disk after a power cut at that call. The folder is inspected, and the run is resumed until
it ends. It must end with the front of a run without faults, bit by bit, and the inspection must never report it lost.
COUNT faults are drawn at random; "all" runs each of them once.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import paretomtl as pm
from _helpers.faults import ERRORS, Disk, Fault, Watch
from _helpers.networks import Dropped, classes, problem
from paretomtl.runs import inspect_run

CUTS = ("nothing", "names", "some")
FINE, REFUSED, WRONG = 0, 10, 11  # how a child process ends: with its front, with a documented error


def train(folder: Path, stop: Callable[[pm.training.Report], None] | None = None) -> pm.Front:
    return pm.fit(
        problem(Dropped, val=classes(50, seed=1)),
        "pareto-mtl",
        3,
        epochs=2,
        batch_size=48,
        optimizer=lambda parameters: torch.optim.Adam(parameters, lr=0.01),
        keep="best",
        strategy="sequential",
        device="cpu",
        out=folder,
        resume=True,
        checkpoint_seconds=0.0,
        progress="quiet",
        callbacks=[] if stop is None else [stop],
    )


def checksum(front: pm.Front) -> str:
    """The checksum of everything in a front except for its duration."""
    digest = hashlib.sha256()
    for name, tensor in sorted({**front.models.stacked(), **front.history}.items()):
        digest.update(name.encode() + tensor.numpy().tobytes())
    for losses in front.losses.values():
        digest.update(losses.numpy().tobytes())
    digest.update(repr((front.complete, front.status, front.since, front.epochs)).encode())
    return digest.hexdigest()


def stop_early(report: pm.training.Report) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


@dataclass(frozen=True)
class Case:
    """A fault in a new run, or in one that was stopped after its first epoch and is resumed."""

    start: str
    fault: Fault | None
    cut: str = ""
    at: int = 0

    @property
    def kind(self) -> str:
        return f"power cut, {self.cut} kept" if self.fault is None else self.fault.kind


class Bench:
    """The common data of all cases: the front without faults, the folders to start from, the calls of a run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.expected = checksum(train(folder / "whole"))
        self.starts = {"fresh": folder / "fresh", "stopped": folder / "stopped"}
        self.starts["fresh"].mkdir()
        train(self.starts["stopped"], stop_early)
        self.calls = {}
        for start in self.starts:
            there = self.copy(start, "watched")
            with Watch(there) as watch:
                assert checksum(train(there)) == self.expected
            self.calls[start] = watch.calls

    def copy(self, start: str, name: str) -> Path:
        there = self.folder / name
        shutil.rmtree(there, ignore_errors=True)
        shutil.copytree(self.starts[start], there)
        return there

    def cases(self) -> Iterator[Case]:
        """All faults, once each."""
        for start, calls in self.calls.items():
            for at, call in enumerate(calls):
                yield Case(start, Fault("kill", at))
                if call.kind == "write":
                    yield Case(start, Fault("tear", at))
                for kind in ERRORS:
                    yield Case(start, Fault(kind, at))
                    yield Case(start, Fault(kind, at, lasting=True))
                for cut in CUTS:
                    yield Case(start, None, cut, at + 1)

    def harm(self, case: Case, seed: int) -> tuple[Path, int]:
        """The folder after the fault, and how the process ended, which does not matter for a power cut."""
        if case.fault is not None:
            there = self.copy(case.start, "harmed")
            return there, in_child(lambda: self.attempt(there, case.fault))
        start = self.starts[case.start]
        disk = Disk({str(p.relative_to(start)): p.read_bytes() for p in start.rglob("*") if p.is_file()})
        for call in self.calls[case.start][: case.at]:
            disk.do(call)
        there = self.folder / "harmed"
        shutil.rmtree(there, ignore_errors=True)
        there.mkdir()
        for name, data in disk.after_cut(case.cut, random.Random(seed)).items():
            (there / name).parent.mkdir(exist_ok=True)
            (there / name).write_bytes(data)
        return there, -signal.SIGKILL

    def attempt(self, there: Path, fault: Fault | None) -> int:
        """Run with a fault: it gives the right front, or a documented error."""
        try:
            with Watch(there, fault):
                front = train(there)
        except (OSError, ValueError):
            return REFUSED
        return FINE if checksum(front) == self.expected else WRONG

    def end(self, there: Path) -> int:
        """Run without faults, in the same folder."""
        return FINE if checksum(train(there)) == self.expected and sound(there) else WRONG


def sound(there: Path) -> bool:
    """Whether the inspection of a finished run's folder finds no problem."""
    return all(finding.state in ("ok", "info") for finding in inspect_run(there))


def in_child(work: Callable[[], int]) -> int:
    """The exit status of a child process that does the work: a negative signal if it was killed."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = work()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def judge(bench: Bench, case: Case, seed: int) -> str:
    """Inject a fault, and resume the run; return what was wrong, or an empty string."""
    there, code = bench.harm(case, seed)
    killed = case.fault is None or case.fault.kind in ("kill", "tear")
    if code not in ((-signal.SIGKILL,) if killed else (FINE, REFUSED)):
        return f"the run ended with {code}"
    if (there / "config.json").exists() and any(finding.state == "lost" for finding in inspect_run(there)):
        return "called lost"
    ended = in_child(lambda: bench.end(there))
    return "" if ended == FINE else f"the resumed run ended with {ended}"


def chain(bench: Bench, seed: int, length: int = 5) -> str:
    """Inject faults one after another: each hits the run that resumes the one before."""
    chance = random.Random(seed)
    there = bench.copy("fresh", "harmed")
    for _ in range(length):
        kind = chance.choice(("kill", "tear", *ERRORS))
        fault = Fault(kind, chance.randrange(40), lasting=chance.random() < 0.5)
        code = in_child(lambda fault=fault: bench.attempt(there, fault))  # type: ignore[misc]
        if code not in (FINE, REFUSED, -signal.SIGKILL):
            return f"the run ended with {code}"
    return "" if in_child(lambda: bench.end(there)) == FINE else "the resumed run ended wrong"


def measure(folder: Path, count: int | None, chains: int, seed: int) -> dict[str, Any]:
    """Run all cases, or some; return how many of each kind there were, and which failed."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    tempfile.tempdir = str(folder / "elsewhere")
    Path(tempfile.tempdir).mkdir()
    bench = Bench(folder)
    cases = list(bench.cases())
    chosen = cases if count is None else random.Random(seed).sample(cases, count)
    counts: Counter[str] = Counter()
    failures = []
    for number, case in enumerate(chosen):
        wrong = judge(bench, case, seed + number)
        counts[case.kind] += 1
        if wrong:
            failures.append(f"{case}: {wrong}")
    for number in range(chains):
        wrong = chain(bench, seed + number)
        counts["five in a row"] += 1
        if wrong:
            failures.append(f"five in a row, seed {seed + number}: {wrong}")
    return {
        "faults": sum(counts.values()),
        "kinds": dict(sorted(counts.items())),
        "calls": {start: dict(Counter(call.kind for call in calls)) for start, calls in bench.calls.items()},
        "failures": failures,
    }


def main() -> None:
    folder, count, seed = Path(sys.argv[1]).resolve(), sys.argv[2], int(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    found = measure(folder, None if count == "all" else int(count), 2, seed)
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
