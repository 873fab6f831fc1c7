"""A stack is refused where it is wrong, and not where rounding decides on which side of a kink a number lies."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from _helpers.networks import MLP, fit, problem


class Kinked(MLP):
    """One ReLU sits so close to its kink that rounding switches it, as in some stacks of convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        rounding = torch.finfo(self.gate.dtype).eps * (1 if isinstance(self.gate, nn.Parameter) else -1)
        switched = (self.gate - 1.0 + 3e-8 + rounding).relu()
        bias = torch.tensor([0.002, 0.0, -0.002], dtype=x.dtype)
        return tuple(self.gate * y + switched * bias for y in super().forward(x))


class Wrong(MLP):
    """The losses of a stack are right, its gradients are one percent too long."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        extra = 0.0 if isinstance(self.heads[0].weight, nn.Parameter) else 0.01
        return tuple(y + extra * (y - y.detach()) for y in super().forward(x))


class Narrow(nn.Module):
    """Casts its inputs to float32, so that it does not run in float64."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner()

    def forward(self, x: Tensor) -> Any:
        return self.inner(x.float())


class NarrowKinked(Narrow):
    def __init__(self) -> None:
        super().__init__(Kinked)


class NarrowWrong(Narrow):
    def __init__(self) -> None:
        super().__init__(Wrong)


@pytest.mark.parametrize("model", [Kinked, NarrowKinked])
def test_rounding_at_a_kink_is_no_difference(model: Any) -> None:
    front = fit(problem(model), strategy="batched", epochs=1)
    assert front.strategy == "batched: asked for"


@pytest.mark.parametrize("model", [Wrong, NarrowWrong])
def test_gradients_that_are_wrong_everywhere_are_found(model: Any) -> None:
    with pytest.raises(ValueError, match=r"gradients of task . for .* of a stacked model differ"):
        fit(problem(model), strategy="batched", epochs=1)


def test_float64_models_are_held_to_float64() -> None:
    class Slightly(MLP):
        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            extra = 0.0 if isinstance(self.heads[0].weight, nn.Parameter) else 1e-7
            return tuple(y + extra * (y - y.detach()) for y in super().forward(x))

    assert fit(problem(Slightly), strategy="batched", epochs=1).complete, "float32 cannot tell"
    with pytest.raises(ValueError, match="gradients of task"):
        fit(problem(Slightly), strategy="batched", epochs=1, precision="float64")
