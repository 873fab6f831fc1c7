"""What the baselines promise beyond the battery."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest
import torch

import paretomtl as pm
from paretomtl.compare import compare
from paretomtl.methods import (
    METHODS,
    GradNorm,
    Linear,
    Method,
    RandomSearch,
    SingleTask,
    Step,
    TorchJD,
    Uncertainty,
    describe,
    resolve_method,
)
from paretomtl.methods import MGDA as Mgda
from paretomtl.methods.lookup import option_names
from paretomtl.methods.registry import is_separate

ONE = torch.ones(1, 2)


def test_names_resolve_to_methods_of_that_name() -> None:
    for name in METHODS:
        assert resolve_method(name).name == name
    assert resolve_method("torchjd:UPGrad").name == "torchjd:UPGrad"
    method = Mgda(rescale=True)
    assert resolve_method(method) is method
    with pytest.raises(
        ValueError,
        match=r"'method' must be one of auto, pareto-mtl, .*, torchjd:NAME, package.* Got 'adam'",
    ):
        resolve_method("adam")


@pytest.mark.parametrize("method", [Linear(), Linear(layout="corners"), RandomSearch(), SingleTask()], ids=repr)
@pytest.mark.parametrize("tasks", [2, 3, 5])
def test_fixed_weights_sum_to_the_number_of_tasks(method: Method, tasks: int) -> None:
    weights, _ = method.weigh(Step(torch.ones(tasks, tasks)), method.init(method.spread(tasks, tasks, seed=1)))
    torch.testing.assert_close(weights.sum(-1), torch.full((tasks,), float(tasks)))
    assert (weights >= 0).all()


@pytest.mark.parametrize("tasks", [2, 3, 5, 12])
@pytest.mark.parametrize("count", [1, 2, 5, 15, 25])
def test_linear_trains_every_task_in_every_row(tasks: int, count: int) -> None:
    """A weight of zero never trains its task; those of the paper's grid are zero at the corners."""
    weights = {}
    for layout in ("interior", "corners"):
        method = Linear(layout=layout)
        weights[layout], _ = method.weigh(Step(torch.ones(count, tasks)), method.init(method.spread(count, tasks)))
    assert weights["interior"].min() >= tasks * min(0.05, 0.5 / tasks) - 1e-6
    if count > tasks:
        assert (weights["corners"] == 0).any()


def test_the_share_of_a_task_is_an_option() -> None:
    assert Linear(least=0.2).spread(3, 2)[:, 0].tolist() == [0.8, 0.5, 0.2]
    assert torch.equal(Linear(least=0.1).spread(9, 3), pm.preferences.interior(9, 3, least=0.1))
    with pytest.raises(ValueError, match=r"'least' must be at least 0 and under 1 / tasks \(0.3333\). Got 0.4"):
        Linear(least=0.4).spread(5, 3)
    for least in (-0.1, 0.5, float("nan"), "0.1", True):
        with pytest.raises(ValueError, match=r"'least' must be at least 0 and under 1 / tasks. Got "):
            Linear(least=least)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"'least' must be None with layout='corners'.* Got 0.1"):
        Linear(layout="corners", least=0.1)
    with pytest.raises(ValueError, match=r"'layout' must be one of interior, corners. Got 'even'"):
        Linear(layout="even")  # type: ignore[arg-type]


def test_the_layout_is_part_of_what_rows_are_recognised_by() -> None:
    """Rows from before there was a choice are those of the corners; nothing else has this description."""
    methods = [Linear(), Linear(least=0.1), Linear(layout="corners"), Linear(scale="auto"), RandomSearch()]
    assert [describe(method) for method in methods] == [
        "Linear(layout='interior')",
        "Linear(layout='interior', least=0.1)",
        "Linear()",
        "Linear(scale='auto', layout='interior')",
        "RandomSearch()",
    ]
    assert option_names("linear") == ["scale", "layout", "least"]
    assert option_names("random-search") == option_names("single-task") == ["scale"]


def test_rows_of_the_corners_are_not_taken_for_others(tmp_path: Path) -> None:
    options = {"preferences": 3, "epochs": 1, "device": "cpu", "progress": "quiet", "folder": tmp_path}
    compare(pm.problems.quadratic(), [Linear(layout="corners")], 1, **options)
    with pytest.raises(ValueError, match=r"method_in_words 'Linear\(\)', and not \"Linear\(layout='interior'\)\""):
        compare(pm.problems.quadratic(), ["linear"], 1, **options)


def test_the_grid_with_corners_is_the_papers() -> None:
    grid = Linear(layout="corners")
    assert grid.spread(5, 2)[:, 0].tolist() == [1.0, 0.75, 0.5, 0.25, 0.0]
    assert grid.spread(1, 2).tolist() == [[0.5, 0.5]]
    torch.testing.assert_close(grid.spread(25, 3).sum(-1), torch.ones(25, dtype=torch.float64))
    for tasks in (2, 3, 4):
        rows = grid.spread(tasks + 2, tasks)
        assert all((rows == corner).all(-1).any() for corner in torch.eye(tasks, dtype=torch.float64))


def test_single_task_has_one_row_for_each_task() -> None:
    assert torch.equal(SingleTask().spread(3, 3), torch.eye(3, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"the number of tasks \(3\) for 'single-task'. Got 5"):
        SingleTask().spread(5, 3)


def test_random_search_is_uniform_on_the_simplex() -> None:
    """For two tasks the share is uniform on [0, 1]: mean ½, variance 1/12."""
    share = RandomSearch().spread(20_000, 2, seed=0)[:, 0]
    assert abs(share.mean() - 0.5) < 0.01
    assert abs(share.var() - 1 / 12) < 0.003
    assert not torch.equal(RandomSearch().spread(3, 2, seed=0), RandomSearch().spread(3, 2, seed=1))


@pytest.mark.parametrize("rows", [[[1.0, -1.0]], [[0.0, 0.0]], [[float("nan"), 1.0]]])
def test_bad_importances_are_named(rows: list[list[float]]) -> None:
    with pytest.raises(ValueError, match=r"'preferences' must be finite, non-negative and not all zero.* in row 0"):
        Linear().init(torch.tensor(rows))


def test_gradnorm_balances_the_gradient_norms() -> None:
    """Constant gradients, equal training rates: weighted norms become equal, in the mean over the last steps."""
    method = GradNorm(asymmetry=1.5, learning_rate=0.01)
    state = method.init(ONE)
    step = Step(torch.tensor([[2.0, 2.0]]), torch.tensor([[[9.0, 0.0], [0.0, 1.0]]]))
    trace = []
    for _ in range(600):
        weights, state = method.weigh(step, state)
        trace.append(weights[0])
    torch.testing.assert_close(torch.stack(trace[-100:]).mean(0), torch.tensor([0.5, 1.5]), rtol=0, atol=0.02)


def test_gradnorm_pulls_the_slower_task() -> None:
    method = GradNorm(learning_rate=0.05)
    state = method.init(ONE)
    equal = torch.eye(2)[None]
    _, state = method.weigh(Step(torch.tensor([[1.0, 1.0]]), equal), state)
    weights, _ = method.weigh(Step(torch.tensor([[1.0, 0.1]]), equal), state)
    assert weights[0, 0] > weights[0, 1], "task 1 has hardly learned"


def test_gradnorm_does_not_depend_on_the_scale_of_the_losses() -> None:
    traces = []
    for scale in (1.0, 1e6):
        method, state, trace = GradNorm(), GradNorm().init(ONE), []
        for n in range(20):
            gramian = torch.tensor([[[4.0, 0.5], [0.5, 1.0]]], dtype=torch.float64) * scale**2
            losses = torch.tensor([[1.0, 2.0]], dtype=torch.float64) * scale / (n + 1)
            weights, state = method.weigh(Step(losses, gramian), state)
            trace.append(weights)
        traces.append(torch.stack(trace))
    torch.testing.assert_close(traces[0], traces[1], rtol=0, atol=1e-9)


@pytest.mark.parametrize(("kind", "factor"), [("regression", 1.0), ("classification", 2.0)])
def test_uncertainty_ends_at_the_stationary_log_variance(kind: str, factor: float) -> None:
    """The slope vanishes where e^s = L (regression) or 2L (classification)."""
    method = Uncertainty(kinds=kind, learning_rate=0.2, normalize=False)  # type: ignore[arg-type]
    state = method.init(ONE)
    losses = torch.tensor([[0.5, 3.0]], dtype=torch.float64)
    for _ in range(500):
        _, state = method.weigh(Step(losses), state)
    torch.testing.assert_close(state["log_variance"].exp(), factor * losses, rtol=1e-6, atol=0)


def test_uncertainty_follows_autograd() -> None:
    """The closed-form step is the gradient step on the loss of Kendall et al."""
    s = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    losses = torch.tensor([0.7, 2.0], dtype=torch.float64)
    method = Uncertainty(kinds=("classification", "regression"), learning_rate=0.1, normalize=False)
    state = method.init(ONE)
    for _ in range(5):
        total = (torch.tensor([1.0, 0.5]) * torch.exp(-s) * losses + 0.5 * s).sum()
        (slope,) = torch.autograd.grad(total, s)
        s = (s - 0.1 * slope).detach().requires_grad_()
        _, state = method.weigh(Step(losses[None]), state)
    torch.testing.assert_close(state["log_variance"][0], s.detach(), rtol=0, atol=1e-12)


def test_mgda_weights_sum_to_one_or_to_the_number_of_tasks() -> None:
    step = Step(torch.ones(1, 3), torch.diag_embed(torch.tensor([[1.0, 2.0, 3.0]])))
    for rescale, total in ((False, 1.0), (True, 3.0)):
        method = Mgda(rescale=rescale)
        weights, _ = method.weigh(step, method.init(torch.ones(1, 3)))
        torch.testing.assert_close(weights.sum(), torch.tensor(total))


@pytest.mark.parametrize(("method", "name"), [(GradNorm(), "first"), (Uncertainty(), "log_variance")])
def test_an_absent_task_is_not_learned_from(method: GradNorm | Uncertainty, name: str) -> None:
    state = method.init(torch.ones(1, 2))
    step = Step(torch.tensor([[3.0, torch.nan]]), torch.eye(2)[None], torch.tensor([[True, False]]))
    _, after = method.weigh(step, state)
    assert after[name][0, 1] == state[name][0, 1]
    assert after[name][0, 0] != state[name][0, 0]


def test_gradnorm_keeps_the_share_of_an_absent_task() -> None:
    """Of three tasks the last is absent: the other two trade weight, and its share stays a third."""
    method = GradNorm(learning_rate=0.1)
    gramian = torch.diag_embed(torch.tensor([[4.0, 1.0, torch.nan]]))
    step = Step(torch.tensor([[1.0, 1.0, torch.nan]]), gramian, torch.tensor([[True, True, False]]))
    weights, after = method.weigh(step, method.init(torch.ones(1, 3)))
    assert weights[0, 2] == 0
    assert after["weights"][0, 0] < 1 < after["weights"][0, 1]
    moved = torch.tensor([1 - 0.1 * 4 / 3, 1 + 0.1 * 2 / 3, 1.0], dtype=torch.float64)
    torch.testing.assert_close(after["weights"][0], moved * 3 / moved.sum())


@pytest.mark.parametrize("losses", [torch.ones(3, 1), torch.ones(3, 4)])
@pytest.mark.parametrize("method", [Linear(), GradNorm(), Uncertainty(), resolve_method("pareto-mtl")], ids=repr)
def test_a_wrong_number_of_tasks_is_named(method: Linear, losses: torch.Tensor) -> None:
    state = method.init(method.spread(3, 3))
    gramian = torch.eye(losses.shape[1]).expand(3, -1, -1)
    with pytest.raises(ValueError, match=r"'losses.*' must"):
        method.weigh(Step(losses, gramian), state)


def test_what_a_scalarizer_learns_takes_its_step() -> None:
    """TorchJD's uncertainty weighting: the stationary log-variance is log L."""
    method = TorchJD("UW", learning_rate=0.5)
    state = method.init(ONE)
    losses = torch.tensor([[0.5, 3.0]], dtype=torch.float64)
    for _ in range(200):
        weights, state = method.weigh(Step(losses), state)
    torch.testing.assert_close(weights, 0.5 / losses, rtol=1e-4, atol=0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Uncertainty(kinds="ranking"), "'kinds' must be"),
        (lambda: Uncertainty(kinds=("regression",)).init(ONE), r"'kinds' must have one entry per task \(2\). Got 1"),
        (lambda: Uncertainty(learning_rate=0.0), "'learning_rate' must be positive. Got 0.0"),
        (lambda: GradNorm(learning_rate=-1.0), "'learning_rate' must be positive. Got -1.0"),
        (lambda: TorchJD("FAMO"), "FAMO needs the losses after each update. Got 'FAMO'"),
        (lambda: TorchJD("Unknown"), "'source' must name a weighting or scalarizer of TorchJD. Got 'Unknown'"),
        (lambda: TorchJD("CAGrad"), "'options' must set c: CAGrad has no default for it"),
    ],
)
def test_bad_options_are_named(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(("name", "options"), [("UPGrad", {}), ("CAGrad", {"c": 0.4}), ("PCGrad", {}), ("MGDA", {})])
def test_torchjd_weights_are_those_of_torchjd(name: str, options: dict[str, float]) -> None:
    import torchjd.aggregation

    g = torch.Generator().manual_seed(0)
    jacobian = torch.randn(4, 2, 6, generator=g, dtype=torch.float64)  # two tasks: PCGrad is deterministic
    method = TorchJD(name, options)
    rows = torch.full((4, 2), 0.5, dtype=torch.float64)
    weights, _ = method.weigh(Step(torch.ones(4, 2, dtype=torch.float64), jacobian @ jacobian.mT), method.init(rows))
    theirs = getattr(torchjd.aggregation, name)(**options)
    for k in range(4):
        torch.testing.assert_close(weights[k] @ jacobian[k], theirs(jacobian[k]), rtol=1e-5, atol=1e-6)


def test_torchjd_scalarizers_are_weighed_by_their_slope() -> None:
    method = TorchJD("GeometricMean")
    losses = torch.tensor([[1.0, 4.0]], dtype=torch.float64)
    weights, _ = method.weigh(Step(losses), method.init(ONE))
    torch.testing.assert_close(weights, torch.tensor([[1.0, 0.25]], dtype=torch.float64))


def test_torchjd_memory_travels_in_the_state() -> None:
    """A stateful weighting gives the same from a stored state as from one that never stopped."""
    import torchjd.aggregation

    gramians = torch.stack([torch.tensor([[1.0, c], [c, 2.0]], dtype=torch.float64) for c in (-0.9, 0.5, 0.2, -0.3)])
    theirs = torchjd.aggregation.GradVacWeighting()
    method = TorchJD("GradVac")
    state = method.init(ONE)
    for gramian in gramians:
        weights, state = method.weigh(Step(ONE.double(), gramian[None]), state)
        state = {name: tensor.clone() for name, tensor in state.items()}
        torch.testing.assert_close(weights[0], theirs(gramian))
    assert "_phi_t" in state


def test_torchjd_starts_afresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first step is that of a module never called before, whatever its memory starts with."""
    import torchjd.aggregation

    class CountingWeighting(torchjd.aggregation.Weighting):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", None)

        def forward(self, gramian: torch.Tensor) -> torch.Tensor:
            self.count = torch.tensor(5.0) if self.count is None else self.count + 1
            return self.count.expand(len(gramian))

    monkeypatch.setattr(torchjd.aggregation, "CountingWeighting", CountingWeighting, raising=False)
    method = TorchJD("Counting")
    state = method.init(ONE)
    for expected in (5.0, 6.0, 7.0):
        weights, state = method.weigh(Step(ONE, torch.eye(2)[None]), state)
        assert weights.tolist() == [[expected, expected]]


def test_torchjd_rows_are_importances_where_it_takes_them() -> None:
    assert TorchJD("UPGrad").reading == "importance"
    assert TorchJD("UPGrad", {"pref_vector": torch.ones(2)}).reading == "start"
    assert TorchJD("PCGrad").reading == "start"
    method = TorchJD("STCH", {"mu": 0.01})
    weights, _ = method.weigh(Step(torch.ones(2, 2)), method.init(torch.eye(2)))
    torch.testing.assert_close(weights, torch.eye(2), rtol=0, atol=1e-6)


def test_separate_networks_are_declared_by_the_method() -> None:
    assert [name for name in METHODS if is_separate(name)] == ["single-task"]
    assert not is_separate("a custom method")


def test_a_method_derived_from_separate_networks_keeps_one_model_for_each_task() -> None:
    class Alone(SingleTask):
        name: ClassVar[str] = "alone"

    problem = pm.problems.quadratic()
    _, fronts = compare(problem, [Alone(), "linear"], 1, preferences=4, epochs=2, device="cpu", progress="quiet")
    assert [len(fronts[name]) for name in ("alone", "linear")] == [len(problem.tasks), 4]
    with pytest.raises(ValueError, match=r"'preferences' must be the number of tasks \(2\) for 'alone'. Got 3"):
        Alone().spread(3, 2)
