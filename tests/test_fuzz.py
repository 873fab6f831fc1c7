"""A sample of what ``python stress/fuzz.py`` does in full."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings

pytest.importorskip("PIL", reason="Pillow is not installed: pip install 'paretomtl[images]'")

from fuzzing.format import Files
from fuzzing.formats import formats
from fuzzing.grammars import grammar
from fuzzing.judge import install, judge

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
