"""Three digits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from _helpers.study_figures import draw_study
from _helpers.study_rows import fill_cells
from paretomtl.compare import Row
from paretomtl.paper import STUDIES
from paretomtl.paper.real_data.three_digits import COUNTS
from paretomtl.paper.runner import run_study


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    study, folder = STUDIES["three-digits"], tmp_path_factory.mktemp("rows")
    return fill_cells("three-digits", run_study("three-digits", study, folder, size="smoke", only="mgda").rows)


def test_sets_of_vectors_are_drawn_to_one_scale(smoke: list[Row], tmp_path: Path, unsaved: dict[str, Any]) -> None:
    """Few vectors beside many: a panel with limits of its own would make them look as spread."""
    close = [{**row, "losses": [[0.5] * 3] * row["preferences"]} for row in smoke if row["note"] == "5 even"]
    draw_study("three-digits", [*close, *(row for row in smoke if row["note"] != "5 even")], tmp_path)
    panels = unsaved["three-digits-projections"].axes
    assert [axis.get_title(loc="left") for axis in panels[::3]] == [f"{count} vectors" for count in COUNTS]
    for column in range(3):
        assert len({(axis.get_xlim(), axis.get_ylim()) for axis in panels[column::3]}) == 1
