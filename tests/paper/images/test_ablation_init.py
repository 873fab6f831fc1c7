"""The ablation of the initial phase."""

from __future__ import annotations

from typing import Any

from _helpers.study_rows import BAD, GOOD, image_row, verdicts
from paretomtl.compare import Row
from paretomtl.paper.images.ablation_init import claims


def spread_rows(spread: float, *values: Any, **fields: Any) -> list[Row]:
    return [image_row(*values, seed, spread=spread + 0.001 * seed, **fields) for seed in range(3)]


def test_claims_on_the_initial_phase() -> None:
    pareto, note = ("pareto-mtl", *GOOD), {"note": "no initial phase"}
    wide, narrow = (
        spread_rows(0.5, *pareto) + spread_rows(0.2, *pareto, **note),
        spread_rows(0.2, *pareto) + spread_rows(0.5, *pareto, **note),
    )
    mgda = spread_rows(0.1, "mgda", *BAD)
    assert verdicts(claims(wide + mgda)) == ["reproduced", "reproduced"]
    assert verdicts(claims(narrow + mgda)) == ["not reproduced", "reproduced"]
