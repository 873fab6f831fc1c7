"""The formats that this library writes itself: runs, fronts, weights, results."""

from __future__ import annotations

import json
import shutil
import tempfile
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import torch

import paretomtl as pm
from _helpers.fronts import front_of
from _helpers.fuzzing.format import Format, as_json, made
from _helpers.fuzzing.mutations import mutate
from _helpers.fuzzing.packing import tensor_file
from paretomtl._support.files.atomic_files import write_record
from paretomtl._support.files.tensor_files import read_tensors
from paretomtl.cli._options import parse_numbers, parse_settings
from paretomtl.cli._run_options import RunOptions
from paretomtl.cli._summary import summary
from paretomtl.compare import load_rows, save_rows
from paretomtl.diagnosis import Proposal
from paretomtl.front.storage.export import export_weights
from paretomtl.report.page._live import LiveRun
from paretomtl.runs.doctor import inspect_run
from paretomtl.runs.folder import RunFolder
from paretomtl.runs.log import read_log
from paretomtl.runs.manifest import read_manifest
from paretomtl.training.options import TrainingOptions


def _front() -> pm.Front:
    """A front with every optional field."""
    losses = torch.tensor([[0.2, 0.9], [0.5, 0.5], [float("nan"), 0.1]], dtype=torch.float64)
    front = front_of(
        losses.tolist(),
        splits={"val": losses.float().double() + 0.1},
        metrics={"train": {"left accuracy": torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64)}},
        better={"left accuracy": "higher"},
        epochs=[2, 2, 1],
        reference=(1.0, 1.0),
        ideal=(0.0, 0.0),
        strategy="sequential",
        measured={"cosines": torch.zeros(3, 2)},
        names=("first", "second", "third"),
    )
    full = replace(
        front,
        scale=torch.ones(3, 2, dtype=torch.float64),
        since=[0, 3, 4],
        history={"losses": torch.zeros(2, 3, 2), "weights": torch.ones(2, 3, 2)},
    )
    return replace(full, snapshot=full)


def use_front(front: pm.Front, folder: Path) -> None:
    """Use a front as commands do."""
    assert repr(front)
    for split in (None, *front.losses):
        assert json.dumps(summary(front, folder, split))
    for k in front.subproblems if front.models else ():
        assert front.state_dict(k)
    assert len(front.status) == len(front) == len(front.losses[front.ranking_split])
    try:
        front.select(importance=[1.0] * len(front.tasks))
    except ValueError as error:
        assert "must" in str(error)  # noqa: PT017 (a front may have no finite solution)
    if front.snapshot is not None:
        use_front(front.snapshot, folder)


def fronts() -> Format:
    """A front's folder."""
    files = made(lambda folder: _front().save(folder))
    tensors = [path for path in files if path.endswith(".safetensors")]
    changes = [("front.json", as_json)] * 5 + [("front.json", mutate)] * 2
    changes += [(path, change) for path in tensors for change in (mutate, tensor_file)]
    return Format("front", files, lambda folder: use_front(pm.Front.load(folder), folder), tuple(changes), 100)


def given_fronts() -> Format:
    """The folder of a front of losses alone."""
    files = made(lambda folder: pm.Front.from_losses([[0.2, 0.9], [0.5, 0.5]], tasks=["a", "b"]).save(folder))
    changes = [("front.json", as_json)] * 5 + [("front.json", mutate)]
    return Format("given-front", files, lambda folder: use_front(pm.Front.load(folder), folder), tuple(changes), 30)


def loss_tables() -> Format:
    """A table of losses as text."""
    text = b'name,left,right,higher:f1\r\nfirst,0.2,0.9,0.5\n"a, b",0.5,5e-1,\n'

    def load(folder: Path) -> None:
        use_front(pm.Front.load(folder / "a.csv"), folder)

    return Format("loss-table", {"a.csv": text}, load, (("a.csv", mutate),), 30)


def tensors() -> Format:
    """The weights of one model, with their card."""
    files = made(lambda folder: export_weights(_front(), 0, folder, make=None, facts={}))
    path = "model.safetensors"

    def load(folder: Path) -> None:
        found, meta = read_tensors(folder / path)
        assert all(isinstance(tensor, torch.Tensor) for tensor in found.values())
        assert all(isinstance(value, str) for value in meta.values())

    return Format("weights", files, load, ((path, mutate), (path, tensor_file)), 60)


def checkpoints() -> Format:
    """A checkpoint on its own."""
    counts = {"epoch": 3, "step": 0, "number": 3}
    state = {**counts, "groups": [{"step": torch.ones(()), 1: (2, 3.5)}], "counts": Counter({4: 1}), "best": None}
    files = made(lambda folder: RunFolder(folder).save_checkpoint(state))
    path = "checkpoint.safetensors"

    def load(folder: Path) -> None:
        assert isinstance(RunFolder(folder).load_checkpoint(), dict)

    return Format("checkpoint", files, load, ((path, mutate), (path, tensor_file), (path, tensor_file)), 60)


_CONFIG = {"tasks": ["a", "b"], "preferences": [[1.0, 0.0]], "epochs": 3, "taken": {"strategy": "batched"}}


def configurations() -> Format:
    """The configuration of a run."""
    files = made(lambda folder: RunFolder(folder).begin(_CONFIG))

    def load(folder: Path) -> None:
        run = RunFolder(folder)
        try:
            stored = run.open(resume=True)
            assert stored is not None
            run.check(stored, _CONFIG)
        finally:
            run.close()

    return Format("run, config.json", files, load, (("config.json", as_json), ("config.json", mutate)), 60)


def _train(folder: Path, *, resume: bool) -> pm.Front:
    problem = pm.problems.quadratic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pm.fit(problem, preferences=2, epochs=3, out=folder, resume=resume, device="cpu", progress="quiet")


def runs() -> Format:
    """The folder of a run that is resumed."""
    files = made(lambda folder: _train(folder, resume=False))
    files = {path: data for path, data in files.items() if not path.startswith(("front", "checkpoint-previous"))}
    checkpoint = "checkpoint.safetensors"
    changes = (("config.json", as_json), (checkpoint, tensor_file), (checkpoint, tensor_file), (checkpoint, mutate))

    def load(folder: Path) -> None:
        with tempfile.TemporaryDirectory(dir=folder) as copy:  # a resumed run changes its folder
            for path in files:
                shutil.copy(folder / path, copy)
            assert len(_train(Path(copy), resume=True)) == 2

    return Format("run, resumed", files, load, changes, 4)


def manifests() -> Format:
    """The manifest of a run's folder."""
    files = made(lambda folder: _train(folder, resume=False))

    def load(folder: Path) -> None:
        assert isinstance(read_manifest(folder), dict)

    return Format("run, manifest.json", files, load, (("manifest.json", as_json), ("manifest.json", mutate)), 30)


def examined() -> Format:
    """The folder of a run that is inspected, which never fails."""
    files = made(lambda folder: _train(folder, resume=False))
    models = next(path for path in files if path.startswith("front/models"))
    changes = [(path, as_json) for path in files if path.endswith(".json")]
    changes += [(path, mutate) for path in files]
    changes += [(path, tensor_file) for path in (models, "checkpoint.safetensors")]

    def load(folder: Path) -> None:
        assert all(finding.text for finding in inspect_run(folder))

    return Format("run, examined", files, load, tuple(changes), 10)


def watched() -> Format:
    """The folder of a run that is watched, which never fails."""
    files = made(lambda folder: _train(folder, resume=False))
    files = {path: data for path, data in files.items() if not path.startswith("front")}

    def events(data: bytes, random: Random) -> bytes:
        return b"".join(as_json(line, random) + b"\n" for line in data.split(b"\n") if line)

    changes = (("config.json", as_json), ("config.json", mutate), ("log.jsonl", events), ("log.jsonl", mutate))

    def load(folder: Path) -> None:
        run = LiveRun(folder, "run")
        run.poll()
        if run.front is not None:
            assert json.dumps(run.view())

    return Format("run, watched", files, load, changes, 20)


def logs() -> Format:
    """A run's log; lines that cannot be read are skipped."""

    def write(folder: Path) -> None:
        run = RunFolder(folder)
        for epoch in range(4):
            run.log("epoch", epoch=epoch, losses=[[0.1, 0.2]], task="links\u2028rechts")

    def load(folder: Path) -> None:
        assert all(isinstance(event, dict) for event in read_log(folder))

    def change(data: bytes, random: Random) -> bytes:
        lines = [as_json(line, random) for line in data.split(b"\n") if line]
        return b"\n".join(lines)

    return Format("run, log.jsonl", made(write), load, (("log.jsonl", mutate), ("log.jsonl", change)), 60)


def asked() -> Format:
    """The stored options of the command line."""
    training = TrainingOptions(epochs=3, clip_norm=0.5)
    options = RunOptions("synthetic", ["a=1"], "linear", [], None, None, None, training).stored()

    def load(folder: Path) -> None:
        found = RunOptions.load(folder)
        for name, value in found.stored().items():
            assert value is None or type(value) in (str, int, float, bool, list), name
        assert all(isinstance(text, str) for text in [found.problem, found.training.keep, *found.with_, *found.set_])

    files = made(lambda folder: write_record(folder / "asked.json", options, format=1))
    return Format("run, asked.json", files, load, (("asked.json", as_json), ("asked.json", mutate)), 60)


def proposals() -> Format:
    """The proposal of a diagnosis."""
    proposal = Proposal("digits", ("left", "right"), "pareto-mtl", ((1.0, 0.0), (0.6, 0.8)), (1.0, 0.5))

    def load(folder: Path) -> None:
        found = Proposal.load(folder / "a.json")
        options = found.fit_options()
        assert isinstance(options["method"], pm.methods.Method)
        rows = options["preferences"]
        assert isinstance(rows, int) or {len(row) for row in rows} == {len(found.tasks)}

    files = made(lambda folder: proposal.save(folder / "a.json"))
    return Format("proposal", files, load, (("a.json", as_json), ("a.json", mutate)), 60)


def rows() -> Format:
    """Stored results."""
    files = made(lambda folder: save_rows(folder / "a.json", "a", "b", [{"x": 1, "losses": [[1.0, 2.0]]}, {"x": 2}]))

    def load(folder: Path) -> None:
        assert all(isinstance(row, dict) for row in load_rows(folder / "a.json"))

    return Format("stored rows", files, load, (("a.json", as_json), ("a.json", mutate)), 60)


def options() -> Format:
    """Texts of the command line: they are in no file, and errors name the option."""

    def load(folder: Path) -> None:
        text = (folder / "--option").read_bytes().decode(errors="surrogateescape")
        name = str(folder / "--option")
        try:
            parse_numbers(name, text)
        except ValueError as error:
            assert name in str(error)  # noqa: PT017
        assert isinstance(parse_settings(name, [text], ["epsilon"], "a method"), dict)

    seed = b"epsilon=[(1, 0.5), {'a': None}]"
    return Format("options", {"--option": seed}, load, (("--option", mutate),), 20)


STORED = [
    *(
        fronts,
        given_fronts,
        loss_tables,
        tensors,
        checkpoints,
        configurations,
        manifests,
        runs,
        examined,
        watched,
        logs,
        asked,
        proposals,
        rows,
        options,
    ),
]
