"""The runs of a comparison: each method with each seed, here or on workers.

Each run is one job, because there are more runs than workers and each is short. Runs have no checkpoints, and are
retried from the start if a worker dies.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paretomtl.compare.failed_runs import without_frames
from paretomtl.compare.row_store import Row, environment
from paretomtl.front import Front
from paretomtl.methods import Method
from paretomtl.problems import NamedProblem, Problem
from paretomtl.training import Capacity, Channel, Executor, JobBatch, fit
from paretomtl.training.preflight.loss_units import UNITS_WARNING
from paretomtl.training.progress.study import StudyProgress
from paretomtl.training.progress.study_listeners import is_part_of_study, quiet_elsewhere
from paretomtl.training.results.sanity_checks import BEATEN_WARNING, CLUMPED_WARNING
from paretomtl.training.shards.ray.worker import Failure, failure


class Runs(JobBatch):
    """Runs of several methods and seeds, one job each."""

    def __init__(
        self,
        problem: Problem,
        methods: Mapping[str, Method],
        runs: Sequence[tuple[str, int]],
        preferences: int | None,
        options: Mapping[str, Any],
        place: Executor,
        log: Callable[[str], None],
    ) -> None:
        capacity = place.capacity(options.get("device")) if runs else Capacity(1, "cpu")
        device, self.slots = capacity.device, capacity.slots
        self.display: StudyProgress | None = None
        names = [f"{method}, seed {seed}" for method, seed in runs]
        warns = next((i for i, (method, _) in enumerate(runs) if methods[method].minds_units), 0)
        inputs: list[tuple[str, int | None, int, bool] | None] = [
            (method, None if methods[method].separate else preferences, seed, i != warns)
            for i, (method, seed) in enumerate(runs)
        ]
        self._waiting, self._begun = inputs, set[int]()
        config = place.problem or problem, methods, {**options, "device": device}
        super().__init__(train_whole, names, inputs, config, device, {"problem": problem, **options})
        self._log = log

    def leave_out(self, method: str) -> int:
        """Skip the runs of a method that have not started; return how many these are."""
        late = [i for i, run in enumerate(self._waiting) if run and run[0] == method and i not in self._begun]
        for i in late:
            self._waiting[i] = None
        return len(late)

    def on_start(self, i: int, where: Mapping[str, Any]) -> None:
        if self._waiting[i] is None:
            return
        self._begun.add(i)
        if self.display is not None:
            self.display.begin(i)
        self._log(self.names[i])

    def poll(self) -> None:
        if self.display is not None:
            self.display.poll()


def train_whole(
    config: tuple[Problem | NamedProblem, Mapping[str, Method], Mapping[str, Any]],
    run: tuple[str, int | None, int, bool] | None,
    channel: Channel,
) -> tuple[Front | Exception | Failure | None, Row]:
    """Train one method with one seed; return the front, its error or None if it is skipped, and the environment.

    ``run`` is a method, its preferences, a seed, and whether another run warns of units.
    """
    if run is None:
        return None, {}
    (problem, methods, options), (method, preferences, seed, warned) = config, run
    here = is_part_of_study()
    made = problem.make() if isinstance(problem, NamedProblem) else problem
    with quiet_elsewhere(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "training was stopped")  # the comparison says what is stored
        for remark in (CLUMPED_WARNING, f"models .*{BEATEN_WARNING}"):  # its table has the spread of each method
            warnings.filterwarnings("ignore", remark)
        if warned:
            warnings.filterwarnings("ignore", UNITS_WARNING)
        try:
            return fit(made, methods[method], preferences, seed=seed, **options), environment()
        except Exception as error:
            return (without_frames(error) if here else failure(error)), {}
