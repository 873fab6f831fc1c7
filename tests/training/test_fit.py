from __future__ import annotations

import contextlib
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn

import paretomtl as pm
from paretomtl.core import dominates
from paretomtl.engine.optimizers import ELEMENTWISE
from paretomtl.methods import METHODS, Method

SYNTHETIC = pm.problems.synthetic()


def sgd(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=1.0)


def fit(method: str | Method = "pareto-mtl", preferences: Any = 5, epochs: int = 60, **options: Any) -> pm.Front:
    options = {"optimizer": sgd, "precision": "float64", "device": "cpu", **options}
    return pm.fit(options.pop("problem", SYNTHETIC), method, preferences, epochs=epochs, **options)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.filterwarnings("ignore:most models lie close together")
def test_every_method_trains(name: str) -> None:
    slower = {"optimizer": lambda p: torch.optim.SGD(p, lr=0.2)}  # those whose weights sum to m need it
    front = fit(name, 2 if name == "single-task" else 4, **slower)
    first, last = front.history["losses"][0], front.losses["train"]
    assert front.method == name
    assert last.isfinite().all()
    assert (last.min(-1).values < first.min(-1).values).all()
    assert front.history["weights"].shape == (60, len(front), 2)


@pytest.mark.filterwarnings("ignore:most models lie close together")
def test_a_concave_front_by_each_method() -> None:
    """The paper's figure 2 in one test: linear ends, MGDA middle, Pareto MTL everywhere."""
    truth = SYNTHETIC.truth
    assert truth is not None
    mgda, pareto = (fit(name, 8, epochs=150) for name in ("mgda", "pareto-mtl"))
    half = lambda p: torch.optim.SGD(p, lr=0.5)  # noqa: E731 (fixed weights sum to two)
    linear = fit("random-search", 8, epochs=150, optimizer=half)
    for front in (linear, mgda, pareto):
        assert truth.distance(front.losses["train"]).max() < 1e-3
    ends = linear.losses["train"].min(-1).values
    assert (ends < 0.1).all()
    assert (mgda.losses["train"].min(-1).values > 0.3).all()
    assert pareto.in_region().all()
    assert pareto.hypervolume([1, 1]) > max(linear.hypervolume([1, 1]), mgda.hypervolume([1, 1])) + 0.02


@pytest.mark.parametrize("condition", [1.0, 8.0])
def test_a_convex_front_is_covered_by_both(condition: float) -> None:
    problem = pm.problems.quadratic(4, condition=condition)
    assert problem.truth is not None
    for name in ("linear", "pareto-mtl"):
        slow = lambda p: torch.optim.SGD(p, lr=0.5 / condition)  # noqa: E731
        front = fit(name, 5, epochs=150, problem=problem, optimizer=slow)
        assert problem.truth.distance(front.losses["train"]).max() < 1e-3
        assert len({tuple(row.round(decimals=2).tolist()) for row in front.losses["train"]}) == 5


def test_three_tasks() -> None:
    problem = pm.problems.synthetic(tasks=3)
    assert problem.truth is not None
    front = fit(pm.ParetoMTL(initial_steps=200), pm.preferences.lattice_or_energy(15, 3), epochs=300, problem=problem)
    nearest = (problem.truth.front(2000) @ front.preferences.T).argmax(-1)
    meets_front = torch.bincount(nearest, minlength=15) > 0
    assert torch.equal(front.in_region(), meets_front), "every region that the front meets, and no other"
    assert problem.truth.distance(front.losses["train"])[meets_front].max() < 1e-3
    assert [s == "infeasible" for s in front.status] == (~meets_front).tolist()


def test_models_start_from_seed_and_index() -> None:
    first = [fit(epochs=1, seed=s).history["losses"][0] for s in (0, 0, 1)]
    assert torch.equal(first[0], first[1])
    assert not torch.equal(first[0], first[2])
    assert len({tuple(row.tolist()) for row in first[0]}) == 5, "starts are independent"


def test_some_subproblems_train_as_they_do_among_all() -> None:
    """Regions are those of all vectors, and model k starts from (seed, k) whoever trains beside it."""
    everyone = fit(epochs=100)
    some = fit(epochs=100, only=[3, 1])
    assert some.subproblems == (3, 1)
    torch.testing.assert_close(some.losses["train"], everyone.losses["train"][[3, 1]], rtol=0, atol=1e-9)
    assert torch.equal(some.in_region(), everyone.in_region()[[3, 1]])
    torch.testing.assert_close(some.model(3)(), everyone.model(3)(), rtol=0, atol=1e-9)


def test_several_seeds_in_one_stack_equal_one_after_another() -> None:
    options: dict[str, Any] = {"optimizer": sgd, "precision": "float64", "strategy": "batched"}
    together = pm.fit_seeds(SYNTHETIC, "random-search", 3, epochs=50, seeds=[4, 7], **options)
    for front, seed in zip(together, (4, 7), strict=True):
        alone = fit("random-search", 3, epochs=50, seed=seed)
        assert front.seed == seed
        assert torch.equal(front.preferences, alone.preferences)
        assert front.reference == pytest.approx(alone.reference)
        torch.testing.assert_close(front.losses["train"], alone.losses["train"], rtol=0, atol=1e-9)


def test_each_seed_may_have_vectors_of_its_own() -> None:
    options: dict[str, Any] = {"optimizer": sgd, "precision": "float64", "strategy": "batched", "epochs": 50}
    vectors = torch.stack([pm.preferences.random(4, 2, seed=seed) for seed in (4, 7)])
    together = pm.fit_seeds(SYNTHETIC, "pareto-mtl", vectors, seeds=[4, 7], **options)
    for front, seed, mine in zip(together, (4, 7), vectors, strict=True):
        alone = fit("pareto-mtl", mine, epochs=50, seed=seed)
        assert torch.equal(front.preferences, alone.preferences)
        assert front.status == alone.status
        torch.testing.assert_close(front.losses["train"], alone.losses["train"], rtol=0, atol=1e-9)
    for wrong in (vectors[:1], vectors.expand(3, 2, 4, 2), vectors[..., :1]):
        rule = r"shape \[K, 2\], or \[2, K, 2\], other ones for each seed. Got \["
        with pytest.raises(ValueError, match=rule):
            pm.fit_seeds(SYNTHETIC, "pareto-mtl", wrong, seeds=[4, 7], **options)
    with pytest.raises(ValueError, match=r"shape \[K, 2\]. Got \[2, 4, 2\] instead"):
        pm.fit(SYNTHETIC, "pareto-mtl", vectors, **options)


def test_a_stack_trains_as_a_loop_of_ones_own() -> None:
    """20 steps of every subproblem in float64: batched and alone agree to 1e-6 and better."""
    vectors = pm.preferences.even(4, tasks=2)
    front = fit(pm.ParetoMTL(initial_steps=10), vectors, epochs=20, strategy="batched")
    for k in range(4):
        with torch.random.fork_rng():
            torch.manual_seed(k)
            model = SYNTHETIC.model().double()
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        weigher = pm.ParetoMTL(initial_steps=10).bind(vectors, index=k, total=20)
        for n in range(20):
            optimizer.zero_grad()
            losses = SYNTHETIC.losses(model())
            torch.testing.assert_close(losses.detach(), front.history["losses"][n, k], rtol=0, atol=1e-9)
            weights = pm.backward(losses, weigher, model.parameters())
            torch.testing.assert_close(weights, front.history["weights"][n, k], rtol=0, atol=1e-9)
            optimizer.step()
        torch.testing.assert_close(front.model(k)().detach(), model().detach(), rtol=0, atol=1e-9)


def test_release_leaves_a_snapshot_and_dominating_or_equal_solutions() -> None:
    front = fit(pm.ParetoMTL(initial_steps=20, release_steps=100), 6, epochs=130)
    assert front.snapshot is not None
    assert front.snapshot.snapshot is None
    before, after = front.snapshot.losses["train"], front.losses["train"]
    assert (after <= before + 1e-6).all(), "MGDA lowers every loss, or none"
    assert dominates(after, before).any()
    assert fit().snapshot is None


class Cliff(nn.Module):
    """A model whose first loss turns NaN once its parameter passes 1."""

    def __init__(self) -> None:
        super().__init__()
        self.x = nn.Parameter(torch.rand(1) * 0.5)

    def forward(self) -> Tensor:
        return self.x


def cliff(x: Tensor) -> Tensor:
    return torch.stack([torch.sqrt(1 - x).sum(), x.square().sum()])


class WithGramian(pm.Linear):
    """Fixed weights by the path of the methods that need a Gramian."""

    needs_gramian: ClassVar[bool] = True


@pytest.mark.parametrize("method", [pm.Linear(), WithGramian()], ids=["one backward", "m backwards"])
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_a_subproblem_that_breaks_is_frozen_and_the_others_go_on(method: Method, kind: str) -> None:
    """With weight on the first task alone, x runs over the cliff; with weight on the second, it does not."""
    problem = pm.Problem(Cliff, cliff, ["up", "down"])
    optimizer = lambda p: getattr(torch.optim, kind)(p, lr=0.05)  # noqa: E731
    with pytest.warns(UserWarning, match=r"losses or gradients of models \[0\] were not finite"):
        front = fit(method, 3, epochs=200, problem=problem, optimizer=optimizer)
    assert front.status == ["non-finite", "trained", "trained"]
    assert front.losses["train"].isfinite().all(), "every model is at its last finite step"
    last = front.history["losses"][:, 0][front.history["losses"][:, 0].isfinite().all(-1)][-1]
    torch.testing.assert_close(front.losses["train"][0], last)
    alone = fit(method, 3, epochs=200, problem=problem, optimizer=optimizer, only=[1, 2])
    torch.testing.assert_close(alone.losses["train"], front.losses["train"][1:], rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", [kind.__name__ for kind in ELEMENTWISE])
def test_elementwise_optimizers_are_exact_on_a_stack(name: str) -> None:
    make = lambda p: getattr(torch.optim, name)(p, lr=0.05)  # noqa: E731
    together = fit(epochs=30, optimizer=make, strategy="batched")
    for k in (0, 4):
        alone = fit(epochs=30, optimizer=make, only=[k])
        torch.testing.assert_close(alone.losses["train"][0], together.losses["train"][k], rtol=0, atol=1e-9)


def test_float32_ends_where_float64_does() -> None:
    narrow, wide = fit(epochs=200, precision="float32"), fit(epochs=200)
    assert narrow.losses["train"].dtype == torch.float32
    assert abs(narrow.hypervolume([1, 1]) - wide.hypervolume([1, 1])) < 0.01


class Normed(nn.Module):
    """Batch normalisation, dropout, a buffer of its own and a frozen layer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("x", torch.randn(32, 3) * 5 + 3)
        self.frozen = nn.Linear(3, 8).requires_grad_(False)
        self.norm = nn.BatchNorm1d(8)
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(8, 2)

    def forward(self) -> Tensor:
        return self.head(self.drop(torch.tanh(self.norm(self.frozen(self.x)))))


def normed_losses(y: Tensor) -> Tensor:
    return torch.stack([(y[:, 0] - 1).square().mean(), (y.sum(-1) + 1).square().mean()])


@pytest.mark.parametrize("method", ["pareto-mtl", "linear"])
def test_buffers_dropout_and_frozen_layers(method: str) -> None:
    problem = pm.Problem(Normed, normed_losses, ["a", "b"])
    sgd = lambda p: torch.optim.SGD(p, lr=0.05)  # noqa: E731
    options: dict[str, Any] = {"problem": problem, "optimizer": sgd, "precision": "float32", "strategy": "batched"}
    front, again = (fit(method, 3, **options) for _ in range(2))
    assert torch.equal(front.losses["train"], again.losses["train"]), "the seed decides dropout too"
    for k in range(3):
        model = front.model(k)
        assert not model.training
        torch.testing.assert_close(normed_losses(model()).detach(), front.losses["train"][k])
        assert int(model.norm.num_batches_tracked) == 60
        assert not torch.equal(model.norm.running_mean, torch.zeros(8))
        with torch.random.fork_rng():
            torch.manual_seed(k)
            start = Normed()
        assert torch.equal(model.frozen.weight, start.frozen.weight)
        assert torch.equal(model.x, start.x)
        assert not torch.equal(model.head.weight, start.head.weight)


def test_a_gradient_that_is_not_finite_freezes_its_model() -> None:
    """The square root has slope 1/0 at the start of every model; the loss itself is finite."""
    problem = pm.Problem(SYNTHETIC.model, lambda x: SYNTHETIC.losses(x) + torch.sqrt((0 * x).sum()), ["a", "b"])
    for method in ("mgda", "pareto-mtl", "linear"):
        with (
            pytest.warns(
                UserWarning, match=r"gradients of tasks \['a', 'b'\] are not finite at the start, though their"
            ),
            pytest.warns(UserWarning, match=r"losses or gradients of models \[0, 1, 2\] were not finite"),
        ):
            assert fit(method, 3, epochs=5, problem=problem).status == ["non-finite"] * 3


def test_status_is_that_of_the_reported_losses() -> None:
    for seed in range(5):
        front = fit(preferences=10, epochs=5, seed=seed)
        assert [word != "infeasible" for word in front.status] == front.in_region().tolist()
        assert front.since is not None
        assert all(0 <= step < 5 for step in front.since)
    assert fit("linear", epochs=2).since is None


def test_regions_of_scaled_losses() -> None:
    problem = pm.problems.synthetic(difficulties=[50.0, 1.0])
    front = fit(pm.ParetoMTL(initial_steps=200, scale=(0.02, 1.0)), 5, epochs=300, problem=problem)
    assert front.in_region().all()
    assert not pm.core.in_region(front.preferences, front.losses["train"]).all()


class Fixed(Normed):
    """Its normalisation was put in eval mode by the factory, and keeps its statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.norm.eval()


def test_a_module_in_eval_mode_stays_so() -> None:
    """Also after the evaluation in mid-run that a snapshot takes."""
    problem = pm.Problem(Fixed, normed_losses, ["a", "b"])
    front = fit(pm.ParetoMTL(release_steps=3), 2, epochs=6, problem=problem, precision="float32", optimizer=None)
    assert front.snapshot is not None
    assert torch.equal(front.models.stacked()["norm.running_mean"], torch.zeros(2, 8))


def test_training_leaves_the_global_random_state_alone() -> None:
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    fit(epochs=2).model(0)
    assert torch.equal(torch.rand(1), expected)


def test_negative_losses_are_said_to_be() -> None:
    problem = pm.Problem(SYNTHETIC.model, lambda x: SYNTHETIC.losses(x) - 2.0, ["a", "b"])
    with pytest.warns(UserWarning, match="negative") as said:
        front = fit(problem=problem, epochs=3)
    assert [str(each.message)[:30] for each in said] == [
        "losses are negative at the sta",
        "losses of tasks ['a', 'b'] are",
    ]
    assert front.status == ["negative"] * 5


@pytest.mark.parametrize("method", ["pareto-mtl", "linear"])
def test_losses_that_turn_negative_are_said_to_be_at_the_end(method: str) -> None:
    """Positive at the start, so that nothing was wrong then; only directions suffer from it."""
    problem = pm.Problem(SYNTHETIC.model, lambda x: torch.stack([x.square().sum() + 1.0, x.sum() + 10.0]), ["a", "b"])
    sgd = lambda parameters: torch.optim.SGD(parameters, lr=1.0)  # noqa: E731
    rows = [[1.0, 0.0], [0.0, 1.0]] if method == "pareto-mtl" else [[0.0, 1.0], [1.0, 0.0]]
    expected = r"losses of tasks \['b'\] are negative on 'train' in models \[0\]: .* subtract each loss's lower bound"
    with pytest.warns(UserWarning, match=expected) if method == "pareto-mtl" else contextlib.nullcontext():
        front = fit(method, rows, problem=problem, epochs=20, optimizer=sgd)
    assert float(front.losses["train"][0, 1]) < 0 < float(front.losses["train"][1].min())


@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("method", ["pareto-mtl", "mgda", "uncertainty"])
def test_tasks_that_nothing_changes_are_named(method: str, value: float) -> None:
    """Their gradient is zero, which leaves methods of the min-norm direction where they started."""
    losses = lambda x: torch.stack([SYNTHETIC.losses(x)[0], value + 0.0 * x.sum()])  # noqa: E731
    with pytest.warns(UserWarning, match=r"losses of tasks \['still'\] were the same number in all epochs"):
        pm.fit(pm.Problem(SYNTHETIC.model, losses, ["a", "still"]), method, 3, epochs=5, device="cpu", progress="quiet")


def test_single_task_needs_no_number() -> None:
    front = pm.fit(SYNTHETIC, "single-task", epochs=2, device="cpu")
    assert front.preferences.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert len(pm.fit(SYNTHETIC, epochs=2, device="cpu")) == 5
    with pytest.raises(ValueError, match="'preferences' must be one task each for 'single-task'"):
        fit("single-task", [[0.5, 0.5], [0.0, 1.0]])


def test_cuda_trains_too() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    front = fit(device="cuda", epochs=100)
    assert front.in_region().sum() >= 4


def test_vectors_of_ones_own() -> None:
    front = fit(preferences=[[1.0, 0.0], [3.0, 4.0]])
    assert front.preferences.tolist() == [[1.0, 0.0], [0.6, 0.8]]
    assert fit("linear", [[1.0, 0.0], [3.0, 1.0]]).preferences.tolist() == [[1.0, 0.0], [3.0, 1.0]]
    assert len(fit(preferences=1)) == 1
