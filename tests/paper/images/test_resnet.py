"""ResNet-18 on image pairs: claims are judged by rows alone and can fail."""

from __future__ import annotations

from typing import Any

import pytest

from _helpers.study_rows import ALONE, GOOD, image_row, verdicts
from paretomtl.compare import Row
from paretomtl.paper.images.cells import SETS
from paretomtl.paper.images.resnet import claims


def test_claims_on_resnet_compare_with_separate_networks() -> None:
    def rows(mine: float, alone: float) -> list[Row]:
        made = []
        for problem in SETS:
            part = "early stop" if problem == SETS[0] else "to the end"
            for method, level, count in (("pareto-mtl", mine, 3), ("single-task", alone, 2)):
                made += [
                    image_row(method, GOOD[0][:count], [[level, level]] * count, seed, problem=problem, part=part)
                    for seed in range(2)
                ]
        return made

    assert verdicts(claims(rows(0.9, 0.8))) == [
        "reproduced",
        "not reproduced",
        "reproduced",
        "not reproduced",
        "not reproduced",
        "not reproduced",  # losses of 0.1 and more
        "reproduced",  # (0.3, 0.1) beside 0.3 and 0.2
        "not reproduced",  # as diverse on test
        "not measured",
    ]
    assert verdicts(claims(rows(0.995, 0.999)))[1:5] == [
        "reproduced",
        "not reproduced",
        "reproduced",
        "reproduced",
    ]
    assert set(verdicts(claims([]))) == {"not measured"}


def resnet_rows(losses: Any, train: Any = GOOD[1], test: Any = GOOD[1]) -> list[Row]:
    """ResNet-18: training losses and both accuracies of Pareto MTL; networks for one task with 0.94 and 0.02."""
    rows = []
    for problem in SETS:
        part = "early stop" if problem == SETS[0] else "to the end"
        for seed in range(2):
            mine = image_row("pareto-mtl", losses, test, seed, problem=problem, part=part)
            split = {f"{task} accuracy": [p[i] for p in train] for i, task in enumerate("ab")}
            rows += [
                {**mine, "train_metrics": split},
                image_row("single-task", [[0.02, 9.0], [9.0, 0.02]], ALONE[1], seed, problem=problem, part=part),
            ]
    return rows


def resnet_verdict(words: str, rows: list[Row]) -> str:
    (found,) = [claim for claim in claims(rows) if words in claim.claim]
    return found.verdict


@pytest.mark.parametrize(
    ("losses", "small", "matched"),
    [
        ([[0.04, 0.01], [0.02, 0.02], [0.01, 0.04]], "reproduced", "reproduced"),
        ([[0.09, 0.01], [0.03, 0.03], [0.01, 0.09]], "partly", "partly"),
        ([[0.9, 0.1], [0.3, 0.3], [0.1, 0.9]], "not reproduced", "not reproduced"),
        ([[0.9, 0.1], [None, None], [0.1, 0.9]], "not reproduced", "not reproduced"),
    ],
)
def test_training_losses_to_the_end(losses: Any, small: str, matched: str) -> None:
    rows = resnet_rows(losses)
    assert resnet_verdict("close to 0", rows) == small
    assert resnet_verdict("match the single-task baseline", rows) == matched
    fewer = [row for row in rows if row["method"] == "pareto-mtl" or row["seed"] == 0]
    assert resnet_verdict("match the single-task baseline", fewer) == matched, "a seed of one alone is left out"


def test_test_accuracies_that_are_less_diverse_than_those_on_training() -> None:
    narrow, one = [[0.92, 0.93], [0.92, 0.92], [0.93, 0.92]], [[0.90, 0.93], [0.92, 0.92], [0.95, 0.92]]
    words = "not diverse enough"
    assert resnet_verdict(words, resnet_rows(GOOD[0], GOOD[1], narrow)) == "reproduced"
    assert resnet_verdict(words, resnet_rows(GOOD[0], GOOD[1], one)) == "partly"
    assert resnet_verdict(words, resnet_rows(GOOD[0], narrow, GOOD[1])) == "not reproduced"


def test_what_is_better_by_no_more_than_seeds_explain_is_not_partly_reproduced() -> None:
    def moved(row: Row) -> Row:
        shift = 0.2 * (-1) ** row["seed"] if row["method"] == "pareto-mtl" else 0.0
        splits = ("metrics", "train_metrics")
        return {**row, **{s: {k: [v + shift for v in values] for k, values in row[s].items()} for s in splits}}

    found = [claim for claim in claims([moved(row) for row in resnet_rows(GOOD[0])]) if "beats" in claim.claim]
    assert verdicts(found) == ["not reproduced"] * 3
    assert all("not told apart" in claim.measured and "*" not in claim.measured[100:] for claim in found)
