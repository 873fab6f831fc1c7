"""Localization: claims are judged by rows alone and can fail; its figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import paretomtl as pm
from _helpers.study_figures import draw_study
from _helpers.study_rows import scaled_loss_rows, task_row
from paretomtl.compare import Row
from paretomtl.paper.real_data.cells import SHARED
from paretomtl.paper.real_data.localization import claims
from paretomtl.paper.real_data.tables import TABLE_METRICS

ORDERED = [[0.4, 3.0], [0.3, 4.0], [0.2, 5.0]]  # from (1, 0), which favours degrees, to (0, 1)


def test_claims_on_tables_name_the_task_whose_vector_does_not_favour_it() -> None:
    def rows(values: list[list[Any]]) -> list[Row]:
        metrics = dict(
            zip(TABLE_METRICS["localization"], (list(column) for column in zip(*values, strict=True)), strict=True)
        )
        common = {"stage": "final", "part": SHARED, "note": "", "method": "pareto-mtl", "problem": "localization"}
        vectors = pm.preferences.even(3, 2).tolist()
        better = dict.fromkeys(metrics, "lower")
        row = {**common, "tasks": ["translation", "rotation"], "vectors": vectors, "metrics": metrics, "better": better}
        return [{**row, "reading": "direction", "preferences": 3, "seed": seed} for seed in range(2)]

    # From (1, 0), which allows metres and favours degrees, to (0, 1).
    claim, *_, balanced = claims(rows([[0.4, 3.0], [0.3, 4.0], [0.2, 5.0]]))
    assert (claim.verdict, balanced.verdict) == ("reproduced", "not measured")
    claim, *_ = claims(rows([[0.4, 3.0], [0.3, 4.0], [0.2, None]]))
    assert claim.verdict == "reproduced", "a model without a value is not the best"
    claim, *_ = claims(rows([[0.4, 3.0], [0.1, 4.0], [0.2, 5.0]]))
    assert claim.verdict == "partly"
    assert "translation: translation error 0.2, best of all vectors 0.1" in claim.measured
    claim, *_ = claims(rows([[0.4, 3.0], [0.199999, 4.0], [0.2, 5.0]]))
    assert claim.verdict == "reproduced", "a tie is the best"
    claim, *_ = claims(rows([[0.1, 5.0], [0.3, 4.0], [0.4, 3.0]]))
    assert claim.verdict == "not reproduced"


def table_rows(values: list[list[Any]], rival: list[float], gain: float = 0.0, note: str = "") -> list[Row]:
    """Localization: metres and degrees of the three vectors of Pareto MTL, and of a solution of every other method."""
    rows = []
    for method in ("pareto-mtl", "linear", "mgda", "gradnorm", "uncertainty", "single-task"):
        pareto, alone = method == "pareto-mtl", method == "single-task"
        points = values if pareto else [rival, rival] if alone else [rival]
        metrics = dict(
            zip(TABLE_METRICS["localization"], (list(each) for each in zip(*points, strict=True)), strict=True)
        )
        row = {
            "part": SHARED,
            "stage": "final",
            "note": note if pareto else "",
            "method": method,
            "problem": "localization",
            "tasks": ["translation", "rotation"],
            "reading": "direction" if pareto else "importance",
            "preferences": len(points),
            "vectors": pm.preferences.even(3, 2).tolist() if pareto else torch.eye(2)[: len(points)].tolist(),
            "metrics": metrics,
            "better": dict.fromkeys(metrics, "lower"),
            "hypervolume": 0.2 + (gain if pareto else 0.0),
        }
        rows += [{**row, "seed": seed} for seed in range(2)]
    return rows


def table_verdict(words: str, rows: list[Row]) -> str:
    (found,) = [claim for claim in claims(rows) if words in claim.claim]
    return found.verdict


@pytest.mark.parametrize("note", ["", "scaled by first"])
@pytest.mark.parametrize(
    ("values", "rival", "verdict"),
    [
        (ORDERED, [0.3, 4.0], "reproduced"),
        (ORDERED, [0.1, 4.0], "partly"),
        (ORDERED[::-1], [0.3, 4.0], "partly"),  # the best, and not the vectors that favour the tasks
        (ORDERED, [0.2, 3.0], "not reproduced"),
        ([[None, None], [0.3, 4.0], [None, None]], [0.3, 4.0], "not reproduced"),
    ],
)
def test_the_claim_on_the_best_of_all_methods(note: str, values: Any, rival: list[float], verdict: str) -> None:
    assert table_verdict("best of all methods in each task", table_rows(values, rival, note=note)) == verdict
    fewer = [row for row in table_rows(values, rival, note=note) if row["method"] in ("pareto-mtl", "single-task")]
    assert table_verdict("best of all methods in each task", fewer) == f"so far {verdict}"


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        (ORDERED, "reproduced"),
        ([[0.4, 3.0], [0.1, 4.0], [0.3, 5.0]], "partly"),  # the middle one is ahead in metres, and dominates the last
        (ORDERED[::-1], "not reproduced"),
        ([[0.3, 4.0]] * 3, "not reproduced"),
        ([[0.3, None]] * 3, "not reproduced"),
    ],
)
def test_the_claim_on_different_trade_offs(values: Any, verdict: str) -> None:
    assert table_verdict("different trade-offs", table_rows(values, [0.3, 4.0])) == verdict


@pytest.mark.parametrize(("gain", "verdict"), [(0.1, "reproduced"), (0.0, "not reproduced"), (-0.1, "not reproduced")])
def test_the_claim_on_outperforming_all_others(gain: float, verdict: str) -> None:
    rows = table_rows(ORDERED, [0.3, 4.0], gain)
    assert table_verdict("outperforms other MTL approaches", rows) == verdict
    ahead = [{**row, "hypervolume": 0.25} if row["method"] == "linear" else row for row in rows]
    better = [{**row, "hypervolume": 0.21} if row["method"] == "pareto-mtl" else row for row in ahead]
    assert table_verdict("outperforms other MTL approaches", better) == "partly"
    assert table_verdict("outperforms other MTL approaches", rows[:2]) == "not measured"


@pytest.mark.parametrize(
    ("volumes", "verdict"),
    [((0.3, 0.3), "reproduced"), ((0.3, 0.1), "partly"), ((0.1, 0.1), "not reproduced"), ((0.3,), "so far reproduced")],
)
def test_the_claim_on_tasks_that_are_balanced_first(volumes: tuple[float, ...], verdict: str) -> None:
    rows = scaled_loss_rows("", 0.2, 1)
    for scale, volume in zip(("gradnorm", "uncertainty"), volumes, strict=False):
        rows += scaled_loss_rows(f"scaled by {scale}", volume, 1)
    claim = claims(rows)[-1]
    assert claim.where == "supplement 3"
    assert claim.verdict == verdict
    assert "in their own region 50% / 50% against 50% / 50%, not told apart" in claim.measured


def test_a_mean_that_rises_by_no_more_than_seeds_explain_is_no_gain() -> None:
    rows = scaled_loss_rows("", 0.2, 1)
    for scale in ("gradnorm", "uncertainty"):
        mine = scaled_loss_rows(f"scaled by {scale}", 0.1, 1)
        rows += [{**row, "spread": 0.2 * row["seed"], "in_region": row["seed"]} for row in mine]
    claim = claims(rows)[-1]
    assert claim.verdict == "not reproduced"
    assert "spread 0.200 ± 0.200 against 0.100 ± 0.000, not told apart" in claim.measured
    sure = [{**row, "spread": 0.3} if "scaled" in row["note"] else row for row in rows]
    assert claims(sure)[-1].verdict == "partly"


def test_localization_shows_means_and_seeds(unsaved: dict[str, Any], tmp_path: Path) -> None:
    def row(seed: int, metres: list[float], degrees: list[float]) -> Row:
        made = task_row("pareto-mtl", [[0.1, 0.1]] * 3, [[1.0, 0.0], [0.7, 0.7], [0.0, 1.0]])
        metrics = {"translation error": metres, "rotation error": degrees}
        tasks = ["translation", "rotation"]
        return {**made, "seed": seed, "problem": "localization", "tasks": tasks, "metrics": metrics}

    draw_study(
        "localization", [row(0, [4.0, 3.0, 2.0], [1.0, 2.0, 3.0]), row(1, [6.0, 3.0, 2.0], [1.0, 2.0, 5.0])], tmp_path
    )
    (axis,) = unsaved["localization"].axes
    places = {text.get_text(): text.get_position() for text in axis.texts if text.get_text().isdigit()}
    assert places == {"1": (5.0, 1.0), "2": (3.0, 2.0), "3": (2.0, 4.0)}
    faint = [tuple(point) for point in axis.collections[0].get_offsets().tolist()]
    assert faint == [(4.0, 1.0), (3.0, 2.0), (2.0, 3.0), (6.0, 1.0), (3.0, 2.0), (2.0, 5.0)]
    assert axis.get_xlabel() == "translation error (m)"
