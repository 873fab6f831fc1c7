"""The front of a run that still trains, from its configuration and its log: numbers without models."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from paretomtl._support.tensor_json import from_numbers
from paretomtl.front import Front
from paretomtl.front.limits import check_solution_count
from paretomtl.front.models import STILL_TRAINING


def read_logged_front(config: Mapping[str, Any], legend: Mapping[str, Any], report: Mapping[str, Any]) -> Front:
    """Build the front of a run that still trains from its configuration, its start event and its last report.

    Losses on "train" are means over the batches of the last epoch. Runs of earlier versions log neither the
    meaning of their rows nor the scale of the losses, so they have no regions here.
    """
    rows, tasks = list(config["subproblems"]), tuple(map(str, config["tasks"]))
    shape = (len(rows), len(tasks))
    settled = legend.get("directions") if legend.get("reading") == "direction" else None
    preferences = settled if fits(settled, shape) and len(rows) == len(config["preferences"]) else config["preferences"]
    losses = {"train": report.get("losses"), "val": report.get("val_losses")}
    metrics, better = as_mapping(report.get("val_metrics")), as_mapping(legend.get("better"))
    logged = report.get("frozen")
    frozen = logged if isinstance(logged, list) else []
    seconds, seed = report.get("seconds"), config.get("seed")
    return Front(
        problem=str(config.get("problem")),
        method=str(legend.get("method") or str(config.get("method")).partition("(")[0]),
        tasks=tasks,
        reading=str(legend.get("reading") or "start"),
        preferences=torch.tensor(preferences, dtype=torch.float64),
        subproblems=tuple(rows),
        losses={split: from_numbers(table) for split, table in losses.items() if fits(table, shape)},
        scale=from_numbers(report["scale"]) if fits(report.get("scale"), shape) else None,
        status=["non-finite" if k in frozen else "training" for k in rows],
        since=None,
        history={},
        models=STILL_TRAINING,
        seed=seed if type(seed) is int else 0,
        seconds=seconds or 0.0 if fits(seconds, ()) else 0.0,
        metrics={"val": {name: from_numbers(values) for name, values in metrics.items() if fits(values, shape[:1])}},
        better={name: "lower" if word == "lower" else "higher" for name, word in better.items()},
        complete=False,
        strategy=f"{legend['strategy']}: {legend.get('reason')}" if "strategy" in legend else "",
        reference=_point(report.get("reference"), shape[1:]),
        ideal=_point(legend.get("ideal"), shape[1:]),
    )


def check_config(config: Mapping[str, Any]) -> None:
    """Refuse a configuration that cannot be that of a run; any other damage is caught where it is read."""
    check_solution_count(config["preferences"])
    rows, chosen, tasks = torch.tensor(config["preferences"]), config["subproblems"], config["tasks"]
    filled = chosen and tasks and isinstance(chosen, list) and isinstance(tasks, list)
    if not filled or rows.shape[1:] != (len(tasks),) or not all(type(k) is int and 0 <= k < len(rows) for k in chosen):
        raise ValueError("preferences, models and tasks do not fit together")


def fits(value: Any, shape: tuple[int, ...]) -> bool:
    """Whether a value from a log consists of numbers, or None, in this shape."""
    if not shape:
        return value is None or type(value) is float or (type(value) is int and abs(value) < 2**63)
    return isinstance(value, list) and len(value) == shape[0] and all(fits(part, shape[1:]) for part in value)


def is_finite(value: Any) -> bool:
    """Whether a value from a log is a finite number."""
    return value is not None and fits(value, ()) and math.isfinite(value)


def _point(value: Any, shape: tuple[int, ...]) -> tuple[float, ...] | None:
    return tuple(value) if fits(value, shape) and None not in value else None


def as_mapping(value: Any) -> dict[str, Any]:
    """Return a JSON object from a log, or an empty one if the value is something else."""
    return value if isinstance(value, dict) else {}
