"""What a model keeps outside of parameters and buffers is in no stack, checkpoint or front: right, or refused."""

from __future__ import annotations

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


def test_parameters_of_the_losses_are_refused_as_nobody_trains_them() -> None:
    class Uncertain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.log_variance = nn.Parameter(torch.zeros(2))

        def forward(self, outputs: Any, targets: Tensor) -> Tensor:
            return cross_entropies(outputs, targets) * (-self.log_variance).exp() + self.log_variance

    with pytest.raises(ValueError, match=r"'losses' must not have parameters to train.*'log_variance'"):
        fit(problem(losses=Uncertain()))


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
