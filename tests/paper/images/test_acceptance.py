"""Accuracies of separate networks here and on the lost files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from _helpers.study_figures import draw_study
from _helpers.study_rows import ALONE, image_row, plane_row
from paretomtl.paper.images.acceptance import PUBLISHED, facts
from paretomtl.paper.images.cells import SETS


def test_acceptance_sets_each_network_beside_the_published_one() -> None:
    rows = [image_row("single-task", *ALONE, seed) for seed in range(2)]
    ((what, said),) = facts(rows)
    assert what == "test accuracy, MultiMNIST, 2 seeds"
    assert f"0.9400 ± 0.0000 here, {PUBLISHED[SETS[0]][0]:.4f} there (+0.0263)" in said


def test_acceptance_says_how_far_both_are_apart(unsaved: dict[str, Any], tmp_path: Path) -> None:
    there = PUBLISHED["multi-mnist"]
    seeds = [
        {
            **plane_row("single-task", [[0.3, 9.0], [9.0, 0.4]]),
            "seed": seed,
            "metrics": {
                "top-left accuracy": [there[0] + 0.01 + seed * 0.002, 0.1],
                "bottom-right accuracy": [0.1, there[1] - 0.02],
            },
        }
        for seed in range(2)
    ]
    draw_study("acceptance", seeds, tmp_path)
    texts = [text.get_text() for text in unsaved["acceptance"].axes[0].texts]
    assert texts[:2] == ["+0.0110", "−0.0200"]
