"""Sets of preference vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from _helpers.study_figures import draw_study
from _helpers.study_rows import GOOD, image_row, plane_row, verdicts
from paretomtl.compare import Row
from paretomtl.paper.images.preferences import claims, fan


def spread_rows(spread: float, *values: Any, **fields: Any) -> list[Row]:
    return [image_row(*values, seed, spread=spread + 0.001 * seed, **fields) for seed in range(3)]


def test_a_fan_has_vectors_so_many_degrees_apart() -> None:
    rows = torch.tensor(fan(5, 45.0, 2.0), dtype=torch.float64)
    degrees = torch.rad2deg(torch.atan2(rows[:, 1], rows[:, 0]))
    torch.testing.assert_close(degrees, torch.tensor([41.0, 43, 45, 47, 49], dtype=torch.float64), rtol=0, atol=1e-3)


def test_claims_on_sets_of_vectors() -> None:
    pareto = ("pareto-mtl", *GOOD)

    def sets(random: float, close: float) -> list[Row]:
        rows = spread_rows(0.5, *pareto)
        for i, gain in enumerate((0.1, -0.1)):
            better = [
                {**r, "hypervolume": r["hypervolume"] + gain}
                for r in spread_rows(random, *pareto, note=f"5 random, set {i}")
            ]
            rows += better
        for name in ("5 close", "5 narrow"):
            losses = [[0.3, 0.1], [0.2, 0.2], [close, close], [0.1, 0.3], [0.1, 0.4]]
            rows += [
                image_row("pareto-mtl", [[a + 1e-4 * s, b] for a, b in losses], GOOD[1] + GOOD[1][:2], s, note=name)
                for s in range(3)
            ]
        return rows

    assert verdicts(claims(sets(0.5, 0.4))) == ["reproduced", "reproduced"]
    assert verdicts(claims(sets(0.1, 0.1))) == ["not reproduced", "not reproduced"]


def test_solutions_and_rays_have_the_same_numbers(unsaved: dict[str, Any], tmp_path: Path) -> None:
    """Random vectors are in no order: the figure turns them."""
    row = plane_row("pareto-mtl", [[0.5, 0.5], [0.8, 0.2], [0.2, 0.8]], [[0.7, 0.7], [1.0, 0.0], [0.0, 1.0]])
    draw_study("preferences", [{**row, "note": "3 random"}], tmp_path)
    texts = unsaved["preferences"].axes[0].texts
    at = {text.get_text(): text.get_position() for text in texts if text.get_position() in map(tuple, row["losses"])}
    assert at == {"1": (0.8, 0.2), "2": (0.5, 0.5), "3": (0.2, 0.8)}
    rays = {text.get_text(): text.xy for text in texts if text.get_text() in at and hasattr(text, "xy")}
    assert rays["1"][1] == rays["3"][0] == 0
    assert rays["2"][0] == pytest.approx(rays["2"][1])


def test_rays_that_end_near_each_other_share_a_label(unsaved: dict[str, Any], tmp_path: Path) -> None:
    row = plane_row("pareto-mtl", [[0.5, 0.2], [0.5, 0.2], [0.2, 0.5]], [[1.0, 0.1], [1.0, 0.11], [0.1, 1.0]])
    draw_study("preferences", [row], tmp_path)
    axis = unsaved["preferences"].axes[0]
    assert [text.get_text() for text in axis.texts if hasattr(text, "xy")][:2] == ["1–2", "3"]
    assert axis.get_title(loc="left") == "3 even"
