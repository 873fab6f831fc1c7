"""The files of a shard, sent from folder to folder."""

from __future__ import annotations

from pathlib import Path

import pytest

import paretomtl as pm
from _helpers.fronts import assert_same
from _helpers.shards import train
from paretomtl.training.shards.job import put_files, take_files


def test_files_go_from_folder_to_folder(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    train(out=one, epochs=1)
    put_files(other, take_files(one))
    assert_same(pm.Front.load(other), pm.Front.load(one))
    put_files(other, {"config.json": None})
    assert not (other / "config.json").exists()


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x"])
def test_files_stay_in_their_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="must stay in their folder"):
        put_files(tmp_path / "inner", {name: b""})
    assert not (tmp_path / "x").exists()
