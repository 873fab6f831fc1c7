"""Fronts of models that were trained elsewhere, measured on a problem."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import paretomtl as pm


def losses(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs - targets).square().mean(0)


def general(model: nn.Module, batch: Any) -> Tensor:
    return losses(model(batch[0]), batch[1])


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(), nn.Linear(4, 2))


def make_problem(**fields: Any) -> pm.Problem:
    draw = torch.Generator().manual_seed(0)
    x, y = torch.randn(40, 3, generator=draw), torch.randn(40, 2, generator=draw)
    data = {"train": (x[:20], y[:20]), "val": (x[20:30], y[20:30]), "test": (x[30:], y[30:])}
    metrics = {"error": pm.Metric(lambda outputs, targets: (outputs - targets).abs().mean(), better="lower")}
    return pm.Problem(**{"model": network, "losses": losses, "tasks": ["a", "b"], "metrics": metrics, **data, **fields})


@pytest.fixture(scope="module")
def problem() -> pm.Problem:
    return make_problem(reference=[9.0, 9.0])


@pytest.fixture(scope="module")
def front(problem: pm.Problem) -> pm.Front:
    return pm.fit(problem, preferences=3, epochs=2, batch_size=7, strategy="sequential", progress="quiet", device="cpu")


@pytest.mark.parametrize("kind", ["modules", "state_dict", "model.state_dict"])
def test_models_of_a_front_have_its_losses_and_metrics(problem: pm.Problem, front: pm.Front, kind: str) -> None:
    """What is measured of a front's models is what the run measured of them, bit by bit."""
    made: list[Any] = [front.model(k).train() for k in front.subproblems]
    if kind == "state_dict":
        made = [front.state_dict(k) for k in front.subproblems]
    if kind == "model.state_dict":
        made = [model.state_dict() for model in made]
    again = pm.Front.from_models(made, problem, batch_size=7)
    assert list(again.losses) == ["train", "val", "test"]
    for split, table in front.losses.items():
        assert torch.equal(again.losses[split], table)
        assert torch.equal(again.metrics[split]["error"], front.metrics[split]["error"])
    assert (again.better, again.reference) == (front.better, front.reference)
    assert list(again.status) == ["evaluated"] * 3
    assert all(torch.equal(again.models.stacked()[name], tensor) for name, tensor in front.models.stacked().items())


def test_losses_of_the_general_form_and_problems_without_data() -> None:
    general_form = make_problem(losses=general, metrics={"one": pm.Metric(lambda model, batches: len(batches))})
    model = network()
    found, plain = (pm.Front.from_models([model], each) for each in (general_form, make_problem()))
    assert torch.equal(found.losses["val"], plain.losses["val"])
    assert found.metrics["val"]["one"].tolist() == [1.0]
    quadratic = pm.problems.quadratic()
    fitted = pm.fit(quadratic, preferences=3, epochs=3, progress="quiet", device="cpu")
    again = pm.Front.from_models([fitted.model(k) for k in range(3)], quadratic)
    assert torch.allclose(again.losses["train"], fitted.losses["train"])


def test_models_are_left_as_they_are(problem: pm.Problem) -> None:
    model = network()
    model[3].eval()
    before = copy.deepcopy(model.state_dict())
    frozen = network().requires_grad_(False)
    state = torch.random.get_rng_state()
    pm.Front.from_models([model, frozen], problem)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert [part.training for part in model.modules()] == [True, True, True, True, False, True]
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert not model[0]._forward_hooks


def test_the_front_keeps_models_that_change_later(problem: pm.Problem, tmp_path: Path) -> None:
    model = network()
    front = pm.Front.from_models([model], problem, names=["mine"])
    x = problem.val[0]  # type: ignore[index]
    before = copy.deepcopy(model).eval()(x)
    with torch.no_grad():
        model[0].weight.zero_()
    assert torch.equal(front.model(0)(x), before)
    front.save(tmp_path)
    stored = pm.Front.load(tmp_path, problem)
    assert torch.equal(stored.model(0)(x), before)
    assert (stored.names, stored.seed) == (("mine",), None)


class Scaled(nn.Module):
    """Has the parameters of a linear layer, and another function."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(2, 3)), nn.Parameter(torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(x @ self.weight.T + self.bias)


@pytest.mark.parametrize(
    "models",
    [
        pytest.param(lambda: [nn.Linear(3, 2), network()], id="other parameters"),
        pytest.param(lambda: [nn.Linear(3, 2), Scaled()], id="the same parameters, another function"),
        pytest.param(lambda: [nn.Linear(3, 2), nn.Linear(3, 2).double()], id="another dtype"),
    ],
)
def test_models_of_other_architectures_are_kept_in_memory(models: Any, tmp_path: Path) -> None:
    problem = make_problem(model=lambda: nn.Linear(3, 2))
    made = models()
    front = pm.Front.from_models(made, problem)
    for k, model in enumerate(made):
        x, y = (part.to(next(model.parameters()).dtype) for part in problem.test)  # type: ignore[union-attr]
        expected = losses(model.eval()(x), y)
        assert torch.allclose(front.losses["test"][k].to(x.dtype), expected, rtol=1e-5)
        assert torch.equal(front.model(k)(x), model(x))
        assert front.state_dict(k).keys() == model.state_dict().keys()
    with pytest.warns(UserWarning, match="the models are not stored"):
        front.save(tmp_path)
    stored = pm.Front.load(tmp_path, problem)
    assert torch.equal(stored.losses["test"], front.losses["test"])
    with pytest.raises(ValueError, match="a front that has only losses"):
        stored.model(1)
    assert json.loads((tmp_path / "front.json").read_text())["models"] is None


def test_a_model_that_broke_is_kept_and_marked(problem: pm.Problem) -> None:
    broken = network()
    nn.init.constant_(broken[0].weight, torch.nan)
    front = pm.Front.from_models([network(), broken], problem, names=["good", "broken"])
    assert list(front.status) == ["evaluated", "non-finite"]
    assert front.select(max_regret=True).k == 0
    assert "non-finite" in str(front)
    assert not pm.Front.from_models([broken], problem).losses["val"].isfinite().any()


def test_preferences_names_and_words(problem: pm.Problem) -> None:
    front = pm.Front.from_models(
        [network(), network()],
        problem,
        names=["first", "second"],
        preferences=[[1, 0], [0, 1]],
        reading="direction",
        method="by hand",
        reference=[5, 5],
    )
    assert (front.method, front.problem, front.reference) == ("by hand", "problem", (5.0, 5.0))
    assert len(front.angle("val")) == 2
    assert "first" in str(front)


def test_problems_with_shared_parts_take_any_model() -> None:
    """What training needs to know of an architecture, measuring does not."""
    problem = make_problem(model=lambda: nn.Sequential(nn.Linear(3, 2)), representation="0")
    assert len(pm.Front.from_models([nn.Linear(3, 2)], problem)) == 1


@pytest.mark.parametrize(
    ("models", "said"),
    [
        (list, "not empty. Got none"),
        (lambda: nn.Linear(3, 2), r"Got Linear instead; write \[model\] for one"),
        (lambda: {"a": nn.Linear(3, 2)}, "Got dict instead"),
        (lambda: "models", "Got str instead"),
        (lambda: [nn.Linear(3, 2), None], r"Got NoneType in models\[1\]"),
        (lambda: [{"state_dict": {}, "epoch": 3}], r"Got a dictionary with dict under 'state_dict' in models\[0\]"),
        (
            lambda: [{"epoch": 3, "state_dict": network().state_dict(), "optimizer_states": []}],
            r"in models\[0\]: write checkpoint\['state_dict'\], its names without a prefix",
        ),
        (lambda: [{"step": 3, "weights": network().state_dict()}], r"write checkpoint\['weights'\], its names"),
        (lambda: ["last.ckpt"], r"Got str in models\[0\]: write torch.load\(path, weights_only=True\)"),
        (lambda: [Path("w.safetensors")], r"safetensors.torch.load_file\(path\)"),
        (lambda: Path("w.pt"), r"Got \w+Path instead; write \[model\] for one"),
        (object, "Got object instead; Front.from_losses takes losses that other programs found"),
        (lambda: [network().state_dict(), {"x": torch.zeros(1)}], r"Got models\[1\], which differs in \['0.bias'"),
        (lambda: [nn.LazyLinear(2)], r"Got lazy parameters in models\[0\], \['weight', 'bias'\]"),
    ],
)
def test_bad_models_are_named(problem: pm.Problem, models: Any, said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        pm.Front.from_models(models(), problem)


def test_a_model_that_fails_is_named(problem: pm.Problem) -> None:
    for wrong, kind in ((nn.Linear(3, 5), RuntimeError), (nn.Linear(9, 2), RuntimeError)):
        with pytest.raises(kind) as caught:
            pm.Front.from_models([network(), wrong], problem)
        assert "models[1], a Linear, on 'train'" in caught.value.__notes__[-1]
    with pytest.raises(TypeError, match="'problem' must be a Problem"):
        pm.Front.from_models([network()], "problem")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'batch_size'"):
        pm.Front.from_models([network()], problem, batch_size=0)
    with pytest.raises(ValueError, match="'device' must be available"):
        pm.Front.from_models([network()], problem, device="nowhere")
