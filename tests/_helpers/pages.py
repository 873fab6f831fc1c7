"""Invented fronts for pages: with splits, metrics and history, without training."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Sequence
from typing import Any

import torch

import paretomtl as pm
from paretomtl.front.models import StackedModels


def page_front(count: int, tasks: Sequence[str] | int, *, seed: int = 0, shift: float = 0.0, **fields: Any) -> pm.Front:
    """Solutions near their rays, where the roots of the losses add up to one, which is convex; one is worse by half."""
    names = tuple(f"task {i}" for i in range(tasks)) if isinstance(tasks, int) else tuple(tasks)
    m = len(names)
    generator = torch.Generator().manual_seed(seed)
    directions = pm.preferences.even(count, m) if count > 1 else torch.ones(1, m).double() / m**0.5
    losses = directions / directions.sqrt().sum(-1, keepdim=True).square() + 0.05 + shift
    losses = losses + 0.01 * torch.rand(count, m, generator=generator)
    if count > 3:
        losses[count // 3] *= 1.5
    splits = {name: losses + gap for name, gap in (("train", 0.0), ("val", 0.01), ("test", 0.02))}
    epochs = torch.linspace(1.0, 0.0, fields.pop("epochs", 30))[:, None, None].double()
    course = losses[None] + 2.0 * epochs.square()
    weights = directions.flip(-1)[None].expand_as(course) + 0.1 * torch.rand(course.shape, generator=generator)
    options: dict[str, Any] = {
        "problem": "made up",
        "method": "pareto-mtl",
        "reading": "direction",
        "status": ["feasible"] * count,
        "metrics": {
            split: {f"{name} accuracy": (-table[:, i]).exp() for i, name in enumerate(names)}
            for split, table in splits.items()
        },
        "better": {f"{name} accuracy": "higher" for name in names},
        "seed": seed,
        **fields,
    }
    return pm.Front(
        tasks=names,
        preferences=directions,
        subproblems=tuple(range(count)),
        losses=splits,
        scale=options.pop("scale", None),
        since=None,
        models=StackedModels({"x": torch.zeros(count, 1)}),
        history={"losses": course, "weights": weights, "val": course + 0.03},
        seconds=12.3,
        epochs=[len(course)] * count,
        strategy="batched, as one stack agreed and was faster",
        reference=(3.0,) * m,
        **options,
    )


def payload_in(page: str) -> Any:
    """The payload inside the HTML of a page."""
    found = re.search(r'id="payload">([A-Za-z0-9+/=]+)</script>', page)
    assert found is not None
    return json.loads(gzip.decompress(base64.b64decode(found[1])).decode())
