"""Rows of real data as lines of tables."""

from __future__ import annotations

from _helpers.study_rows import scaled_loss_rows
from paretomtl.paper.real_data import faces, localization
from paretomtl.paper.real_data.tables import TABLE_METRICS, scale_lines


def test_the_papers_tables_have_a_number_for_each_task() -> None:
    for problem, table in (("utkface", faces.PAPER_TABLE), ("localization", localization.PAPER_TABLE)):
        assert all(len(numbers) == len(TABLE_METRICS[problem]) for numbers in table.values())


def test_scaled_losses_are_set_beside_losses_as_they_are() -> None:
    assert scale_lines(scaled_loss_rows("scaled by first", 0.2, 1), "") == []
    rows = (
        scaled_loss_rows("", 0.2, 1)
        + scaled_loss_rows("scaled by points", 0.1, 1)
        + scaled_loss_rows("scaled by gradnorm", 0.3, 2)
    )
    plain, given, balanced = scale_lines(rows, "")
    assert (plain.losses, given.losses, balanced.losses) == ("as they are", "by points", "by gradnorm")
    assert given.verdict == "less hypervolume, spread not told apart, share in regions not told apart"
    assert balanced.verdict == "more hypervolume, spread not told apart, more share in regions"
    assert (balanced.regions, balanced.plain) == (("100%", "50%"), ("50%", "50%"))
    assert balanced.best == ("0.2000 ± 0.0000", "4.000 ± 0.000")
