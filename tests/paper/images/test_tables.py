"""Tables of the image studies."""

from __future__ import annotations

from _helpers.study_rows import ALONE, BAD, GOOD, image_rows
from paretomtl.paper.images.cells import METHODS, PAPER, SETS
from paretomtl.paper.images.tables import method_lines


def test_the_table_of_a_set() -> None:
    rows = image_rows(GOOD, BAD, ALONE)
    found = method_lines(rows, SETS[0], PAPER)
    assert len(found) == len(METHODS)
    assert found[0].method == "pareto-mtl"
    assert found[0].hypervolume == "2.599 ± 0.001"
    assert found[0].accuracy == ("0.9500 ± 0.0000", "0.9500 ± 0.0000")
    assert found[0].regions == ("100%", "67%")
    (alone,) = [line for line in found if line.method == "single-task"]
    assert alone.ideal
    assert (alone.accuracy[0], alone.spread) == ("0.9400 ± 0.0000", "")
    assert method_lines(rows, SETS[0], "unknown") == []
