"""Three digits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from _helpers.study_figures import draw_study
from _helpers.study_rows import fill_cells
from paretomtl.compare import Row
from paretomtl.paper import STUDIES
from paretomtl.paper.runner import run_study


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    study, folder = STUDIES["three-digits"], tmp_path_factory.mktemp("rows")
    return fill_cells("three-digits", run_study("three-digits", study, folder, size="smoke", only="mgda").rows)


def test_sets_of_vectors_are_drawn_to_one_scale(smoke: list[Row], tmp_path: Path, unsaved: dict[str, Any]) -> None:
    """Few vectors beside many: a panel with limits of its own would make them look as spread."""
    close = [{**row, "losses": [[0.5] * 3] * row["preferences"]} for row in smoke if row["note"] == "5 even"]
    draw_study("three-digits", [*close, *(row for row in smoke if row["note"] != "5 even")], tmp_path)
    limits = [(axis.get_xlim(), axis.get_ylim(), axis.get_zlim()) for axis in unsaved["three-digits-scatter"].axes]
    assert len(limits) == 4
    assert len(set(limits)) == 1
