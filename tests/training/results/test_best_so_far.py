"""Which epoch of each model is kept."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import paretomtl as pm
from paretomtl.core import FEASIBLE_TOLERANCE, dominates, nondominated
from paretomtl.engine.evaluate import Scores
from paretomtl.methods import Method
from paretomtl.training.results.best_so_far import BestSoFar

DIRECTIONS = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]], dtype=torch.float64)
METHODS = [pm.ParetoMTL(), pm.ParetoMTL(scale=(2.0, 0.5)), pm.Linear(), pm.MGDA()]


class Run:
    """Models that are told their losses, and which epoch their parameters are from."""

    def __init__(self, method: Method, count: int = 3) -> None:
        self.count, self.at = count, torch.zeros(count)
        models = SimpleNamespace(count=count, copy=self.tensors, tensors=self.tensors)
        state = method.init(DIRECTIONS[:count])
        active = torch.ones(count, dtype=torch.bool)
        self.groups: Any = [SimpleNamespace(models=models, solution=self.tensors, state=state, active=active)]
        self.settings: Any = SimpleNamespace(method=method, vectors=[DIRECTIONS], subproblems=list(range(count)))
        self.best = BestSoFar(self.groups)

    def tensors(self) -> dict[str, Tensor]:
        return {"at": self.at.clone()}

    def follow(self, losses: Tensor, start: int = 0) -> None:
        """Go through epochs with these losses, ``[T, K, m]``, of which some are done."""
        for epoch in range(start + 1, len(losses) + 1):
            self.at = torch.full((self.count,), float(epoch))
            now = Scores(losses[epoch - 1], {})
            self.best.consider(epoch, now, self.groups, self.settings, losses[:epoch])

    def kept(self) -> list[int]:
        """The index of the epoch of each model's parameters, which must be the one that is reported."""
        state = self.best.state()
        assert state["tensors"][0]["at"].tolist() == state["epochs"]
        return [epoch - 1 for epoch in state["epochs"]]


@st.composite
def courses(draw: st.DrawFn) -> Tensor:
    """Losses ``[T, 3, 2]`` on a coarse grid, so that ties and dominance are frequent."""
    epochs = draw(st.integers(1, 8))
    values = draw(st.lists(st.integers(1, 6), min_size=6 * epochs, max_size=6 * epochs))
    return torch.tensor(values, dtype=torch.float64).reshape(epochs, 3, 2) / 2.0


def old_pick(method: Method, losses: Tensor, k: int) -> int:
    """The epoch in the region with the least mean, or else nearest to it, whatever dominates it."""
    state = method.init(DIRECTIONS)
    scale = method.scale_of(state)
    means = losses[:, k] * (1.0 if scale is None else scale[k])
    if method.reading == "importance":
        means = means * DIRECTIONS[k]
    violation = [method.violation(state, epoch) for epoch in losses]
    keys = [
        (0, float(mean)) if v is None or v[k] <= FEASIBLE_TOLERANCE else (1, float(v[k]))
        for mean, v in zip(means.sum(-1), violation, strict=True)
    ]
    return keys.index(min(keys))


@settings(max_examples=150, deadline=None)
@given(courses(), st.sampled_from(METHODS))
def test_no_epoch_dominates_the_one_that_is_kept(losses: Tensor, method: Method) -> None:
    """And what is in its region with the least mean is kept wherever no epoch dominates it."""
    run = Run(method)
    run.follow(losses)
    for k, found in enumerate(run.kept()):
        assert not dominates(losses[:, k], losses[found, k]).any()
        wanted = old_pick(method, losses, k)
        if bool(nondominated(losses[:, k])[wanted]):
            assert found == wanted


@settings(max_examples=50, deadline=None)
@given(courses(), st.sampled_from(METHODS), st.data())
def test_a_stored_choice_goes_on_as_one_that_was_not(losses: Tensor, method: Method, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(losses)))
    whole, first, second = Run(method), Run(method), Run(method)
    whole.follow(losses)
    first.follow(losses[:cut])
    second.best.load(first.best.state(), torch.device("cpu"), cut)
    second.follow(losses, start=cut)
    assert second.kept() == whole.kept()
    if cut:
        with pytest.raises(ValueError, match=f"the best epochs are not among the {cut - 1} that are done"):
            second.best.load({**first.best.state(), "epochs": [cut] * 3}, torch.device("cpu"), cut - 1)


def test_an_early_epoch_in_the_region_gives_way_to_one_that_is_better_in_every_task() -> None:
    """The first lies in the region of (1, 0), the second in that of (0.6, 0.8)."""
    early, late = torch.tensor([2.65, 1.00]), torch.tensor([0.44, 0.99])
    method = pm.ParetoMTL()
    assert [bool(method.violation(method.init(DIRECTIONS), row.expand(3, 2))[0] <= 0) for row in (early, late)] == [
        True,
        False,
    ]
    run = Run(method)
    run.follow(torch.stack([early, late])[:, None].expand(-1, 3, -1))
    assert run.kept() == [1, 1, 1]


@settings(max_examples=50, deadline=None)
@given(courses(), st.data())
def test_epochs_that_are_not_finite_are_neither_kept_nor_preferred(losses: Tensor, data: st.DataObject) -> None:
    """They count for nothing, so that the choice is that among the others."""
    bad = data.draw(st.lists(st.booleans(), min_size=len(losses), max_size=len(losses)))
    value = data.draw(st.sampled_from([torch.nan, torch.inf, -torch.inf]))
    broken = losses.clone()
    broken[torch.tensor(bad), :, 1] = value
    good = [epoch for epoch, wrong in enumerate(bad) if not wrong]
    run, alone = Run(pm.ParetoMTL()), Run(pm.ParetoMTL())
    run.follow(torch.cat([losses[:1] + 9.0, broken]))  # a first epoch that is sound, and dominated by all that are
    alone.follow(losses[good])
    assert run.kept() == ([good[k] + 1 for k in alone.kept()] if good else [0, 0, 0])


def test_a_task_without_labels_on_validation_decides_nothing() -> None:
    losses = torch.tensor([[3.0, torch.nan], [1.0, torch.nan], [2.0, torch.nan]], dtype=torch.float64)
    run = Run(pm.MGDA())
    run.follow(losses[:, None].expand(-1, 3, -1))
    assert run.kept() == [1, 1, 1]


@given(losses=courses(), earlier=courses(), number=st.integers(0, len(METHODS) - 1))
def test_what_comes_before_is_forgotten(losses: Tensor, earlier: Tensor, number: int) -> None:
    """A probe's end: the epochs after it are judged as if there were no others, also in a checkpoint."""
    whole, fresh, again = (Run(METHODS[number]) for _ in range(3))
    whole.follow(earlier)
    whole.best.forget(len(earlier))
    assert whole.best.improved() == len(earlier)
    again.best.load(whole.best.state(), torch.device("cpu"), len(earlier))
    fresh.follow(losses)
    for run in (whole, again):
        run.follow(torch.cat([earlier, losses]), len(earlier))
        assert run.kept() == [len(earlier) + epoch for epoch in fresh.kept()]
