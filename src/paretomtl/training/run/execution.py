"""The models of a run while they train: their groups, their runner, and the fallback if a stack fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from paretomtl._support.random_state import isolated_randomness, seed_everything
from paretomtl._support.splits import ranking_split
from paretomtl.engine.average import averages_in_place
from paretomtl.engine.batches.base import Batches, OneBatch
from paretomtl.engine.batches.indexed import ResidentBatches
from paretomtl.engine.batches.structure import moved
from paretomtl.engine.branch import copy_into
from paretomtl.engine.coupling import slices
from paretomtl.engine.evaluate import Scores, evaluate
from paretomtl.engine.fallback import Fallback, is_failed_stack, unstack
from paretomtl.engine.history import EpochHistory
from paretomtl.engine.model_group import Group, split_by_group
from paretomtl.engine.models.modules import frozen_tensors, own_tensors
from paretomtl.engine.rollback import rollback_on_failure
from paretomtl.engine.runners.cuda_graph import GraphRunner
from paretomtl.engine.runners.eager import EagerRunner
from paretomtl.engine.strategy import ExecutionPlan, Plan
from paretomtl.methods import State, slice_state
from paretomtl.problems import Problem
from paretomtl.training.results.snapshot import concat_rows
from paretomtl.training.run.models import SharedStart, make_models
from paretomtl.training.settings.settings import Settings
from paretomtl.training.torch_modes import library_modes
from paretomtl.training.untrained import checked_untrained, is_cheap


class Execution:
    """The models of a run, in groups that step together.

    A stack that fails in a step or an evaluation is rolled back. Its models then do the same work one after another,
    and continue that way. An error of a single model comes from the user's code, and is raised unchanged.

    Before a run branches, there is one model for each seed. Everything outside sees it as the K models that it is going
    to be, which are still the same.

    Args:
        settings: of the run.
        splits: the data.
        plan: what all groups have in common.
        choice: how the models are trained.
        groups: the models, in groups that step together.
        history: sums up losses and weights of the steps.
        untrained: losses of the untrained models on the split that ranks, ``[K, m]``; None if unknown.
        shared: how the models train before they branch; None if they do not.

    Attributes:
        groups: the models, in groups that step together.
        choice: how they are trained now.
        fallback: at which step the stacks failed, and why; None before that.
        untrained: as above.
        branched_at: how many steps the models shared; 0 without a shared start, None before they branch.
    """

    def __init__(
        self,
        settings: Settings,
        splits: Mapping[str, Batches],
        plan: Plan,
        choice: ExecutionPlan,
        groups: list[Group],
        history: EpochHistory,
        untrained: Tensor | None,
        shared: SharedStart | None = None,
    ) -> None:
        self._settings, self._splits, self._plan, self._history = settings, splits, plan, history
        self.choice, self.groups, self.untrained = choice, groups, untrained
        self.fallback: Fallback | None = None
        self._shared = shared
        self.branched_at: int | None = 0 if shared is None else None
        self._frozen = _fingerprints(groups)
        self._runner: EagerRunner | None = None
        self._source: Iterator[Any] = iter(())

    def __str__(self) -> str:
        return str(self.fallback or f"{self.choice.strategy}: {self.choice.reason}")

    def stored(self) -> dict[str, Any]:
        """The groups and the fallback, for a checkpoint."""
        fallen = {} if self.fallback is None else {"fallback": vars(self.fallback)}
        branched = {} if self._shared is None else {"branched": self.branched_at}
        groups = [group.stored() for group in self.groups]
        return {"groups": groups, "untrained": self.untrained, **branched, **fallen}

    def load(self, stored: Mapping[str, Any]) -> None:
        """Restore what :meth:`stored` returned, before the first step here."""
        fallback = Fallback.of(stored.get("fallback"))
        if fallback is not None:
            self._leave_stacks(fallback)
        if self._shared is not None and stored["branched"] is not None:
            self.groups, self.branched_at = self._separate_groups(), int(stored["branched"])
        for group, each in zip(self.groups, stored["groups"], strict=True):
            group.load(each)
        self.untrained = checked_untrained(stored.get("untrained"), self._rows, len(self._settings.problem.tasks))

    @property
    def active(self) -> Tensor:
        """The models that are not frozen, ``[K]`` bool."""
        return self._for_all(torch.cat([group.active for group in self.groups]))

    @property
    def state(self) -> State:
        """The state of the run's method, with a row for each model."""
        if self.branched_at is None:
            assert self._shared is not None
            return self._shared.state_after
        return concat_rows([group.state for group in self.groups])

    def epoch(self, epoch: int, start: int, number: int) -> Iterator[Any]:
        """The items for :meth:`step`, from step ``start`` of an epoch on, when ``number`` steps are done in all."""
        self._open_epoch(epoch, start, number)
        while True:
            try:
                item = next(self._source)  # replaced when a captured stack fails
            except StopIteration:
                return
            yield item

    def step(self, item: Any, epoch: int, start: int, number: int) -> str:
        """Advance all models by one step; return a description of what a stack failed at, or an empty string."""
        runner = self._running()
        try:
            runner.step(item, self._own_number(number))
            return ""
        except Exception as error:
            if not is_failed_stack(error, self.groups):
                raise
            fallback = Fallback.after(number, self.choice, error)
        self._leave_stacks(fallback)
        if isinstance(runner, GraphRunner):  # its items are only batch sizes
            self._open_epoch(epoch, start, number)
            item = next(self._source)
        going_on = self._running()
        going_on.done = runner.done
        going_on.step(item, self._own_number(number))
        return f"step {number + 1}"

    def branch(self, number: int) -> None:
        """Replace each shared model by K copies, after ``number`` steps. Their method begins here."""
        self.close()
        groups = self._separate_groups()
        copy_into(self.groups, groups)
        self.groups, self.branched_at = groups, number

    def reopen_epoch(self, epoch: int, start: int, number: int) -> None:
        """Go on in the middle of an epoch with a new runner, for the step whose item was already taken.

        Items of launched steps are batches, and need nothing. Captured steps keep their place in the epoch themselves.
        """
        if self.choice.strategy == "graphed":
            self._open_epoch(epoch, start, number)
            next(self._source)

    def settle(self) -> list[tuple[str, ...]]:
        """Let the method settle what each model is asked for, by the probe so far; return its decisions by front.

        States are written in place, because a captured step reads them there.
        """
        method = self._plan.method
        state, active = self.state, self.active
        decisions, parts = [], []
        for rows in slices(len(active), self._plan.front_size):
            after = method.settle(slice_state(state, rows), active[rows])
            decisions.append(method.decisions(after))
            parts.append(after)
        for name, tensor in concat_rows(parts).items():
            for group, own in zip(self.groups, split_by_group(tensor, self.groups), strict=True):
                group.state[name].copy_(own)
        return decisions

    def evaluate(self, split: str, number: int) -> tuple[Scores, str]:
        """The scores of all models on a split, after ``number`` steps; and what a stack failed at, if it did."""
        for group in self.groups:
            group.restore_frozen()
        try:
            return self._scores(split), ""
        except Exception as error:
            if not is_failed_stack(error, self.groups):
                raise
            fallback = Fallback.after(number, self.choice, error)
        self._leave_stacks(fallback)
        return self._scores(split), f"the evaluation on '{split}' after step {number}"

    def probe(self, samples: Mapping[str, Any]) -> dict[str, Tensor]:
        """Losses ``[K, m]`` on a few samples by split, in full precision; empty if that fails."""
        settings, lowered = self._settings, [group.autocast for group in self.groups]
        try:
            for group in self.groups:
                group.autocast = None
            with library_modes("float32"):
                return {
                    split: self._scores_of_groups(
                        replace(settings.problem, metrics={}),
                        OneBatch(moved(batch, settings.device, settings.dtype)),
                        f"some samples of {split!r}",
                    ).losses.double()
                    for split, batch in samples.items()
                }
        except Exception:  # such as a model that runs in low precision alone
            return {}
        finally:
            for group, precision in zip(self.groups, lowered, strict=True):
                group.autocast = precision

    def evaluate_shuffled(self) -> Tensor | None:
        """Losses ``[K, m]`` on the split that ranks, if each sample has the inputs of another.

        None if that costs too much, or is not known: only ``losses(outputs, targets)`` tell inputs from targets.
        """
        problem, split = self._settings.problem, self._splits[ranking_split(list(self._splits))]
        if self._settings.shares.processes.is_distributed or problem.takes_model or self.branched_at is None:
            return None
        if not isinstance(split, ResidentBatches) or not is_cheap(split, self._splits["train"], self._settings):
            return None
        shuffled = split.with_shuffled_inputs()
        if shuffled is None:
            return None
        try:
            return self._scores_of_groups(replace(problem, metrics={}), shuffled, "shuffled samples").losses
        except Exception:  # nothing depends on it
            return None

    def step_schedulers(self) -> None:
        """Tell all schedulers that a step, or an epoch, is done."""
        for group in self.groups:
            if group.scheduler is not None:
                group.scheduler.step()

    def check_frozen(self) -> None:
        """Refuse a run that changed frozen parameters, because all models hold them once."""
        now = _fingerprints(self.groups)
        changed = [name for name in self._frozen if now.get(name) != self._frozen[name]]
        if changed:
            raise ValueError(
                f"'model' must leave frozen parameters as they are, which all models hold once. Got {changed[:3]}, "
                "which a later step changed: keep what steps change in buffers (register_buffer)."
            )

    def close(self) -> None:
        """Close the runner."""
        if self._runner is not None:
            self._runner.close()
        self._runner = None

    @property
    def _rows(self) -> int:
        """The number of models of all seeds, as everything outside sees them."""
        return len(self._settings.seeds) * len(self._settings.subproblems)

    def _for_all(self, rows: Tensor) -> Tensor:
        """Rows of the trained models, repeated for those that a shared one stands for."""
        return rows.repeat_interleave(self._rows // len(rows), 0)

    def _own_number(self, number: int) -> int:
        """The number of steps that the method has seen, of ``number`` steps in all."""
        return number - (self.branched_at or 0)

    def _separate_groups(self) -> list[Group]:
        """Groups of all models for a run that branches, with new modules."""
        module = self.groups[0].models.module
        own = own_tensors(module)
        changing = [name for name, p in module.named_parameters() if name in own and not p.requires_grad]
        return self.choice.groups(self._plan, make_models(self._settings, changing), self.state)

    def _scores(self, split: str) -> Scores:
        scores = self._scores_of_groups(self._settings.problem, self._splits[split], repr(split))
        if self.branched_at is not None:
            return scores
        return Scores(
            self._for_all(scores.losses), {name: self._for_all(values) for name, values in scores.metrics.items()}
        )

    def _scores_of_groups(self, problem: Problem, batches: Batches, name: str) -> Scores:
        ranks = self._settings.shares.processes
        train, seed = self._splits["train"], self._settings.seeds[0]
        with (
            isolated_randomness(0),
            rollback_on_failure(self.groups, isolated=True),
            averages_in_place(self.groups, lambda: train.epoch(seed, 0), ranks),
        ):
            if not ranks.is_distributed:  # one of several processes must not retry alone
                try:
                    return evaluate(problem, self.groups, batches, split=name)
                except torch.OutOfMemoryError:
                    seed_everything(0)
            return evaluate(problem, self.groups, batches, at_once=False, processes=ranks, split=name)

    def _running(self) -> EagerRunner:
        """The runner of the groups, made lazily, when everything that it reads is in place."""
        if self._runner is None:
            train, graphed = self._splits["train"], self.choice.strategy == "graphed"
            assert not graphed or isinstance(train, ResidentBatches)
            kind: type[EagerRunner] = GraphRunner if graphed else EagerRunner
            total = max(0, self._own_number(train.count_steps(self._settings.plan)))  # an extended run keeps its phases
            every, workers = self._settings.weigh_every, self.choice.workers
            self._runner = kind(self.groups, train, self._history, total, every, workers)
        return self._runner

    def _open_epoch(self, epoch: int, start: int, number: int) -> None:
        self._source = self._running().epoch(self._settings.seeds[0], epoch, start, self._own_number(number))

    def _leave_stacks(self, fallback: Fallback) -> None:
        """Continue with single models from the current state of the stacks."""
        self.fallback, self.choice = fallback, fallback.plan
        plan = self._plan if self.branched_at is not None or self._shared is None else self._shared.plan
        self.groups = unstack(plan, self.groups)
        self.close()


def _fingerprints(groups: Sequence[Group]) -> dict[str, int]:
    """A number for each frozen parameter that all models hold once, which changes with its values."""
    frozen = frozen_tensors(groups[0].models.module)
    return {name: int(torch.hash_tensor(tensor).item()) for name, tensor in frozen.items()}
