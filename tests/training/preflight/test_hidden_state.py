"""What a model keeps outside of parameters and buffers is in no stack, checkpoint or front: right, or refused."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import paretomtl as pm
from _helpers.networks import MLP, Normed, classes, fit, problem
from paretomtl.problems import cross_entropies


class Annealed(MLP):
    """Its temperature falls from step to step; a number of Python."""

    def __init__(self) -> None:
        super().__init__()
        self.temperature = 4.0

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        if self.training:
            self.temperature *= 0.9
        return tuple(y / self.temperature for y in super().forward(x))


class Late(MLP):
    """Counts, and acts on it after ten steps."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        self.calls += 1
        return tuple((-y if self.calls > 10 else y) for y in super().forward(x))


class Moving(MLP):
    """A running mean in a plain tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.mean = torch.zeros(6)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
        return super().forward(x - self.mean)


class Whitened(MLP):
    """Takes its scale from the first batch that it sees."""

    def __init__(self) -> None:
        super().__init__()
        self.first: Tensor | None = None

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        if self.first is None:
            self.first = x.detach().std(0)
        return super().forward(x / self.first)


class Carried(nn.Module):
    """Carries the hidden state of one batch over to the next."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.RNNCell(6, 8), nn.Linear(8, 6)
        self.state: Tensor | None = None

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        self.state = self.cell(x, None if self.state is None else self.state.detach())
        return tuple(self.head(self.state).split(3, -1))


class InAList(MLP):
    """Hides a number in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.box = [1.0]

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        self.box[0] *= 0.5
        return tuple(self.box[0] * y for y in super().forward(x))


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (Annealed, "temperature"),
        (Late, "calls"),
        (Moving, "mean"),
        (Whitened, "first"),
        (Carried, "state"),
        (InAList, "box"),
        (lambda: nn.Sequential(Late()), "0.calls"),
    ],
)
@pytest.mark.parametrize("strategy", ["sequential", "batched", "auto"])
def test_state_outside_of_buffers_is_refused_by_name(model: Any, name: str, strategy: Any) -> None:
    def losses(outputs: Any, targets: Tensor) -> Tensor:
        return cross_entropies(outputs, targets)

    with pytest.raises(ValueError, match=rf"'model' and 'losses' must .*'{name}'.*register_buffer"):
        fit(problem(model, losses=losses), strategy=strategy)


class Buffered(MLP):
    """The remedy: the same annealing in a buffer that is changed in place."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("temperature", torch.tensor(4.0))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        if self.training:
            self.temperature *= 0.9
        return tuple(y / self.temperature for y in super().forward(x))


def test_the_remedy_is_right_in_both_strategies_and_in_the_front() -> None:
    one, both = (fit(problem(Buffered), strategy=name, precision="float64") for name in ("sequential", "batched"))
    torch.testing.assert_close(one.losses["train"], both.losses["train"], rtol=0, atol=1e-6)
    x, y = classes()
    for k in range(3):
        losses = cross_entropies(both.model(k)(x.double()), y)
        torch.testing.assert_close(losses.detach(), both.losses["train"][k])


class Inspected(Normed):
    """Writes what it saw, and never reads it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[float] = []
        self.hidden: Tensor | None = None
        self.samples = 0
        self.mean = 0.0

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        self.samples, self.hidden = len(x), self.trunk(x)
        return tuple(head(self.hidden) for head in self.heads)


class Cached(MLP):
    """Makes a tensor when it is first needed, the same one whatever the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.ramp: Tensor | None = None

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        if self.ramp is None:
            self.ramp = torch.linspace(0.5, 1.5, x.shape[1])
        return super().forward(x * self.ramp)


@pytest.mark.parametrize("model", [Inspected, Cached])
def test_attributes_without_effect_are_fine(model: Any) -> None:
    assert fit(problem(model), strategy="sequential").complete


class Balanced:
    """Losses that remember."""

    def __init__(self) -> None:
        self.mean: Tensor | float = 1.0

    def __call__(self, outputs: Any, targets: Tensor) -> Tensor:
        losses = cross_entropies(outputs, targets)
        self.mean = 0.9 * self.mean + 0.1 * losses.detach()
        return losses / self.mean


def test_losses_that_remember_are_refused_by_name() -> None:
    losses = Balanced()
    with pytest.raises(ValueError, match=r"'losses\(\)\.mean'"):
        fit(problem(losses=losses))
    assert losses.mean == 1.0, "a trial leaves them as they were"


def test_losses_that_count_in_a_closure_are_refused_by_name() -> None:
    steps = 0

    def losses(outputs: Any, targets: Tensor) -> Tensor:
        nonlocal steps
        steps += 1
        return cross_entropies(outputs, targets) * (0.5 if steps > 20 else 1.0)

    with pytest.raises(ValueError, match=r"'losses\(\)\.steps'"):
        fit(problem(losses=losses))


class Uncertain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.log_variance = nn.Parameter(torch.zeros(2))

    def forward(self, outputs: Any, targets: Tensor) -> Tensor:
        return weighed(outputs, targets, self.log_variance)


def weighed(outputs: Any, targets: Tensor, log_variance: Tensor) -> Tensor:
    return cross_entropies(outputs, targets) * (-log_variance).exp() + log_variance


class Holder:
    def __init__(self) -> None:
        self.weights = {"log_variance": torch.zeros(2, requires_grad=True)}

    def losses(self, outputs: Any, targets: Tensor) -> Tensor:
        return weighed(outputs, targets, self.weights["log_variance"])


LOG_VARIANCE = nn.Parameter(torch.zeros(2))


def by_global(outputs: Any, targets: Tensor) -> Tensor:
    return weighed(outputs, targets, LOG_VARIANCE)


def by_closure() -> Any:
    log_variance = torch.zeros(2, requires_grad=True)
    return lambda outputs, targets: weighed(outputs, targets, log_variance)


def by_other_model() -> Any:
    """Another network than the model that is trained, though the factory made it."""
    other = MLP()
    return lambda model, batch: cross_entropies(model(batch[0]), batch[1]) + cross_entropies(other(batch[0]), batch[1])


class Listed(nn.Module):
    """Heads in a list, which is not registered: a mistake that torch does not notice."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.heads = nn.Linear(6, 3), [nn.Linear(3, 3), nn.Linear(3, 3)]

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return tuple(head(self.trunk(x)) for head in self.heads)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"losses": Uncertain()}, "losses.log_variance"),
        ({"losses": Holder().losses}, r"losses.weights\['log_variance'\]"),
        ({"losses": by_global}, "losses.LOG_VARIANCE"),
        ({"losses": by_closure()}, "losses.log_variance"),
        ({"losses": by_other_model()}, "losses.other.heads.0.weight"),
        ({"losses": functools.partial(weighed, log_variance=nn.Parameter(torch.zeros(2)))}, "losses.log_variance"),
        ({"model": Listed}, r"model.heads\[0\].weight"),
    ],
)
def test_tensors_to_train_outside_of_the_model_are_refused_as_nothing_trains_them(options: Any, name: str) -> None:
    with pytest.raises(ValueError, match=rf"parameters to train .*Got .*{name}[.,].*losses\(model, batch"):
        fit(problem(**options))


def test_what_is_fixed_or_differentiated_by_may_be_used_by_losses() -> None:
    """A frozen network with a batch norm in eval mode, and gradients by the inputs: of the batch, and of copies."""
    judge = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).requires_grad_(False).eval()

    def physics(model: Any, batch: Any) -> list[Tensor]:
        x, y = batch
        found = []
        for points in (x.requires_grad_(), x.detach().clone().requires_grad_()):
            with torch.enable_grad():
                first, second = model(points)
                (slope,) = torch.autograd.grad(first.sum(), points, create_graph=True)
            judged = judge(first).square().mean() + nn.functional.cross_entropy(second, y[:, 1])
            found.append(slope.square().mean() + (1 + len(found)) * judged)
        return found

    before = {name: tensor.clone() for name, tensor in judge.state_dict().items()}
    assert fit(problem(losses=physics), "linear", strategy="sequential").complete
    kept = torch.rand(5, 6, requires_grad=True)

    def at_points(model: Any, batch: Any) -> Tensor:
        with torch.enable_grad():
            outputs = model(torch.cat([kept, kept]))[0]
            (slope,) = torch.autograd.grad(outputs.sum(), kept, create_graph=True)
        return torch.stack([slope.square().mean(), (model(batch[0])[0] - 1.0).square().mean()])

    assert fit(problem(losses=at_points), "linear", strategy="sequential").complete
    assert all(torch.equal(tensor, before[name]) for name, tensor in judge.state_dict().items())


class Running(nn.Module):
    """The remedy of old for a loss that counts in an attribute: a buffer, which all models would share."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, outputs: Any, targets: Tensor) -> Tensor:
        self.steps += 1
        return cross_entropies(outputs, targets) * (1 + 0.1 * self.steps)


def with_teacher() -> Any:
    """Follows the model as a mean, outside of it."""
    teacher = MLP().requires_grad_(False)

    def losses(model: Any, batch: Any) -> Tensor:
        for mean, now in zip(teacher.parameters(), model.parameters(), strict=True):
            mean.lerp_(now.detach(), 0.1)
        return cross_entropies(model(batch[0]), batch[1]) + (model(batch[0])[0] - teacher(batch[0])[0]).square().mean()

    return losses


def with_judge() -> Any:
    judge = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).requires_grad_(False)
    return lambda outputs, targets: cross_entropies(outputs, targets) + judge(outputs[0]).square().mean()


@pytest.mark.parametrize(
    ("losses", "name"),
    [
        (Running(), "Running.steps"),
        (functools.partial(Running()), "Running.steps"),
        (with_judge(), "BatchNorm1d.running_mean"),
        (with_teacher(), "Linear.weight"),
    ],
)
def test_modules_of_the_losses_that_a_pass_changes_are_refused(losses: Any, name: str) -> None:
    with pytest.raises(ValueError, match=rf"must not change modules that are no part.*{name}.*eval mode"):
        fit(problem(losses=losses))
    assert not isinstance(losses, Running) or losses.steps == 0, "a trial leaves them as they were"


class Phases(MLP):
    def __init__(self) -> None:
        super().__init__()
        self.phase = nn.Parameter(torch.zeros(3, dtype=torch.complex64))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return tuple(y + self.phase.abs() for y in super().forward(x))


def test_complex_parameters_are_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"'model' must have real parameters and buffers.*'phase'"):
        fit(problem(Phases))


@pytest.mark.parametrize("strategy", ["sequential", "batched"])
@pytest.mark.parametrize(
    "mode", [lambda: torch.autocast("cpu", torch.bfloat16), torch.no_grad, torch.inference_mode], ids=range(3)
)
def test_modes_of_the_caller_do_not_reach_a_run(mode: Any, strategy: Any) -> None:
    plain = fit(strategy=strategy)
    with mode():
        inside = fit(strategy=strategy)
        assert torch.is_autocast_enabled("cpu") == isinstance(mode(), torch.autocast)
    assert torch.equal(plain.losses["train"], inside.losses["train"])
    for name, tensor in plain.models.stacked().items():
        assert torch.equal(tensor, inside.models.stacked()[name])


def test_models_of_a_front_do_not_depend_on_the_callers_modes() -> None:
    front = fit(pm.problems.quadratic(), epochs=1)
    with torch.inference_mode():
        model = front.model(0)
    assert all(p.requires_grad and not p.is_inference() for p in model.parameters())


# Global variables.

STEPS = 0
SETTINGS: dict[str, Any] = {"steps": 0, "margin": 0.1}
LAST: list[float] = [0.0]


def counting_in_a_global(outputs: Any, targets: Tensor) -> Tensor:
    global STEPS
    STEPS += 1
    return cross_entropies(outputs, targets) / (1.0 + 0.01 * STEPS)


def counting_in_a_dictionary(outputs: Any, targets: Tensor) -> Tensor:
    SETTINGS["steps"] += 1
    return cross_entropies(outputs, targets) / (1.0 + 0.01 * SETTINGS["steps"])


class CountingForward(MLP):
    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        SETTINGS["steps"] += self.training
        return tuple(y / (1.0 + 0.01 * SETTINGS["steps"]) for y in super().forward(x))


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"losses": counting_in_a_global}, "STEPS"),
        ({"losses": counting_in_a_dictionary}, "SETTINGS"),
        ({"model": CountingForward}, "SETTINGS"),
    ],
)
def test_global_variables_that_count_are_refused(options: dict[str, Any], name: str) -> None:
    """All models would count in the same one, and a run that is resumed would begin at zero."""
    before = STEPS, dict(SETTINGS)
    with pytest.raises(ValueError, match=f"must not count or accumulate.*{name}"):
        fit(problem(**options), "linear")
    assert before == (STEPS, SETTINGS)


def test_global_variables_that_are_only_read_or_only_written_are_fine() -> None:
    def losses(outputs: Any, targets: Tensor) -> Tensor:
        found = cross_entropies(outputs, targets) * (1.0 + SETTINGS["margin"])
        LAST[0] = float(found.detach().sum())  # for a look
        return found

    fit(problem(losses=losses), "linear", epochs=1, strategy="sequential")


def test_a_partial_hides_no_count() -> None:
    with pytest.raises(ValueError, match=r"must not count or accumulate.*STEPS"):
        fit(problem(losses=functools.partial(counting_in_a_global)), "linear")
