"""Fronts that are joined: the rows of several, one after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from paretomtl.front._data import FrontData, check_same_data
from paretomtl.front.limits import check_solution_count
from paretomtl.front.models import LOSSES_ALONE, ModelStore, NoModels, StackedModels

FrontT = TypeVar("FrontT", bound=FrontData)


class JoinedModels(ModelStore):
    """The models of several stores of one architecture, one after another; each is still read on its own.

    Args:
        parts: the stores.

    Example:
        >>> one, other = (StackedModels({"weight": torch.tensor(rows)}) for rows in ([[1.0], [2.0]], [[3.0]]))
        >>> JoinedModels([one, other]).weights(2)
        {'weight': tensor([3.])}
    """

    kind = StackedModels.kind

    def __init__(self, parts: Sequence[ModelStore]) -> None:
        self._places = [(part, row) for part in parts for row in range(len(part))]

    def __len__(self) -> int:
        return len(self._places)

    def weights(self, row: int) -> dict[str, Tensor]:
        part, own = self._places[row]
        return part.weights(own)


def row_fields(parts: Sequence[FrontData], order: Sequence[int]) -> dict[str, Any]:
    """The fields that have a row for each model, except models: those of several fronts, in one order.

    A split or metric that some front does not have is left out. Measurements and epochs that are missing are NaN.

    Args:
        parts: the fronts.
        order: for each row of the result, its place among all rows one after another.
    """
    order = list(order)

    def rows(tables: Sequence[Tensor]) -> Tensor:
        return torch.cat(list(tables))[order]

    def values(lists: Sequence[Sequence[Any]]) -> list[Any]:
        flat = [value for part in lists for value in part]
        return [flat[i] for i in order]

    splits = [split for split in parts[0].losses if all(split in part.losses for part in parts)]
    scales = None
    if any(part.scale is not None for part in parts):
        scales = rows([_ones(part) if part.scale is None else part.scale for part in parts])
    since = [part.since for part in parts if part.since is not None]
    epochs = [part.epochs for part in parts]
    return {
        "subproblems": tuple(values([part.subproblems for part in parts])),
        "losses": {split: rows([part.losses[split] for part in parts]) for split in splits},
        "metrics": {
            split: {
                name: rows([part.metrics[split][name] for part in parts])
                for name in parts[0].metrics.get(split, {})
                if all(name in part.metrics.get(split, {}) for part in parts)
            }
            for split in splits
            if all(split in part.metrics for part in parts)
        },
        "probes": {
            split: rows([part.probes[split] for part in parts])
            for split in parts[0].probes
            if all(split in part.probes for part in parts)
        },
        "scale": scales,
        "status": values([part.status for part in parts]),
        "since": values(since) if len(since) == len(parts) else None,
        "epochs": values(epochs) if all(epochs) else (),
        "model_seeds": values([part.model_seeds for part in parts]),
        "measured": {name: rows(tables) for name, tables in _measured(parts).items()},
        "history": {
            name: _aligned([part.history[name] for part in parts])[:, order]
            for name in parts[0].history
            if all(name in part.history for part in parts)
        },
    }


def join_fronts(front: FrontT, others: Sequence[FrontData]) -> FrontT:
    """One front of several, as :meth:`paretomtl.Front.joined` describes it."""
    for other in others:
        _check_joinable(front, other)
    parts = [front]
    preferences = front.preferences
    for other in others:
        preferences, numbers = _numbered(preferences, [k for part in parts for k in part.subproblems], other)
        parts.append(replace(other, subproblems=numbers))  # type: ignore[arg-type]
    check_solution_count(len(preferences))
    named = [part.names for part in parts if part.names]
    snapshots = [part.snapshot for part in parts if part.snapshot is not None]
    fields = row_fields(parts, range(sum(len(part) for part in parts)))
    if not fields["losses"]:
        raise ValueError(f"'others' must have a split in common, {list(front.losses)}. Got {list(others[0].losses)}.")
    return replace(
        front,
        preferences=preferences,
        **fields,
        models=_join_models(parts),
        model_factory=_first(parts, lambda part: part.model_factory),
        checked_by=_first(parts, lambda part: part.checked_by),
        snapshot=join_fronts(snapshots[0], snapshots[1:]) if len(snapshots) == len(parts) else None,
        reference=_first(parts, lambda part: part.reference),
        names=tuple(name for names in named for name in names) if len(named) == len(parts) else (),
        seconds=sum(part.seconds for part in parts),
        complete=all(part.complete for part in parts),
        ended=_listed([part.ended for part in parts]),
        strategy=f"{len(parts)} runs; {_listed([part.strategy for part in parts])}",
        made_by=joined_versions(parts),
        remarks=tuple(dict.fromkeys(remark for part in parts for remark in part.remarks)),
        decisions=(*front.decisions, *_trained_by(front, parts[1:])),
    )


def joined_versions(parts: Sequence[FrontData]) -> dict[str, str]:
    """The versions that made some fronts; all of them if they differ."""
    names = dict.fromkeys(name for part in parts for name in part.made_by)
    return {name: " and ".join(dict.fromkeys(part.made_by.get(name, "unknown") for part in parts)) for name in names}


def _check_joinable(front: FrontData, other: Any) -> None:
    if not isinstance(other, FrontData):
        raise TypeError(f"'others' must be fronts. Got {type(other).__name__} instead.")
    for what in ("tasks", "reading", "ideal"):
        own, found = getattr(front, what), getattr(other, what)
        if own != found:
            raise ValueError(
                f"'others' must have the same {what} as the front that they join, {_shown(own)}. Got {_shown(found)} "
                "instead."
            )
    check_same_data(front, other, list(front.data))


def _shown(value: Any) -> str:
    return repr(list(value)) if isinstance(value, tuple) else repr(value)


def _numbered(known: Tensor, taken: Sequence[int], other: FrontData) -> tuple[Tensor, tuple[int, ...]]:
    """All preferences after another front joined, and the numbers of its models among them.

    A front that was trained against the rows of the first keeps its numbers. The rows of any other follow them.
    """
    shared = min(len(known), len(other.preferences))
    # Directions are scaled to unit length whenever a run takes them, which moves their last digits.
    same = torch.allclose(known[:shared], other.preferences[:shared], rtol=0.0, atol=1e-9)
    if same and not set(taken) & set(other.subproblems):
        return torch.cat([known, other.preferences[shared:]]), tuple(other.subproblems)
    return torch.cat([known, other.preferences]), tuple(len(known) + k for k in other.subproblems)


def _join_models(parts: Sequence[FrontData]) -> ModelStore:
    stores = [part.models for part in parts]
    if not any(stores):
        return LOSSES_ALONE
    if not all(store and store.kind == StackedModels.kind for store in stores):
        return NoModels("a joined front, some of whose parts have no weights to store: ask the parts themselves.")
    shapes = [{name: tensor.shape for name, tensor in store.weights(0).items()} for store in stores]
    for shape in shapes[1:]:
        if shape != shapes[0]:
            wrong = [name for name in {**shapes[0], **shape} if shapes[0].get(name) != shape.get(name)]
            raise ValueError(f"'others' must be fronts of the same model. Got one that differs in {wrong[:5]}.")
    return JoinedModels(stores)


def _trained_by(front: FrontData, parts: Sequence[FrontData]) -> list[str]:
    """A sentence for each part with another method: the joined front has only one name for it."""
    return [
        f"Models {', '.join(map(str, part.subproblems))} were trained by {part.method}, and joined later."
        for part in parts
        if part.method != front.method
    ]


def _measured(parts: Sequence[FrontData]) -> dict[str, list[Tensor]]:
    """The measurements of all parts by name; NaN for a part without them. Those of different shapes are left out."""
    found = {}
    for name in dict.fromkeys(name for part in parts for name in part.measured):
        known = [part.measured[name] for part in parts if name in part.measured]
        alike = {tensor.shape[1:] for tensor in known}
        if len(alike) > 1 or (len(known) < len(parts) and not known[0].is_floating_point()):
            continue
        found[name] = [
            part.measured.get(name, known[0].new_full((len(part), *known[0].shape[1:]), torch.nan)) for part in parts
        ]
    return found


def _aligned(tables: Sequence[Tensor]) -> Tensor:
    """Epochs ``[T, K, m]`` side by side; NaN for epochs that a front did not have."""
    longest = max(len(table) for table in tables)
    missing = [table.new_full((longest - len(table), *table.shape[1:]), torch.nan) for table in tables]
    return torch.cat([torch.cat(pair) for pair in zip(tables, missing, strict=True)], dim=1)


def _ones(part: FrontData) -> Tensor:
    return torch.ones(len(part), len(part.tasks), dtype=torch.float64)


def _listed(texts: Sequence[str]) -> str:
    return "; ".join(dict.fromkeys(text for text in texts if text))


def _first(parts: Sequence[FrontData], field: Callable[[FrontData], Any]) -> Any:
    return next((value for value in map(field, parts) if value is not None), None)
