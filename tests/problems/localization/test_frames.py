"""How frames are split: neighbours look the same, so that no frame of training may be near one of the test."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from _helpers.pictures import some_frames


@given(st.lists(st.integers(5, 60), min_size=1, max_size=4), st.integers(1, 2), st.integers(2, 6), st.integers(0, 3))
def test_splits_are_blocks_with_gaps(lengths: list[int], cameras: int, block: int, gap: int) -> None:
    """Whole blocks test and validate; no frame of training is near one of them; both cameras go together."""
    places = [(r, m) for r, length in enumerate(lengths) for _ in range(cameras) for m in range(length)]
    frames = some_frames([r for r, _ in places], [m for _, m in places])
    blocks = sum(-(-length // block) for length in lengths)
    try:
        parts = frames.split(True, block, gap)
    except ValueError:
        assert blocks < 5 or gap * 2 >= block
        return
    held = {split: {places[i] for i in part.tolist()} for split, part in parts.items()}
    whole = {split: {places[i] for i in part.tolist()} for split, part in frames.split(False, block, gap).items()}
    assert held["test"] == whole["test"]
    assert held["train"] <= whole["train"]
    numbered = [(r, b) for r, length in enumerate(lengths) for b in range(-(-length // block))]
    for split, which in (("test", 4), ("val", 2)):
        chosen = set(numbered[which::5])
        assert held[split] == {(r, m) for r, m in places if (r, m // block) in chosen}
    away = held["test"] | held["val"]
    for r, m in places:
        near = any((r, m + shift) in away for shift in range(-gap, gap + 1))
        assert ((r, m) in held["train"]) == (not near)
    assert sum(map(len, parts.values())) <= len(places)


def test_too_few_frames_are_named() -> None:
    with pytest.raises(ValueError, match=r"Got 30 frames in 1 blocks, and none for 'test'"):
        some_frames([0] * 30, list(range(30))).split(False)
