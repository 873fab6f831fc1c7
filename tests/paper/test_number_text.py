from __future__ import annotations

from paretomtl._support.significance import Difference
from paretomtl.paper.number_text import plus_minus, starred


def test_numbers_as_text() -> None:
    assert plus_minus([1.0, 2.0], 2) == "1.50 ± 0.71"
    assert plus_minus([1.0]) == "1.000"
    assert [starred(Difference(0.5, 0.4, p), 2) for p in (0.04, 0.06)] == ["+0.50*", "+0.50"]
