"""The study ``beyond``: its cells, and verdicts from rows that are made up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

import paretomtl as pm
from paretomtl.compare.rows import points_tensor, row_of
from paretomtl.methods import Method, ParetoMTL
from paretomtl.paper.evidence.arms import ARMS, LEADING
from paretomtl.paper.evidence.cells import PART, SYNTHETIC, WHOLE, BeyondCell, Setting, cells
from paretomtl.paper.evidence.figures import FIGURES
from paretomtl.paper.evidence.verdicts import (
    AHEAD,
    BEHIND,
    COLUMNS,
    EQUAL,
    QUESTIONS,
    answers,
    claims,
    facts,
    regions_hit,
    table_lines,
)
from paretomtl.problems import LeNet

WAYS = {"long": 0.05, "short": -0.05}
SHORT = Setting("short", "quadratic", 4, 2, epochs=30)


def made_row(arm: str, seed: int, losses: Any, **fields: Any) -> dict[str, Any]:
    """A row of a front with these losses on validation and test."""
    values = torch.tensor(losses, dtype=torch.float64)
    front = pm.Front.from_losses(dict.fromkeys(("train", "val", "test"), values), tasks=["a", "b"])
    return {
        **row_of(replace(front, seed=seed, history={"losses": torch.zeros(3, len(values), 2)})),
        "reference": [1.0, 1.0],
        "setting": "made up",
        "method": arm,
        "trained_by": "linear",
        "passes": 1.0,
        "scale": None,
        **fields,
    }


def line(shift: float) -> list[list[float]]:
    return [[0.1 + shift, 0.7], [0.4 + shift, 0.4], [0.7 + shift, 0.1]]


def rows_with(gain: float, rival: str = "linear, interior", arm: str = "auto") -> list[dict[str, Any]]:
    """Four seeds of two arms: the first is better by a gain that varies a little."""
    rows = [made_row(rival, seed, line(0.02 * seed)) for seed in range(4)]
    return rows + [made_row(arm, seed, line(0.02 * seed - gain - 0.001 * seed)) for seed in range(4)]


def test_cells_have_names_and_settings_of_their_own() -> None:
    whole = cells()
    assert len({cell.name for cell in whole}) == len(whole)
    assert len({cell.settings for cell in whole}) == len(whole)
    assert {cell.arm for cell in whole if cell.setting in WHOLE} == set(ARMS)
    assert all(cell.seeds >= 3 for cell in whole)
    parts = {cell.setting.title: set() for cell in whole if cell.setting in PART}
    for cell in whole:
        if cell.setting.title in parts:
            parts[cell.setting.title].add(cell.arm)
    assert all(arms == {*LEADING, "single-task"} for arms in parts.values())
    assert all(cell.data_set is None for size in ("quick", "smoke") for cell in cells(size))  # type: ignore[arg-type]


def test_questions_are_about_arms() -> None:
    assert {name for question in QUESTIONS for name in (question.arm, question.rival)} <= set(ARMS)


def test_optimizers_take_steps_of_one_size() -> None:
    weight = torch.nn.Parameter(torch.zeros(1))
    rates = {}
    for method in (ParetoMTL(), pm.Linear()):
        made: Any = SYNTHETIC[0].options(method, 2)["optimizer"]([weight])
        rates[method.name] = made.param_groups[0]["lr"]
    assert rates["pareto-mtl"] == 2 * rates["linear"]


def test_pareto_mtl_has_the_phases_of_the_recipe() -> None:
    methods: dict[str, Method] = {"pareto-mtl": ParetoMTL(rescale=True, initial_steps=7)}
    made = ARMS["pareto-mtl, reachable"].configured(methods)
    assert isinstance(made, ParetoMTL)
    assert (made.rescale, made.initial_steps, made.return_share) == (True, 7, None)
    assert ARMS["auto"].configured(methods) is ARMS["auto"].method


@pytest.mark.parametrize("arm", ARMS)
def test_each_arm_trains_its_models(arm: str) -> None:
    cell = BeyondCell(SHORT, arm, 2)
    rows = cell.run(None, [0, 1])
    assert [row["seed"] for row in rows] == [0, 1]
    expected = {"single-task": {2}, "linear, gaps": {2, 3, 4}}.get(arm, {4})  # a gap may not be worth a model
    assert all(len(row["losses"]["train"]) in expected for row in rows)
    assert all(row["method"] == arm and row["setting"] == "short" for row in rows)
    share = 0.25 / 4 + 0.75 if arm == "linear, branch" else 1.0
    gramian = arm.startswith("pareto") or arm in ("mgda", "gradnorm")
    assert rows[0]["passes"] == pytest.approx(share * (5 / 3 if gramian else 1.0), abs=1e-3)


def test_gaps_are_compared_with_models_that_saw_the_same_batches() -> None:
    """Both train each seed alone, so that the order of the data is that of the seed and no part of the difference."""
    with_data = replace(SHORT, problem="multi-digits", epochs=1, strategy="sequential")
    # The second seed: together with the first as one stack, it would see the batches in the order of the first.
    own, gaps = (BeyondCell(with_data, arm, 2).run(None, [0, 3])[1] for arm in ("linear, own order", "linear, gaps"))
    options: Any = {"seed": 3, "epochs": 1, "strategy": "sequential", "progress": "quiet"}
    for row, count in ((own, 4), (gaps, 2)):
        alone = pm.fit(pm.problems.multi_digits(), "linear", count, **options)
        torch.testing.assert_close(points_tensor(row, "val")[:count], alone.losses["val"].double(), atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("gains", "said"),
    [([0.1, 0.12, 0.11], AHEAD), ([-0.1, -0.12, -0.11], BEHIND), ([0.1, -0.1, 0.02], EQUAL), ([0.1], EQUAL)],
)
def test_answers_follow_the_interval(gains: list[float], said: str) -> None:
    assert answers([gains]) == [said]


def test_answers_in_several_settings_are_judged_together() -> None:
    """One in twenty settings differs by chance."""
    gains = [0.1, 0.3, 0.2, 0.0, 0.2]
    assert answers([gains]) == [AHEAD]
    assert answers([gains, *[[0.1, -0.1, 0.02]] * 5]) == [EQUAL] * 6


@pytest.mark.parametrize(("gain", "verdict"), [(0.05, "holds"), (-0.05, "does not hold"), (0.0015, "holds")])
def test_verdicts_on_made_up_rows(gain: float, verdict: str) -> None:
    (claim,) = claims(rows_with(gain))
    assert claim.claim == "auto is at least as good as interior weights"
    assert claim.verdict == verdict
    assert "made up" in claim.measured
    assert "(4)" in claim.measured


def test_a_question_that_wants_more_is_not_answered_by_a_tie() -> None:
    corners = [made_row("linear, corners", seed, line(0.02 * seed)) for seed in range(4)]
    interior = [made_row("linear, interior", seed, line(0.02 * seed + 1e-3 * (-1) ** seed)) for seed in range(4)]
    (claim,) = claims([*corners, *interior])
    assert claim.verdict == EQUAL


def test_regions_are_those_of_another_seed() -> None:
    own = made_row("linear, interior", 0, [[0.1, 0.9], [0.2, 0.9], [0.9, 0.1]])
    vectors = [[0.1, 0.9], [0.5, 0.5], [0.9, 0.1]]
    judge = made_row("auto", 1, line(0.0), vectors=vectors, reading="direction")
    same_seed = made_row("auto", 0, line(0.0), vectors=[[0.1, 0.9], [0.2, 0.9], [0.9, 0.1]], reading="direction")
    assert regions_hit([own, judge, same_seed], own) == pytest.approx(2 / 3)
    scaled = {**judge, "scale": [1.0, 1e-6]}
    assert regions_hit([own, scaled], own) == pytest.approx(1 / 3)
    assert regions_hit([own, same_seed], own) is None


def test_tables_and_figures_have_every_arm() -> None:
    rows = rows_with(0.05)
    lines = table_lines(rows, "made up")
    assert [each[0] for each in lines] == ["auto", "linear, interior"]
    assert all(len(each) == len(COLUMNS) for each in lines)
    assert table_lines(rows, "another") == []
    assert "auto" in facts(rows)[0][1]
    for draw in FIGURES.values():
        figure = draw(rows)
        assert figure is not None
        names = [text.get_text() for text in figure.axes[0].get_yticklabels()]
        assert names == ["Linear scalarization, interior", "Auto (probe)"]
        assert draw(rows[:4]) is None


def test_settings_of_one_problem_share_a_panel_and_the_title_counts_them() -> None:
    better, worse = ([{**row, "setting": f"digits, {way}"} for row in rows_with(gain)] for way, gain in WAYS.items())
    figure = FIGURES["beyond-hypervolume"]([*better, *worse, *({**row, "setting": "other"} for row in rows_with(0.05))])
    assert figure is not None
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["Digits", "Other"]
    assert "auto is ahead of interior weights in 2 of 3 settings, behind in 1" in figure.texts[0].get_text()
    assert FIGURES["beyond-hypervolume"]([]) is None


@pytest.mark.parametrize(("width", "parameters"), [(1.0, 31910), (2.0, 121_610)])
def test_the_width_of_lenet_scales_its_trunk(width: float, parameters: int) -> None:
    model = LeNet(width=width)
    assert [head.shape for head in model(torch.zeros(2, 1, 36, 36))] == [(2, 10), (2, 10)]
    count = sum(p.numel() for p in model.parameters())
    assert count == parameters if width == 1.0 else 3.5 * 31910 < count < 4 * 31910
    with pytest.raises(ValueError, match="'width' must be positive"):
        LeNet(width=0.0)
