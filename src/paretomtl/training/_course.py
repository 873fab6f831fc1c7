"""The course of a run: where it stands, what it remembers, and how it is stored and taken up again."""

from __future__ import annotations

import copy
import hashlib
import json
import signal
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import torch
from torch import Tensor, nn

from paretomtl._extras import version_of
from paretomtl.front import Front
from paretomtl.methods import Method, slice_state
from paretomtl.problems import OptimizerFactory, Problem, SchedulerFactory
from paretomtl.training._batches import Batches, make_batches
from paretomtl.training._evaluate import Scores, evaluate
from paretomtl.training._models import Single, make_modules, named_tensors
from paretomtl.training._outcome import Best, Stage, by_group, volume
from paretomtl.training._progress import Callback, Report
from paretomtl.training._random import isolated_randomness, model_seed, random_state, seed_everything, set_random_state
from paretomtl.training._run import RunFolder
from paretomtl.training._step import Group, Taken
from paretomtl.training._strategies import Plan, build

_REPORT_SECONDS = 0.5  # between reports of a problem without data, whose epochs are single steps
_NOTHING = object()


@dataclass(frozen=True)
class Settings:
    """What the user asked for, checked and complete."""

    problem: Problem
    method: Method
    vectors: list[Tensor]
    subproblems: list[int]
    seeds: list[int]
    epochs: int
    batch_size: int
    optimizer: OptimizerFactory | None
    scheduler: SchedulerFactory | None
    schedule: str
    strategy: str
    device: torch.device
    precision: str
    dtype: torch.dtype
    autocast: torch.dtype | None
    clip_norm: float | None
    compiler: Mapping[str, Any] | None
    keep: str

    def config(self, modules: Sequence[nn.Module], group: Group, samples: int | None) -> dict[str, Any]:
        """What must be the same for a run to be taken up again, as JSON."""
        shapes = {name: list(tensor.shape) for name, tensor in named_tensors(modules[0]).items()}
        options = [
            {key: value for key, value in part.items() if key not in ("params", "param_names", "lr", "initial_lr")}
            for part in group.optimizer.param_groups
        ]
        rates = [part.get("initial_lr", part["lr"]) for part in group.optimizer.param_groups]
        return {
            "version": version_of("paretomtl"),
            "problem": self.problem.name,
            "tasks": list(self.problem.tasks),
            "samples": samples,
            "parameters": hashlib.sha256(json.dumps(shapes).encode()).hexdigest()[:16],
            "method": repr(self.method),
            "preferences": self.vectors[0].tolist(),
            "subproblems": self.subproblems,
            "seed": self.seeds[0],
            "epochs": self.epochs,
            "batch_size": self.batch_size,
            "optimizer": f"{type(group.optimizer).__name__} {options!r}, learning rates {[float(r) for r in rates]}",
            "scheduler": None if group.scheduler is None else type(group.scheduler).__name__,
            "schedule": self.schedule,
            "strategy": self.strategy,
            "device": self.device.type,
            "precision": self.precision,
            "clip_norm": self.clip_norm,
            "compile": self.compiler is not None,
            "keep": self.keep,
        }


class Course:
    """A run from its start, or from its last checkpoint, to its fronts.

    Attributes:
        groups: the models, in groups that step together.
        epoch: how many epochs are done.
        step: how many steps of the current epoch are done.
        number: how many steps are done in all.
        total: how many steps are planned; 0 when that is not known.
        stopping: whether the user wants to stop after the current step.
        finished: the front of a run that was complete already.
    """

    def __init__(
        self, settings: Settings, folder: RunFolder | None, resume: bool, pause: float, listeners: list[Callback]
    ) -> None:
        self._settings = settings
        self._folder = folder
        self._pause = pause
        self._listeners = listeners
        problem = settings.problem
        stored = None if folder is None else folder.open(resume=resume)
        self._splits = {name: self._make_batches(name) for name in ("train", "val", "test") if self._has(name)}
        self._train = self._splits["train"]
        seeds = [model_seed(seed, k) for seed in settings.seeds for k in settings.subproblems]
        modules = make_modules(problem, seeds, settings.device, settings.dtype)
        first = next(self._train.epoch(settings.seeds[0], 0), _NOTHING)
        if first is _NOTHING:
            raise ValueError("'train' must hold at least one batch. Got an empty one.")
        _check_losses(settings, modules[0], first)

        self.total = 0 if self._train.steps is None else self._train.steps * settings.epochs
        self.epoch = self.step = self.number = 0
        self.stopping = False
        self.finished: Front | None = None
        self.groups, self._strategy, self._reason = self._build(modules, first, stored)
        rows, tasks = len(modules), len(problem.tasks)
        self._zeros = torch.zeros(rows, tasks, dtype=torch.float64, device=settings.device)
        self._sums = {"losses": self._zeros, "weights": self._zeros, "present": self._zeros}
        self._history: dict[str, list[Tensor]] = {"losses": [], "weights": [], "val": []}
        self._stages: list[Stage] = []
        self._best = Best(self.groups) if settings.keep == "best" else None
        self._first_losses: Tensor | None = None
        self._seconds = 0.0
        self._began = self._saved = self._reported = time.monotonic()
        self._whole = True
        self._old_handler: Any = None
        seed_everything(settings.seeds[0])
        if folder is not None:
            self._open(folder, stored, settings.config(modules, self.groups[0], self._train.samples))

    # The loop's view: batches, and what happens around a step and an epoch.

    def batches(self, epoch: int) -> Iterator[Any]:
        """What is left of an epoch. Until a step is done, there is nothing whole that could be stored."""
        source = self._train.epoch(self._settings.seeds[0], epoch, self.step)
        while True:
            self._whole = False
            batch = next(source, _NOTHING)
            if batch is _NOTHING:
                self._whole = True
                return
            yield batch

    def before_step(self) -> None:
        """Keep the models right before the constraints are dropped, where the method drops them."""
        if self.number in self._settings.method.snapshots(self.total):
            self._stages.append(self._stage())

    def after_step(self, taken: Sequence[Taken]) -> None:
        """Add up what the step saw; take out models whose losses alone were NaN; store a checkpoint if it is time."""
        losses, weights, present = (
            torch.cat([getattr(part, name) for part in taken]) for name in ("losses", "weights", "present")
        )
        if self._settings.problem.train is not None and len(present) > 1:
            self._take_out_unlike(present)
        if self.number == 0:
            self._first_losses = losses
        seen = torch.where(present, losses, 0.0)
        self._sums = {
            "losses": self._sums["losses"] + seen,
            "weights": self._sums["weights"] + weights,
            "present": self._sums["present"] + present,
        }
        if self._settings.schedule == "step":
            self._step_schedulers()
        self.step += 1
        self.number += 1
        self._whole = True
        if self._train.resumes_inside and self._due():
            self._save()

    def after_epoch(self) -> None:
        """Evaluate on validation, keep the best, report, and store a checkpoint if it is time."""
        self._history["losses"].append(self._sums["losses"] / self._sums["present"])
        self._history["weights"].append(self._sums["weights"] / max(self.step, 1))
        self._sums = {"losses": self._zeros, "weights": self._zeros, "present": self._zeros}
        self.epoch += 1
        self.step = 0
        if self._settings.schedule == "epoch":
            self._step_schedulers()
        scores = None
        if "val" in self._splits:
            scores = self._evaluate("val")
            self._history["val"].append(scores.losses)
            if self._best is not None:
                self._best.consider(self.epoch, scores, self.groups, self._settings)
        self._report(scores)
        if self._due() or (not self._train.resumes_inside and self._folder is not None):
            self._save()

    def fronts(self) -> list[Front]:
        """The result: of the whole run, or of what there is of it."""
        complete = self.epoch == self._settings.epochs
        self._save()
        if self._best is not None:
            self._best.give_back(self.groups)
        stages = [*self._stages, self._stage()]
        broken = [i for i, word in enumerate(stages[-1].status) if word == "non-finite"]
        if broken:
            numbers = [self._settings.subproblems[i % len(self._settings.subproblems)] for i in broken]
            warnings.warn(
                f"losses of subproblems {numbers} were not finite; each was frozen at its last finite step, and the "
                "others went on.",
                stacklevel=4,
            )
        settings = self._settings
        reference = settings.problem.reference
        if reference is None and self._first_losses is not None:
            largest = self._first_losses.double().amax(0)
            reference = tuple(largest.tolist()) if bool(largest.isfinite().all()) else None
        fronts = []
        for i, seed in enumerate(settings.seeds):
            part = slice(i * len(settings.subproblems), (i + 1) * len(settings.subproblems))
            front = None
            for stage in stages:
                front = Front(
                    problem=settings.problem.name,
                    method=settings.method.name,
                    tasks=tuple(settings.problem.tasks),
                    reading=settings.method.reading,
                    preferences=settings.vectors[i],
                    subproblems=tuple(settings.subproblems),
                    history=self._traces(part),
                    seed=seed,
                    seconds=self._elapsed(),
                    model_factory=settings.problem.model,
                    snapshot=front,
                    better={name: metric.better for name, metric in settings.problem.metrics.items()},
                    complete=complete,
                    strategy=f"{self._strategy}: {self._reason}",
                    reference=None if reference is None else tuple(reference),
                    **stage.part(part),
                )
            assert front is not None
            fronts.append(front)
        if self._folder is not None:
            self._folder.save_front(fronts[0])
            self._folder.log("end" if complete else "stopped", epoch=self.epoch, seconds=round(self._elapsed(), 3))
        return fronts

    # Stopping cleanly.

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._old_handler = signal.signal(signal.SIGINT, self._interrupted)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._old_handler is not None:
            signal.signal(signal.SIGINT, self._old_handler)
        try:
            if error is not None and self._whole and (self._train.resumes_inside or self.step == 0):
                self._save()
        finally:
            for listener in self._listeners:
                if hasattr(listener, "close"):
                    listener.close()

    def _interrupted(self, number: int, frame: Any) -> None:
        if self.stopping:
            raise KeyboardInterrupt
        self.stopping = True

    # Checkpoints.

    def _open(self, folder: RunFolder, stored: dict[str, Any] | None, config: dict[str, Any]) -> None:
        """Start the folder of a new run, or take up the one in it."""
        if stored is None:
            try:
                folder.save_checkpoint(self._state())
                folder.begin({**config, "taken": self._strategy, "why": self._reason})
            except OSError as error:
                raise ValueError(f"'out' must have room for a run. {error}.") from None
            folder.log("start", strategy=self._strategy, why=self._reason)
            return
        folder.check(stored, config)
        if (folder.front_path / "front.json").exists():
            front = Front.load(folder.front_path, self._settings.problem)
            if front.complete:
                self.finished = front
                return
        state = folder.load_checkpoint()
        if state is not None:
            self._load(state)
        folder.log("resume", epoch=self.epoch, step=self.number)

    def _due(self) -> bool:
        return self._folder is not None and time.monotonic() - self._saved >= self._pause

    def _save(self) -> None:
        """Store a checkpoint; where that fails, say so and go on: the last one is still there."""
        if self._folder is None or (self.step and not self._train.resumes_inside):
            return
        try:
            self._folder.save_checkpoint(self._state())
        except OSError as error:
            warnings.warn(f"no checkpoint could be stored: {error}. Training goes on.", stacklevel=2)
        self._saved = time.monotonic()

    def _state(self) -> dict[str, Any]:
        return {
            "epoch": self.epoch,
            "step": self.step,
            "number": self.number,
            "seconds": self._elapsed(),
            "groups": [
                {
                    "tensors": group.models.tensors(),
                    "previous": group.previous,
                    "alive": group.alive,
                    "state": group.state,
                    "optimizer": group.optimizer.state_dict(),
                    "scheduler": None if group.scheduler is None else group.scheduler.state_dict(),
                }
                for group in self.groups
            ],
            "sums": self._sums,
            "history": {name: torch.stack(parts) for name, parts in self._history.items() if parts},
            "stages": [vars(stage) for stage in self._stages],
            "best": None if self._best is None else self._best.state(),
            "first_losses": self._first_losses,
            "random": random_state(),
        }

    def _load(self, state: dict[str, Any]) -> None:
        device = self._settings.device
        self.epoch, self.step, self.number = state["epoch"], state["step"], state["number"]
        self._seconds = state["seconds"]
        for group, stored in zip(self.groups, state["groups"], strict=True):
            there = {name: tensor.to(device) for name, tensor in stored["tensors"].items()}
            group.models.restore(torch.ones_like(group.alive), there)
            group.previous = {name: tensor.to(device) for name, tensor in stored["previous"].items()}
            group.alive = stored["alive"].to(device)
            group.state = {name: tensor.to(device) for name, tensor in stored["state"].items()}
            group.optimizer.load_state_dict(stored["optimizer"])
            if group.scheduler is not None:
                group.scheduler.load_state_dict(stored["scheduler"])
        self._sums = {name: tensor.to(device) for name, tensor in state["sums"].items()}
        self._history |= {name: list(tensor.to(device)) for name, tensor in state["history"].items()}
        self._stages = [Stage(**stage) for stage in state["stages"]]
        if self._best is not None:
            self._best.load(state["best"], device)
        if state["first_losses"] is not None:
            self._first_losses = state["first_losses"].to(device)
        set_random_state(state["random"])

    # Pieces.

    def _has(self, split: str) -> bool:
        return split == "train" or getattr(self._settings.problem, split) is not None

    def _make_batches(self, split: str) -> Batches:
        settings = self._settings
        return make_batches(
            split,
            getattr(settings.problem, split),
            batch_size=settings.batch_size,
            device=settings.device,
            dtype=settings.dtype,
        )

    def _build(
        self, modules: list[nn.Module], batch: Any, stored: Mapping[str, Any] | None
    ) -> tuple[list[Group], str, str]:
        settings = self._settings
        parts = [slice_state(settings.method.init(rows), settings.subproblems) for rows in settings.vectors]
        state = {name: torch.cat([part[name] for part in parts]).to(settings.device) for name in parts[0]}
        plan = Plan(
            settings.problem,
            settings.method,
            settings.optimizer,
            settings.scheduler,
            settings.clip_norm,
            settings.autocast,
            settings.compiler,
        )
        if stored is not None and "taken" in stored:
            make = plan.batched if stored["taken"] == "batched" else plan.sequential
            return make(modules, state), stored["taken"], stored["why"]
        return build(plan, settings.strategy, modules, state, batch, self.total)

    def _take_out_unlike(self, present: Tensor) -> None:
        """A task that is NaN for some living models and not for others was not without labels: those models broke."""
        alive = torch.cat([group.alive for group in self.groups])[:, None]
        absent = (~present | ~alive).all(0)
        self._take_out((present | absent).all(-1))

    def _take_out(self, sound: Tensor) -> None:
        """Models that are not sound, ``[K]`` bool, go back to where they last were so, and stay there."""
        for group, mine in zip(self.groups, by_group(sound, self.groups), strict=True):
            group.alive = group.alive & mine

    def _step_schedulers(self) -> None:
        for group in self.groups:
            if group.scheduler is not None:
                group.scheduler.step()

    def _evaluate(self, split: str) -> Scores:
        for group in self.groups:
            group.settle()
        with isolated_randomness():
            seed_everything(0)
            return evaluate(self._settings.problem, self.groups, self._splits[split])

    def _stage(self) -> Stage:
        """The models as they are now; one that is not finite on the training split goes back to its last step."""
        scores = {split: self._evaluate(split) for split in self._splits}
        losses = scores["train"].losses
        absent = losses.isnan().all(0) & (self._settings.problem.train is not None) & ~losses.isnan().all()
        sound = (losses.isfinite() | absent).all(-1).to(self._settings.device)
        if not bool(sound.all()):
            self._take_out(sound)
            scores = {split: self._evaluate(split) for split in self._splits}
        epochs = [self.epoch] * len(self._zeros) if self._best is None else self._best.epochs(self.epoch)
        return Stage.of(self._settings.method, self.groups, scores, epochs)

    def _traces(self, part: slice) -> dict[str, Tensor]:
        dtype = self._settings.dtype
        empty = self._zeros[:0, part].reshape(0, part.stop - part.start, self._zeros.shape[1])
        return {
            name: torch.stack([table[part].to("cpu", dtype) for table in tables]) if tables else empty.to("cpu", dtype)
            for name, tables in self._history.items()
            if tables or name != "val"
        }

    def _report(self, scores: Scores | None) -> None:
        """Tell the listeners and the log; for a problem without data not at every step."""
        if not self._listeners and self._folder is None:
            return
        last = self.epoch == self._settings.epochs
        if self._settings.problem.train is None and not last and time.monotonic() - self._reported < _REPORT_SECONDS:
            return
        self._reported = time.monotonic()
        settings = self._settings
        alive = torch.cat([group.alive for group in self.groups]).tolist()
        frozen = [k for k, living in zip(settings.subproblems, alive, strict=True) if not living]
        losses = self._history["losses"][-1].cpu()
        reference = settings.problem.reference
        if reference is None and self._first_losses is not None:
            reference = self._first_losses.double().amax(0).tolist()
        report = Report(
            epoch=self.epoch,
            epochs=settings.epochs,
            step=self.number,
            seconds=self._elapsed(),
            tasks=settings.problem.tasks,
            subproblems=settings.subproblems,
            losses=losses,
            weights=self._history["weights"][-1].cpu(),
            val_losses=None if scores is None else scores.losses,
            val_metrics={} if scores is None else scores.metrics,
            hypervolume=volume(losses if scores is None else scores.losses, reference),
            reference=reference,
            frozen=frozen,
        )
        if self._folder is not None:
            self._folder.log("epoch", **report.numbers())
        for listener in self._listeners:
            listener(report)

    def _elapsed(self) -> float:
        return self._seconds + time.monotonic() - self._began


def _check_losses(settings: Settings, module: nn.Module, batch: Any) -> None:
    """Find wrong losses before anything is trained, on a copy of the first model."""
    with isolated_randomness():
        losses = Single(settings.problem, copy.deepcopy(module)).losses(batch)
    if not losses.requires_grad:
        raise ValueError("'losses' must depend on the model's parameters. Got losses attached to none of them.")
    if settings.method.reading == "direction" and bool((losses < 0).any()):
        warnings.warn(
            f"losses are negative at the start ({losses.min().item():.3g}): preferences are directions of non-negative "
            "losses. Add a constant, or subtract each loss's lower bound.",
            stacklevel=5,
        )
