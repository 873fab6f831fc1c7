"""Runs with a probe: what auto decides, exact resume, equal strategies, seeds, broken models, parts of a front."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import paretomtl as pm
from _helpers.streams import pretended  # noqa: F401
from paretomtl.methods import Auto, Linear, ParetoMTL, PNorm, Reachable
from paretomtl.training.run.milestones import Milestones

QUIET: dict[str, Any] = {"device": "cpu", "progress": "quiet"}


def adam(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=0.02)


def concave(count: int = 5, **options: Any) -> pm.Front:
    given = {"epochs": 400, "optimizer": adam, **QUIET, **options}
    return pm.fit(pm.problems.synthetic(), options.pop("method", "auto"), count, **{**given, **options})


def regression(**splits: Any) -> pm.Problem:
    """Two targets for one linear model with a bottleneck: they conflict, and the front is convex."""
    g = torch.Generator().manual_seed(0)
    x = torch.randn(64, 6, generator=g)
    y = torch.stack([x[:, 0] + 0.1 * x[:, 1], -x[:, 0] + x[:, 2]], -1)

    def model() -> nn.Module:
        return nn.Sequential(nn.Linear(6, 1), nn.Linear(1, 2))

    def losses(outputs: Tensor, targets: Tensor) -> Tensor:
        return (outputs - targets).square().mean(0)

    return pm.Problem(model, losses, ["a", "b"], train=(x, y), **splits)


def same(one: pm.Front, other: pm.Front) -> bool:
    weights, others = one.models.stacked(), other.models.stacked()
    return all(torch.equal(tensor, others[name]) for name, tensor in weights.items()) and torch.equal(
        one.preferences, other.preferences
    )


@pytest.mark.filterwarnings("ignore:most models lie close together")
def test_a_concave_front_is_filled_along_rays() -> None:
    problem = pm.problems.synthetic()
    front = concave(10)
    assert problem.truth is not None
    assert front.reading == "direction"
    assert front.region_hits() == 10
    assert float(problem.truth.distance(front.losses["train"]).max()) < 0.01
    assert front.hypervolume([1.0, 1.0]) > 0.98 * 0.2998
    assert "left most of the front empty" in front.decisions[0]
    assert front.measured["p"].tolist() == [6.0] * 10
    linear = pm.fit(problem, "linear", 10, epochs=400, optimizer=adam, **QUIET)
    assert linear.hypervolume([1.0, 1.0]) < 0.1


@pytest.mark.parametrize("difficulty", [2.0, 10.0, 50.0, 1000.0])
def test_units_do_not_matter_on_a_concave_front(difficulty: float) -> None:
    problem = pm.problems.synthetic(difficulties=[difficulty, 1.0])
    front = pm.fit(problem, preferences=10, epochs=600, optimizer=adam, **QUIET)
    share = front.hypervolume([difficulty, 1.0]) / difficulty
    assert share > 0.98 * 0.2998
    assert front.region_hits() == 10


@pytest.mark.filterwarnings("ignore:something is off in this front")
def test_on_a_convex_front_auto_is_interior_linear_scalarization_to_the_bit() -> None:
    options: dict[str, Any] = {"epochs": 30, "batch_size": 16, "strategy": "sequential", **QUIET}
    auto = pm.fit(regression(), preferences=5, **options)
    linear = pm.fit(regression(), Linear(scale="auto"), 5, **options)
    assert torch.equal(auto.losses["train"], linear.losses["train"])
    assert auto.reading == "importance"
    assert torch.equal(auto.preferences, linear.preferences)
    torch.testing.assert_close(auto.measured["importances"], 2 * linear.preferences)
    assert "keep models apart" in auto.decisions[0]
    assert set(auto.status) == {"trained"}, "fixed weights hold no model in a region"
    assert auto.measured["p"].tolist() == [1.0] * 5


@pytest.mark.filterwarnings("ignore")
def test_a_task_that_has_no_losses_has_no_rays() -> None:
    """Its ratio to others would be zero, which no ray may be."""
    made = regression()
    x, y = made.train
    none = torch.cat([y, torch.full((len(y), 1), torch.nan)], -1)

    def losses(outputs: Tensor, targets: Tensor) -> list[Tensor]:
        known = ~targets.isnan()
        return [(outputs[known[:, i], i % 2] - targets[known[:, i], i]).square().mean() for i in range(3)]

    problem = pm.Problem(made.model, losses, ["a", "b", "c"], train=(x, none))
    front = pm.fit(problem, preferences=3, epochs=12, batch_size=16, **QUIET)
    assert front.decisions == ("A task had no losses in the probe, so the interior weights stayed.",)
    assert front.reading == "importance"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", [Auto(), Reachable(PNorm())], ids=str)
def test_a_loss_that_is_zero_all_the_time_ends_no_run(method: Any) -> None:
    """A penalty that nothing violates: a ray may have no zero."""
    made = regression()

    def losses(outputs: Tensor, targets: Tensor) -> Tensor:
        first, second = (outputs - targets).square().mean(0)
        return torch.stack([first, second, torch.relu(outputs.square().mean() - 1e6)])

    problem = pm.Problem(made.model, losses, ["a", "b", "limit"], train=made.train)
    front = pm.fit(problem, method, 5, epochs=12, batch_size=16, **QUIET)
    assert front.complete
    assert bool((front.losses["train"][:, 2] == 0).all())
    assert bool((front.preferences > 0).all())


@pytest.mark.parametrize("method", [Auto(), Reachable(ParetoMTL()), Reachable(PNorm(p="strict"))], ids=str)
@pytest.mark.parametrize("stop", [1, 2, 3, 6])
def test_a_run_that_stops_in_its_probe_or_later_resumes_to_the_same_bits(
    method: Any, stop: int, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"epochs": 8, "batch_size": 16, "optimizer": adam, "strategy": "batched", **QUIET}
    straight = pm.fit(regression(), method, 4, **options)
    interrupt = [lambda report: report.epoch == stop]
    first = pm.fit(regression(), method, 4, out=tmp_path, callbacks=interrupt, **options)
    resumed = pm.fit(regression(), method, 4, out=tmp_path, resume=True, **options)
    assert not first.complete
    found = stop > 2 and method.name != "auto"  # the probe ends before the first step of the third epoch
    assert first.reading == ("direction" if found else "importance")
    assert same(resumed, straight)
    assert resumed.decisions == straight.decisions


@pytest.mark.parametrize("method", [Auto(), Reachable(ParetoMTL())], ids=str)
@pytest.mark.filterwarnings("ignore:most models lie close together")
def test_strategies_agree(method: Any) -> None:
    options: dict[str, Any] = {"epochs": 60, "optimizer": adam, "precision": "float64", **QUIET}
    problem = pm.problems.synthetic(dimension=4)
    batched, sequential = (pm.fit(problem, method, 4, strategy=s, **options) for s in ("batched", "sequential"))
    torch.testing.assert_close(batched.losses["train"], sequential.losses["train"], rtol=0, atol=1e-8)
    torch.testing.assert_close(batched.preferences, sequential.preferences, rtol=0, atol=1e-8)


@pytest.mark.filterwarnings("ignore:most models lie close together")
def test_each_seed_has_its_own_probe() -> None:
    options: dict[str, Any] = {"epochs": 100, "optimizer": adam, "strategy": "batched", **QUIET}
    problem = pm.problems.synthetic(dimension=5)
    together = pm.fit_seeds(problem, "auto", 4, seeds=[3, 8], **options)
    alone = [pm.fit(problem, "auto", 4, seed=seed, **options) for seed in (3, 8)]
    assert not torch.equal(together[0].preferences, together[1].preferences)
    for one, other in zip(together, alone, strict=True):
        torch.testing.assert_close(one.preferences, other.preferences, rtol=0, atol=1e-5)


@pytest.mark.study
def test_pareto_mtl_with_reachable_preferences_is_in_its_regions() -> None:
    front = pm.fit(
        pm.problems.synthetic(),
        "pareto-mtl",
        "reachable:5",
        epochs=800,
        optimizer=lambda p: torch.optim.SGD(p, lr=0.3),
        **QUIET,
    )
    assert front.method == "pareto-mtl"
    assert front.reading == "direction"
    assert front.region_hits() == 5
    assert front.decisions[0].startswith("Rays, with pareto-mtl, because")


def test_a_run_that_ends_in_its_probe_has_importances() -> None:
    stop = [lambda report: report.epoch == 2]
    front = pm.fit(regression(), Auto(probe=0.9), 3, epochs=10, batch_size=16, callbacks=stop, **QUIET)
    assert front.reading == "importance"
    assert "ended in its probe" in front.decisions[0]


@pytest.mark.filterwarnings("ignore:tasks 'a' and 'b' have the same loss and gradients")
def test_tasks_that_are_copies_keep_their_weights_and_say_so() -> None:
    x = torch.randn(32, 3, generator=torch.Generator().manual_seed(0))

    def losses(outputs: Tensor, targets: Tensor) -> Tensor:
        return (outputs - targets).square().mean().expand(2)

    problem = pm.Problem(lambda: nn.Linear(3, 1), losses, ["a", "b"], train=(x, x.sum(-1, keepdim=True)))
    front = pm.fit(problem, preferences=4, epochs=8, batch_size=8, **QUIET)
    assert front.complete
    assert front.reading == "importance"
    assert "hardly conflict" in front.decisions[0]


def test_keeping_the_best_epoch_forgets_those_of_the_probe() -> None:
    """On targets of the opposite sign, the first epoch is the best of all; the probe ends before the fourth."""
    x, y = regression().train
    front = pm.fit(regression(val=(x, -3 * y)), preferences=4, epochs=12, batch_size=16, keep="best", **QUIET)
    assert min(front.epochs) > 3


class Point(nn.Module):
    """One number, which begins near 0."""

    def __init__(self) -> None:
        super().__init__()
        self.x = nn.Parameter(torch.rand(1) * 1e-3)

    def forward(self, _: Any = None) -> Tensor:
        return self.x[0]


def test_a_loss_that_begins_at_its_best_gives_no_unit() -> None:
    """A penalty at 0, and a target that is far from there: divided by its first value, the penalty would win always."""

    def losses(model: nn.Module, _: Any) -> Tensor:
        x = model()
        return torch.stack([(x - 1.0) ** 2 + 0.01, torch.sqrt(x**2 + 1e-4)])

    problem = pm.Problem(Point, losses, ["target", "penalty"])
    options: dict[str, Any] = {"epochs": 400, "optimizer": lambda p: torch.optim.SGD(p, lr=0.01), **QUIET}
    options |= {"strategy": "batched"}
    front = pm.fit(problem, preferences=5, **options)
    assert front.reading == "importance"
    assert "begins near its best" in front.decisions[0]
    assert front.scale is not None
    assert bool((front.scale == 1.0).all())
    linear = pm.fit(problem, Linear(scale=(1.0, 1.0)), 5, **options)
    torch.testing.assert_close(front.losses["train"], linear.losses["train"], rtol=0, atol=5e-3)


def test_a_hundred_models_settle() -> None:
    """On the front, and in the order of their rays; regions under a degree wide would need a larger p."""
    front = concave(100, epochs=300, strategy="batched")
    truth = pm.problems.synthetic().truth
    assert truth is not None
    assert front.reading == "direction"
    assert float(truth.distance(front.losses["train"]).max()) < 0.01
    assert bool((front.losses["train"][:, 0].diff() > 0).all())


def test_a_part_of_a_front_is_trained_with_interior_weights() -> None:
    front = pm.fit(pm.problems.quadratic(), preferences=4, only=[1, 2], epochs=20, **QUIET)
    assert front.method == "linear"
    assert front.reading == "importance"
    with pytest.raises(ValueError, match="needs all rows of a front together: train it by fit"):
        Auto().bind(Auto().spread(3, 2), 0)


@pytest.mark.filterwarnings("ignore:most models lie close together")
def test_a_front_of_auto_is_stored_with_its_decisions(tmp_path: Path) -> None:
    front = concave(4, epochs=60)
    front.save(tmp_path / "front")
    loaded = pm.Front.load(tmp_path / "front")
    assert loaded.decisions == front.decisions
    assert torch.equal(loaded.preferences, front.preferences)
    assert set(loaded.measured) >= {"importances", "probe", "crowding"}
    assert "decision: Fixed weights, because" in str(loaded)


@pytest.mark.parametrize(
    ("preferences", "method", "rule"),
    [
        ("reached", "pareto-mtl", r"'preferences' must be a number, rows of numbers, 'reachable'"),
        ("reachable:", "pareto-mtl", r"Got 'reachable:' instead"),
        ("reachable:-3", "pareto-mtl", r"Got 'reachable:-3' instead"),
        ("reachable:0", "pareto-mtl", r"'preferences' must be a whole number of at least 1"),
        ("reachable", "mgda", r"for 'mgda', which asks for no direction"),
    ],
)
def test_bad_words_for_preferences_are_refused(preferences: str, method: str, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        pm.fit(pm.problems.quadratic(), method, preferences, epochs=5, **QUIET)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"probe": 0.0}, "'probe' must be over 0 and under 1"),
        ({"probe": 1.0}, "'probe' must be over 0 and under 1"),
        ({"probe": float("nan")}, "'probe' must be over 0"),
        ({"least": 0.6}, "'least' must be at least 0"),
        ({"method": Linear()}, "'method' must be one that reads rows as directions"),
        ({"method": ParetoMTL(scale="first")}, "'scale' must be given to 'Reachable'"),
    ],
)
def test_bad_options_of_a_probe_are_refused(options: dict[str, Any], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        Reachable(**options)


@pytest.mark.parametrize(("total", "epochs", "ends"), [(100, 10, (25, 2, 5)), (0, 10, (7, 3, 0)), (1, 1, (1, 1, 0))])
def test_a_probe_ends_once_at_a_place_that_follows_from_the_plan(
    total: int, epochs: int, ends: tuple[int, int, int]
) -> None:
    end = Milestones.of(Auto(), None, total, epochs).probe_end
    assert end is not None
    assert end.is_before(*ends)
    assert not end.is_before(ends[0] + 1, ends[1], ends[2] + 1)
    assert Milestones.of(Linear(), None, total, epochs).probe_end is None


@pytest.mark.usefixtures("pretended")
@pytest.mark.parametrize("method", [Auto(), Reachable(ParetoMTL()), Reachable(PNorm())], ids=str)
def test_a_captured_step_reads_what_was_settled(method: Any) -> None:
    """With fake streams: steps that write in place, number themselves on the device, and are never recompiled."""
    options: dict[str, Any] = {"epochs": 8, "batch_size": 16, "optimizer": adam, "precision": "float64", **QUIET}
    captured, launched = (pm.fit(regression(), method, 4, strategy=s, **options) for s in ("graphed", "batched"))
    assert captured.strategy.startswith("graphed")
    torch.testing.assert_close(captured.losses["train"], launched.losses["train"], rtol=0, atol=1e-9)
    torch.testing.assert_close(captured.preferences, launched.preferences, rtol=0, atol=1e-9)
    assert captured.reading == ("importance" if method.name == "auto" else "direction")


def test_a_method_with_required_options_may_follow_a_probe() -> None:
    pytest.importorskip("torchjd")
    front = pm.fit(
        pm.problems.quadratic(), pm.methods.TorchJD("PBI", {"theta": 5.0}), "reachable:4", epochs=60, **QUIET
    )
    assert front.complete
    assert "TorchJD" in front.decisions[0]
