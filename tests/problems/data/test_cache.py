"""The folder of prepared data."""

from __future__ import annotations

from pathlib import Path

import pytest

from paretomtl.problems._data.cache import data_folder
from paretomtl.problems._multi_mnist.files import canvases_file


def test_the_folder_is_the_users_choice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PARETOMTL_DATA", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert data_folder() == tmp_path / ".cache" / "paretomtl"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert data_folder() == tmp_path / "xdg" / "paretomtl"
    monkeypatch.setenv("PARETOMTL_DATA", "~/mine")
    assert data_folder() == tmp_path / "mine"
    assert canvases_file("multi-mnist", None, 3) == tmp_path / "mine" / "multi-mnist-seed3.npz"
    assert canvases_file("multi-mnist", "~/other", 0) == tmp_path / "other" / "multi-mnist-seed0.npz"
