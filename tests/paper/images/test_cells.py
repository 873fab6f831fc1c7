"""Cells of the image studies: every one runs, has a name and settings of its own, and says what was run."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

import paretomtl as pm
from _helpers.places import STORED
from paretomtl.compare import Row, load_rows
from paretomtl.paper import STUDIES
from paretomtl.paper.cell_settings import study_method
from paretomtl.paper.images.cells import PAPER, ImageCell
from paretomtl.paper.registry import REGISTRY
from paretomtl.paper.runner import run_study, stored_study

IMAGES = [name for name, entry in REGISTRY.items() if entry.module.startswith("images.")]


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Row]]:
    folder = tmp_path_factory.mktemp("smoke")
    return {name: run_study(name, STUDIES[name], folder, size="smoke").rows for name in IMAGES}


@pytest.mark.parametrize("name", IMAGES)
def test_a_smoke_run_is_whole_and_says_what_was_run(smoke: dict[str, list[Row]], name: str) -> None:
    rows, cells = smoke[name], STUDIES[name].cells("smoke")
    assert len(rows) == sum(cell.seeds * len(cell.stages) for cell in cells)
    json.dumps(rows, allow_nan=False)
    for row in rows:
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
        assert row.keys() >= {"seconds", "date", "hardware", "versions", "losses", "metrics", "status", "vectors"}
        assert len(row["losses"]) == len(row["train_losses"]) == row["preferences"]
        assert row["hypervolume"] is not None
        assert torch.tensor(row["weights"]).shape == (row["epochs"], row["preferences"], 2)
    claims, facts = STUDIES[name].claims(rows), STUDIES[name].facts(rows)
    assert all(claim.measured and claim.verdict for claim in claims)
    assert claims or facts


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("size", ["full", "quick", "smoke"])
def test_cells_are_told_apart_by_name_and_by_settings(name: str, size: Any) -> None:
    cells = STUDIES[name].cells(size)
    assert len({cell.name for cell in cells}) == len(cells)
    assert len({cell.settings for cell in cells}) == len(cells)


@pytest.mark.parametrize(
    "change",
    [
        {"epochs": 31},
        {"recipe": "strong"},
        {"problem": "multi-fashion"},
        {"preferences": 6},
        {"method": pm.ParetoMTL()},
        {"method": "linear"},
        {"network": "ResNet-18"},
        {"precision": "tf32"},
        {"samples": 100},
        {"keep": "best"},
    ],
)
def test_settings_tell_what_decides_the_rows(change: dict[str, Any]) -> None:
    kept = {"part": PAPER, "problem": "multi-mnist", "method": "pareto-mtl"}
    assert ImageCell(**kept).settings != ImageCell(**{**kept, **change}).settings
    assert ImageCell(**kept).settings == ImageCell(**kept, seeds=1, note="other", strategy="sequential").settings


@pytest.mark.parametrize("name", IMAGES)
def test_stored_results_are_those_of_the_study(name: str) -> None:
    if not (STORED / f"{name}.json").exists():
        pytest.skip(f"no results are stored for {name}")
    stored = stored_study(name, STUDIES[name], STORED)
    assert len(stored.rows) == len(load_rows(STORED / f"{name}.json"))
    assert all(row["hypervolume"] is not None for row in stored.rows)


def test_grid_search_is_the_papers_by_name(smoke: dict[str, list[Row]]) -> None:
    """Cells of grid search train the rows that are stored for them, and describe themselves as those rows do."""
    stored = [row for row in load_rows(STORED / "images-lenet.json") if row["method"] == "linear"]
    cells = {cell.name: cell for cell in STUDIES["images-lenet"].cells("full")}
    assert stored
    for row in stored:
        cell = cells[row["cell"]]
        assert (cell.settings, "method=Linear();" in cell.settings) == (row["settings"], True)
        rows = study_method(cell.method).spread(cell.preferences, 2)
        torch.testing.assert_close(torch.tensor(row["vectors"], dtype=torch.float64), rows, rtol=0, atol=1e-6)
    trained = [row["vectors"] for row in smoke["images-lenet"] if row["method"] == "linear"]
    assert trained
    assert all(vectors == [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]] for vectors in trained)


@pytest.mark.parametrize(
    ("name", "words", "count"),
    [
        ("images-lenet", "overall best performance among all MTL algorithms", 2),
        ("images-lenet", "well-distributed solutions", 1),
        ("images-resnet", "training losses of all solutions are close to 0", 1),
        ("images-resnet", "match the single-task baseline", 1),
        ("images-resnet", "not diverse enough", 1),
        ("ablation-release", "potentially better convergence", 1),
    ],
)
def test_stored_rows_are_judged(name: str, words: str, count: int) -> None:
    found = [claim for claim in STUDIES[name].claims(load_rows(STORED / f"{name}.json")) if words in claim.claim]
    assert len(found) == count
    assert {claim.verdict for claim in found} <= {"reproduced", "partly", "not reproduced"}
