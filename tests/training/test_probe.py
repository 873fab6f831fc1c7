from __future__ import annotations

from pathlib import Path

import pytest
import torch

import paretomtl as pm
from paretomtl.methods import Step
from paretomtl.training.probe import Measure, Plain


def quadratic(**options: object) -> pm.Front:
    settings = {"epochs": 30, "device": "cpu", "progress": "quiet", "strategy": "sequential", **options}
    return pm.fit(pm.problems.quadratic(), Measure(), **settings)  # type: ignore[arg-type]


def test_sums_are_those_of_the_steps() -> None:
    g = torch.Generator().manual_seed(0)
    jacobians = torch.randn(9, 1, 3, 5, generator=g, dtype=torch.float64)
    method = Measure()
    state = method.init(method.spread(1, 3))
    for n, jacobian in enumerate(jacobians):
        _, state = method.weigh(Step(torch.ones(1, 3), jacobian @ jacobian.mT, number=n, total=9), state)
    unit = torch.nn.functional.normalize(jacobians, dim=-1)
    cosines = (unit @ unit.mT).reshape(3, 3, 3, 3)
    found = method.measured(state)
    torch.testing.assert_close(found["cosines"][0], cosines.sum(1))
    torch.testing.assert_close(found["negative"][0], (cosines < 0).double().sum(1))
    torch.testing.assert_close(found["norms"][0], jacobians.norm(dim=-1).reshape(3, 3, 3).sum(1))
    assert (found["pairs"] == 3).all()


def test_without_a_plan_all_steps_are_in_the_first_third() -> None:
    method = Measure()
    state = method.init(method.spread(1, 2))
    for n in (0, 5, torch.tensor(7)):
        _, state = method.weigh(Step(torch.ones(1, 2), torch.eye(2)[None], number=n), state)
    assert state["steps"][0].tolist() == [[3, 3], [0, 0], [0, 0]]


def test_an_absent_task_is_in_no_sum() -> None:
    method = Measure()
    state = method.init(method.spread(1, 2))
    losses, gramian = torch.tensor([[2.0, torch.nan]]), torch.full((1, 2, 2), torch.nan)
    gramian[0, 0, 0] = 4.0
    _, state = method.weigh(Step(losses, gramian, torch.tensor([[True, False]]), total=1), state)
    assert state["steps"].sum(1).tolist() == [[1, 0]]
    assert state["norms"].sum(1).tolist() == [[2, 0]]
    assert state["pairs"].sum(1).tolist() == [[[1, 0], [0, 0]]]
    assert state["first"].tolist() == [[2, 0]]
    _, state = method.weigh(Step(torch.tensor([[5.0, 3.0]]), torch.eye(2)[None], total=1), state)
    assert state["first"].tolist() == [[2, 3]]


def test_a_task_weighs_as_much_alone_as_among_others() -> None:
    weights = Plain().init(torch.tensor([[1.0, 1.0, 1.0], [0.0, 1.0, 0.0]]))["weights"]
    assert weights.tolist() == [[1, 1, 1], [0, 1, 0]]


def test_a_front_keeps_what_was_measured(tmp_path: Path) -> None:
    front = quadratic()
    front.save(tmp_path)
    loaded = pm.Front.load(tmp_path)
    assert set(loaded.measured) == set(front.measured) != set()
    assert all(torch.equal(loaded.measured[name], front.measured[name]) for name in front.measured)


def test_a_run_that_was_taken_up_again_measured_the_same(tmp_path: Path) -> None:
    class Stopped(Exception):
        pass

    def stop(report: pm.training.Report) -> None:
        raise Stopped

    x = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
    problem = pm.Problem(
        lambda: torch.nn.Linear(3, 2),
        lambda outputs, y: (outputs - y).square().mean(0),
        ["a", "b"],
        train=(x, x[:, :2]),
    )
    settings = {"epochs": 4, "batch_size": 16, "device": "cpu", "progress": "quiet", "strategy": "sequential"}
    whole = pm.fit(problem, Measure(), **settings)  # type: ignore[arg-type]
    with pytest.raises(Stopped):
        pm.fit(problem, Measure(), **settings, out=tmp_path, checkpoint_seconds=0, callbacks=[stop])  # type: ignore[arg-type]
    again = pm.fit(problem, Measure(), **settings, out=tmp_path, resume=True)  # type: ignore[arg-type]
    assert all(torch.equal(again.measured[name], whole.measured[name]) for name in whole.measured)
