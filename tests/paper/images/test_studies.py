"""The image studies: every cell runs, rows say what they are, claims are judged by rows alone and can fail."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

import paretomtl as pm
from _helpers.places import STORED
from paretomtl.compare import Row, load_rows
from paretomtl.paper import STUDIES, Claim, run_study, stored_study
from paretomtl.paper.images.cells import ImageCell
from paretomtl.paper.images.lenet import lenet_claims, lenet_facts, lines
from paretomtl.paper.images.more_claims import (
    PUBLISHED,
    acceptance_facts,
    init_claims,
    preference_claims,
    release_claims,
    weight_claims,
)
from paretomtl.paper.images.resnet import resnet_claims
from paretomtl.paper.images.studies import METHODS, PAPER, SETS, STRONG, fan, images_lenet

IMAGES = ["images-lenet", "images-resnet", "ablation-init", "ablation-release", "preferences", "weights", "acceptance"]


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Row]]:
    folder = tmp_path_factory.mktemp("smoke")
    return {name: run_study(name, STUDIES[name], folder, size="smoke").rows for name in IMAGES}


@pytest.mark.parametrize("name", IMAGES)
def test_a_smoke_run_is_whole_and_says_what_was_run(smoke: dict[str, list[Row]], name: str) -> None:
    rows, cells = smoke[name], STUDIES[name].cells("smoke")
    assert len(rows) == sum(cell.seeds * len(cell.stages) for cell in cells)
    json.dumps(rows, allow_nan=False)
    for row in rows:
        assert row.keys() >= {
            "problem",
            "method",
            "recipe",
            "preferences",
            "epochs",
            "seed",
            "hypervolume",
            "reference",
        }
        assert row.keys() >= {"seconds", "date", "hardware", "versions", "losses", "metrics", "status", "vectors"}
        assert len(row["losses"]) == len(row["train_losses"]) == row["preferences"]
        assert row["hypervolume"] is not None
        assert torch.tensor(row["weights"]).shape == (row["epochs"], row["preferences"], 2)
    claims, facts = STUDIES[name].claims(rows), STUDIES[name].facts(rows)
    assert all(claim.measured and claim.verdict for claim in claims)
    assert claims or facts


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("size", ["full", "quick", "smoke"])
def test_cells_are_told_apart_by_name_and_by_settings(name: str, size: Any) -> None:
    cells = STUDIES[name].cells(size)
    assert len({cell.name for cell in cells}) == len(cells)
    assert len({cell.settings for cell in cells}) == len(cells)


def test_the_full_study_is_what_was_asked_for() -> None:
    """Three sets, seven methods, five seeds, 30 epochs, the paper's settings and the strong recipe; once 100 epochs."""
    cells = images_lenet("full")
    for part in (PAPER, STRONG):
        mine = [cell for cell in cells if cell.part == part]
        assert {(cell.problem, cell.method) for cell in mine} == {(p, m) for p in SETS for m in METHODS}
        assert {(cell.epochs, cell.seeds, cell.samples) for cell in mine} == {(30, 5, None)}
    assert {cell.epochs for cell in cells if cell.part not in (PAPER, STRONG)} == {100}


@pytest.mark.parametrize(
    "change",
    [
        {"epochs": 31},
        {"recipe": "strong"},
        {"problem": "multi-fashion"},
        {"preferences": 6},
        {"method": pm.ParetoMTL()},
        {"method": "linear"},
        {"network": "ResNet-18"},
        {"precision": "tf32"},
        {"samples": 100},
        {"keep": "best"},
    ],
)
def test_settings_tell_what_decides_the_rows(change: dict[str, Any]) -> None:
    kept = {"part": PAPER, "problem": "multi-mnist", "method": "pareto-mtl"}
    assert ImageCell(**kept).settings != ImageCell(**{**kept, **change}).settings
    assert ImageCell(**kept).settings == ImageCell(**kept, seeds=1, note="other", strategy="sequential").settings


def test_a_fan_has_vectors_so_many_degrees_apart() -> None:
    rows = torch.tensor(fan(5, 45.0, 2.0), dtype=torch.float64)
    degrees = torch.rad2deg(torch.atan2(rows[:, 1], rows[:, 0]))
    torch.testing.assert_close(degrees, torch.tensor([41.0, 43, 45, 47, 49], dtype=torch.float64), rtol=0, atol=1e-3)


def point(method: str, losses: Any, accuracies: Any, seed: int = 0, **fields: Any) -> Row:
    count = len(losses)
    directed = method == "pareto-mtl"
    vectors = pm.preferences.even(count, 2).tolist() if directed else [[0.5, 0.5]] * count
    if method == "single-task":
        vectors = torch.eye(2).tolist()
    return {
        "part": PAPER,
        "stage": "final",
        "note": "",
        "problem": SETS[0],
        "method": method,
        "seed": seed,
        "tasks": ["a", "b"],
        "reading": "direction" if directed else "importance",
        "preferences": count,
        "vectors": vectors,
        "losses": losses,
        "train_losses": losses,
        "metrics": {"a accuracy": [p[0] for p in accuracies], "b accuracy": [p[1] for p in accuracies]},
        "train_metrics": {"a accuracy": [p[0] for p in accuracies], "b accuracy": [p[1] for p in accuracies]},
        "hypervolume": 3.0 - sum(losses[0]) - 0.001 * seed,
        "error_hypervolume": 0.8,
        "spread": 0.5 if directed else 0.1,
        "in_region": count if directed else None,
        "in_region_test": count - 1 if directed else None,
        "seconds": 10.0,
        "weights": [[[0.5, 0.5]] * count],
        **fields,
    }


def made_up(pareto: Any, other: Any, alone: Any) -> list[Row]:
    """Rows of all methods, sets and recipes: losses and accuracies of Pareto MTL, of others, of separate networks."""
    rows = []
    for problem in SETS:
        for part in (PAPER, STRONG):
            for method in METHODS:
                chosen = pareto if method == "pareto-mtl" else alone if method == "single-task" else other
                rows += [point(method, *chosen, seed, problem=problem, part=part) for seed in range(3)]
    return rows


GOOD = ([[0.3, 0.1], [0.2, 0.2], [0.1, 0.3]], [[0.90, 0.95], [0.92, 0.92], [0.95, 0.90]])
BAD = ([[0.5, 0.5], [0.6, 0.6]], [[0.80, 0.80], [0.81, 0.79]])
ALONE = ([[0.2, 9.0], [9.0, 0.2]], [[0.94, 0.1], [0.1, 0.94]])


def verdicts(claims: list[Claim]) -> list[str]:
    return [claim.verdict for claim in claims]


def test_claims_hold_where_rows_bear_them_out_and_fail_where_they_do_not() -> None:
    assert verdicts(lenet_claims(made_up(GOOD, BAD, ALONE))) == [
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
    swapped = verdicts(lenet_claims(made_up(BAD, GOOD, ALONE)))
    assert swapped[:4] == ["not reproduced"] * 4
    assert swapped[6:8] == ["partly", "not reproduced"]  # extremes are best among their own alone
    assert swapped[9] == "not reproduced"
    assert verdicts(lenet_claims(made_up(GOOD, GOOD, ALONE)))[:4] == ["not reproduced"] * 4
    turned = (GOOD[0], GOOD[1][::-1])
    assert verdicts(lenet_claims(made_up(turned, BAD, ALONE)))[6] == "not reproduced"


def test_the_best_of_all_algorithms_is_ahead_of_moo_mtl_and_random_search_too() -> None:
    rows = made_up(GOOD, BAD, ALONE)
    strong = [{**row, "hypervolume": 9.0} if row["method"] == "random-search" else row for row in rows]
    some, all_of_them = lenet_claims(strong)[0], lenet_claims(strong)[2]
    assert (some.verdict, all_of_them.verdict) == ("reproduced", "partly")
    assert "better in 12 of 15, not to be told apart in 0, worse in 3" in all_of_them.measured
    assert "-6.401* to random search" in all_of_them.measured


def test_solutions_are_well_distributed_in_order_and_in_their_own_regions() -> None:
    def verdict(losses: Any, hits: int) -> str:
        rows = made_up((losses, GOOD[1]), BAD, ALONE)
        mine = [{**row, "in_region": hits} if row["method"] == "pareto-mtl" else row for row in rows]
        (found,) = [claim for claim in lenet_claims(mine) if "well-distributed" in claim.claim]
        return found.verdict

    assert verdict(GOOD[0], 3) == "reproduced"
    assert verdict(GOOD[0], 1) == "partly", "in order, and not in the regions"
    assert verdict(GOOD[0][::-1], 3) == "not reproduced"


def test_what_is_not_there_is_not_judged() -> None:
    rows = [row for row in made_up(GOOD, BAD, ALONE) if row["problem"] == SETS[0] and row["part"] == PAPER]
    found = lenet_claims(rows)
    unmeasured = [claim.verdict for claim in found if claim.measured == "no rows are stored for it yet"]
    assert unmeasured == ["not measured"] * 4  # two with the strong recipe, and two on the third set
    assert {claim.verdict for claim in found} == {"not measured", "so far reproduced"}
    assert lenet_claims([])[0].verdict == "not measured"
    assert lenet_facts([]) == []


def test_the_table_of_a_set() -> None:
    rows = made_up(GOOD, BAD, ALONE)
    found = lines(rows, SETS[0], PAPER)
    assert len(found) == len(METHODS)
    assert found[0].method == "pareto-mtl"
    assert found[0].hypervolume == "2.599 ± 0.001"
    assert found[0].accuracy == ("0.9500 ± 0.0000", "0.9500 ± 0.0000")
    assert found[0].regions == ("100%", "67%")
    (alone,) = [line for line in found if line.method == "single-task"]
    assert alone.ideal
    assert (alone.accuracy[0], alone.spread) == ("0.9400 ± 0.0000", "")
    assert lines(rows, SETS[0], "unknown") == []


def test_claims_on_resnet_compare_with_separate_networks() -> None:
    def rows(mine: float, alone: float) -> list[Row]:
        made = []
        for problem in SETS:
            part = "early stop" if problem == SETS[0] else "to the end"
            for method, level, count in (("pareto-mtl", mine, 3), ("single-task", alone, 2)):
                made += [
                    point(method, GOOD[0][:count], [[level, level]] * count, seed, problem=problem, part=part)
                    for seed in range(2)
                ]
        return made

    assert verdicts(resnet_claims(rows(0.9, 0.8))) == [
        "reproduced",
        "not reproduced",
        "reproduced",
        "not reproduced",
        "not reproduced",
        "not reproduced",  # losses of 0.1 and more
        "reproduced",  # (0.3, 0.1) beside 0.3 and 0.2
        "not reproduced",  # as diverse on test
        "not measured",
    ]
    assert verdicts(resnet_claims(rows(0.995, 0.999)))[1:5] == [
        "reproduced",
        "not reproduced",
        "reproduced",
        "reproduced",
    ]
    assert set(verdicts(resnet_claims([]))) == {"not measured"}


def resnet_rows(losses: Any, train: Any = GOOD[1], test: Any = GOOD[1]) -> list[Row]:
    """ResNet-18: training losses and both accuracies of Pareto MTL; networks for one task with 0.94 and 0.02."""
    rows = []
    for problem in SETS:
        part = "early stop" if problem == SETS[0] else "to the end"
        for seed in range(2):
            mine = point("pareto-mtl", losses, test, seed, problem=problem, part=part)
            split = {f"{task} accuracy": [p[i] for p in train] for i, task in enumerate("ab")}
            rows += [
                {**mine, "train_metrics": split},
                point("single-task", [[0.02, 9.0], [9.0, 0.02]], ALONE[1], seed, problem=problem, part=part),
            ]
    return rows


def resnet_verdict(words: str, rows: list[Row]) -> str:
    (found,) = [claim for claim in resnet_claims(rows) if words in claim.claim]
    return found.verdict


@pytest.mark.parametrize(
    ("losses", "small", "matched"),
    [
        ([[0.04, 0.01], [0.02, 0.02], [0.01, 0.04]], "reproduced", "reproduced"),
        ([[0.09, 0.01], [0.03, 0.03], [0.01, 0.09]], "partly", "partly"),
        ([[0.9, 0.1], [0.3, 0.3], [0.1, 0.9]], "not reproduced", "not reproduced"),
        ([[0.9, 0.1], [None, None], [0.1, 0.9]], "not reproduced", "not reproduced"),
    ],
)
def test_training_losses_to_the_end(losses: Any, small: str, matched: str) -> None:
    rows = resnet_rows(losses)
    assert resnet_verdict("close to 0", rows) == small
    assert resnet_verdict("match the single-task baseline", rows) == matched
    fewer = [row for row in rows if row["method"] == "pareto-mtl" or row["seed"] == 0]
    assert resnet_verdict("match the single-task baseline", fewer) == matched, "a seed of one alone is left out"


def test_test_accuracies_that_are_less_diverse_than_those_on_training() -> None:
    narrow, one = [[0.92, 0.93], [0.92, 0.92], [0.93, 0.92]], [[0.90, 0.93], [0.92, 0.92], [0.95, 0.92]]
    words = "not diverse enough"
    assert resnet_verdict(words, resnet_rows(GOOD[0], GOOD[1], narrow)) == "reproduced"
    assert resnet_verdict(words, resnet_rows(GOOD[0], GOOD[1], one)) == "partly"
    assert resnet_verdict(words, resnet_rows(GOOD[0], narrow, GOOD[1])) == "not reproduced"


def test_what_is_better_by_no_more_than_seeds_explain_is_not_partly_reproduced() -> None:
    def moved(row: Row) -> Row:
        shift = 0.2 * (-1) ** row["seed"] if row["method"] == "pareto-mtl" else 0.0
        splits = ("metrics", "train_metrics")
        return {**row, **{s: {k: [v + shift for v in values] for k, values in row[s].items()} for s in splits}}

    found = [claim for claim in resnet_claims([moved(row) for row in resnet_rows(GOOD[0])]) if "beats" in claim.claim]
    assert verdicts(found) == ["not reproduced"] * 3
    assert all("not told apart" in claim.measured and "*" not in claim.measured[100:] for claim in found)


@pytest.mark.parametrize(
    ("gain", "total", "verdict"),
    [(0.1, 0.3, "reproduced"), (0.0, 0.3, "partly"), (0.1, 0.5, "partly"), (-0.1, 0.5, "not reproduced")],
)
def test_the_claim_on_constraints_that_are_dropped(gain: float, total: float, verdict: str) -> None:
    rows = []
    for seed in range(3):
        mine = point("pareto-mtl", *GOOD, seed)
        after = [[total / 2, total / 2]] * 3
        rows += [mine, {**mine, "note": "released", "stage": "snapshot"}]
        rows.append({**mine, "note": "released", "hypervolume": mine["hypervolume"] + gain, "train_losses": after})
    (claim,) = release_claims(rows)
    assert claim.verdict == verdict
    assert "spread 0.50 ± 0.00, +0.00 and +0.00" in claim.measured


def test_claims_on_the_initial_phase_preferences_and_weights() -> None:
    def of(spread: float, *values: Any, **fields: Any) -> list[Row]:
        return [point(*values, seed, spread=spread + 0.001 * seed, **fields) for seed in range(3)]

    pareto, note = ("pareto-mtl", *GOOD), {"note": "no initial phase"}
    wide, narrow = of(0.5, *pareto) + of(0.2, *pareto, **note), of(0.2, *pareto) + of(0.5, *pareto, **note)
    mgda = of(0.1, "mgda", *BAD)
    assert verdicts(init_claims(wide + mgda)) == ["reproduced", "reproduced"]
    assert verdicts(init_claims(narrow + mgda)) == ["not reproduced", "reproduced"]

    def sets(random: float, close: float) -> list[Row]:
        rows = of(0.5, *pareto)
        for i, gain in enumerate((0.1, -0.1)):
            better = [
                {**r, "hypervolume": r["hypervolume"] + gain} for r in of(random, *pareto, note=f"5 random, set {i}")
            ]
            rows += better
        for name in ("5 close", "5 narrow"):
            losses = [[0.3, 0.1], [0.2, 0.2], [close, close], [0.1, 0.3], [0.1, 0.4]]
            rows += [
                point("pareto-mtl", [[a + 1e-4 * s, b] for a, b in losses], GOOD[1] + GOOD[1][:2], s, note=name)
                for s in range(3)
            ]
        return rows

    assert verdicts(preference_claims(sets(0.5, 0.4))) == ["reproduced", "reproduced"]
    assert verdicts(preference_claims(sets(0.1, 0.1))) == ["not reproduced", "not reproduced"]

    def weighted(low: float, middle: float, high: float, other: float) -> list[Row]:
        shares = [[[s, 1 - s] for s in (low, middle, high)]]
        rows = [point("pareto-mtl", *GOOD, weights=shares)]
        return rows + [point(m, *BAD, weights=[[[other, 1 - other]] * 2]) for m in ("mgda", "gradnorm")]

    assert verdicts(weight_claims(weighted(0.1, 0.5, 0.9, 0.5))) == ["reproduced", "reproduced"]
    assert verdicts(weight_claims(weighted(0.9, 0.5, 0.1, 0.8))) == ["not reproduced", "not reproduced"]


def test_acceptance_sets_each_network_beside_the_published_one() -> None:
    rows = [point("single-task", *ALONE, seed) for seed in range(2)]
    ((what, said),) = acceptance_facts(rows)
    assert what == "test accuracy, MultiMNIST, 2 seeds"
    assert f"0.9400 ± 0.0000 here, {PUBLISHED[SETS[0]][0]:.4f} there (+0.0263)" in said


@pytest.mark.parametrize("name", IMAGES)
def test_stored_results_are_those_of_the_study(name: str) -> None:
    if not (STORED / f"{name}.json").exists():
        pytest.skip(f"no results are stored for {name}")
    stored = stored_study(name, STUDIES[name], STORED)
    assert len(stored.rows) == len(load_rows(STORED / f"{name}.json"))
    assert all(row["hypervolume"] is not None for row in stored.rows)


@pytest.mark.parametrize(
    ("name", "words", "count"),
    [
        ("images-lenet", "overall best performance among all MTL algorithms", 2),
        ("images-lenet", "well-distributed solutions", 1),
        ("images-resnet", "training losses of all solutions are close to 0", 1),
        ("images-resnet", "match the single-task baseline", 1),
        ("images-resnet", "not diverse enough", 1),
        ("ablation-release", "potentially better convergence", 1),
    ],
)
def test_stored_rows_are_judged(name: str, words: str, count: int) -> None:
    found = [claim for claim in STUDIES[name].claims(load_rows(STORED / f"{name}.json")) if words in claim.claim]
    assert len(found) == count
    assert {claim.verdict for claim in found} <= {"reproduced", "partly", "not reproduced"}
