from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import paretomtl as pm
from _helpers.places import STORED
from _helpers.study_figures import check_drawn_reproducibly, check_nothing_drawn_of_nothing, draw_study
from paretomtl.compare import Row, load_rows, save_rows
from paretomtl.paper import STUDIES
from paretomtl.paper.runner import run_study, stored_study
from paretomtl.paper.synthetic import SyntheticCell


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    return run_study("synthetic", STUDIES["synthetic"], tmp_path_factory.mktemp("smoke"), size="smoke").rows


def trained(method: pm.ParetoMTL, vectors: int, steps: int, seeds: int = 20) -> list[Row]:
    return SyntheticCell("test", method, vectors, steps).run(None, range(seeds))


@pytest.mark.study
def test_twenty_seeds_cover_the_front() -> None:
    """300 steps with the initial phase until feasible: all ten solutions in their regions and on the front."""
    rows = trained(pm.ParetoMTL(initial_steps=200, return_share=None), 10, 300)
    whole = sum(row["in_region"] == 10 and row["distance"] <= 1e-3 for row in rows)
    assert whole >= 18
    assert sum(row["hypervolume"] for row in rows) / 20 >= 0.292


def test_the_papers_schedule_gives_what_its_code_gave() -> None:
    """100 steps, 20 of them initial; the paper's code: 9 or 10 in their region, hypervolume 0.287 to 0.298."""
    rows = trained(pm.ParetoMTL(initial_steps=20, return_share=None), 10, 100)
    assert sum(row["in_region"] for row in rows) / 20 > 9
    assert 0.287 <= sum(row["hypervolume"] for row in rows) / 20 <= 0.298


def test_the_ends_are_lost_without_the_initial_phase() -> None:
    with_it, without = (trained(pm.ParetoMTL(initial_steps=n, return_share=None), 10, 300, seeds=5) for n in (200, 0))
    ends = [torch.tensor([row["losses"] for row in rows])[:, [0, -1]].min(-1).values for rows in (with_it, without)]
    assert ends[0].max() < 0.15
    assert ends[1].mean() > 0.25


def test_every_row_says_what_was_run_where_and_when(smoke: list[Row]) -> None:
    for row in smoke:
        assert row.keys() >= {
            "problem",
            "method",
            "recipe",
            "preferences",
            "epochs",
            "seed",
            "hypervolume",
            "reference",
        }
        assert row.keys() >= {"seconds", "date", "hardware", "versions", "losses", "status", "vectors"}
        assert len(row["losses"]) == row["preferences"]
    json.dumps(smoke, allow_nan=False)


def test_claims_and_facts_are_judged_from_rows_alone(smoke: list[Row]) -> None:
    claims = STUDIES["synthetic"].claims(smoke)
    assert len(claims) == 8
    assert all(claim.measured and claim.verdict for claim in claims)
    facts = dict(STUDIES["synthetic"].facts(smoke))
    assert len(facts) == 9
    assert facts["ten points of the true front"] == "hypervolume 0.2948 on the rays, 0.2998 at best"
    assert "Pareto MTL, 100 steps, 20 of them initial, 2 seeds" in facts
    with pytest.raises(ValueError, match="'rows' must hold the part 'convergence'"):
        STUDIES["synthetic"].claims([])


def test_verdicts_can_fail(smoke: list[Row]) -> None:
    """Points moved to the middle of the front contradict what the paper says of linear scalarization."""
    moved = [
        {**row, "losses": [[0.63, 0.63]] * row["preferences"]} if row["method"] == "random-search" else row
        for row in smoke
    ]
    assert STUDIES["synthetic"].claims(moved)[0].verdict == "not reproduced"


def test_figures_are_drawn_from_rows_alone_and_reproducibly(smoke: list[Row], tmp_path: Path) -> None:
    check_drawn_reproducibly("synthetic", smoke, tmp_path)
    check_nothing_drawn_of_nothing("synthetic", tmp_path)


def test_panels_say_where_the_models_are(smoke: list[Row], unsaved: dict[str, Any], tmp_path: Path) -> None:
    ends = [[0.01, 0.98]] * 30 + [[0.98, 0.01]] * 70
    rows = [{**row, "losses": ends} if row["preferences"] == 100 else row for row in smoke]
    draw_study("synthetic", rows, tmp_path)
    said = [text.get_text() for text in unsaved["synthetic-convergence"].axes[0].texts]
    assert {"0 of 100 in the middle", "30 models", "70 models"} <= set(said)


def test_regions_share_the_triangle(smoke: list[Row], unsaved: dict[str, Any], tmp_path: Path) -> None:
    """The borders of all regions enclose the whole triangle, and no point of it twice."""
    draw_study("synthetic", smoke, tmp_path)
    for axis in unsaved["synthetic-three-objectives"].axes:
        areas = [_area(torch.from_numpy(line.get_xydata())) for line in axis.lines]
        assert len(areas) == 15
        assert sum(areas) == pytest.approx(3**0.5 / 4)


def _area(polygon: torch.Tensor) -> float:
    x, y = polygon.T
    return abs(float((x[:-1] * y[1:] - x[1:] * y[:-1]).sum())) / 2


def test_rows_are_stored_whole_or_not_at_all(smoke: list[Row], tmp_path: Path) -> None:
    path = tmp_path / "deep" / "rows.json"
    save_rows(path, "synthetic", "a command", smoke)
    assert load_rows(path) == smoke
    with pytest.raises(ValueError, match="not JSON compliant"):
        save_rows(path, "synthetic", "a command", [{"hypervolume": float("nan")}])
    assert load_rows(path) == smoke
    assert [p.name for p in path.parent.iterdir()] == ["rows.json"]
    path.write_text("[1, 2]")
    with pytest.raises(ValueError, match="must hold an object with a list of rows"):
        load_rows(path)


def test_the_stored_results_are_those_of_this_study() -> None:
    """Same cells, same settings, nothing missing; a sample of rows trained again gives the stored numbers."""
    stored = stored_study("synthetic", STUDIES["synthetic"], STORED)
    assert stored.missing == []
    again = trained(pm.ParetoMTL(initial_steps=20, return_share=None), 10, 100, seeds=3)
    for row in again:
        (same,) = [r for r in stored.rows if r["part"] == "paper schedule" and r["seed"] == row["seed"]]
        torch.testing.assert_close(torch.tensor(same["losses"]), torch.tensor(row["losses"]), rtol=0, atol=1e-3)
