"""What chooses or ranks goes by validation, else by training, and never by test; what is shown names its split.

The solution that is best on validation is another one than the best on test, and yet another one than that on training.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch

import paretomtl as pm
from _helpers.fronts import front_of

TRAIN = [[0.9, 0.1], [0.8, 0.8], [0.1, 0.1], [0.7, 0.7]]
VAL = [[0.1, 0.9], [0.3, 0.3], [0.9, 0.1], [0.95, 0.9]]
TEST = [[0.2, 0.2], [0.95, 0.85], [0.7, 0.1], [0.3, 0.25]]
SPLITS = {"train": TRAIN, "val": VAL, "test": TEST}


def front(*splits: str, **fields: Any) -> pm.Front:
    """Four solutions: 1 is the best compromise on validation, 0 on test, 2 on training."""
    tables = {split: torch.tensor(SPLITS[split], dtype=torch.float64) for split in ("train", *splits)}
    metrics = {split: {"score": -table.sum(-1)} for split, table in tables.items()}
    return front_of(TRAIN, splits=tables, metrics=metrics, better={"score": "higher"}, reference=(1.0, 1.0), **fields)


@pytest.mark.parametrize(
    ("splits", "ranking", "shown"),
    [
        ((), "train", ("train",)),
        (("test",), "train", ("train", "test")),
        (("val",), "val", ("val",)),
        (("val", "test"), "val", ("val", "test")),
    ],
)
def test_validation_ranks_else_training_and_never_test(splits: Any, ranking: str, shown: Any) -> None:
    found = front(*splits)
    assert found.ranking_split == ranking
    assert found.shown_splits == shown


@pytest.mark.parametrize("splits", [("val", "test"), ("test",)])
def test_indicators_are_on_the_ranking_split(splits: Any) -> None:
    found = front(*splits)
    ranking = found.ranking_split
    assert found.hypervolume() == found.hypervolume(split=ranking) != found.hypervolume(split="test")
    assert found.spread() == found.spread(ranking) != found.spread("test")
    assert found.nondominated().tolist() == found.nondominated(ranking).tolist() != found.nondominated("test").tolist()
    points = torch.tensor([[0.0, 0.0]])
    assert found.igd_plus(points) == found.igd_plus(points, ranking) != found.igd_plus(points, "test")
    assert found.r2() == found.r2(split=ranking) != found.r2(split="test")
    assert found.regret() == found.regret(split="test") > found.regret(split=ranking) == 0.0


def test_regions_are_those_of_training() -> None:
    found = front("val", "test")
    assert found.in_region().tolist() == found.in_region("train").tolist() != found.in_region("val").tolist()
    assert found.region_hits() == found.region_hits("train")
    assert found.angle().tolist() == found.angle("train").tolist() != found.angle("val").tolist()


@pytest.mark.parametrize(
    "way",
    [{"max_regret": True}, {"importance": [1, 1]}, {"direction": [1, 1]}, {"best": "score"},
     {"at_most": {"a": 0.5}, "best": "b"}],
)  # fmt: skip
def test_choices_go_by_the_ranking_split_and_say_so(way: Any) -> None:
    """Training alone takes 2, which dominates all others there."""
    chosen = front("val", "test").select(**way)
    assert (chosen.k, chosen.split) == (1, "val")
    assert " val" in chosen.reason
    assert chosen.losses == {"a": 0.3, "b": 0.3}
    assert front("test").select(**way).k == 2
    assert front("test").select(**way).split == "train"
    assert front("val", "test").select(**way, split="test").split == "test"


def test_preferences_around_a_solution_lie_around_its_losses_on_the_ranking_split() -> None:
    found = front("val", "test")
    assert torch.equal(found.around(1), found.around(1, split="val"))
    assert torch.equal(front("test").around(1), found.around(1, split="train"))


def test_a_printed_front_shows_test_beside_the_split_that_ranks() -> None:
    lines = repr(front("val", "test")).splitlines()
    assert lines[0].endswith("seed 0; on validation, test next to it")
    assert lines[1].split() == ["val", "val", "test", "test"]
    assert lines[2].split() == ["k", "direction", "a", "b", "a", "b", "status"]
    assert lines[4].split()[3:] == ["0.3", "0.3", "0.95", "0.85", "feasible"]
    assert [line.endswith("feasible, dominated") for line in lines[3:7]] == [False, False, False, True], "on val"
    assert lines[7].split() == ["val", "test"]
    assert lines[8].split() == ["k", "score", "score"]
    assert lines[10].split() == ["1", "-0.6", "-1.8"]
    assert lines[-1] == "dominated: another model is no worse in any task on validation, and better in one."
    assert max(map(len, lines)) <= 84
    assert "losses and metrics on validation" in repr(front("val"))
    many = dataclasses.replace(front("val", "test"), tasks=("a name that is long", "b"))
    assert max(map(len, repr(many).splitlines())) <= 84


def test_a_printed_front_has_names_that_can_be_told_apart() -> None:
    names = ["digit accuracy", "digit recall", "parity accuracy", "x" * 90]
    metrics = {split: {name: torch.full((4,), 0.12345) for name in names} for split in ("val", "test")}
    lines = str(dataclasses.replace(front("val", "test"), metrics=metrics, better={})).splitlines()
    heads = [line for line in lines if "accuracy" in line]
    assert [sorted(head.count(f" {name} ") for name in names) for head in heads] == [[0, 1, 1, 1]] * 2, "val, test"
    assert all(head.endswith(" " + "x" * 17 + "…") for head in heads)
    assert max(map(len, heads)) <= 80
    row = lines[lines.index(heads[0]) + 1]
    ends = [heads[0].index(f" {name} ") + 1 + len(name) for name in names[:3]]
    assert [row[end - 6 : end] for end in ends] == ["0.1235"] * 3, "numbers end where their names do"


def test_a_front_of_test_losses_alone_ranks_by_them(tmp_path: Path) -> None:
    """Nothing else was given, and every number says that it is on test."""
    found = front("val", "test")
    dataclasses.replace(found, losses={"test": found.losses["test"]}, metrics={}).save(tmp_path)
    loaded = pm.Front.load(tmp_path)
    assert (loaded.ranking_split, loaded.shown_splits) == ("test", ("test",))
    assert "on test" in loaded.select(importance=[1, 1]).reason


def test_losses_that_are_not_finite_are_not_called_dominated() -> None:
    nan = float("nan")
    text = str(front_of([[0.1, 0.9], [nan, 0.1], [0.9, 0.1], [0.95, 0.9]]))
    assert [line.rsplit("  ", 1)[-1] for line in text.splitlines()[2:6]] == [*["feasible"] * 3, "feasible, dominated"]
