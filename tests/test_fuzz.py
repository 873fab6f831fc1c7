"""A sample of what ``python stress/fuzz.py`` does in full."""

from __future__ import annotations

import functools
import importlib.util
import os
import signal
import sys
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings

from _helpers.places import ROOT

pytest.importorskip("PIL", reason="Pillow is not installed: pip install 'paretomtl[images]'")

from _helpers.fuzzing.format import Files, Format
from _helpers.fuzzing.formats import formats
from _helpers.fuzzing.grammars import grammar
from _helpers.fuzzing.judge import install, judge

NAMES = sorted(formats())


@pytest.mark.parametrize("name", NAMES)
def test_whatever_a_file_holds_is_accepted_or_refused_by_name(name: str, tmp_path: Path) -> None:
    form = formats()[name]
    slow = form.share < 10
    install(form, tmp_path)
    assert judge(form, tmp_path, {}).outcome == "accepted"
    for number in range(10 if slow else 100):
        verdict = judge(form, tmp_path, form.draw(Random(number)))
        assert verdict.outcome != "failed", f"input {number}: {verdict.why}"

    @settings(max_examples=10 if slow else 25, suppress_health_check=list(HealthCheck))
    @given(grammar(form))
    def by_grammar(files: Files) -> None:
        verdict = judge(form, tmp_path, files)
        assert verdict.outcome != "failed", verdict.why

    by_grammar()


@pytest.mark.skipif(sys.platform != "linux", reason="limits of processes are read from /proc")
def test_the_fuzzer_sees_what_it_is_there_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    specification = importlib.util.spec_from_file_location("stress_fuzz", ROOT / "stress" / "fuzz.py")
    assert specification is not None
    assert specification.loader is not None
    fuzz = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, "stress_fuzz", fuzz)
    specification.loader.exec_module(fuzz)

    def load(folder: Path) -> None:
        def bare() -> None:
            raise ValueError("of what?")

        def lookup() -> None:
            {}["a"]

        def named() -> None:
            raise ValueError(f"'{folder}' must be otherwise")

        def forever() -> None:
            while True:
                pass

        ways = {
            b"bare": bare,
            b"lookup": lookup,
            b"named": named,
            b"forever": forever,
            b"greedy": lambda: bytearray(1 << 30),
            b"deadly": lambda: os.kill(os.getpid(), signal.SIGKILL),
        }
        ways.get((folder / "a").read_bytes(), lambda: None)()

    words = (b"fine", b"bare", b"lookup", b"named", b"deadly", b"forever", b"greedy")
    once = tuple(functools.partial(lambda word: {"a": word}, word) for word in words)
    monkeypatch.setattr(fuzz, "SECONDS", 0.2)
    monkeypatch.setattr(fuzz, "BY_GRAMMAR", 100)
    monkeypatch.setattr(fuzz, "ROOT", tmp_path)
    tally = fuzz.fuzz(Format("made up", {"a": b"valid"}, load, (), 1, once), len(words), 0)
    failed = {
        "failed ValueError": 1,
        "failed KeyError": 1,
        "failed death": 1,
        "failed slow": 1,
        "failed MemoryError": 1,
    }
    assert tally.inputs == len(words)
    assert tally.outcomes == {"accepted": 1, "refused ValueError": 1, **failed}
    assert {path.read_bytes() for path in tmp_path.rglob("a")} == {b"bare", b"lookup", b"forever", b"greedy"}
