from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch

from paretomtl._support.files.atomic_files import write_text
from paretomtl._support.files.tensor_files import read_tensors, write_tensors


@pytest.mark.parametrize("fails", [1, 2])
def test_a_rename_that_fails_leaves_the_old_file(fails: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file before it would be kept under another name; one of both is always whole."""
    path, earlier = tmp_path / "x", tmp_path / "earlier"
    for value in (1.0, 2.0):
        write_tensors(path, {"a": torch.tensor(value)}, {}, earlier)
    original, calls = os.replace, 0

    def fail(source: Any, target: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == fails:
            raise OSError("full")
        original(source, target)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="full"):
        write_tensors(path, {"a": torch.tensor(3.0)}, {}, earlier)
    assert float(read_tensors(path)[0]["a"]) == 2.0
    monkeypatch.undo()
    write_tensors(path, {"a": torch.tensor(4.0)}, {}, earlier)
    assert (float(read_tensors(path)[0]["a"]), float(read_tensors(earlier)[0]["a"])) == (4.0, 2.0)


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    write_text(path, "old")
    write_tensors(tmp_path / "t", {"a": torch.ones(1)}, {})

    def fail(handle: int) -> None:
        raise OSError("full")

    monkeypatch.setattr("paretomtl._support.files.atomic_files.os.fsync", fail)
    with pytest.raises(OSError, match="full"):
        write_text(path, "new")
    with pytest.raises(OSError, match="full"):
        write_tensors(tmp_path / "t", {"a": torch.zeros(1)}, {})
    assert path.read_text() == "old"
    assert float(read_tensors(tmp_path / "t")[0]["a"]) == 1.0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t", "x"]
