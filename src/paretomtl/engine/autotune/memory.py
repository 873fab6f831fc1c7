"""Memory: how many models fit as one stack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from paretomtl.engine.autotune.trial import Trial, quiet, release_memory
from paretomtl.engine.model_group import Group
from paretomtl.engine.step import StepInput, train_step


def try_memory(make: Callable[[int], list[Group]], count: int, batch: Any, total: int) -> Trial:
    """How many of ``count`` models fit as one stack; if not all fit, a note says what all would need.

    Args:
        make: makes the groups of a trial, on copies, with stacks of some models.
        count: how many there are.
        batch: to try a step on.
        total: how many steps are planned.
    """
    many = count
    while True:
        try:
            with quiet():
                groups = make(many)
                device = groups[0].active.device
                if device.type == "cuda":
                    torch.cuda.reset_peak_memory_stats(device)
                    before = torch.cuda.memory_allocated(device)
                train_step(groups, StepInput(batch, 0, total))
            break
        except torch.OutOfMemoryError:
            if many == 1:
                raise
        groups = []
        release_memory()
        many = -(-many // 2)
    if many == count:
        return Trial()
    each = (torch.cuda.max_memory_allocated(device) - before) / sum(group.models.count for group in groups)
    room = torch.cuda.get_device_properties(device).total_memory
    note = (
        f"a stack of {count} models would need about {each * count / 2**30:.1f} GiB on top of what is in use, of "
        f"{room / 2**30:.1f} GiB in all: stacks of {many} one after another"
    )
    return Trial(most=many, note=note)
