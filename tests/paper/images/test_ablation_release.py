"""The ablation of released constraints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from _helpers.study_figures import draw_study
from _helpers.study_rows import GOOD, image_row
from paretomtl.compare import Row
from paretomtl.paper import STUDIES
from paretomtl.paper.images import ablation_release
from paretomtl.paper.runner import run_study


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    folder = tmp_path_factory.mktemp("rows")
    return run_study("ablation-release", STUDIES["ablation-release"], folder, size="smoke").rows


@pytest.mark.parametrize(
    ("gain", "total", "verdict"),
    [(0.1, 0.3, "reproduced"), (0.0, 0.3, "partly"), (0.1, 0.5, "partly"), (-0.1, 0.5, "not reproduced")],
)
def test_the_claim_on_constraints_that_are_dropped(gain: float, total: float, verdict: str) -> None:
    rows = []
    for seed in range(3):
        mine = image_row("pareto-mtl", *GOOD, seed)
        after = [[total / 2, total / 2]] * 3
        rows += [mine, {**mine, "note": "released", "stage": "snapshot"}]
        rows.append({**mine, "note": "released", "hypervolume": mine["hypervolume"] + gain, "train_losses": after})
    (claim,) = ablation_release.claims(rows)
    assert claim.verdict == verdict
    assert "spread 0.50 ± 0.00, +0.00 and +0.00" in claim.measured


def test_arrows_join_what_belongs_together(smoke: list[Row], unsaved: dict[str, Any], tmp_path: Path) -> None:
    before, after = (_rows_of(smoke, stage) for stage in ("snapshot", "final"))
    assert [(one["seed"], two["seed"]) for one, two in ablation_release._pair_by_seed(before, after)] == [
        (0, 0),
        (1, 1),
    ]
    assert [one["seed"] for one, _ in ablation_release._pair_by_seed(before, after[1:])] == [1]
    draw_study("ablation-release", smoke, tmp_path)
    texts = unsaved["ablation-release"].axes[1].texts
    arrows = [text for text in texts if getattr(text, "arrow_patch", None) is not None]
    ends = [(tuple(one), tuple(two)) for i in range(2) for one, two in zip(
        before[i]["losses"], after[i]["losses"], strict=True)]  # fmt: skip
    assert [(tuple(text.xyann), tuple(text.xy)) for text in arrows] == ends


def _rows_of(rows: list[Row], stage: str) -> list[Row]:
    return [row for row in rows if row["note"] == "released" and row["stage"] == stage]
