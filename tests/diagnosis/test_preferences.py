"""Which preferences a diagnosis proposes, where the front is known."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

import paretomtl as pm
from paretomtl.diagnosis._preferences import APART, between, end_weights, even_factors

FAST = {"device": "cpu", "strategy": "batched", "optimizer": lambda p: torch.optim.Adam(p, lr=0.02)}


def angle(one: Tensor, other: Tensor) -> float:
    return math.degrees(math.acos(min(1.0, float(one @ other))))


def met(rows: Any, front: Tensor) -> int:
    """How many regions of these preferences the points of a front lie in."""
    rows = pm.preferences.validate(rows)
    return len(set((front.double() @ rows.T).argmax(-1).tolist()))


def raised(by: float, units: tuple[float, float] = (1.0, 1.0)) -> tuple[pm.Problem, Tensor]:
    """Two parabolas that are never less than ``by``, in other units, and their true front."""
    plain, factors = pm.problems.quadratic(), torch.tensor(units)
    problem = replace(plain, losses=lambda x: (plain.losses(x) + by) * factors, truth=None)
    return problem, (plain.truth.front(1000) + by) * factors.double()


@pytest.mark.parametrize(
    ("problem", "count", "even"),
    [
        (pm.problems.quadratic(), 5, 5),
        (pm.problems.synthetic(), 5, 5),
        (pm.problems.quadratic(3, 3), 15, 12),
        (pm.problems.synthetic(tasks=3), 15, 10),
    ],
    ids=["convex", "concave", "convex-3", "concave-3"],
)
def test_the_true_front_meets_all_regions(problem: pm.Problem, count: int, even: int) -> None:
    verdict = pm.diagnose(problem, epochs=300, **FAST).verdict
    assert len(verdict.directions) == verdict.preferences == count
    front = problem.truth.front(5000)
    assert met(verdict.directions, front) == count
    assert met(pm.preferences.even(count, len(problem.tasks)), front) == even


@pytest.mark.study
def test_what_no_model_reaches_is_not_proposed() -> None:
    problem, front = raised(1.0)
    found = pm.diagnose(problem, epochs=300, **FAST)
    assert met(pm.preferences.even(5, 2), front) == 3
    assert met(found.verdict.directions, front) == 5
    ends = [math.degrees(math.atan2(row[1], row[0])) for row in found.verdict.directions]
    assert math.degrees(math.atan2(1, 3)) < ends[0] < 22
    assert ends == sorted(ends)
    assert ends[0] + ends[-1] == pytest.approx(90, abs=0.5)
    assert "the ratios of losses that models reached" in found.verdict.text
    for rows, outside in ((found.verdict.directions, 0), (5, 2)):
        trained = pm.fit(problem, "pareto-mtl", rows, epochs=300, progress="quiet", **FAST)
        assert list(trained.status).count("infeasible") == outside


@pytest.mark.study
def test_directions_are_those_of_scaled_losses() -> None:
    """In other units the same preferences are proposed, with the factors that undo the units."""
    plain = pm.diagnose(raised(1.0)[0], epochs=300, **FAST).verdict
    problem, front = raised(1.0, (1.0, 1000.0))
    found = pm.diagnose(problem, epochs=300, **FAST).verdict
    assert found.word == "front"
    assert found.scale == "first"
    assert found.factors is not None
    assert found.factors[0] / found.factors[1] == pytest.approx(1000, rel=0.1)
    assert plain.factors is None
    torch.testing.assert_close(torch.tensor(found.directions), torch.tensor(plain.directions), atol=0.05, rtol=0)
    assert "ratios of scaled losses" in found.text
    assert met(found.directions, front * torch.tensor(found.factors)) == 5
    assert met(plain.directions, front) < 5, "without the factors"
    method = pm.ParetoMTL(scale=found.factors)
    trained = pm.fit(problem, method, found.directions, epochs=300, progress="quiet", **FAST)
    assert "infeasible" not in trained.status


@pytest.mark.filterwarnings("ignore:tasks 'a' and 'b' have the same loss and gradients")
def test_no_conflict_no_preferences() -> None:
    def same(outputs: Tensor, targets: Tensor) -> Tensor:
        return torch.stack([(outputs[:, 0] - targets[:, 0]).square().mean()] * 2)

    x = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))
    problem = pm.Problem(lambda: nn.Linear(4, 1), same, ["a", "b"], train=(x, x.sum(-1, keepdim=True)))
    said: list[str] = []
    found = pm.diagnose(problem, epochs=100, log=said.append, **FAST)
    assert found.verdict.word == "one-model"
    assert found.verdict.preferences is None
    assert found.verdict.directions == ()
    assert found.ends is None
    assert len(said) == 2, "and no models near the ends are trained"


def test_ends_without_a_ratio_leave_the_number(monkeypatch: pytest.MonkeyPatch) -> None:
    found = pm.diagnose(pm.problems.quadratic(), epochs=300, **FAST)
    assert found.ends is not None
    numbers = json.loads(json.dumps(found.numbers(), allow_nan=False))
    assert numbers["directions"] == [list(row) for row in found.verdict.directions]
    assert len(numbers["ends"]) == 3
    for wrong in (torch.nan, -1.0, torch.inf):
        ends = found.ends.clone()
        ends[0, 0, 0] = wrong * 100
        verdict = replace(found, ends=ends).verdict
        assert (verdict.word, verdict.preferences, verdict.directions) == ("front", 5, ())
        assert "spread evenly" in verdict.text
    close = torch.tensor([[1.0, 1.0], [1.01, 1.0]]).double().expand(3, 2, 2)
    verdict = replace(found, ends=close).verdict
    assert verdict.preferences == len(verdict.directions) == 1
    assert "begin with this one preference" in verdict.text


@pytest.mark.study
@given(st.data())
def test_directions_lie_between_the_ends(data: st.DataObject) -> None:
    """They are valid preferences, as far apart as is said, and in the cone of the ends, which are among them."""
    m = data.draw(st.integers(2, 4))
    count = data.draw(st.sampled_from([1, 5, 15]))
    parts = st.floats(1e-3, 1e3)
    ends = torch.tensor(data.draw(st.lists(st.lists(parts, min_size=m, max_size=m), min_size=m, max_size=m))).double()
    rows = between(ends, count)
    assert 1 <= len(rows) <= count
    unit = pm.preferences.validate(rows, tasks=m)
    for i, row in enumerate(unit):
        assert all(angle(row, other) > APART - 0.2 for other in unit[:i])
    normal = torch.nn.functional.normalize(ends, dim=-1)
    if m == 2:
        places = torch.atan2(normal[:, 1], normal[:, 0])
        found = torch.atan2(unit[:, 1], unit[:, 0])
        assert bool((found >= places.min() - 2e-3).all())
        assert bool((found <= places.max() + 2e-3).all())
    assert between(ends * 7.0, count) == rows, "only ratios count"


def test_weights_near_the_ends() -> None:
    assert end_weights([1.0, 1.0, 1.0]).tolist() == [[1.0, 0.1, 0.1], [0.1, 1.0, 0.1], [0.1, 0.1, 1.0]]
    assert even_factors([3.0, math.nan, 3000.0]) == (1.0, 1.0, 0.001)
    assert even_factors([1e-3, 10.0]) == (1.0, 0.0001)
