"""The log of a run, as it grows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paretomtl.runs.log import LogTail


@given(st.lists(st.integers(0, 40), max_size=12))
def test_a_log_is_read_once_however_it_grows(tmp_path_factory: pytest.TempPathFactory, sizes: list[int]) -> None:
    path = tmp_path_factory.mktemp("log") / "log.jsonl"
    tail, found = LogTail(path), []
    whole = b"".join(json.dumps({"n": n, "text": "é" * n}).encode() + b"\n" for n in range(20))
    place = 0
    for size in [*sizes, len(whole)]:
        written = whole[: place + size]
        place = min(place + size, len(whole))
        path.write_bytes(written)
        assert not tail.replaced()
        found += [event["n"] for event in tail.events()]
        assert found == list(range(written.count(b"\n")))


def test_lines_that_are_no_events_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"a": 1}\n{"torn": [1,\nnull\n[1]\n\xff\xfe\n' + b"[" * 100_000 + b'\n{"a": 2}\n{"a": 3')
    tail = LogTail(path)
    assert [event["a"] for event in tail.events()] == [1, 2]
    with path.open("ab") as file:
        file.write(b"0}\n")
    assert [event["a"] for event in tail.events()] == [30]


def test_another_log_at_the_same_place_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    tail = LogTail(path)
    path.write_text('{"run": 1}\n')
    assert not tail.replaced()
    assert len(list(tail.events())) == 1
    path.write_text('{"run": 2}\n{"run": 2}\n')
    assert tail.replaced()
    assert len(list(tail.events())) == 2
    path.unlink()
    assert tail.replaced()
    assert not tail.replaced()
