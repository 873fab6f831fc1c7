"""The verdict on the runs of a page: what it says of one seed, of several, and of runs that do not compare."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from _helpers.fronts import front_of
from _helpers.pages import page_front
from paretomtl.compare import Summary, verdict
from paretomtl.front.favours import favours, model_favours
from paretomtl.report.page.hypervolume_curve import hypervolume_curve
from paretomtl.report.page.verdict import verdict_of


def judged(*runs: tuple[str, int, float], problem: str = "made up") -> str:
    """The verdict on runs by method, seed and hypervolume."""
    fronts = [page_front(3, 2, method=method, seed=seed, problem=problem) for method, seed, _ in runs]
    names = [f"{method}-{seed}" for method, seed, _ in runs]
    return verdict_of(fronts, names, [{"val": volume} for *_, volume in runs])


def test_one_seed_cannot_tell() -> None:
    assert judged(("linear", 0, 1.0), ("mgda", 0, 1.1)) == (
        "MOO-MTL has the largest hypervolume on validation, 10 % above Linear scalarization. One run each cannot "
        "tell whether that is luck: compare several seeds."
    )
    assert "and so has MOO-MTL" in judged(("linear", 0, 1.0), ("mgda", 0, 1.0))


@given(st.lists(st.tuples(st.floats(1.0, 2.0), st.floats(1.0, 2.0)), min_size=2, max_size=6))
def test_the_rule_is_that_of_compare(pairs: list[tuple[float, float]]) -> None:
    said = judged(*((name, s, pair[i]) for s, pair in enumerate(pairs) for i, name in enumerate(("linear", "mgda"))))
    known = [
        Summary(name, 5, tuple(pair[i] for pair in pairs), False, float(i), [0.1, 0.1], 5.0, 1.0, "val")
        for i, name in enumerate(("linear", "mgda"))
    ]
    asked = verdict(sorted(known, key=lambda each: -each.hypervolume[0]))
    assert said == asked.replace("linear", "Linear scalarization").replace("mgda", "MOO-MTL")


def test_seeds_of_one_method_have_a_spread() -> None:
    said = judged(("linear", 0, 1.0), ("linear", 1, 1.2), ("linear", 2, 1.1))
    assert said == "3 seeds of one method: hypervolume 1.1 ± 0.1 on validation (mean and deviation)."


def test_runs_that_differ_in_more_than_seeds() -> None:
    said = judged(("linear", 0, 1.0), ("linear", 0, 1.2), ("mgda", 1, 0.5))
    assert said.startswith("linear-0 has the largest hypervolume on validation, 20 % above linear-0.")
    assert "One run each cannot tell" in said


def test_nothing_to_compare() -> None:
    assert judged(("linear", 0, 1.0)) == ""
    assert judged(("linear", 0, 1.0), ("single-task", 0, 2.0)) == "", "separate networks are not a front"
    front = page_front(3, 2)
    other = verdict_of([front, replace(front, problem="other")], ["a", "b"], [{"val": 2.0}, {"val": 1.0}])
    assert other == "", "runs of different problems do not compare"


def test_runs_without_a_hypervolume_are_named() -> None:
    def said(*volumes: float | None) -> str:
        fronts = [page_front(3, 2, method=method) for method in ("linear", "mgda", "epo", "pareto-mtl", "cosmos", "x")]
        return verdict_of(fronts[: len(volumes)], list("abcdef"), [{"val": volume} for volume in volumes])

    assert said(None, 1.0) == "a is left out: it has no hypervolume on validation."
    assert said(None, None) == "No run has a hypervolume on validation, so the runs are not compared."
    assert said(None) == "", "one run is compared with nothing"
    both = said(1.0, None, 1.1, None)
    assert both.startswith("epo has the largest hypervolume on validation, 10 % above Linear scalarization. ")
    assert both.endswith(" b and d are left out: they have no hypervolume on validation.")
    assert said(1.0, *[None] * 5).startswith("b, c, d and 2 more runs are left out")


def test_measured_directions_are_compared_with_each_other() -> None:
    """The first task has large losses in all models: that does not make them favour the second."""
    measured = front_of([[10.0, 0.1], [1.0, 0.2]], measured={"probe": torch.ones(2, 1)})
    rows = torch.nn.functional.normalize(torch.tensor([[10.0, 0.1], [1.0, 0.2]], dtype=torch.float64))
    front = replace(measured, preferences=rows)
    assert model_favours(front) == [[1], [0]]
    asked_for = replace(front, measured={})
    assert model_favours(asked_for) == [[1], [1]], "preferences of a user mean what they say"


@given(st.integers(2, 6), st.integers(0, 10_000))
def test_what_a_preference_favours(tasks: int, seed: int) -> None:
    """The favoured tasks have the largest importances, and a direction is the opposite of an importance."""
    shares = torch.rand(4, tasks, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 0.01
    by_importance, by_direction = favours(shares, "importance"), favours(1.0 / shares, "direction")
    assert by_importance == by_direction
    for row, places in zip(shares, by_importance, strict=True):
        assert len(places) < tasks
        assert places == row.argsort(descending=True).tolist()[: len(places)]
    assert favours(torch.ones(1, tasks), "importance") == [[]]
    assert favours(torch.eye(tasks), "importance") == [[t] for t in range(tasks)]
    assert favours(shares, "start") is None


def test_the_curve_of_hypervolumes_ends_at_that_of_the_front() -> None:
    front = page_front(5, 3)
    curve = hypervolume_curve(front.history["losses"], front.reference)
    assert curve is not None
    assert curve[-1] == pytest.approx(front.hypervolume(split="train"))
    assert curve == sorted(curve), "losses only fall here"
    broken = front.history["losses"].clone()
    broken[0] = torch.nan
    assert hypervolume_curve(broken, front.reference)[0] == 0.0
    assert hypervolume_curve(front.history["losses"], None) is None
    assert hypervolume_curve(torch.rand(2, 200, 10), [1.0] * 10) is None, "minutes for each epoch"


def test_front_of_a_run_without_indicators_has_no_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    import paretomtl.report.page.hypervolume_curve as module

    def missing(*_: object) -> float:
        raise ModuleNotFoundError("moocore")

    monkeypatch.setattr(module, "hypervolume", missing)
    assert module.hypervolume_curve(page_front(3, 2).history["losses"], (3.0, 3.0)) is None
