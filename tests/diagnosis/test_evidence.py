"""Verdicts are given only where seeds bear them: how often they are wrong, and what is missing otherwise."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

import paretomtl as pm
from paretomtl.diagnosis.evidence import CONFLICT, MOST_SEEDS, conflicts, task_gaps

DRAWS = 100


@cache
def measured() -> pm.Diagnosis:
    fast = {"device": "cpu", "strategy": "batched", "optimizer": lambda p: torch.optim.SGD(p, lr=0.05)}
    return pm.diagnose(pm.problems.quadratic(), epochs=30, seeds=2, **fast)


def drawn(seeds: int, ratio: float, noise: float, *, draw: int = 0, cosine: float = 0.5, **fields: Any) -> pm.Diagnosis:
    """A diagnosis of two tasks whose truth is known: joint losses are ``ratio`` times as large, but for noise."""
    g = torch.Generator().manual_seed(draw)

    def noisy(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=g, dtype=torch.float64) * noise

    by_seed = (cosine + noisy(seeds, 1, 1, 1)).expand(seeds, 3, 2, 2)
    given: dict[str, Any] = {
        "seeds": tuple(range(seeds)),
        "joint": ratio + noisy(seeds, 2),
        "alone": 1 + noisy(seeds, 2),
        "first": torch.ones(2).double(),
        "last": torch.ones(2).double(),
        "norms": torch.ones(2).double(),
        "learnt": torch.full((2,), 0.9).double(),
        "cosines": by_seed.mean(0),
        "cosines_by_seed": by_seed,
        "ends": None,
    }
    return replace(measured(), **(given | fields))


@pytest.mark.parametrize("seeds", [1, 2, 3, 5])
def test_seeds_alone_rarely_make_a_verdict(seeds: int) -> None:
    """Equal losses are seldom called worse or better, and losses that differ by a tenth seldom as good."""
    equal = [task_gaps(drawn(seeds, 1.0, 0.1, draw=i))[0].word for i in range(DRAWS)]
    assert sum(word in ("worse", "better") for word in equal) <= 0.1 * DRAWS  # in a task, or else in both together
    other = [task_gaps(drawn(seeds, 1.1, 0.1, draw=i))[0].word for i in range(DRAWS)]
    assert other.count("as good") <= 0.05 * DRAWS
    if seeds == 1:
        assert set(equal) == set(other) == {"open"}


def test_enough_seeds_bear_the_truth() -> None:
    for ratio, word in ((1.0, "as good"), (1.3, "worse"), (0.7, "better")):
        assert [gap.word for gap in task_gaps(drawn(5, ratio, 0.01))] == [word] * 2


@pytest.mark.parametrize("seeds", [1, 2])
def test_a_large_ratio_of_few_seeds_is_not_as_good(seeds: int) -> None:
    verdict = drawn(seeds, 1.57, 0.0, joint=torch.tensor([[1.1], [2.04]]).double()[:seeds].expand(seeds, 2)).verdict
    assert verdict.word == "cannot-tell-yet"
    assert "as good as" not in verdict.text
    assert verdict.again is not None
    assert dict(verdict.again).keys() == {"seeds", "epochs"}


def test_the_seeds_that_are_asked_for_are_enough_if_they_vary_as_before() -> None:
    """The same two numbers again and again have the same mean, and vary a little less."""
    few = drawn(2, 1.0, 0.0, joint=torch.tensor([[1.0], [1.02]]).double().expand(2, 2))
    gap = task_gaps(few)[0]
    assert gap.word == "open"
    assert gap.needed is not None
    assert 2 < gap.needed <= MOST_SEEDS
    again = 2 * -(-gap.needed // 2)
    more = drawn(again, 1.0, 0.0, joint=few.joint.repeat(again // 2, 1))
    assert task_gaps(more)[0].word == "as good"
    assert "More seeds are needed" in few.verdict.text
    assert dict(few.verdict.again or ())["epochs"] == few.epochs


def test_where_seeds_would_not_do_longer_runs_are_asked_for() -> None:
    wild = drawn(3, 1.0, 0.0, joint=torch.tensor([[0.5], [1.0], [1.6]]).double().expand(3, 2))
    assert task_gaps(wild)[0].needed is None
    assert "More seeds would hardly help" in wild.verdict.text
    assert dict(wild.verdict.again or ()) == {"seeds": 3, "epochs": 60}
    planned = replace(wild, planned=100).verdict
    assert dict(planned.again or ()) == {"seeds": 3, "epochs": 100}


def test_nothing_longer_than_the_recipe_is_asked_for() -> None:
    whole = drawn(3, 1.0, 0.0, joint=torch.tensor([[0.5], [1.0], [1.6]]).double().expand(3, 2), planned=30).verdict
    assert whole.word == "cannot-tell-yet"
    assert f"Over {MOST_SEEDS} seeds would be needed" in whole.text
    assert whole.again is None


def test_an_interval_wider_than_the_margin_needs_seeds_though_its_middle_is_near_the_margin() -> None:
    """Where the middle will be is not known yet: 0.041 of 0.05 now, and it may be anywhere within 0.13."""
    near = drawn(3, 1.0, 0.0, joint=torch.tensor([[1.0], [1.025], [1.098]]).double().expand(3, 2))
    gap = task_gaps(near)[0]
    assert gap.word == "open"
    assert gap.half_width > gap.margin > gap.value > 0
    assert gap.needed is not None
    wider = replace(near, joint=near.joint + torch.tensor([[0.01], [0.0], [-0.01]]).double())
    assert (task_gaps(wider)[0].needed or MOST_SEEDS) <= gap.needed, "they vary less"


def wild(seeds: int, **fields: Any) -> pm.diagnosis.Verdict:
    """A verdict on a gap that is open with any number of seeds."""
    rows = torch.tensor([[0.5], [1.0], [1.6]]).double()[torch.arange(seeds) % 3].expand(seeds, 2)
    return drawn(seeds, 1.0, 0.0, joint=rows, **fields).verdict


def near(seeds: int, **fields: Any) -> pm.diagnosis.Verdict:
    """A verdict on a gap that a few more seeds would close."""
    rows = torch.tensor([[0.95], [1.0], [1.08]]).double()[torch.arange(seeds) % 3].expand(seeds, 2)
    return drawn(seeds, 1.0, 0.0, joint=rows, **fields).verdict


@pytest.mark.parametrize("planned", [3, 30, 300, None], ids=["usual", "whole", "short", "no recipe"])
def test_more_is_asked_for_once_and_then_models_are_looked_at(planned: int | None) -> None:
    """The usual seeds, then either more of them or the whole recipe, then a few models."""
    fields: dict[str, Any] = {"planned": planned, "without_data": False, "epochs": 3 if planned == 3 else 30}
    few = near(3, **fields)
    assert few.word == "cannot-tell-yet"
    asked = dict(few.again or {})
    if planned == 30:  # all epochs were somebody's wish: this is the second diagnosis
        assert few.again is None
        assert "seeds would tell if they vary as these do" in few.text
        assert few.text.endswith("Train a few models and look at them.")
    else:
        assert asked["seeds"] > 3
        assert asked["epochs"] == fields["epochs"]
        assert "More seeds are needed" in few.text
    for more in (wild(6, **fields), near(4, **fields)):
        assert (more.word, more.again) == ("cannot-tell-yet", None)
        assert "rain a few models and look at them" in more.text
        assert "diagnose again" not in more.text
    hopeless = wild(3, **fields)
    if planned == 300:
        assert dict(hopeless.again or {}) == {"seeds": 3, "epochs": 300}
        assert "More seeds would hardly help" in hopeless.text
        fields["epochs"] = 300
        assert wild(3, **fields).again is None
        assert near(3, **fields).again is None
    else:
        assert hopeless.again is None
        assert f"Over {MOST_SEEDS} seeds would be needed" in hopeless.text
    one = near(1, **fields)
    assert dict(one.again or {}) == {"seeds": 3, "epochs": fields["epochs"]}


def one_worse(size: float, others: list[float], **fields: Any) -> pm.Diagnosis:
    """Joint training is surely worse in the second task; in the first one seeds decide nothing."""
    joint = torch.tensor([[size * part, 2.0 + 0.001 * i] for i, part in enumerate(others)]).double()
    alone = torch.tensor([[size, 1.0]]).double().expand(len(others), 2)
    return drawn(len(others), 1.0, 0.0, joint=joint, alone=alone, **fields)


def test_a_gap_without_conflict_is_told_although_another_task_is_open() -> None:
    """By the rules the first line that fits is the verdict, after all epochs, too."""
    for planned in (30, 300):
        found = one_worse(1.0, [0.94, 1.0, 1.06], planned=planned)
        assert [gap.word for gap in task_gaps(found)] == ["open", "worse"]
        assert found.verdict.word == "gap-only"
    whole = one_worse(1.0, [0.94, 1.0, 1.06], planned=30).verdict
    assert whole.again is None
    assert "It is one unless joint training is better in f1, which is open" in whole.text
    assert "In f1 joint training has about the same loss as a separate network (95 % interval 0." in whole.text
    assert whole.text.endswith("Train a few models and look at them.")
    surely_no_gain = one_worse(1.0, [1.03, 1.05, 1.07], planned=30)
    assert [gap.word for gap in task_gaps(surely_no_gain)] == ["open", "worse"]
    assert surely_no_gain.verdict.word == "front", "the open task does not gain"


@pytest.mark.parametrize("cosine_noise", [0.0, 1.0], ids=["no conflict", "open"])
def test_losses_that_differ_are_named_as_what_keeps_a_front_away(cosine_noise: float) -> None:
    sizes = torch.tensor([18.0, 1.0]).double()
    by_seed = (0.5 + cosine_noise * torch.tensor([-1.0, 0.0, 1.0]).double()[:, None, None, None]).expand(3, 3, 2, 2)
    fields: dict[str, Any] = {"cosines_by_seed": by_seed, "cosines": by_seed.mean(0), "planned": 30, "norms": sizes}
    found = one_worse(18.0, [1.0, 1.0001, 1.0002], first=sizes, last=sizes, **fields).verdict
    assert found.word == ("cannot-tell-yet" if cosine_noise else "gap-only")
    assert "here losses of f1 are 18 times those of f2" in found.text
    assert "--set scale=auto" in found.text
    assert dict(found.again or ()) == {"seeds": 3, "epochs": 30, "scale": "auto"}
    if not cosine_noise:
        same = one_worse(18.0, [1.0, 1.0001, 1.0002], first=sizes, last=sizes, factors=(1 / 18, 1.0), **fields)
        assert same.verdict.word == "front", "with scaled losses"


def test_a_loss_that_begins_at_its_best_is_not_scaled() -> None:
    """Measured with docs/guides/fairness.md and a squared gap: untrained models have almost none."""

    def told(last: float) -> pm.diagnosis.Verdict:
        first = torch.tensor([0.708, 0.000215]).double()
        return drawn(3, 1.0, 1e-4, first=first, last=torch.tensor([0.577, last]).double()).verdict

    for last in (0.00756, 0.0623):  # after 3 epochs and after 30, when losses differ by less than a factor of 10
        gap = told(last)
        assert gap.scale is None
        assert f"raised the loss of f2 from 0.000215 to {last:g}: it begins at its best" in gap.notes[0]
        assert "--set scale=None" in gap.notes[0]
    small = told(0.0005)  # a loss that another one dominates rises, too
    assert small.scale == "first"
    assert "The default method scales by itself" in small.notes[0]
    assert small.notes[0].endswith("A loss that begins at its best, such as a fairness gap, is better left as it is.")


@pytest.mark.parametrize("size", [1.0, 50.0, 1e4])
def test_only_large_losses_may_have_targets_in_large_units(size: float) -> None:
    units = torch.tensor([size, 1.0]).double()
    (note, *_) = [*drawn(3, 1.0, 1e-4, first=units, last=units).verdict.notes, ""]
    assert note.startswith("Scale the losses") == (size > 10)
    assert ("If the targets of" in note) == (size > 100)


@pytest.mark.parametrize(("cosine", "there"), [(-0.5, True), (CONFLICT + 0.3, False)])
def test_conflict_is_told_only_where_seeds_bear_it(cosine: float, there: bool) -> None:
    (found,) = conflicts(drawn(3, 1.0, 0.01, cosine=cosine))
    assert found.there is there
    (unsure,) = conflicts(drawn(2, 1.0, 1.0, cosine=cosine))
    assert unsure.there is None
    (one,) = conflicts(drawn(1, 1.0, 0.01, cosine=cosine))
    assert one.there is None


@pytest.mark.parametrize(
    ("ratio", "cosine", "word"),
    [
        (1.0, 0.5, "one-model"),
        (1.0, -0.5, "conflict-only"),
        (0.7, 0.5, "helping"),
        (0.7, -0.5, "helping"),
        (1.3, 0.5, "gap-only"),
        (1.3, -0.5, "front"),
    ],
)
@pytest.mark.parametrize("seeds", [1, 2, 3, 5])
def test_every_verdict_is_that_of_the_truth_or_none(ratio: float, cosine: float, word: str, seeds: int) -> None:
    sure = drawn(seeds, ratio, 1e-4, cosine=cosine).verdict
    assert sure.word == (word if seeds > 1 else "cannot-tell-yet")
    assert (sure.again is None) == (sure.word != "cannot-tell-yet")
    wild = 0.8 * (-1.0) ** torch.arange(seeds).double()[:, None].expand(seeds, 2)
    unsure = drawn(seeds, ratio, 0.0, cosine=cosine, joint=ratio + wild, alone=1 - wild).verdict
    assert unsure.word == "cannot-tell-yet"
    assert (unsure.again is None) == (seeds > 3), "more is asked for only once"
    if "as good as" in sure.text:
        assert "within 5 % of their losses, or 1 % of those at the start, and 10 % of what they learnt" in sure.text


def test_networks_that_have_hardly_learnt_are_not_as_good_as_each_other() -> None:
    """A gap of 3 % of the loss is half of what was learnt."""
    late = drawn(3, 1.03, 1e-4)
    assert {gap.word for gap in task_gaps(late)} == {"as good"}
    early = replace(late, learnt=torch.full((2,), 0.06).double(), planned=300)
    assert {gap.word for gap in task_gaps(early)} == {"open"}
    assert early.verdict.word == "cannot-tell-yet"
    assert dict(early.verdict.again or ()) == {"seeds": 3, "epochs": 300}


def test_a_short_run_says_that_it_is_short() -> None:
    short = drawn(3, 1.0, 1e-4, planned=300).verdict
    assert short.word == "one-model"
    assert "after 30 of 300 epochs" in short.text
    assert dict(short.again or ()) == {"seeds": 3, "epochs": 300}
    assert drawn(3, 1.0, 1e-4, planned=30).verdict.again is None
