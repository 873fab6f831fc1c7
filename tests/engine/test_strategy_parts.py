"""Stacks that are split into parts of equal size."""

from __future__ import annotations

import pytest
import torch

import paretomtl as pm
from _helpers.regression import CPU, model, problem
from paretomtl.engine.batches.make import make_batches
from paretomtl.engine.history import EpochHistory
from paretomtl.engine.runners.eager import EagerRunner
from paretomtl.engine.strategy import Plan, equal_parts


@pytest.mark.parametrize(("count", "most"), [(5, None), (5, 5), (5, 2), (7, 3), (125, 62), (1, 1)])
def test_shards_are_as_equal_as_can_be(count: int, most: int | None) -> None:
    parts = equal_parts(count, most)
    numbers = [k for part in parts for k in range(count)[part]]
    sizes = [len(range(count)[part]) for part in parts]
    assert numbers == list(range(count))
    assert max(sizes) <= (most or count)
    assert max(sizes) - min(sizes) <= 1


def test_shards_train_as_one_stack() -> None:
    made, method = problem(), pm.ParetoMTL()
    ends = []
    for most in (None, 2):
        torch.manual_seed(0)
        modules = [model() for _ in range(5)]
        groups = Plan(made, method, lambda p: torch.optim.SGD(p, lr=0.05)).batched(
            modules, method.init(method.spread(5, 2)), most
        )
        batches = make_batches("train", made.train, batch_size=8, device=CPU, dtype=torch.float32)
        runner = EagerRunner(groups, batches, EpochHistory(5, 2, CPU), 20, 1)
        for number, item in enumerate(runner.epoch(0, 0, 0, 0)):
            runner.step(item, number)
        ends.append(torch.cat([each.models.tensors()["0.weight"] for each in groups]))
    torch.testing.assert_close(*ends)
