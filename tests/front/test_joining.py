"""Joined fronts: numbers, regions, models, storage."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch

import paretomtl as pm
from _helpers.fronts import assert_equal
from _helpers.short_runs import fit
from paretomtl.front.models import SeparateModules

ROWS = [[1.0, 0.0], [0.8, 0.6], [0.6, 0.8], [0.0, 1.0]]


@pytest.fixture(scope="module")
def whole() -> pm.Front:
    return fit(method="pareto-mtl", preferences=ROWS, epochs=2)


@pytest.fixture(scope="module")
def parts() -> tuple[pm.Front, pm.Front]:
    one, other = (fit(method="pareto-mtl", preferences=ROWS, epochs=2, only=only) for only in ([0, 3], [1, 2]))
    return one, other


def test_parts_that_were_trained_against_all_rows_make_the_whole_front(
    whole: pm.Front, parts: tuple[pm.Front, pm.Front]
) -> None:
    joined = parts[0].joined(parts[1])
    assert joined.subproblems == (0, 3, 1, 2)
    order = list(joined.subproblems)
    assert torch.equal(joined.preferences, whole.preferences)
    for split, losses in whole.losses.items():
        torch.testing.assert_close(joined.losses[split], losses[order])
    assert joined.in_region().tolist() == whole.in_region()[order].tolist()
    torch.testing.assert_close(joined.angle(), whole.angle()[order])
    torch.testing.assert_close(joined.history["losses"], whole.history["losses"][:, order])
    assert joined.hypervolume([9.0, 9.0]) == pytest.approx(whole.hypervolume([9.0, 9.0]))
    for k in range(4):
        for name, tensor in whole.state_dict(k).items():
            torch.testing.assert_close(joined.state_dict(k)[name], tensor)


def test_other_runs_get_the_next_numbers(parts: tuple[pm.Front, pm.Front]) -> None:
    other = fit(method="pareto-mtl", preferences=[[0.9, 0.1], [0.5, 0.5]], epochs=1)
    joined = parts[0].joined(other, other)
    assert joined.subproblems == (0, 3, 4, 5, 6, 7)
    torch.testing.assert_close(joined.preferences, torch.cat([parts[0].preferences, *[other.preferences] * 2]))
    assert len(joined.history["losses"]) == 2
    assert joined.history["losses"][1, 2:].isnan().all(), "epochs that a front did not have"
    assert joined.epochs == [2, 2, 1, 1, 1, 1]
    assert joined.seconds == parts[0].seconds + 2 * other.seconds
    assert joined.ended == "after 2 epochs; after 1 epoch"
    assert torch.equal(joined.state_dict(7)["trunk.0.weight"], other.state_dict(1)["trunk.0.weight"])
    assert joined.joined().subproblems == joined.subproblems


def test_a_joined_front_is_stored_and_read_model_by_model(parts: tuple[pm.Front, pm.Front], tmp_path: Path) -> None:
    for name, part in zip("ab", parts, strict=True):
        part.save(tmp_path / name)
    joined = pm.Front.load(tmp_path / "a").joined(pm.Front.load(tmp_path / "b"))
    joined.save(tmp_path / "both")
    again = pm.Front.load(tmp_path / "both")
    assert_equal(again, joined)
    assert torch.equal(again.state_dict(2)["trunk.0.weight"], parts[1].state_dict(2)["trunk.0.weight"])
    again.models.verify()


def test_what_some_front_lacks_is_left_out_or_filled(parts: tuple[pm.Front, pm.Front]) -> None:
    one, two = parts
    two = dataclasses.replace(
        two,
        losses={"train": two.losses["train"]},
        scale=torch.full((2, 2), 3.0, dtype=torch.float64),
        measured={"p": torch.ones(2), "codes": torch.ones(2, dtype=torch.long)},
        method="p-norm",
        reference=(7.0, 7.0),
    )
    one = dataclasses.replace(one, reference=None, decisions=("chosen",))
    joined = one.joined(two)
    assert list(joined.losses) == ["train"]
    assert joined.scale is not None
    assert joined.scale.tolist() == [[1.0, 1.0]] * 2 + [[3.0, 3.0]] * 2
    assert joined.measured["p"].isnan().tolist() == [True, True, False, False]
    assert "codes" not in joined.measured, "whole numbers have no NaN"
    assert joined.reference == (7.0, 7.0)
    assert joined.decisions == ("chosen", "Models 1, 2 were trained by p-norm, and joined later.")


def test_fronts_of_losses_and_of_models_elsewhere() -> None:
    one = pm.Front.from_losses([[0.0, 1.0]], tasks=["a", "b"], names=["x"])
    two = pm.Front.from_losses([[1.0, 0.0]], tasks=["a", "b"], names=["y"])
    joined = one.joined(two)
    assert joined.names == ("x", "y")
    assert not joined.models
    with pytest.raises(ValueError, match="has only losses"):
        joined.state_dict(0)
    problem = pm.problems.quadratic()
    models = pm.Front.from_models([problem.model()], problem)
    modules = dataclasses.replace(models, models=SeparateModules([problem.model()]))
    mixed = models.joined(modules)
    with pytest.raises(ValueError, match="a joined front, some of whose parts have no weights"):
        mixed.state_dict(0)


def test_fronts_that_do_not_go_together_are_refused(parts: tuple[pm.Front, pm.Front]) -> None:
    front = parts[0]
    wide = dataclasses.replace(front, models=type(front.models)({"weight": torch.ones(2, 3)}))
    for other, error, message in (
        ([[0.0]], TypeError, "'others' must be fronts. Got list instead"),
        (dataclasses.replace(front, tasks=("x", "y")), ValueError, r"'others' must have the same tasks .*\['x', 'y'\]"),
        (dataclasses.replace(front, reading="importance"), ValueError, "same reading .*'direction'. Got 'importance'"),
        (dataclasses.replace(front, ideal=(0.0, 0.1)), ValueError, r"same ideal .*None. Got \[0.0, 0.1\]"),
        (wide, ValueError, "'others' must be fronts of the same model. Got one that differs in"),
        (
            dataclasses.replace(front, losses={"other": front.losses["train"]}),
            ValueError,
            "'others' must have a split in common",
        ),
    ):
        with pytest.raises(error, match=message):
            front.joined(other)  # type: ignore[arg-type]
