"""The models of a run while they train: their groups, their runner, and the fallback where a stack fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from paretomtl._support.random_state import isolated_randomness, seed_everything
from paretomtl.engine.autotune.choose import choose
from paretomtl.engine.batches.base import Batches
from paretomtl.engine.batches.indexed import ResidentBatches
from paretomtl.engine.evaluate import Scores, evaluate
from paretomtl.engine.fallback import Fallback, attempt, unstack
from paretomtl.engine.history import EpochHistory
from paretomtl.engine.rollback import rollback_on_failure
from paretomtl.engine.runners.cuda_graph import GraphRunner
from paretomtl.engine.runners.eager import EagerRunner
from paretomtl.engine.strategy import ExecutionPlan, Plan
from paretomtl.training.preflight.loss_units import FirstLosses, initial_state
from paretomtl.training.settings import Settings
from paretomtl.training.untrained import checked_untrained, measure_untrained


class Execution:
    """The models of a run, in groups that step together.

    A stack that fails in a step or an evaluation is left as it was before. Its models then do the same work one after
    another, and go on like this. An error that a model alone raises is one of the user's code, and is raised as it is.

    Args:
        settings: what was asked for.
        modules: the models, untrained.
        splits: the data.
        batch: the first one, for trials.
        choice: how to train, where that is known; None measures it.
        total: how many steps are planned; 0 when that is not known.
        history: sums up losses and weights of the steps.
        first_losses: of untrained models, by which a scale may be settled.
        resumed: whether :meth:`load` follows.

    Attributes:
        groups: the models, in groups that step together.
        choice: how they are trained now.
        fallback: where stacks were left, and why; None as long as that did not happen.
        untrained: losses of the untrained models on the split that ranks, ``[K, m]``; None where it is not known.
    """

    def __init__(
        self,
        settings: Settings,
        modules: Sequence[nn.Module],
        splits: Mapping[str, Batches],
        batch: Any,
        choice: ExecutionPlan | None,
        total: int,
        history: EpochHistory,
        *,
        first_losses: FirstLosses,
        resumed: bool = False,
    ) -> None:
        state = initial_state(settings, first_losses)
        self._plan = Plan(
            settings.problem,
            settings.method,
            settings.optimizer,
            settings.scheduler_for(total),
            settings.clip_norm,
            settings.autocast,
            settings.compiler,
            settings.schedule,
            settings.shares,
            len(settings.subproblems),
        )
        self._settings, self._splits, self._history = settings, splits, history
        self._total = (splits["train"].steps or 0) * settings.plan  # a run that is trained longer keeps its phases
        self._runner: EagerRunner | None = None
        self._source: Iterator[Any] = iter(())
        wanted = settings.strategy, settings.workers
        self.choice = choice or choose(self._plan, wanted, modules, state, splits["train"], batch, total)
        self.untrained: Tensor | None = None
        if not resumed and settings.start is None:
            self.untrained = measure_untrained(self._plan, self.choice, modules, state, splits, settings)
        self.groups = self.choice.groups(self._plan, modules, state)
        self.fallback: Fallback | None = None

    def __str__(self) -> str:
        return str(self.fallback or f"{self.choice.strategy}: {self.choice.reason}")

    def stored(self) -> dict[str, Any]:
        """The groups, and what became of stacks, for a checkpoint."""
        fallen = {} if self.fallback is None else {"fallback": vars(self.fallback)}
        return {"groups": [group.stored() for group in self.groups], "untrained": self.untrained, **fallen}

    def load(self, stored: Mapping[str, Any]) -> None:
        """Go back to what :meth:`stored` returned, before the first step here."""
        fallback = Fallback.of(stored.get("fallback"))
        if fallback is not None:
            self._leave_stacks(fallback)
        for group, each in zip(self.groups, stored["groups"], strict=True):
            group.load(each)
        self.untrained = checked_untrained(stored.get("untrained"), self.groups)

    def epoch(self, epoch: int, start: int, number: int) -> Iterator[Any]:
        """The items for :meth:`step`, from step ``start`` of an epoch on, when ``number`` steps are done in all."""
        self._open_epoch(epoch, start, number)
        while True:
            try:
                item = next(self._source)  # another one after a captured stack was left
            except StopIteration:
                return
            yield item

    def step(self, item: Any, epoch: int, start: int, number: int) -> str:
        """Advance all models by one step; return what a stack could not do, if anything."""
        runner = self._running()
        _, failed = attempt(lambda: runner.step(item, number), self.groups)
        if failed is None:
            return ""
        done = runner.done
        self._leave_stacks(Fallback.after(number, self.choice, failed))
        if isinstance(runner, GraphRunner):  # its steps are told the size of a batch alone
            self._open_epoch(epoch, start, number)
            item = next(self._source)
        going_on = self._running()
        going_on.done = done
        going_on.step(item, number)
        return f"step {number + 1}"

    def evaluate(self, split: str, number: int) -> tuple[Scores, str]:
        """The scores of all models on a split, after ``number`` steps; and what a stack could not do, if anything."""
        for group in self.groups:
            group.restore_frozen()
        scores, failed = attempt(lambda: self._scores(split), self.groups)
        if scores is not None:
            return scores, ""
        assert failed is not None
        self._leave_stacks(Fallback.after(number, self.choice, failed))
        return self._scores(split), f"the evaluation on '{split}' after step {number}"

    def step_schedulers(self) -> None:
        """Tell all schedulers that a step, or an epoch, is done."""
        for group in self.groups:
            if group.scheduler is not None:
                group.scheduler.step()

    def close(self) -> None:
        """End what steps the models."""
        if self._runner is not None:
            self._runner.close()
        self._runner = None

    def _scores(self, split: str) -> Scores:
        problem, batches, ranks = self._settings.problem, self._splits[split], self._settings.shares.processes
        with isolated_randomness(), rollback_on_failure(self.groups, isolated=True):
            seed_everything(0)
            if not ranks.is_distributed:  # of several, none may leave on its own to try again
                try:
                    return evaluate(problem, self.groups, batches, split=repr(split))
                except torch.OutOfMemoryError:
                    seed_everything(0)
            return evaluate(problem, self.groups, batches, at_once=False, processes=ranks, split=repr(split))

    def _running(self) -> EagerRunner:
        """The runner of the groups, made when it is first needed: all that it reads is in place by then."""
        if self._runner is None:
            train, graphed = self._splits["train"], self.choice.strategy == "graphed"
            assert not graphed or isinstance(train, ResidentBatches)
            kind: type[EagerRunner] = GraphRunner if graphed else EagerRunner
            every, workers = self._settings.weigh_every, self.choice.workers
            self._runner = kind(self.groups, train, self._history, self._total, every, workers)
        return self._runner

    def _open_epoch(self, epoch: int, start: int, number: int) -> None:
        self._source = self._running().epoch(self._settings.seeds[0], epoch, start, number)

    def _leave_stacks(self, fallback: Fallback) -> None:
        """Go on with single models from where the stacks are now."""
        self.fallback, self.choice = fallback, fallback.plan
        self.groups = unstack(self._plan, self.groups)
        self.close()
