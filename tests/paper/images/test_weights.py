"""Weights over training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from _helpers.study_figures import draw_study
from _helpers.study_rows import BAD, GOOD, image_row, verdicts
from paretomtl.compare import Row
from paretomtl.paper import STUDIES
from paretomtl.paper.images.weights import claims
from paretomtl.paper.runner import run_study


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    return run_study("weights", STUDIES["weights"], tmp_path_factory.mktemp("rows"), size="smoke").rows


def test_claims_on_weights() -> None:
    def weighted(low: float, middle: float, high: float, other: float) -> list[Row]:
        shares = [[[s, 1 - s] for s in (low, middle, high)]]
        rows = [image_row("pareto-mtl", *GOOD, weights=shares)]
        return rows + [image_row(m, *BAD, weights=[[[other, 1 - other]] * 2]) for m in ("mgda", "gradnorm")]

    assert verdicts(claims(weighted(0.1, 0.5, 0.9, 0.5))) == ["reproduced", "reproduced"]
    assert verdicts(claims(weighted(0.9, 0.5, 0.1, 0.8))) == ["not reproduced", "not reproduced"]


def test_weights_are_those_of_the_vector_in_the_caption(
    smoke: list[Row], unsaved: dict[str, Any], tmp_path: Path
) -> None:
    draw_study("weights", smoke, tmp_path)
    first = next(row for row in smoke if row["method"] == "pareto-mtl" and row["seed"] == 0)
    assert first["vectors"][0] == [1.0, 0.0]
    for axis, model in zip(unsaved["weights"].axes[:3], (0, 1, 2), strict=True):
        for line, task in zip(axis.lines[:2], (0, 1), strict=True):
            assert list(line.get_ydata()) == [epoch[model][task] for epoch in first["weights"]]
    assert len(unsaved["weights"].axes) == 6
