"""Parameters that a forward pass replaces."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import paretomtl as pm
from _helpers.networks import MLP, classes, fit, problem
from paretomtl.problems import cross_entropies


def measured(front: pm.Front) -> Tensor:
    """The losses of the models that a front hands out, on all of the training data at once."""
    x, y = classes()
    return torch.stack([cross_entropies(front.model(k)(x), y) for k in front.subproblems]).detach()


class Constrained(MLP):
    """Puts another tensor under a parameter in each pass, as networks with a largest norm of weights do."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        weight = self.trunk[0].weight
        assert isinstance(weight, Tensor)
        weight.data = torch.renorm(weight.data, p=2, dim=0, maxnorm=0.5)
        return super().forward(x)


@pytest.mark.parametrize("options", [{}, {"val": classes(seed=1), "keep": "best"}], ids=["last", "best"])
def test_parameters_that_a_forward_pass_replaces_are_kept(options: dict[str, Any]) -> None:
    keep = options.pop("keep", "last")
    front = fit(problem(Constrained, **options), "linear", strategy="sequential", keep=keep)
    torch.testing.assert_close(front.losses["train"], measured(front))


def test_a_run_with_replaced_parameters_can_be_resumed(tmp_path: Any) -> None:
    class Stopping:
        def __call__(self, report: Any) -> None:
            if report.epoch == 2:
                raise KeyboardInterrupt

    whole = fit(problem(Constrained), "linear", strategy="sequential")
    with pytest.raises(KeyboardInterrupt):
        fit(problem(Constrained), "linear", strategy="sequential", out=tmp_path / "run", callbacks=[Stopping()])
    resumed = fit(problem(Constrained), "linear", strategy="sequential", out=tmp_path / "run", resume=True)
    assert torch.equal(resumed.losses["train"], whole.losses["train"])


def test_parameters_that_a_forward_pass_makes_are_refused() -> None:
    class Replaced(MLP):
        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            self.heads[0].bias = torch.nn.Parameter(self.heads[0].bias.detach().clamp(-1.0, 1.0))
            return super().forward(x)

    with pytest.raises(ValueError, match=r"'model' must keep its parameters.*heads.0.bias"):
        fit(problem(Replaced), "linear")
