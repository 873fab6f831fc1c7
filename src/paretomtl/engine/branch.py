"""Branching: K copies of a shared model, each in its exact state, which then train on their own."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from paretomtl.engine.model_group import Group
from paretomtl.engine.models.stack import Stack


def copy_into(shared: Sequence[Group], groups: Sequence[Group]) -> None:
    """Load K copies of each shared model into groups, with its optimizer and its scheduler.

    The groups keep the state of their own method, which begins here. Both lists are made by the same strategy, so that
    their optimizers store the same tensors.

    Args:
        shared: one model for each seed, in groups.
        groups: K models for each seed, in groups.
    """
    sources = [group.stored() for group in shared]
    alive = torch.cat([source["alive"] for source in sources])
    copies = sum(group.models.count for group in groups) // len(alive)
    begin = 0
    for group in groups:
        rows = [(begin + k) // copies for k in range(group.models.count)]
        begin += group.models.count
        group.load(
            {
                "tensors": _rows([source["tensors"] for source in sources], rows),
                "previous": _rows([source["previous"] for source in sources], rows),
                "alive": alive[rows],
                "weights": None,
                "state": group.state,
                "optimizer": _optimizer_of(shared, [source["optimizer"] for source in sources], rows),
                "scheduler": copy.deepcopy(sources[0]["scheduler"]),
                "average": _average_of(sources, rows),
            }
        )


def _average_of(sources: Sequence[Mapping[str, Any]], rows: list[int]) -> dict[str, Any] | None:
    if "average" not in sources[0]:
        return None
    values = _rows([source["average"]["values"] for source in sources], rows)
    return {"values": values, "steps": sources[0]["average"]["steps"]}


def _rows(parts: Sequence[Mapping[str, Tensor]], rows: list[int]) -> dict[str, Tensor]:
    """The values of some models, ``[K, ...]``, copied from those of all groups."""
    return {name: torch.cat([part[name] for part in parts])[rows] for name in parts[0]}


def _optimizer_of(shared: Sequence[Group], stored: Sequence[Mapping[str, Any]], rows: list[int]) -> dict[str, Any]:
    """The stored state of an optimizer of some models.

    Tensors shaped like a stacked parameter have a row for each model. The rest, such as the step count, is common to
    all. A model that is no stack has an optimizer of its own.
    """
    if not isinstance(shared[0].models, Stack):
        return copy.deepcopy(dict(stored[rows[0]]))
    shapes = [[p.shape for part in group.optimizer.param_groups for p in part["params"]] for group in shared]

    def value_of(index: int, name: str) -> Any:
        values = [each["state"][index][name] for each in stored]
        if all(isinstance(v, Tensor) and v.shape == own[index] for v, own in zip(values, shapes, strict=True)):
            return torch.cat(values)[rows]
        return copy.deepcopy(values[0])

    state = {index: {name: value_of(index, name) for name in values} for index, values in stored[0]["state"].items()}
    return {"state": state, "param_groups": copy.deepcopy(stored[0]["param_groups"])}
