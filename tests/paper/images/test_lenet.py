"""LeNet on image pairs: claims are judged by rows alone and can fail."""

from __future__ import annotations

from typing import Any

from _helpers.study_rows import ALONE, BAD, GOOD, image_rows, verdicts
from paretomtl.paper.images.cells import METHODS, PAPER, SETS, STRONG
from paretomtl.paper.images.lenet import cells, claims, facts


def test_the_full_study_is_what_was_asked_for() -> None:
    """Three sets, seven methods, five seeds, 30 epochs, the paper's settings and the strong recipe; once 100 epochs."""
    study = cells("full")
    for part in (PAPER, STRONG):
        mine = [cell for cell in study if cell.part == part]
        assert {(cell.problem, cell.method) for cell in mine} == {(p, m) for p in SETS for m in METHODS}
        assert {(cell.epochs, cell.seeds, cell.samples) for cell in mine} == {(30, 5, None)}
    assert {cell.epochs for cell in study if cell.part not in (PAPER, STRONG)} == {100}


def test_claims_hold_where_rows_bear_them_out_and_fail_where_they_do_not() -> None:
    assert verdicts(claims(image_rows(GOOD, BAD, ALONE))) == [
        "reproduced",  # beats its rivals
        "reproduced",  # also with the strong recipe
        "reproduced",  # beats all others
        "reproduced",  # also with the strong recipe
        "reproduced",  # in order and in its regions
        "reproduced",  # wider than MOO-MTL
        "reproduced",  # extremes are best
        "reproduced",  # better than networks for one task
        "reproduced",  # networks for one task dominate 11 of 13
        "reproduced",  # near them
    ]
    swapped = verdicts(claims(image_rows(BAD, GOOD, ALONE)))
    assert swapped[:4] == ["not reproduced"] * 4
    assert swapped[6:8] == ["partly", "not reproduced"]  # extremes are best among their own alone
    assert swapped[9] == "not reproduced"
    assert verdicts(claims(image_rows(GOOD, GOOD, ALONE)))[:4] == ["not reproduced"] * 4
    turned = (GOOD[0], GOOD[1][::-1])
    assert verdicts(claims(image_rows(turned, BAD, ALONE)))[6] == "not reproduced"


def test_the_best_of_all_algorithms_is_ahead_of_moo_mtl_and_random_search_too() -> None:
    rows = image_rows(GOOD, BAD, ALONE)
    strong = [{**row, "hypervolume": 9.0} if row["method"] == "random-search" else row for row in rows]
    some, all_of_them = claims(strong)[0], claims(strong)[2]
    assert (some.verdict, all_of_them.verdict) == ("reproduced", "partly")
    assert "better in 12 of 15, not to be told apart in 0, worse in 3" in all_of_them.measured
    assert "-6.401* to random search" in all_of_them.measured


def test_solutions_are_well_distributed_in_order_and_in_their_own_regions() -> None:
    def verdict(losses: Any, hits: int) -> str:
        rows = image_rows((losses, GOOD[1]), BAD, ALONE)
        mine = [{**row, "in_region": hits} if row["method"] == "pareto-mtl" else row for row in rows]
        (found,) = [claim for claim in claims(mine) if "well-distributed" in claim.claim]
        return found.verdict

    assert verdict(GOOD[0], 3) == "reproduced"
    assert verdict(GOOD[0], 1) == "partly", "in order, and not in the regions"
    assert verdict(GOOD[0][::-1], 3) == "not reproduced"


def test_what_is_not_there_is_not_judged() -> None:
    rows = [row for row in image_rows(GOOD, BAD, ALONE) if row["problem"] == SETS[0] and row["part"] == PAPER]
    found = claims(rows)
    unmeasured = [claim.verdict for claim in found if claim.measured == "no rows are stored for it yet"]
    assert unmeasured == ["not measured"] * 4  # two with the strong recipe, and two on the third set
    assert {claim.verdict for claim in found} == {"not measured", "so far reproduced"}
    assert claims([])[0].verdict == "not measured"
    assert facts([]) == []
