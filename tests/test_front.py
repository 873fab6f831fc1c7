from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import paretomtl as pm
from paretomtl.core import nondominated
from training.networks import MLP, Normed, accuracy, classes, fit, problem


def front(method: str = "pareto-mtl") -> pm.Front:
    return pm.fit(
        pm.problems.synthetic(), method, 3, epochs=30, optimizer=lambda p: torch.optim.SGD(p, lr=1.0), device="cpu"
    )


def front_of(losses: Any, **fields: Any) -> pm.Front:
    """A front with these losses, and nothing trained."""
    table = torch.tensor(losses, dtype=torch.float64)
    count, tasks = table.shape
    return pm.Front(
        problem="made up",
        method=fields.pop("method", "pareto-mtl"),
        tasks=tuple("abcdefgh"[:tasks]),
        reading=fields.pop("reading", "direction"),
        preferences=pm.preferences.even(count, tasks) if count > 1 else torch.ones(1, tasks).double() / tasks**0.5,
        subproblems=tuple(range(count)),
        losses={"train": table, **fields.pop("splits", {})},
        scale=None,
        status=["feasible"] * count,
        since=None,
        parameters={"x": torch.zeros(count, 1)},
        history={},
        seed=0,
        seconds=0.0,
        **fields,
    )


def test_a_front_shows_itself() -> None:
    text = repr(front())
    assert text.splitlines()[0] == "Front of 3 solutions: synthetic, pareto-mtl, seed 0; losses on train"
    assert "direction" in text
    assert len(text.splitlines()) == 5
    assert max(map(len, text.splitlines())) < 80


def test_models_give_the_losses_that_the_front_reports() -> None:
    found = front()
    synthetic = pm.problems.synthetic()
    for k in range(3):
        torch.testing.assert_close(synthetic.losses(found.model(k)()).detach(), found.losses["train"][k])
    with pytest.raises(IndexError, match=r"'k' must be one of the subproblems trained, \[0, 1, 2\]. Got 3"):
        found.model(3)


# Indicators.


def test_indicators_of_known_points() -> None:
    found = front_of([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0], [0.9, 0.9]])
    assert found.nondominated().tolist() == [True, True, True, False]
    assert found.hypervolume([2.0, 2.0]) == pytest.approx(3.25)
    assert found.spread() == pytest.approx(2**0.5)
    assert found.igd_plus(torch.tensor([[0.0, 1.0], [0.5, 0.5]])) == pytest.approx(0.0)
    assert found.igd_plus(torch.tensor([[0.0, 0.5], [0.5, 0.0]])) == pytest.approx(0.5)
    square = front_of([[3.0, 4.0], [1.0, 0.0]])
    assert square.angle().tolist() == pytest.approx([53.1301, 90.0], abs=1e-3)
    assert square.region_hits() == 0


def test_the_default_reference_is_the_untrained_models() -> None:
    found = front()
    starts = [pm.fit(pm.problems.synthetic(), preferences=3, epochs=1, device="cpu").history["losses"][0]]
    assert found.reference == pytest.approx(starts[0].amax(0).tolist())
    assert found.hypervolume() == found.hypervolume(found.reference)
    own = problem(reference=[1.5, 1.5])
    assert fit(own).reference == (1.5, 1.5)


def test_references_that_say_nothing_are_refused() -> None:
    found = front_of([[0.5, 0.5], [0.4, 0.7]])
    with pytest.raises(ValueError, match=r"'reference' must be given: this front has no default"):
        found.hypervolume()
    with pytest.raises(ValueError, match=r"above the losses of at least one .* Got \[0.5, 0.4\].* \[0.5, 0.7\]"):
        found.hypervolume([0.5, 0.4])
    with pytest.raises(ValueError, match=r"'reference' must have one finite number per task \(2\). Got \[1, 1, 1\]"):
        found.hypervolume([1, 1, 1])
    with pytest.raises(ValueError, match=r"'split' must be one of \['train'\]. Got 'test'"):
        found.hypervolume([1, 1], split="test")
    with pytest.raises(ValueError, match=r"'points' must have shape \[n, 2\]. Got \[3\]"):
        found.igd_plus(torch.ones(3))
    with pytest.raises(ValueError, match="regions need preferences that are directions; those of 'mgda' are not"):
        front("mgda").in_region()
    broken = front_of([[torch.nan, 0.5]])
    with pytest.raises(ValueError, match="'split' must have a solution with finite losses"):
        broken.hypervolume([1, 1])


def test_a_table_of_everything() -> None:
    of = problem(test=classes(40, seed=2), metrics={"accuracy": pm.Metric(accuracy)})
    table = fit(of).to_frame()
    assert list(table.index) == [0, 1, 2]
    assert {"direction a", "train a", "test b", "test accuracy", "test nondominated", "status", "epoch"} <= set(table)
    assert table["epoch"].tolist() == [4, 4, 4]


# Storage.


@pytest.mark.parametrize("method", ["pareto-mtl", "linear", pm.ParetoMTL(release_steps=4, scale="first")])
def test_stored_and_loaded_it_is_the_same(method: Any, tmp_path: Path) -> None:
    of = problem(Normed, val=classes(30, seed=1), metrics={"accuracy": pm.Metric(accuracy)})
    saved = fit(of, method, only=[2, 0])
    saved.save(tmp_path / "front")
    found = pm.Front.load(tmp_path / "front", of)
    for one, other in ((saved, found), (saved.snapshot, found.snapshot)):
        if one is None or other is None:
            assert one is other
            continue
        for field in ("problem", "method", "tasks", "reading", "subproblems", "since", "seed", "seconds", "epochs"):
            assert getattr(one, field) == getattr(other, field), field
        for field in ("complete", "strategy", "reference", "better"):
            assert getattr(one, field) == getattr(other, field), field
        assert list(one.status) == list(other.status)
        assert torch.equal(one.preferences, other.preferences)
        assert (one.scale is None and other.scale is None) or torch.equal(one.scale, other.scale)  # type: ignore[arg-type]
        for table in ("losses", "parameters", "history"):
            mine, theirs = getattr(one, table), getattr(other, table)
            assert list(mine) == list(theirs) or set(mine) == set(theirs)
            assert all(torch.equal(tensor, theirs[name]) for name, tensor in mine.items()), table
        assert torch.equal(one.metrics["val"]["accuracy"], other.metrics["val"]["accuracy"])
    x, _ = classes(10)
    for mine, theirs in zip(saved.model(2)(x), found.model(2)(x), strict=True):
        assert torch.equal(mine, theirs)
    assert repr(saved) == repr(found)


def test_losses_that_are_not_finite_are_stored_too(tmp_path: Path) -> None:
    front_of([[torch.nan, torch.inf], [1.0, 2.0]]).save(tmp_path)
    losses = pm.Front.load(tmp_path).losses["train"]
    assert losses[0, 0].isnan()
    assert losses[0, 1].isinf()
    assert "NaN" not in (tmp_path / "front.json").read_text()


def test_without_its_problem_a_front_has_weights_but_no_models(tmp_path: Path) -> None:
    saved = fit()
    saved.save(tmp_path)
    found = pm.Front.load(tmp_path)
    assert torch.equal(found.state_dict(1)["trunk.0.weight"], saved.parameters["trunk.0.weight"][1])
    with pytest.raises(ValueError, match=r"'problem' must be given to Front.load for models to be made"):
        found.model(1)
    with pytest.raises(ValueError, match=r"'problem' must make the model that was trained. Got one that differs in"):
        pm.Front.load(tmp_path, problem(Normed)).model(1)
    with pytest.raises(ValueError, match=r"'problem' must have the tasks \['a', 'b'\]. Got \['f1', 'f2'\]"):
        pm.Front.load(tmp_path, pm.problems.synthetic())


def test_saving_again_replaces_the_old_front(tmp_path: Path) -> None:
    fit(seed=0).save(tmp_path)
    second = fit(seed=1)
    second.save(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    assert torch.equal(pm.Front.load(tmp_path).losses["train"], second.losses["train"])


@pytest.mark.parametrize("harm", ["truncate", "flip", "missing", "json", "field", "format"])
def test_a_damaged_front_is_said_to_be(harm: str, tmp_path: Path) -> None:
    fit().save(tmp_path)
    words, models = tmp_path / "front.json", next(tmp_path.glob("models-*"))
    data = bytearray(models.read_bytes())
    content = json.loads(words.read_text())
    if harm == "truncate":
        models.write_bytes(data[: len(data) // 2])
    elif harm == "flip":
        data[-3] ^= 4
        models.write_bytes(data)
    elif harm == "missing":
        models.unlink()
    elif harm == "json":
        words.write_text(words.read_text()[:100])
    elif harm == "field":
        del content["status"]
        words.write_text(json.dumps(content))
    else:
        words.write_text(json.dumps({**content, "format": 7}))
    with pytest.raises((ValueError, FileNotFoundError), match=r"damaged|checksum|models-|format"):
        pm.Front.load(tmp_path)


def test_a_folder_without_a_front_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"'path' must be the folder of a front"):
        pm.Front.load(tmp_path)


# Choosing.

CONVEX = [[0.0, 1.0], [0.2, 0.4], [0.5, 0.3], [1.0, 0.0], [0.9, 0.9]]
CONCAVE = [[0.0, 1.0], [0.6, 0.7], [1.0, 0.0]]


def test_by_direction() -> None:
    found = front_of(CONVEX)
    choice = found.select(direction=[2.0, 4.0])
    assert choice.k == 1
    assert "0.0° from the direction (2, 4); the next is subproblem" in choice.reason
    assert choice.losses == {"a": 0.2, "b": 0.4}
    assert found.select(direction=[0, 1]).k == 0
    assert found.select(direction=[1, 1]).k != 4, "a dominated solution is never chosen"


def test_by_importance_reads_the_other_way() -> None:
    found = front_of(CONVEX)
    assert found.select(importance=[1, 0]).k == 0
    assert found.select(importance=[0, 1]).k == 3
    assert found.select(importance=[1, 1]).k == 1


def test_the_knee_is_farthest_below_the_chord() -> None:
    choice = front_of(CONVEX).select(knee=True)
    assert choice.k == 1
    assert "by 0.283 of losses" in choice.reason
    assert front_of([[10 * a, b] for a, b in CONVEX]).select(knee=True).k == 1, "units do not matter"


def test_a_concave_front_has_no_knee() -> None:
    for losses in (CONCAVE, [[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]]):
        choice = front_of(losses).select(knee=True)
        assert choice.k is None
        assert "concave or straight" in choice.reason
    assert front_of([[0.5, 0.5]]).select(knee=True).k is None


def test_a_knee_of_three_tasks() -> None:
    corners = [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
    assert front_of([*corners, [0.5, 0.5, 0.5]]).select(knee=True).k == 3
    assert front_of([*corners, [0.8, 0.8, 0.8]]).select(knee=True).k is None


def test_within_bounds() -> None:
    metrics = {"train": {"race": torch.tensor([0.7, 0.8, 0.9, 0.75, 0.95]), "age": torch.tensor([9.0, 8, 7, 6, 5])}}
    found = front_of(CONVEX, metrics=metrics, better={"race": "higher", "age": "lower"})
    choice = found.select(bounds={"race": 0.78}, best="age")
    assert choice.k == 4
    assert "of 3 solutions with race at least 0.78 on train, it has the best age, 5" in choice.reason
    assert found.select(bounds={"race": 0.78, "b": 0.35}, best="age").k == 2
    assert found.select(bounds={"age": 7.5}, best="race").k == 4
    none = found.select(bounds={"race": 0.99}, best="age")
    assert none.k is None
    assert "No solution on train has race at least 0.99. Best found: race 0.95 (subproblem 4)" in none.reason
    with pytest.raises(
        ValueError, match=r"'bounds' and 'best' must name one of \['a', 'b', 'race', 'age'\].* Got 'height'"
    ):
        found.select(bounds={"height": 1.0}, best="age")
    with pytest.raises(ValueError, match="'best' must name the task or metric"):
        found.select(bounds={"race": 0.5})


def test_validation_decides_where_there_is_one() -> None:
    other = torch.tensor(CONVEX, dtype=torch.float64).flip(0)
    found = front_of(CONVEX, splits={"val": other, "test": other})
    assert found.select(importance=[1, 0]).k == 4
    assert found.select(importance=[1, 0], split="train").k == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "one of direction, importance, knee, bounds must be given. Got none"),
        ({"knee": True, "direction": [1, 1]}, r"must be given. Got \['direction', 'knee'\]"),
        ({"direction": [1.0]}, r"'direction' must be 2 numbers, not negative and not all zero. Got \[1.0\]"),
        ({"importance": [0, 0]}, "'importance' must be 2 numbers"),
        ({"direction": [1, -1]}, "'direction' must be 2 numbers"),
        ({"knee": True, "best": "a"}, "'best' must come with 'bounds'"),
        ({"knee": True, "split": "dev"}, "'split' must be one of"),
    ],
)
def test_bad_questions_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        front_of(CONVEX).select(**options)


def test_nothing_finite_to_choose_from() -> None:
    broken = front_of([[torch.nan, 1.0], [torch.inf, 1.0]])
    for options in ({"direction": [1, 1]}, {"importance": [1, 1]}, {"knee": True}):
        assert broken.select(**options).k is None


@given(st.lists(st.lists(st.floats(0.01, 10.0), min_size=3, max_size=3), min_size=1, max_size=12), st.data())
def test_choices_are_never_dominated_and_scale_free(rows: list[list[float]], data: st.DataObject) -> None:
    found = front_of(rows)
    kept = nondominated(torch.tensor(rows, dtype=torch.float64)).tolist()
    wish = data.draw(st.lists(st.floats(0.1, 1.0), min_size=3, max_size=3))
    for options in ({"direction": wish}, {"importance": wish}, {"knee": True}):
        k = found.select(**options).k
        assert k is None or kept[k]
        larger = {name: [3 * v for v in value] if isinstance(value, list) else value for name, value in options.items()}
        again = found.select(**larger).k
        same: Tensor = torch.tensor(rows, dtype=torch.float64)
        assert again == k or (k is not None and again is not None and torch.allclose(same[k], same[again], rtol=1e-6))


def test_models_are_ordinary_modules() -> None:
    model = fit().model(0)
    assert isinstance(model, MLP)
    assert not model.training
    assert all(p.requires_grad for p in model.parameters())


def test_a_plane_that_is_tilted_has_no_knee() -> None:
    """The normal through the best of each task has a negative entry: below it a larger loss would count as better."""
    losses = [[0.9, 0.1, 0.3], [0.4, 0.3, 0.1], [0.0, 0.8, 0.5], [0.3, 0.2, 0.3]]
    choice = front_of(losses).select(knee=True)
    assert choice.k is None
    assert "tilted" in choice.reason


def test_wishes_by_name() -> None:
    found = front_of(CONVEX)
    assert found.select(importance={"a": 1.0}).k == 0
    assert found.select(direction={"b": 1, "a": 0}).k == 0
    with pytest.raises(ValueError, match=r"'importance' must name tasks of \['a', 'b'\]. Got 'c'"):
        found.select(importance={"c": 1.0})
    with pytest.raises(TypeError, match=r"'bounds' must be numbers. Got 'x' for 'a'"):
        found.select(bounds={"a": "x"}, best="b")  # type: ignore[dict-item]


def test_preferences_around_a_solution_lie_around_its_losses() -> None:
    """Up to half way to the nearest other one; for importances around its own."""
    front = pm.fit(pm.problems.quadratic(), preferences=3, epochs=2, device="cpu", progress="quiet")
    losses = torch.tensor([[2.0, 1.0], [1.0, 1.0], [1.0, 9.0]])
    front = dataclasses.replace(front, losses={"train": losses})
    degrees = torch.rad2deg(torch.atan2(losses[:, 1], losses[:, 0])).double()
    rows = front.around(1, 3)
    found = torch.rad2deg(torch.atan2(rows[:, 1], rows[:, 0]))
    half = (degrees[1] - degrees[0]) / 2
    torch.testing.assert_close(found, torch.stack([45 - half, degrees[1], 45 + half]), rtol=0, atol=1e-4)
    wide = front.around(1, 3, angle=10.0)
    torch.testing.assert_close(torch.rad2deg(torch.atan2(wide[:, 1], wide[:, 0])).amax(), torch.tensor(55.0).double())
    with pytest.raises(IndexError, match="'k' must be one of the subproblems trained"):
        front.around(7)
    broken = dataclasses.replace(front, losses={"train": torch.full((3, 2), torch.nan)})
    with pytest.raises(ValueError, match="'k' must be a solution with finite losses"):
        broken.around(1)


def test_importances_around_a_solution_sum_to_one() -> None:
    front = pm.fit(pm.problems.quadratic(), "linear", 3, epochs=2, device="cpu", progress="quiet")
    rows = front.around(1, 3, angle=10.0)
    torch.testing.assert_close(rows.sum(-1), torch.ones(3, dtype=torch.float64))
    torch.testing.assert_close(rows[1], torch.tensor([0.5, 0.5], dtype=torch.float64))
    again = pm.fit(pm.problems.quadratic(), "linear", rows, epochs=2, device="cpu", progress="quiet")
    assert len(again) == 3
    starts = pm.fit(pm.problems.quadratic(), "mgda", 2, epochs=2, device="cpu", progress="quiet")
    with pytest.raises(ValueError, match="Those of 'mgda' are starts"):
        starts.around(0)
