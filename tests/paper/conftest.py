from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paretomtl.paper import panels


@pytest.fixture
def unsaved(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The figures that were made, by name; nothing is written, which takes most of the time."""
    made: dict[str, Any] = {}

    def keep(figure: Any, folder: Path, name: str) -> list[Path]:
        made[name] = figure
        return [folder / name]

    monkeypatch.setattr(panels, "save_figure", keep)
    return made
