"""The plan of a run in shards: how its models are cut, and how all shards train.

The strategy of shards is measured once, on a worker, and all of them use it: a shard that is retried must not choose
again, or its bits would differ. There are as many shards as workers, because a stack is faster the more models it has.
Models that train one after another lose nothing by finer shards, of at least a minute each.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from paretomtl._support.random_state import isolated_randomness
from paretomtl.engine.strategy import equal_parts
from paretomtl.training.run.start import start_run
from paretomtl.training.settings.settings import Settings
from paretomtl.training.shards.executor import Capacity, Executor, JobBatch
from paretomtl.training.shards.job import ShardConfig, ShardCost, measure_shard
from paretomtl.training.torch_modes import library_modes

_LEAST_SECONDS = 60.0  # of a shard that is cut finer than there are workers
_FINER = 4  # how many shards each worker gets at most


def make_shard_config(settings: Settings, executor: Executor, pause: float) -> ShardConfig:
    """The configuration of all shards; without the problem, if workers find it by name."""
    if executor.problem is None:
        return ShardConfig(settings, None, pause)
    return ShardConfig(replace(settings, problem=None), executor.problem, pause)  # type: ignore[arg-type]


def config_parts(settings: Settings) -> dict[str, Any]:
    """The parts of a shard's configuration, by the names of the arguments of ``fit``."""
    problem = settings.problem
    names = ("model", "losses", "train", "val", "test", "metrics", "shared", "recipe", "truth")
    parts = {name: getattr(problem, name) for name in names}
    return {**parts, "method": settings.method, "optimizer": settings.optimizer, "scheduler": settings.scheduler}


def shard_run_config(settings: Settings) -> tuple[dict[str, Any], dict[str, str]]:
    """The configuration of a run, which must be the same for it to be resumed; and its scale, for the log.

    The pre-flight checks run here, on one model.
    """
    here = torch.device("cpu")
    one = replace(
        settings, subproblems=settings.subproblems[:1], device=here, strategy="sequential", workers=1, compiler=None
    )
    with isolated_randomness(settings.seeds[0]), library_modes(settings.precision), start_run(one) as run:
        assert run.identity is not None
        config = run.identity.config(settings)
        return {**config, "start": run.identity.start(config)}, run.identity.scaling()


def plan_shards(settings: Settings, executor: Executor, pause: float, capacity: Capacity) -> dict[str, Any]:
    """Decide how models are cut into shards, and how all of them train, so that a shard can be retried.

    Each worker gets one shard. Models that train one after another are cut finer, into up to four shards per worker of
    at least a minute each: finished shards can be viewed early, and new workers find work. A stack is faster the more
    models it has, and is cut finer only if it does not fit into memory.
    """
    count = len(settings.subproblems)
    size = executor.shard_size or -(-count // capacity.slots)
    if executor.shard_size is not None and settings.strategy != "auto":
        return _cut(settings, size, settings.strategy, settings.workers)
    cost = _measured(settings, executor, pause, size, capacity)
    if executor.shard_size is None:
        if cost.strategy == "sequential":
            size = -(-size // max(1, min(_FINER, int(cost.seconds / _LEAST_SECONDS))))
        elif cost.most is not None:
            size = min(size, cost.most)
    return _cut(settings, size, cost.strategy, cost.workers if cost.strategy == "sequential" else None)


def _measured(settings: Settings, executor: Executor, pause: float, size: int, capacity: Capacity) -> ShardCost:
    part, config = tuple(settings.subproblems[:size]), make_shard_config(settings, executor, pause)
    jobs = JobBatch(measure_shard, ["trial"], [part], config, capacity.device, config_parts(settings))
    costs: dict[int, ShardCost] = dict(executor.map(jobs))
    return costs[0]


def _cut(settings: Settings, size: int, strategy: str, workers: int | None) -> dict[str, Any]:
    parts = [settings.subproblems[part] for part in equal_parts(len(settings.subproblems), size)]
    return {"parts": parts, "strategy": strategy, "workers": workers}
