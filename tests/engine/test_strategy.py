from __future__ import annotations

import functools
from collections import OrderedDict
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import paretomtl as pm
from _helpers.networks import MLP, Dropped, Normed, accuracy, classes, fit, lenet_problem, problem
from paretomtl.engine import strategy as plan
from paretomtl.methods import METHODS


@pytest.mark.parametrize("method", [*METHODS, "torchjd:UPGrad"])
@pytest.mark.parametrize("network", ["lenet", MLP, Normed])
def test_both_strategies_take_the_same_steps(network: Any, method: str) -> None:
    """20 steps in float64 agree to 1e-6, in losses, weights, parameters and buffers."""
    of = lenet_problem() if network == "lenet" else problem(network)
    count = 2 if method == "single-task" else 3
    options: dict[str, Any] = {"epochs": 20 if network == "lenet" else 7, "precision": "float64"}
    one, both = (fit(of, method, count, strategy=name, **options) for name in ("sequential", "batched"))
    assert one.strategy == "sequential: asked for"
    assert both.strategy == "batched: asked for"
    for name in ("losses", "weights"):
        torch.testing.assert_close(one.history[name], both.history[name], rtol=0, atol=1e-6)
    for name, tensor in one.models.stacked().items():
        torch.testing.assert_close(tensor, both.models.stacked()[name], rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "scope", [{"shared": ["trunk"]}, {"shared": lambda n: "trunk" in n}, {"representation": "trunk"}]
)
@pytest.mark.parametrize("method", ["pareto-mtl", "mgda", "linear"])
def test_both_strategies_with_heads_apart(scope: dict[str, Any], method: str) -> None:
    of = problem(Normed, **scope)
    one, both = (fit(of, method, strategy=name, precision="float64") for name in ("sequential", "batched"))
    for name, tensor in one.models.stacked().items():
        torch.testing.assert_close(tensor, both.models.stacked()[name], rtol=0, atol=1e-6)


@pytest.mark.parametrize("options", [{"clip_norm": 0.05}, {"keep": "best"}, {"only": [2, 0]}, {"schedule": "step"}])
def test_both_strategies_with_options(options: dict[str, Any]) -> None:
    of = problem(val=classes(seed=1))
    decay = lambda optimizer: torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)  # noqa: E731
    adamw = lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1)  # noqa: E731
    one, both = (
        fit(of, strategy=name, precision="float64", scheduler=decay, optimizer=adamw, **options)
        for name in ("sequential", "batched")
    )
    assert one.epochs == both.epochs
    for name, tensor in one.models.stacked().items():
        torch.testing.assert_close(tensor, both.models.stacked()[name], rtol=0, atol=1e-6)


@pytest.mark.study
def test_whole_runs_agree_within_the_spread_of_seeds() -> None:
    """In float32 rounding grows over a run; hypervolumes still differ less than those of other seeds do."""
    volumes = {
        name: torch.tensor([fit(strategy=name, seed=s, epochs=60).hypervolume([1.2, 1.2]) for s in range(4)])
        for name in ("sequential", "batched")
    }
    assert abs(volumes["sequential"].mean() - volumes["batched"].mean()) < volumes["sequential"].std()


def test_auto_says_what_it_measured() -> None:
    front = fit(strategy="auto")
    taken, figures = front.strategy.split(": ")
    assert taken in ("sequential", "batched")
    assert "ms a step as a stack" in figures
    assert fit(preferences=1).strategy == "sequential: there is one model"


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.LSTM(1, 5, batch_first=True)
        self.head = nn.Linear(5, 6)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.head(self.cells(x[..., None])[0][:, -1]).split(3, -1))


class Branching(MLP):
    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        hidden = self.trunk(x)
        hidden = hidden if float(hidden.detach().sum()) > 0 else -hidden
        return tuple(head(hidden) for head in self.heads)


class Counting(MLP):
    """Its buffer is assigned anew, which a stack never sees."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        if self.training:
            self.calls = self.calls + 1
        return super().forward(x)


class Tied(nn.Module):
    """The two heads share their weights."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 3)
        self.second = nn.Linear(6, 3)
        self.second.weight = self.first.weight

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return self.first(x), self.second(x.tanh())


class Suspicious(nn.Module):
    """Gives other outputs where its weights are not parameters, as in a stack."""

    def __init__(self) -> None:
        super().__init__()
        self.net = MLP()

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        factor = 1.0 if isinstance(self.net.trunk[0].weight, nn.Parameter) else 1.1
        return tuple(factor * y for y in self.net(x))


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (Recurrent, "torch cannot stack the operation 'lstm'"),
        (Branching, "ask a tensor for its value (a branch on data, .item())"),
        (Counting, "buffers calls of a stacked model differ from those of the model alone"),
        (Suspicious, "losses of a stacked model differ from those of the model alone"),
    ],
)
def test_what_cannot_be_stacked_trains_one_after_another(model: Any, reason: str) -> None:
    front = fit(problem(model), strategy="auto", epochs=12)
    assert front.strategy.startswith("sequential: ")
    assert reason in front.strategy
    assert front.history["losses"][-1].mean() < front.history["losses"][0].mean()
    with pytest.raises(ValueError, match='\'strategy\' must be "sequential" or "auto" for these models'):
        fit(problem(model), strategy="batched")


def test_tied_weights_are_right_in_both_strategies() -> None:
    one, both = (fit(problem(Tied), strategy=name, precision="float64") for name in ("sequential", "batched"))
    assert "second.weight" not in one.models.stacked()
    for k in range(3):
        model = both.model(k)
        assert model.second.weight is model.first.weight
        torch.testing.assert_close(one.model(k).first.weight, model.first.weight, rtol=0, atol=1e-6)
        assert torch.equal(model.first.weight, both.models.stacked()["first.weight"][k])


def test_buffers_assigned_anew_are_kept_one_after_another() -> None:
    front = fit(problem(Counting))
    assert front.models.stacked()["calls"].tolist() == [12.0] * 3


def by_shape(parameters: Any) -> torch.optim.Optimizer:
    named = list(parameters)
    groups = [
        {"params": [p for _, p in named if p.ndim >= 2], "weight_decay": 0.1},
        {"params": [p for _, p in named if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=0.01)


class Sign(torch.optim.Optimizer):
    """Not on the list of optimizers that are known to work elementwise."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, {"lr": 0.001})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p -= group["lr"] * p.grad.sign()


@pytest.mark.parametrize(
    ("optimizer", "reason"),
    [
        (by_shape, "the optimizer's factory treats stacked parameters differently"),
        (Sign, "'optimizer' must work elementwise"),
        (lambda p: torch.optim.Adafactor([q for _, q in p]), "Got Adafactor instead"),
    ],
)
def test_optimizers_that_would_go_wrong_on_a_stack(optimizer: Any, reason: str) -> None:
    front = fit(optimizer=optimizer, strategy="auto")
    assert front.strategy.startswith("sequential: ")
    assert reason in front.strategy


def test_dropout_does_not_keep_models_from_being_stacked() -> None:
    front = fit(problem(Dropped), strategy="batched", epochs=30)
    again = fit(problem(Dropped), strategy="batched", epochs=30)
    assert torch.equal(front.losses["train"], again.losses["train"]), "the seed decides dropout too"
    alone = fit(problem(Dropped), strategy="sequential", epochs=30)
    torch.testing.assert_close(front.losses["train"], alone.losses["train"], rtol=0.3, atol=0.1)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.2, batch_first=True)
        self.enter, self.layers, self.head = nn.Linear(1, 8), nn.TransformerEncoder(layer, 1), nn.Linear(8, 6)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.head(self.layers(self.enter(x[..., None])).mean(1)).split(3, -1))


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
def test_a_transformer_can_be_stacked() -> None:
    front = fit(problem(Attention, metrics={"accuracy": pm.Metric(accuracy)}), strategy="batched", epochs=2)
    assert front.losses["train"].isfinite().all()


@pytest.mark.study
@pytest.mark.parametrize("strategy", ["sequential", "batched"])
def test_compiled_models_train_alike(strategy: Any) -> None:
    torch.compiler.reset()
    plain = fit(strategy=strategy, precision="float64", epochs=2)
    compiled = fit(strategy=strategy, precision="float64", epochs=2, compile={"backend": "aot_eager"})
    torch.testing.assert_close(plain.losses["train"], compiled.losses["train"], rtol=0, atol=1e-6)


@pytest.mark.parametrize("strategy", ["sequential", "batched"])
def test_bfloat16_keeps_float32_parameters(strategy: Any) -> None:
    front = fit(strategy=strategy, precision="bfloat16", epochs=20)
    wide = fit(strategy=strategy, epochs=20)
    assert front.models.stacked()["trunk.0.weight"].dtype == torch.float32
    assert not torch.equal(front.losses["train"], wide.losses["train"])
    torch.testing.assert_close(front.losses["train"], wide.losses["train"], rtol=0.2, atol=0.05)


@pytest.mark.parametrize("strategy", ["sequential", "batched"])
def test_clipping_is_for_each_model(strategy: Any) -> None:
    """With plain gradient descent of rate 1, a step is as long as the clipped update."""
    plain = lambda p: torch.optim.SGD(p, lr=1.0)  # noqa: E731
    options: dict[str, Any] = {"strategy": strategy, "optimizer": plain, "precision": "float64", "batch_size": 96}
    for method in (pm.Linear(), pm.MGDA(rescale=True)):
        one, two = (fit(None, method, epochs=n, clip_norm=1e-3, **options) for n in (1, 2))
        before, after = one.models.stacked(), two.models.stacked()
        moved = torch.stack([(after[name] - before[name]).flatten(1).square().sum(1) for name in before])
        torch.testing.assert_close(moved.sum(0).sqrt(), torch.full((3,), 1e-3, dtype=torch.float64), rtol=0.02, atol=0)


def test_the_gramian_of_the_representation_is_an_upper_bound() -> None:
    """Weights come from the gradients for the trunk's output: those of a by-hand computation."""
    of = problem(representation="trunk")
    front = fit(of, pm.MGDA(), 1, epochs=1, batch_size=96, precision="float64")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = MLP().double()
    x, y = classes()
    hidden = model.trunk(x.double())
    losses = [nn.functional.cross_entropy(head(hidden), y[:, i]) for i, head in enumerate(model.heads)]
    rows = torch.stack([torch.autograd.grad(loss, hidden, retain_graph=True)[0].flatten() for loss in losses])
    expected = pm.core.min_norm(rows @ rows.T).combination
    torch.testing.assert_close(front.history["weights"][0, 0], expected)
    (expected @ torch.stack(losses)).backward(retain_graph=True)
    before = model.trunk[0].weight.detach().clone()
    after = before - 0.1 * model.trunk[0].weight.grad
    torch.testing.assert_close(front.models.stacked()["trunk.0.weight"][0], after)
    (own,) = torch.autograd.grad(losses[1], model.heads[1].weight)
    torch.testing.assert_close(front.models.stacked()["heads.1.weight"][0], model.heads[1].weight.detach() - 0.1 * own)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"representation": "nowhere"}, "'representation' must name a submodule of the model. Got 'nowhere'"),
        ({"shared": ["trunk"], "representation": "trunk"}, "'shared' and 'representation' must not both be given"),
    ],
)
def test_bad_scopes_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(problem(**options))


def test_optimizers_start_afresh_after_measuring() -> None:
    """What auto measured on copies leaves no trace."""
    auto, asked = fit(strategy="auto"), fit(strategy="sequential")
    if auto.strategy.startswith("batched"):
        asked = fit(strategy="batched")
    assert torch.equal(auto.losses["train"], asked.losses["train"])


class ByTensor(Sign):
    """Scales each tensor's gradient to length one: a stack has other tensors than its models."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p -= 0.1 * p.grad / p.grad.norm().clamp_min(1e-12)


def test_what_the_optimizer_makes_of_a_step_is_compared_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "ELEMENTWISE", (ByTensor,))
    front = fit(optimizer=ByTensor, strategy="auto")
    assert front.strategy.startswith("sequential: parameters ")


class EvalBranch(MLP):
    """Branches on data, but only in eval mode."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        first, second = super().forward(x)
        return (first, second) if self.training or float(first.detach().sum()) > -1e9 else (second, first)


class Skipped(MLP):
    """Drops samples by an in-place draw, which vmap knows only with the same draw for all."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        keep = torch.empty(len(x), 1).bernoulli_(0.8) if self.training else 1.0
        return tuple(y * keep for y in super().forward(x))


@pytest.mark.parametrize(("model", "why"), [(EvalBranch, "the model or the losses ask "), (Skipped, "RuntimeError: ")])
def test_what_goes_wrong_later_is_found_at_the_start(model: Any, why: str) -> None:
    front = fit(problem(model), strategy="auto")
    assert front.strategy.startswith(f"sequential: {why}")


@pytest.mark.parametrize("strategy", ["sequential", "batched"])
def test_short_updates_are_not_clipped(strategy: Any) -> None:
    plain, clipped = (fit(strategy=strategy, clip_norm=norm) for norm in (None, 1e6))
    assert torch.equal(plain.losses["train"], clipped.losses["train"])


class InPlace(MLP):
    """What comes after the representation overwrites it."""

    def __init__(self, inplace: bool) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(6, 12))
        self.after = nn.ReLU(inplace=inplace)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        hidden = self.after(self.trunk(x))
        return tuple(head(hidden) for head in self.heads)


@pytest.mark.parametrize("strategy", ["sequential", "batched"])
def test_heads_may_overwrite_the_representation(strategy: Any) -> None:
    fronts = []
    for inplace in (True, False):
        of = problem(functools.partial(InPlace, inplace), representation="trunk")
        fronts.append(fit(of, "mgda", strategy=strategy, precision="float64"))
    for name, tensor in fronts[0].models.stacked().items():
        torch.testing.assert_close(tensor, fronts[1].models.stacked()[name], rtol=0, atol=1e-9)


@pytest.mark.parametrize("scope", [{"shared": ["trunk"]}, {"representation": "trunk"}])
@pytest.mark.parametrize("method", ["mgda", "linear"])
@pytest.mark.parametrize("strategy", ["sequential", "batched"])
def test_an_optimizer_without_shared_parameters_is_refused(scope: Any, method: str, strategy: str) -> None:
    """A Gramian over nothing weighs nothing, and nothing that weights act on is trained."""

    def of_heads(parameters: Any) -> torch.optim.Optimizer:
        return torch.optim.SGD([(name, p) for name, p in parameters if not name.startswith("trunk")], lr=0.1)

    with pytest.raises(ValueError, match="'optimizer' must train some of the shared parameters"):
        fit(problem(**scope), method, strategy=strategy, optimizer=of_heads)
    assert len(fit(problem(), method, strategy=strategy, epochs=1, optimizer=of_heads)) == 3


class Output(OrderedDict[str, Any]):
    """As models of Hugging Face return it: a dictionary with attributes."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


class Encoder(nn.Module):
    def __init__(self, more: str = "") -> None:
        super().__init__()
        self.net, self.more = nn.Linear(6, 8), more

    def forward(self, x: Tensor) -> Any:
        hidden = self.net(x)
        return Output(last_hidden_state=hidden, **({self.more: hidden[:, :2]} if self.more else {}))


class Encoded(nn.Module):
    def __init__(self, make: Any) -> None:
        super().__init__()
        self.encoder, self.heads = make(), nn.ModuleList([nn.Linear(8, 3), nn.Linear(8, 3)])

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        hidden = self.encoder(x)
        if not isinstance(hidden, Tensor):
            hidden = hidden[0] if isinstance(hidden, tuple) else hidden.last_hidden_state
        return tuple(head(hidden.tanh()) for head in self.heads)


@pytest.mark.parametrize("strategy", ["sequential", "batched"])
def test_a_representation_may_be_the_one_tensor_of_a_dictionary(strategy: str) -> None:
    options: dict[str, Any] = {"strategy": strategy, "precision": "float64", "epochs": 2}
    fronts = [
        fit(problem(lambda make=make: Encoded(make), representation="encoder"), "mgda", **options)
        for make in (Encoder, lambda: nn.Linear(6, 8))
    ]
    torch.testing.assert_close(fronts[0].losses["train"], fronts[1].losses["train"])


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (
            lambda: Encoder("pooled"),
            r"'encoder' returned a Output with \['last_hidden_state', 'pooled'\]",
        ),
        (lambda: nn.LSTM(6, 8), "'encoder' returned a tuple"),
    ],
)
def test_a_representation_of_several_tensors_says_what_to_name(make: Any, found: str) -> None:
    rule = "'representation' must name a submodule that returns one tensor. "
    with pytest.raises(TypeError, match=f"{rule}{found}.*: let a module of your own call it and return the tensor"):
        fit(problem(lambda: Encoded(make), representation="encoder"), "mgda")
