"""Rereading of data in every epoch: sources that can be read only once are refused."""

from __future__ import annotations

import itertools
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from torch.utils.data import DataLoader, IterableDataset

from paretomtl._support.random_state import isolated_randomness
from paretomtl.problems.per_task import PerTask

_REMEDY = (
    "data are read before training, in every epoch, and again at the end. Let __iter__ start from the "
    "beginning at each call, such as by opening the file or making the generator there"
)


def why_empty(name: str, loader: Any, seen: int) -> str:
    """Why a pass over a loader had no batches.

    Args:
        name: what error messages call the data.
        loader: what was read.
        seen: how many batches the longest pass before had.
    """
    if seen:
        return (
            f"'{name}' must have batches in every pass. Got none after a pass with {seen}, as from an iterator that "
            f"can be read only once: {_REMEDY}."
        )
    rule, dropped = f"'{name}' must hold at least one batch", bool(getattr(loader, "drop_last", False))
    try:
        samples = len(loader.dataset)
    except (AttributeError, TypeError, NotImplementedError):
        samples = 0
    if samples and dropped:
        size = getattr(loader, "batch_size", None)
        return (
            f"{rule}. Got {samples} samples with batch_size={size} and drop_last=True, which drops them all: take a "
            "smaller batch_size, or drop_last=False."
        )
    return f"{rule}. Got an empty one."


def warn_if_short(name: str, loader: Any, batches: int) -> bool:
    """Warn if a pass had fewer batches than the loader's length; return whether it did."""
    try:
        length = len(loader)
    except (TypeError, NotImplementedError):
        return False
    if batches >= length:
        return False
    warnings.warn(
        f"'{name}' ended after {batches} batches, but its length is {length}: schedules that depend on the planned "
        "steps end late. Let __len__ return the number of batches.",
        stacklevel=2,
    )
    return True


def check_starts_again(name: str, data: Any, read_first: Callable[[], Any], same: Callable[[Any, Any], bool]) -> None:
    """Refuse data that continue where the last pass stopped.

    Only sources that hold an iterator, or are one, are read twice from the same random state. If the passes begin
    differently and the iterator is still the same, then the second one continued the first.

    Args:
        name: what error messages call the data.
        data: a split as the problem has it.
        read_first: reads the first batch of a pass.
        same: whether two batches are the same.
    """
    sources = _sources(data)
    iterators = {label: iterator for source in sources for label, iterator in _held_iterators(source).items()}
    if not iterators:
        return
    first = read_first()
    before = {id(source): _numbers(source) for source in sources}
    for source in sources:
        if isinstance(source, Iterator):
            iter(source)
    reset = any(_numbers(source) != before[id(source)] for source in sources)
    if reset or same(first, read_first()):
        return
    now = {label: each for source in sources for label, each in _held_iterators(source).items()}
    same_ones = sorted(label for label, each in now.items() if iterators.get(label) is each)
    if same_ones:
        raise ValueError(
            f"'{name}' must start from the beginning at each pass. Got {', '.join(same_ones)}, which goes on where the "
            f"last pass stopped: {_REMEDY}."
        )


def warn_if_partial(name: str, data: Any) -> None:
    """Warn of a split to evaluate on whose loader takes other samples in each pass; no sample is read."""
    for task, part in data.data.items() if isinstance(data, PerTask) else ():
        warn_if_partial(f"{name}[{task!r}]", part)
    if not isinstance(data, DataLoader) or isinstance(data.dataset, IterableDataset):
        return
    order: Any = data.sampler if data.batch_sampler is None else data.batch_sampler
    if hasattr(order, "__len__") and _numbers_in(order, 0) != _numbers_in(order, 1):
        warnings.warn(
            f"'{name}' takes other samples in each pass, so losses on it are those of a random part of the data, and "
            "so is a choice by them. Write shuffle=False and drop_last=False, or draw the part once "
            "(torch.utils.data.Subset).",
            stacklevel=5,
        )


def _numbers_in(order: Any, seed: int) -> Counter[str]:
    """How often each sample is in a pass of a sampler."""
    with isolated_randomness(seed):
        parts = list(itertools.islice(order, len(order)))
    return Counter(str(number) for part in parts for number in (part if isinstance(part, Iterable) else [part]))


def _sources(data: Any) -> list[Any]:
    """The sources that a loader reads in this process; workers read copies, which start where the original stands."""
    if not isinstance(data, DataLoader):
        return [data] if isinstance(data, IterableDataset) else []
    if data.num_workers:
        return []
    parts = [data.dataset] if isinstance(data.dataset, IterableDataset) else []
    return [*parts, *(each for each in (data.sampler, data.batch_sampler) if isinstance(each, Iterator))]


def _held_iterators(source: Any) -> dict[str, Iterator[Any]]:
    """The iterators that a source is or holds, by label."""
    kind = type(source).__name__
    own = {f"{kind}, an iterator": source} if isinstance(source, Iterator) else {}
    kept = {f"{kind}.{key}": each for key, each in _attributes(source).items() if isinstance(each, Iterator)}
    return {**own, **kept}


def _numbers(source: Any) -> dict[str, Any]:
    return {key: each for key, each in _attributes(source).items() if isinstance(each, (bool, int, float))}


def _attributes(source: Any) -> Mapping[str, Any]:
    return getattr(source, "__dict__", {})
