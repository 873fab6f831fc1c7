"""Numbers of threads of torch, and fronts compared bit by bit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

import paretomtl as pm


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def same(one: pm.Front, other: pm.Front) -> bool:
    pairs = [(one.models.stacked()[name], other.models.stacked()[name]) for name in one.models.stacked()]
    return all(torch.equal(a, b) for a, b in [*pairs, *((one.history[n], other.history[n]) for n in one.history)])
