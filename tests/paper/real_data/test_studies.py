"""Studies with three tasks and more: every cell runs on made-up samples, and claims are judged by rows alone."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import paretomtl as pm
from _helpers.places import STORED
from paretomtl.compare import Row, load_rows
from paretomtl.paper import STUDIES, run_study
from paretomtl.paper.real_data.claims import census_claims, table_claims
from paretomtl.paper.real_data.studies import EXPERTS, SHARED
from paretomtl.paper.real_data.tables import (
    PAPER_TABLES,
    SHOWN,
    cell_lines,
    plain_share,
    scale_lines,
    vector_lines,
)

NAMES = ("census", "faces", "localization", "three-digits", "many-tasks")


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Row]]:
    folder = tmp_path_factory.mktemp("smoke")
    return {name: run_study(name, STUDIES[name], folder, size="smoke").rows for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_a_smoke_run_is_whole_and_says_what_was_run(smoke: dict[str, list[Row]], name: str) -> None:
    rows, cells = smoke[name], STUDIES[name].cells("smoke")
    assert len(rows) == sum(cell.seeds * len(cell.stages) for cell in cells)
    json.dumps(rows, allow_nan=False)
    for row in rows:
        assert row.keys() >= {"problem", "method", "recipe", "preferences", "epochs", "seed", "losses", "status"}
        assert row.keys() >= {"seconds", "date", "hardware", "versions", "settings", "in_region"}
    assert all(claim.measured and claim.verdict for claim in STUDIES[name].claims(rows))
    assert STUDIES[name].facts(rows)


def test_a_seed_that_is_added_is_what_it_would_have_been_with_the_others(tmp_path: Path) -> None:
    only = "census / shared trunk / uncertainty"
    run_study("census", STUDIES["census"], tmp_path / "apart", size="smoke", only=only, seeds=1)
    apart, at_once = (
        run_study("census", STUDIES["census"], tmp_path / folder, size="smoke", only=only, seeds=2).rows
        for folder in ("apart", "at once")
    )
    assert [row["seeds_at_once"] for row in apart] == [1, 1]
    assert [row["seeds_at_once"] for row in at_once] == [2, 2]
    for one, other in zip(apart, at_once, strict=True):
        assert (one["seed"], one["losses"], one["metrics"]) == (other["seed"], other["losses"], other["metrics"])


@pytest.mark.system
def test_a_study_that_is_killed_goes_on(tmp_path: Path) -> None:
    """By SIGKILL after the first of four cells, whose rows stay as they were."""
    path, only = tmp_path / "census.json", "uncertainty"
    code = f"""
import os, signal
from pathlib import Path
from paretomtl.paper import STUDIES, run_study
from paretomtl.paper import runner as _runner
train = _runner.train_cell
def killed(common, work, link):
    if Path({str(path)!r}).exists():
        os.kill(os.getpid(), signal.SIGKILL)
    return train(common, work, link)
_runner.train_cell = killed
run_study("census", STUDIES["census"], Path({str(tmp_path)!r}), size="smoke", only={only!r})
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    first = load_rows(path)
    assert {row["cell"] for row in first} == {"census / shared trunk / uncertainty"}
    found = run_study("census", STUDIES["census"], tmp_path, size="smoke", only=only)
    assert found.trained == 3
    assert [(row["cell"], row["losses"], row["date"]) for row in found.rows[:2]] == [
        (row["cell"], row["losses"], row["date"]) for row in first
    ]
    assert len(found.rows) == 8


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", ["full", "quick", "smoke"])
def test_cells_are_told_apart_by_name_and_by_settings(name: str, size: Any) -> None:
    cells = STUDIES[name].cells(size)
    assert len({cell.name for cell in cells}) == len(cells)
    assert len({cell.settings for cell in cells}) == len(cells)


def test_the_papers_vectors_are_trained() -> None:
    """Four for faces, the first of them balanced; three for localization; and the grid of its table."""
    pareto = STUDIES["faces"].cells("full")[0]
    third, half = 3**-0.5, 2**-0.5
    expected = torch.tensor([[third] * 3, [0, half, half], [half, 0, half], [half, half, 0]])
    torch.testing.assert_close(torch.tensor(pareto.preferences), expected, rtol=0, atol=1e-5)
    cells = STUDIES["localization"].cells("full")
    (grid,) = [cell for cell in cells if cell.method == "linear"]
    assert grid.preferences == ((0.25, 0.75), (0.5, 0.5), (0.75, 0.25))
    assert len(cells[0].preferences) == 3


def test_random_vectors_are_other_ones_for_each_seed(smoke: dict[str, list[Row]]) -> None:
    for note in ("5 random", "25 random"):
        rows = [row for row in smoke["census"] if row["note"] == note and row["part"] == EXPERTS]
        assert [row["seed"] for row in rows] == [0, 1]
        for row in rows:
            expected = pm.preferences.random(row["preferences"], 3, seed=row["seed"])
            torch.testing.assert_close(torch.tensor(row["vectors"], dtype=torch.float64), expected, rtol=0, atol=1e-4)


def test_the_last_third_of_a_run_is_released(smoke: dict[str, list[Row]]) -> None:
    """The steps that are written down are those of all samples: 199,523 and 120,000 of them; of a few, it is one."""
    for name, samples, batch, epochs in (("census", 199_523, 512, 5), ("three-digits", 120_000, 256, 10)):
        steps = epochs * -(-samples // batch)
        released = [cell.changes["release_steps"] for cell in STUDIES[name].cells("full") if "release" in cell.note]
        assert released
        assert all(count == pytest.approx(steps / 3, rel=0.01) for count in released)
        for row in smoke[name]:
            assert ("release_steps=1" in row["recipe"]) == ("released" in row["note"]), row["recipe"]


def test_both_networks_of_census_have_the_same_cells() -> None:
    cells = STUDIES["census"].cells("full")
    one, other = ([(c.method, c.note, c.seeds) for c in cells if c.part == part] for part in (SHARED, EXPERTS))
    assert one == other


def census_row(method: str, note: str, volume: float, losses: Any, seed: int, part: str) -> Row:
    fields = {"part": part, "stage": "final", "note": note, "method": method, "seed": seed}
    vectors = torch.eye(3).sub(1).abs()[: len(losses)].tolist()
    more = {"problem": "census", "tasks": ["a", "b", "c"], "reading": "direction", "vectors": vectors, "spread": 0.1}
    return {**fields, **more, "hypervolume": volume + 0.001 * seed, "losses": losses}


@pytest.mark.parametrize(
    ("gain", "good", "expected"),
    [(0.1, 0.1, ["reproduced"] * 2), (-0.1, 0.9, ["not reproduced"] * 2)],
)
def test_claims_on_census(gain: float, good: float, expected: list[str]) -> None:
    rows = []
    for part in (SHARED, EXPERTS):
        for seed in range(3):
            rows += [
                census_row("pareto-mtl", "5 random", 0.2, [[0.5] * 3], seed, part),
                census_row("pareto-mtl", "25 random", 0.2 + gain, [[good] * 3], seed, part),
                census_row("random-search", "", 0.2, [[0.4] * 3, [0.3] * 3], seed, part),
            ]
    judged = [expected[0], "not measured", expected[1]] * 2  # nothing to set five vectors beside
    assert [claim.verdict for claim in census_claims(rows)] == [*judged, "not measured", "not measured"]
    broken = [{**row, "losses": [[None] * 3, *row["losses"]]} for row in rows]
    assert [claim.verdict for claim in census_claims(broken)[:6]] == judged, "what is not finite is left out"
    assert {claim.verdict for claim in census_claims([])} == {"not measured"}


@pytest.mark.parametrize(
    ("losses", "spread", "verdict"),
    [
        ([[0.1, 0.5, 0.5], [0.5, 0.1, 0.5], [0.5, 0.5, 0.1]], 0.5, "reproduced"),
        ([[0.1, 0.5, 0.5], [0.5, 0.1, 0.5], [0.5, 0.5, 0.1]], 0.1, "partly"),  # no wider than starts make it
        ([[0.1, 0.5, 0.5], [0.5, 0.6, 0.5], [0.5, 0.5, 0.6]], 0.1, "partly"),  # one task alone
        ([[0.9, 0.5, 0.5], [0.5, 0.9, 0.5], [0.5, 0.5, 0.9]], 0.1, "not reproduced"),
        ([[0.1, None, 0.5], [None, 0.1, 0.5], [0.5, 0.5, 0.1]], 0.5, "partly"),  # two that are not finite
    ],
)
def test_the_claim_on_trade_offs_of_few_vectors(losses: Any, spread: float, verdict: str) -> None:
    rows = []
    for seed in range(3):
        rows.append(census_row("pareto-mtl", "5 random", 0.2, losses, seed, SHARED) | {"spread": spread + 0.001 * seed})
        rows.append(census_row("mgda", "", 0.2, losses, seed, SHARED))
    found = [claim for claim in census_claims(rows) if claim.claim.startswith("5 preference vectors")]
    assert [claim.verdict for claim in found] == [verdict, "not measured"]


def test_the_vector_that_favours_a_task_is_that_of_its_own_seed() -> None:
    """Random vectors are other ones for each seed: those of the second come the other way round, and so do losses."""
    losses = [[0.1, 0.5, 0.5], [0.5, 0.1, 0.5], [0.5, 0.5, 0.1]]
    rows = []
    for seed in range(4):
        for method, note in (("pareto-mtl", "5 random"), ("mgda", "")):
            row = census_row(method, note, 0.2, losses, seed, SHARED)
            row["spread"] = (0.5 if note else 0.1) + 0.001 * seed
            turned = {name: row[name][::-1] for name in ("losses", "vectors")} if seed % 2 else {}
            rows.append(row | turned)
    found = [claim for claim in census_claims(rows) if claim.claim.startswith("5 preference vectors")]
    assert [claim.verdict for claim in found] == ["reproduced", "not measured"]


def test_claims_on_tables_name_the_task_whose_vector_does_not_favour_it() -> None:
    def rows(values: list[list[Any]]) -> list[Row]:
        metrics = dict(zip(SHOWN["localization"], (list(column) for column in zip(*values, strict=True)), strict=True))
        common = {"stage": "final", "part": SHARED, "note": "", "method": "pareto-mtl", "problem": "localization"}
        vectors = pm.preferences.even(3, 2).tolist()
        better = dict.fromkeys(metrics, "lower")
        row = {**common, "tasks": ["translation", "rotation"], "vectors": vectors, "metrics": metrics, "better": better}
        return [{**row, "reading": "direction", "preferences": 3, "seed": seed} for seed in range(2)]

    # From (1, 0), which allows metres and favours degrees, to (0, 1).
    claim, *_, balanced = table_claims(rows([[0.4, 3.0], [0.3, 4.0], [0.2, 5.0]]))
    assert (claim.verdict, balanced.verdict) == ("reproduced", "not measured")
    claim, *_ = table_claims(rows([[0.4, 3.0], [0.3, 4.0], [0.2, None]]))
    assert claim.verdict == "reproduced", "a model without a value is not the best"
    claim, *_ = table_claims(rows([[0.4, 3.0], [0.1, 4.0], [0.2, 5.0]]))
    assert claim.verdict == "partly"
    assert "translation: translation error 0.2, best of all vectors 0.1" in claim.measured
    claim, *_ = table_claims(rows([[0.4, 3.0], [0.199999, 4.0], [0.2, 5.0]]))
    assert claim.verdict == "reproduced", "a tie is the best"
    claim, *_ = table_claims(rows([[0.1, 5.0], [0.3, 4.0], [0.4, 3.0]]))
    assert claim.verdict == "not reproduced"


def table_rows(values: list[list[Any]], rival: list[float], gain: float = 0.0, note: str = "") -> list[Row]:
    """Localization: metres and degrees of the three vectors of Pareto MTL, and of a solution of every other method."""
    rows = []
    for method in ("pareto-mtl", "linear", "mgda", "gradnorm", "uncertainty", "single-task"):
        pareto, alone = method == "pareto-mtl", method == "single-task"
        points = values if pareto else [rival, rival] if alone else [rival]
        metrics = dict(zip(SHOWN["localization"], (list(each) for each in zip(*points, strict=True)), strict=True))
        row = {
            "part": SHARED,
            "stage": "final",
            "note": note if pareto else "",
            "method": method,
            "problem": "localization",
            "tasks": ["translation", "rotation"],
            "reading": "direction" if pareto else "importance",
            "preferences": len(points),
            "vectors": pm.preferences.even(3, 2).tolist() if pareto else torch.eye(2)[: len(points)].tolist(),
            "metrics": metrics,
            "better": dict.fromkeys(metrics, "lower"),
            "hypervolume": 0.2 + (gain if pareto else 0.0),
        }
        rows += [{**row, "seed": seed} for seed in range(2)]
    return rows


def table_verdict(words: str, rows: list[Row]) -> str:
    (found,) = [claim for claim in table_claims(rows) if words in claim.claim]
    return found.verdict


ORDERED = [[0.4, 3.0], [0.3, 4.0], [0.2, 5.0]]  # from (1, 0), which favours degrees, to (0, 1)


@pytest.mark.parametrize("note", ["", "scaled by first"])
@pytest.mark.parametrize(
    ("values", "rival", "verdict"),
    [
        (ORDERED, [0.3, 4.0], "reproduced"),
        (ORDERED, [0.1, 4.0], "partly"),
        (ORDERED[::-1], [0.3, 4.0], "partly"),  # the best, and not the vectors that favour the tasks
        (ORDERED, [0.2, 3.0], "not reproduced"),
        ([[None, None], [0.3, 4.0], [None, None]], [0.3, 4.0], "not reproduced"),
    ],
)
def test_the_claim_on_the_best_of_all_methods(note: str, values: Any, rival: list[float], verdict: str) -> None:
    assert table_verdict("best of all methods in each task", table_rows(values, rival, note=note)) == verdict
    fewer = [row for row in table_rows(values, rival, note=note) if row["method"] in ("pareto-mtl", "single-task")]
    assert table_verdict("best of all methods in each task", fewer) == f"so far {verdict}"


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        (ORDERED, "reproduced"),
        ([[0.4, 3.0], [0.1, 4.0], [0.3, 5.0]], "partly"),  # the middle one is ahead in metres, and dominates the last
        (ORDERED[::-1], "not reproduced"),
        ([[0.3, 4.0]] * 3, "not reproduced"),
        ([[0.3, None]] * 3, "not reproduced"),
    ],
)
def test_the_claim_on_different_trade_offs(values: Any, verdict: str) -> None:
    assert table_verdict("different trade-offs", table_rows(values, [0.3, 4.0])) == verdict


@pytest.mark.parametrize(("gain", "verdict"), [(0.1, "reproduced"), (0.0, "not reproduced"), (-0.1, "not reproduced")])
def test_the_claim_on_outperforming_all_others(gain: float, verdict: str) -> None:
    rows = table_rows(ORDERED, [0.3, 4.0], gain)
    assert table_verdict("outperforms other MTL approaches", rows) == verdict
    ahead = [{**row, "hypervolume": 0.25} if row["method"] == "linear" else row for row in rows]
    better = [{**row, "hypervolume": 0.21} if row["method"] == "pareto-mtl" else row for row in ahead]
    assert table_verdict("outperforms other MTL approaches", better) == "partly"
    assert table_verdict("outperforms other MTL approaches", rows[:2]) == "not measured"


@pytest.mark.parametrize(
    ("name", "words", "count"),
    [
        ("localization", "outperforms other MTL approaches", 1),
        ("localization", "best of all methods in each task", 2),
        ("localization", "different trade-offs", 2),
        ("faces", "best of all methods in each task", 2),
        ("faces", "diverse trade-offs", 2),
        ("census", "5 preference vectors also provide", 2),
    ],
)
def test_stored_rows_are_judged(name: str, words: str, count: int) -> None:
    found = [claim for claim in STUDIES[name].claims(load_rows(STORED / f"{name}.json")) if words in claim.claim]
    assert len(found) == count
    assert {claim.verdict for claim in found} <= {"reproduced", "partly", "not reproduced"}


def test_the_papers_tables_have_a_number_for_each_task() -> None:
    for problem, table in PAPER_TABLES.items():
        assert all(len(numbers) == len(SHOWN[problem]) for numbers in table.values())


def test_the_names_of_solutions_are_those_of_the_papers_tables(smoke: dict[str, list[Row]]) -> None:
    for name, problem in (("faces", "utkface"), ("localization", "localization")):
        lines = vector_lines(smoke[name])
        measured = [line for line in lines if "scaled" not in line.name]
        assert sorted(line.name for line in measured) == sorted(PAPER_TABLES[problem])
        assert all(line.paper == PAPER_TABLES[problem][line.name] for line in measured)
        assert all(any(line.regions) == line.name.startswith("Pareto MTL") for line in lines)
        assert len(lines) == len({line.name for line in lines})


def test_separate_networks_are_judged_in_their_own_task_alone(smoke: dict[str, list[Row]]) -> None:
    def other(row: Row) -> Row:
        own = {"translation": 0, "rotation": 1}
        metrics = {
            name: [value if own[name.split()[-2]] == k else 9e9 for k, value in enumerate(values)]
            for name, values in row["metrics"].items()
        }
        return {**row, "metrics": metrics}

    alone = [row for row in smoke["localization"] if row["method"] == "single-task"]
    assert vector_lines([other(row) for row in alone]) == vector_lines(alone)
    assert [line.best for line in cell_lines([other(row) for row in alone])] == [cell_lines(alone)[0].best]


@pytest.mark.parametrize("name", NAMES[:-1])
def test_regions_by_losses_as_they_are_are_those_of_training_without_a_scale(
    smoke: dict[str, list[Row]], name: str
) -> None:
    plain = [row for row in smoke[name] if row["method"] == "pareto-mtl" and "scaled" not in row["note"]]
    assert plain
    for row in plain:
        assert plain_share(row, "train_losses") == pytest.approx(row["in_region"] / row["preferences"])
        assert plain_share(row, "losses") == pytest.approx(row["in_region_test"] / row["preferences"])


def scaled_rows(note: str, volume: float, hits: int) -> list[Row]:
    """Two vectors and two tasks; both losses lie in the region of the first vector."""
    losses = [[0.9, 0.1], [0.8, 0.2]]
    fields = {"part": SHARED, "stage": "final", "method": "pareto-mtl", "note": note, "problem": "localization"}
    more = {
        "tasks": ["translation", "rotation"],
        "reading": "direction",
        "spread": 0.1,
        "in_region": hits,
        "in_region_test": 1,
    }
    metrics = {"translation error": [0.3, 0.2], "rotation error": [4.0, None]}
    points = {"preferences": 2, "vectors": [[1.0, 0.0], [0.0, 1.0]], "losses": losses, "train_losses": losses}
    row = {**fields, **more, **points, "metrics": metrics, "better": dict.fromkeys(metrics, "lower")}
    return [{**row, "seed": seed, "hypervolume": volume + 0.001 * seed} for seed in range(3)]


def test_scaled_losses_are_set_beside_losses_as_they_are() -> None:
    assert scale_lines(scaled_rows("scaled by first", 0.2, 1), "") == []
    rows = scaled_rows("", 0.2, 1) + scaled_rows("scaled by points", 0.1, 1) + scaled_rows("scaled by gradnorm", 0.3, 2)
    plain, given, balanced = scale_lines(rows, "")
    assert (plain.losses, given.losses, balanced.losses) == ("as they are", "by points", "by gradnorm")
    assert given.verdict == "less hypervolume, spread not told apart, share in regions not told apart"
    assert balanced.verdict == "more hypervolume, spread not told apart, more share in regions"
    assert (balanced.regions, balanced.plain) == (("100%", "50%"), ("50%", "50%"))
    assert balanced.best == ("0.2000 ± 0.0000", "4.000 ± 0.000")


@pytest.mark.parametrize(
    ("volumes", "verdict"),
    [((0.3, 0.3), "reproduced"), ((0.3, 0.1), "partly"), ((0.1, 0.1), "not reproduced"), ((0.3,), "so far reproduced")],
)
def test_the_claim_on_tasks_that_are_balanced_first(volumes: tuple[float, ...], verdict: str) -> None:
    rows = scaled_rows("", 0.2, 1)
    for scale, volume in zip(("gradnorm", "uncertainty"), volumes, strict=False):
        rows += scaled_rows(f"scaled by {scale}", volume, 1)
    claim = table_claims(rows)[-1]
    assert claim.where == "supplement 3"
    assert claim.verdict == verdict
    assert "in their own region 50% / 50% against 50% / 50%, not told apart" in claim.measured


def test_a_mean_that_rises_by_no_more_than_seeds_explain_is_no_gain() -> None:
    rows = scaled_rows("", 0.2, 1)
    for scale in ("gradnorm", "uncertainty"):
        mine = scaled_rows(f"scaled by {scale}", 0.1, 1)
        rows += [{**row, "spread": 0.2 * row["seed"], "in_region": row["seed"]} for row in mine]
    claim = table_claims(rows)[-1]
    assert claim.verdict == "not reproduced"
    assert "spread 0.200 ± 0.200 against 0.100 ± 0.000, not told apart" in claim.measured
    sure = [{**row, "spread": 0.3} if "scaled" in row["note"] else row for row in rows]
    assert table_claims(sure)[-1].verdict == "partly"
