"""How a run is cut into shards."""

from __future__ import annotations

from pathlib import Path

import pytest

from _helpers.shards import train
from paretomtl.training import Capacity, SerialExecutor


class _Sized(SerialExecutor):
    """As if so many shards could be trained at a time."""

    def __init__(self, slots: int, shard_size: int | None = None) -> None:
        super().__init__(shard_size)
        self.slots = slots

    def capacity(self, device: str | None) -> Capacity:
        return Capacity(self.slots, super().capacity(device).device)


def test_shards_are_as_many_as_there_is_room_for(tmp_path: Path) -> None:
    front = train(preferences=8, strategy="auto", epochs=1, out=tmp_path, executor=_Sized(2))
    assert front.strategy.startswith("2 shards; ")
    assert len(list((tmp_path / "shards").glob("*/config.json"))) == 2


def test_long_runs_one_after_another_are_cut_finer(monkeypatch: pytest.MonkeyPatch) -> None:
    for least, count in ((1e-9, 8), (1e9, 2)):
        monkeypatch.setattr("paretomtl.training.shards.plan._LEAST_SECONDS", least)
        front = train(preferences=8, epochs=1, executor=_Sized(2))
        assert front.strategy.startswith(f"{count} shards; ")
