"""A hundred thousand inputs for the loaders of all file formats.

    python stress/fuzz.py                      # writes stress/results/fuzz.json
    python stress/fuzz.py --inputs 5000 --only idx --out FOLDER       # keeps stored rows of other formats

Valid files are made, mutated and read: flipped bits, truncated ends, huge declared lengths and sizes, tokens that are
not numbers, endless brackets, invalid text, decompression bombs. Hypothesis draws a fifth of the inputs from a grammar
of the format. Most files with a checksum get a new one, so that more than the checksum is tested.

For each input, a loader must either return something that works or raise a documented error that names the file.
Anything else is a failure, and so are more than 5 s of processor time, more than 512 MB of additional memory, and the
end of the process. Inputs that fail are written to out/fuzz.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import connection
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import torch
from hypothesis import HealthCheck, Phase, given, seed, settings

from _helpers.fuzzing.format import Files, Format
from _helpers.fuzzing.formats import formats
from _helpers.fuzzing.grammars import grammar
from _helpers.fuzzing.judge import Verdict, install, judge
from paretomtl._support.imports.optional_packages import version_of
from paretomtl.compare import environment, load_rows, save_rows

ROOT = Path(__file__).parents[1]
SECONDS, MEGABYTES = 5.0, 512
STALLED = 60.0  # seconds of wall-clock time without a finished input, after which a process is killed
CHUNK = 2000  # inputs of one process
BY_GRAMMAR = 5  # one input in this many is drawn by hypothesis


class TooSlowError(BaseException):
    """An input took too long; not an Exception, so that no loader catches it."""


@dataclass
class Tally:
    """Outcomes of some inputs of a format."""

    inputs: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    slowest: tuple[float, str] = (0.0, "")
    peak: float = 0.0
    failures: list[tuple[str, str]] = field(default_factory=list)

    def add(self, label: str, verdict: Verdict, seconds: float) -> None:
        """Count an input."""
        self.inputs += 1
        self.outcomes[f"{verdict.outcome} {verdict.error}".strip()] += 1
        self.slowest = max(self.slowest, (seconds, label))
        if verdict.outcome == "failed":
            self.failures.append((label, verdict.why))

    def join(self, other: Tally) -> None:
        """Add the counts of another tally."""
        self.inputs += other.inputs
        self.outcomes += other.outcomes
        self.slowest = max(self.slowest, other.slowest)
        self.peak = max(self.peak, other.peak)
        self.failures += other.failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="part of the name of a format")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    chosen = [form for name, form in formats().items() if arguments.only in name]
    total = sum(form.share for form in formats().values())
    path = arguments.out / "fuzz.json"
    stored = {row["format"]: row for row in load_rows(path)} if path.exists() and arguments.only else {}
    began = time.monotonic()
    for form in chosen:
        tally = fuzz(form, -(-arguments.inputs * form.share // total), arguments.seed)
        stored[form.name] = stored_row = row(form, tally, arguments.seed)
        print({key: value for key, value in stored_row.items() if key not in ("versions", "hardware")}, flush=True)
    rows = [stored[name] for name in formats() if name in stored]
    save_rows(path, "fuzz", f"python stress/fuzz.py --inputs {arguments.inputs} --seed {arguments.seed}", rows)
    failed = sum(stored[form.name]["failed"] for form in chosen)
    print(f"{sum(r['inputs'] for r in rows):,} inputs stored, in {time.monotonic() - began:.0f} s, {failed} failures")
    sys.exit(bool(failed))


def fuzz(form: Format, inputs: int, start: int) -> Tally:
    """Run all inputs of a format in separate processes, as many at a time as there are cores."""
    with tempfile.TemporaryDirectory() as folder:
        install(form, Path(folder))
        verdict = judge(form, Path(folder), {})
    if verdict.outcome != "accepted":
        raise ValueError(f"'{form.name}' must begin with a valid input. Got {verdict.outcome}: {verdict.why}")
    once = [(f"once {i}", make()) for i, make in enumerate(form.once)]
    by_grammar = inputs // BY_GRAMMAR
    waiting = [Job(form, [label for label, _ in once], lambda label: dict(once)[label])] if once else []
    for part in _chunks(inputs - by_grammar - len(once)):
        labels = [f"{start}/{form.name}/{number}" for number in part]
        waiting.append(Job(form, labels, lambda label: form.draw(Random(label))))
    waiting += [
        Job(form, [f"{start}/{form.name}/grammar {part.start}/{i}" for i in range(len(part))], None)
        for part in _chunks(by_grammar)
    ]
    running: list[Job] = []
    tally = Tally()
    while waiting or running:
        while waiting and len(running) < (os.cpu_count() or 1):
            running.append(waiting.pop(0))
            running[-1].start()
        connection.wait([job.receiving for job in running], timeout=1.0)
        for job in [job for job in running if job.ended(tally)]:
            running.remove(job)
    return tally


def _chunks(count: int) -> list[range]:
    return [range(first, min(first + CHUNK, count)) for first in range(0, count, CHUNK)]


class Job:
    """Some inputs of a format, read in a process with little memory; if it dies, another one continues.

    Args:
        form: the format.
        labels: the inputs.
        draw: makes one of them; None lets hypothesis draw.
    """

    def __init__(self, form: Format, labels: list[str], draw: Callable[[str], Files] | None) -> None:
        self._form, self._labels, self._draw = form, labels, draw

    def start(self) -> None:
        """Start a process for the remaining inputs."""
        context = multiprocessing.get_context("fork")
        self.receiving, sending = context.Pipe(duplex=False)
        self._at = context.Value("l", 0)
        work = _read_by_grammar if self._draw is None else _read
        self._process = context.Process(target=work, args=(self._form, self._labels, self._draw, sending, self._at))
        self._process.start()
        sending.close()
        self._seen, self._since = 0, time.monotonic()

    def ended(self, tally: Tally) -> bool:
        """Whether all inputs were read; their outcomes are then in the tally."""
        if not self.receiving.poll():
            if self._at.value != self._seen:
                self._seen, self._since = self._at.value, time.monotonic()
            elif time.monotonic() - self._since > STALLED:
                self._process.kill()
            return False
        try:
            tally.join(self.receiving.recv())
            self._process.join()
            return True
        except EOFError:
            self._process.join()
        at = self._at.value  # those before it are lost with the process, and are read again
        lost, self._labels = self._labels[at], self._labels[:at] + self._labels[at + 1 :]
        tally.add(lost, Verdict("failed", "death", f"the process ended with {self._process.exitcode}"), 0.0)
        if self._labels:
            self.start()
        return not self._labels


def _read(form: Format, labels: list[str], draw: Callable[[str], Files], sending: Any, at: Any) -> None:
    """The work of a process: read inputs that are drawn by their label."""
    with _limits(form) as try_out:
        for label in labels:
            try_out(label, draw(label))
            at.value += 1
        sending.send(try_out.tally)


def _read_by_grammar(form: Format, labels: list[str], draw: None, sending: Any, at: Any) -> None:
    """The work of a process: read inputs that hypothesis draws."""
    with _limits(form) as try_out:
        left = iter(labels)

        @settings(
            max_examples=len(labels),
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(grammar(form))
        def run(files: Files) -> None:
            label = next(left, None)
            if label is not None:
                try_out(label, files)
                at.value += 1

        for number in itertools.count():  # a small grammar is exhausted early, and some inputs then repeat
            if try_out.tally.inputs == len(labels):
                break
            seed(f"{labels[0]} {number}")(run)()
        sending.send(try_out.tally)


class _limits:  # noqa: N801 (a context)
    """A folder with a valid input, and the limits of time and memory for reading others there."""

    def __init__(self, form: Format) -> None:
        self._form = form
        self.tally = Tally()

    def __enter__(self) -> _limits:
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / "input"
        self._path.mkdir()
        install(self._form, self._path)
        judge(self._form, self._path, {})  # triggers lazy imports
        limit = _status("VmSize") + MEGABYTES * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        signal.signal(signal.SIGPROF, self._stop)
        self._before = _status("VmHWM")
        return self

    def __exit__(self, *error: Any) -> None:
        self._folder.cleanup()

    def __call__(self, label: str, files: Files) -> None:
        began = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            verdict = judge(self._form, self._path, files)
        except TooSlowError:
            verdict = Verdict("failed", "slow", f"more than {SECONDS} s of processor time")
        except MemoryError:
            verdict = Verdict("failed", "MemoryError", f"more than {MEGABYTES} MB")
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
        self.tally.add(label, verdict, time.process_time() - began)
        self.tally.peak = max(self.tally.peak, (_status("VmHWM") - self._before) / 2**20)
        if verdict.outcome == "failed":
            self._keep(label, files)

    def _stop(self, number: int, frame: Any) -> None:
        raise TooSlowError

    def _keep(self, label: str, files: Files) -> None:
        for path, data in files.items():
            there = ROOT / "out" / "fuzz" / label.replace("/", "-") / path.replace("/", "-")
            there.parent.mkdir(parents=True, exist_ok=True)
            there.write_bytes(data)


def _status(name: str) -> int:
    """A figure of this process from /proc, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def row(form: Format, tally: Tally, start: int) -> dict[str, Any]:
    """The stored form of a tally."""
    count = {name: sum(v for k, v in tally.outcomes.items() if k.startswith(name)) for name in ("accepted", "refused")}
    where = environment()
    where["versions"] |= {name: version_of(name) for name in ("hypothesis", "safetensors", "pillow")}
    return {
        "format": form.name,
        "inputs": tally.inputs,
        **count,
        "failed": len(tally.failures),
        "errors": {key.split()[1]: value for key, value in tally.outcomes.items() if key.startswith("refused")},
        "slowest_seconds": round(tally.slowest[0], 3),
        "slowest_input": tally.slowest[1],
        "peak_megabytes": round(tally.peak, 1),
        "seed": start,
        "limits": {"seconds": SECONDS, "megabytes": MEGABYTES},
        "failures": [{"input": label, "why": why} for label, why in tally.failures[:5]],
        **where,
    }


if __name__ == "__main__":
    main()
