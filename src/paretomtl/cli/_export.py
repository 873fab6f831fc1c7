"""Exports of the model that ``paretomtl select`` chose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from paretomtl._support.files.atomic_files import read_record
from paretomtl._support.files.safe_open import exists
from paretomtl._support.terminal import print_text, text_console
from paretomtl.cli._lookup import find_problem, problem_in_python
from paretomtl.cli._run_options import RunOptions
from paretomtl.cli._trust import needs_trust, refusal
from paretomtl.engine.batches.make import make_batches
from paretomtl.engine.batches.structure import map_samples
from paretomtl.front import Front
from paretomtl.front.storage.export import (
    ExportedModel,
    export_onnx,
    export_torchscript,
    export_weights,
    find_other_exports,
    weights_file,
)
from paretomtl.front.storage.export_inputs import export_inputs
from paretomtl.problems import Problem
from paretomtl.runs.checkpoint_file import FORMAT
from paretomtl.runs.options import OPTIONS

_SAMPLES = 2, 3  # batch sizes: one to trace a model with, one to test the traced model


@dataclass(frozen=True)
class Source:
    """The problem of a run, by its name on the command line if that is known.

    Attributes:
        run: the folder of the run, or of its front.
        name: of the problem; None if it is not known.
        settings: its arguments.
        trusted: whether it may be made: it is built in, the user named it, or the user trusts the file that names it.
    """

    run: Path
    name: str | None
    settings: Sequence[str]
    trusted: bool = True

    @classmethod
    def of(cls, run: Path, name: str | None, settings: Sequence[str] | None, *, trust: bool) -> Source:
        """Return the problem that is named, or else the one that the run was started with."""
        folder = run.parent if exists(run / "front.json") and exists(run.parent / "config.json") else run
        if name is not None or not exists(folder / OPTIONS):
            if settings and name is None:
                raise ValueError("'--with' must go with '--problem': the run does not name its problem.")
            return cls(folder, name, settings or [])
        asked = RunOptions.load(folder)
        trusted = trust or not needs_trust(asked.problem, [] if settings else asked.with_)
        return cls(folder, asked.problem, settings or asked.with_, trusted)

    def problem(self) -> Problem:
        """The problem itself."""
        if self.name is None:
            raise ValueError(
                f"'--problem' must be given for an export of the whole model: '{self.run}' has no asked.json."
            )
        self.check_trust()
        return find_problem(self.name, self.settings)

    def check_trust(self) -> None:
        """Refuse to make a problem that a file names, unless the user trusts it."""
        if self.name is not None and not self.trusted:
            raise refusal(self.run / OPTIONS, self.name, self.settings, ["paretomtl", "select", str(self.run)])

    def facts(self, log: Callable[[str], None]) -> dict[str, Any]:
        """Return facts of the run that its front does not hold; None, and a log line, for a damaged configuration."""
        path = self.run / "config.json"
        try:
            config = read_record(path, [FORMAT]) if exists(path) else {}
        except (ValueError, OSError) as error:
            config = {}
            log(f"The model card omits the run's configuration: {error} For details: paretomtl doctor {self.run}")
        return {
            "problem_argument": self.name,
            "problem_settings": list(self.settings),
            "method_in_words": config.get("method"),
            "data": config.get("data"),
            "precision": config.get("precision"),
            "trained_with": config.get("version"),
        }


def export(
    run: Path,
    source: Source,
    k: int,
    reason: str,
    split: str,
    *,
    weights: Path | None,
    torchscript: Path | None,
    onnx: Path | None,
) -> None:
    """Write the requested files; print their paths, and notes about them, on standard error."""
    console = text_console(stderr=True)
    written: list[Path] = []
    programs: dict[Path, ExportedModel] = {}
    problem = None
    try:
        if source.trusted or torchscript is not None or onnx is not None:
            problem = source.problem()
        else:  # weights need no problem
            note = f"Written without importing '{source.name}', so the names of the weights are not compared with it"
            print_text(console, f"{note}: --problem FILE.py:NAME, or --trust, does that.")
    except (ValueError, TypeError, OSError, ModuleNotFoundError) as error:
        if torchscript is not None or onnx is not None:
            raise
        if source.name is not None:
            note = f"The problem cannot be made here ({error}), so the names of the weights are not checked."
            print_text(console, note)
    front = Front.load(run, problem)
    targets = [None if weights is None else weights_file(weights), torchscript, onnx]
    others = find_other_exports(front, k, [path.parent for path in targets if path is not None])
    if weights is not None:
        make = None if problem is None or source.name is None else problem_in_python(source.name, source.settings)
        run_facts = source.facts(lambda text: print_text(console, text))
        facts = {**run_facts, "chosen_because": reason, "chosen_on": split}
        written += export_weights(front, k, weights, make=make, facts=facts)
    if problem is not None and (torchscript is not None or onnx is not None):
        model = front.model(k)
        with export_inputs(problem, model, _sample_batches(problem, model)) as (some, more):
            for path, write in ((torchscript, export_torchscript), (onnx, export_onnx)):
                if path is not None:
                    programs[path] = write(model, path, some, more)
                    for note in programs[path].notes:
                        print_text(console, f"Note: {note}")
                    written.append(path)
    print_text(console, f"Written: {', '.join(map(str, written))}")
    for line in _describe_inputs(programs):
        print_text(console, line)
    left = [str(path) for path in others if path not in written]
    if left:
        where = f"another model is still in {', '.join(left)}, from an earlier export"
        print_text(console, f"Note: {where}: write it again, or delete it.")


def _describe_inputs(programs: Mapping[Path, ExportedModel]) -> Iterator[str]:
    """Lines with the inputs of the files: one line if all have the same."""
    by_inputs: dict[str, list[str]] = {}
    for path, program in programs.items():
        by_inputs.setdefault(", ".join(program.inputs), []).append(str(path))
    for inputs, paths in by_inputs.items():
        yield f"Inputs: {inputs}" if len(by_inputs) == 1 else f"Inputs of {', '.join(paths)}: {inputs}"
    for path, program in programs.items():
        if program.fixed:
            yield f"In {path}, {' and '.join(program.fixed)}."


def _sample_batches(problem: Problem, model: torch.nn.Module) -> list[Any]:
    """Two numbers of samples, from one batch: a loader has batches of one size."""
    dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32)
    data = make_batches("train", problem.train, batch_size=max(_SAMPLES), device=torch.device("cpu"), dtype=dtype)
    batch = next(iter(data.epoch(0, 0)))

    def resized(samples: int) -> Any:
        return map_samples(lambda tensor: tensor[torch.arange(samples) % len(tensor)], batch)

    return [resized(samples) for samples in _SAMPLES]
