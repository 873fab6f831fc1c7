"""Census income: claims are judged by rows alone and can fail; its figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from _helpers.study_figures import draw_study
from _helpers.study_rows import fill_cells, task_row
from paretomtl.compare import Row
from paretomtl.paper import STUDIES
from paretomtl.paper.real_data.cells import EXPERTS, SHARED
from paretomtl.paper.real_data.census import claims
from paretomtl.paper.runner import run_study


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    folder, only = tmp_path_factory.mktemp("rows"), "shared trunk / uncertainty"
    return fill_cells("census", run_study("census", STUDIES["census"], folder, size="smoke", only=only).rows)


def test_both_networks_of_census_have_the_same_cells() -> None:
    cells = STUDIES["census"].cells("full")
    one, other = ([(c.method, c.note, c.seeds) for c in cells if c.part == part] for part in (SHARED, EXPERTS))
    assert one == other


def census_row(method: str, note: str, volume: float, losses: Any, seed: int, part: str) -> Row:
    fields = {"part": part, "stage": "final", "note": note, "method": method, "seed": seed}
    vectors = torch.eye(3).sub(1).abs()[: len(losses)].tolist()
    more = {"problem": "census", "tasks": ["a", "b", "c"], "reading": "direction", "vectors": vectors, "spread": 0.1}
    return {**fields, **more, "hypervolume": volume + 0.001 * seed, "losses": losses}


@pytest.mark.parametrize(
    ("gain", "good", "expected"),
    [(0.1, 0.1, ["reproduced"] * 2), (-0.1, 0.9, ["not reproduced"] * 2)],
)
def test_claims_on_census(gain: float, good: float, expected: list[str]) -> None:
    rows = []
    for part in (SHARED, EXPERTS):
        for seed in range(3):
            rows += [
                census_row("pareto-mtl", "5 random", 0.2, [[0.5] * 3], seed, part),
                census_row("pareto-mtl", "25 random", 0.2 + gain, [[good] * 3], seed, part),
                census_row("random-search", "", 0.2, [[0.4] * 3, [0.3] * 3], seed, part),
            ]
    judged = [expected[0], "not measured", expected[1]] * 2  # nothing to set five vectors beside
    assert [claim.verdict for claim in claims(rows)] == [*judged, "not measured", "not measured"]
    broken = [{**row, "losses": [[None] * 3, *row["losses"]]} for row in rows]
    assert [claim.verdict for claim in claims(broken)[:6]] == judged, "what is not finite is left out"
    assert {claim.verdict for claim in claims([])} == {"not measured"}


@pytest.mark.parametrize(
    ("losses", "spread", "verdict"),
    [
        ([[0.1, 0.5, 0.5], [0.5, 0.1, 0.5], [0.5, 0.5, 0.1]], 0.5, "reproduced"),
        ([[0.1, 0.5, 0.5], [0.5, 0.1, 0.5], [0.5, 0.5, 0.1]], 0.1, "partly"),  # no wider than starts make it
        ([[0.1, 0.5, 0.5], [0.5, 0.6, 0.5], [0.5, 0.5, 0.6]], 0.1, "partly"),  # one task alone
        ([[0.9, 0.5, 0.5], [0.5, 0.9, 0.5], [0.5, 0.5, 0.9]], 0.1, "not reproduced"),
        ([[0.1, None, 0.5], [None, 0.1, 0.5], [0.5, 0.5, 0.1]], 0.5, "partly"),  # two that are not finite
    ],
)
def test_the_claim_on_trade_offs_of_few_vectors(losses: Any, spread: float, verdict: str) -> None:
    rows = []
    for seed in range(3):
        rows.append(census_row("pareto-mtl", "5 random", 0.2, losses, seed, SHARED) | {"spread": spread + 0.001 * seed})
        rows.append(census_row("mgda", "", 0.2, losses, seed, SHARED))
    found = [claim for claim in claims(rows) if claim.claim.startswith("5 preference vectors")]
    assert [claim.verdict for claim in found] == [verdict, "not measured"]


def test_the_vector_that_favours_a_task_is_that_of_its_own_seed() -> None:
    """Random vectors are other ones for each seed: those of the second come the other way round, and so do losses."""
    losses = [[0.1, 0.5, 0.5], [0.5, 0.1, 0.5], [0.5, 0.5, 0.1]]
    rows = []
    for seed in range(4):
        for method, note in (("pareto-mtl", "5 random"), ("mgda", "")):
            row = census_row(method, note, 0.2, losses, seed, SHARED)
            row["spread"] = (0.5 if note else 0.1) + 0.001 * seed
            turned = {name: row[name][::-1] for name in ("losses", "vectors")} if seed % 2 else {}
            rows.append(row | turned)
    found = [claim for claim in claims(rows) if claim.claim.startswith("5 preference vectors")]
    assert [claim.verdict for claim in found] == ["reproduced", "not measured"]


def test_parallel_coordinates_show_the_model_that_favours_a_task_most_and_up_is_better(
    unsaved: dict[str, Any], tmp_path: Path
) -> None:
    losses = [[0.1, 0.2, 0.3], [0.2, 0.3, 0.1], [0.3, 0.1, 0.2]]
    vectors = [[0.9, 0.0, 0.0], [0.0, 0.7, 0.5], [0.5, 0.0, 0.7]]
    ours = {**task_row("pareto-mtl", losses, vectors), "note": "25 even"}
    theirs = task_row("random-search", losses, vectors)
    draw_study("census", [ours, theirs], tmp_path)
    for axis, favourites in zip(unsaved["census-parallel"].axes, ([1, 2, 0], [0, 1, 2]), strict=True):
        thick = [
            line.get_ydata().tolist() for line in axis.lines if line.get_linewidth() > 1.5 and len(line.get_xdata())
        ]
        for heights, model in zip(thick, favourites, strict=True):
            assert sorted(range(3), key=heights.__getitem__) == sorted(range(3), key=lambda k: -losses[model][k])


def test_a_line_of_projections_has_an_axis_with_the_same_limits_for_a_task(
    smoke: list[Row], unsaved: dict[str, Any], tmp_path: Path
) -> None:
    draw_study("census", smoke, tmp_path)
    panels = unsaved["census-projections"].axes
    assert len(panels) == 6
    for one, two, three in (panels[:3], panels[3:]):
        assert one.get_xlim() == two.get_xlim()
        assert one.get_ylim() == three.get_xlim()
        assert two.get_ylim() == three.get_ylim()
    assert "Pareto MTL, 5 random" in panels[0].get_legend_handles_labels()[1], "few vectors beside many"
