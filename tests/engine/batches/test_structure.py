"""All models of a front see the same batch: a model or a loss that writes to it is refused, and named."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from _helpers.networks import MLP, classes, fit, problem
from paretomtl.problems import cross_entropies


class Normalising(MLP):
    """Writes its normalisation into the batch, which the next model would normalise once more."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        x.sub_(1.0).div_(2.0)
        return super().forward(x)


def filling(outputs: Any, targets: Tensor) -> Tensor:
    """Takes the labels away that say which samples have none."""
    targets[targets < 0] = 0
    return cross_entropies(outputs, targets)


@pytest.mark.parametrize("options", [{"model": Normalising}, {"losses": filling}], ids=["model", "losses"])
@pytest.mark.parametrize("strategy", ["auto", "sequential", "batched"])
def test_a_batch_that_is_written_to_is_refused(options: dict[str, Any], strategy: Any) -> None:
    with pytest.raises(ValueError, match="'model' and 'losses' must not change a batch in place"):
        fit(problem(**options), "linear", strategy=strategy)


def test_loaders_are_no_way_around() -> None:
    train = DataLoader(TensorDataset(*classes()), batch_size=32)
    with pytest.raises(ValueError, match="must not change a batch in place"):
        fit(problem(losses=filling, train=train), "linear")


def test_only_the_validation_split_is_written_to() -> None:
    class Late(MLP):
        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            return super().forward(x if self.training else x.mul_(2.0))

    with pytest.raises(ValueError, match="must not change a batch in place") as error:
        fit(problem(Late, val=classes(seed=1)), "linear")
    assert any("'val'" in note for note in error.value.__notes__)


def test_writing_begins_in_mid_run() -> None:
    """At the fourth step, when all checks before training have passed."""

    class Clipping(MLP):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("steps", torch.zeros(()))

        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            self.steps += self.training
            return super().forward(x.clamp_(-1.0, 1.0) if bool(self.steps > 3) else x)

    with pytest.raises(ValueError, match="must not change a batch in place"):
        fit(problem(Clipping), "linear", strategy="sequential")


def test_in_place_operations_behind_the_first_layer_are_fine() -> None:
    class Inner(MLP):
        def __init__(self) -> None:
            super().__init__()
            self.trunk = nn.Sequential(nn.Linear(6, 12), nn.ReLU(inplace=True))

    fit(problem(Inner), "linear", strategy="sequential", epochs=1)


def test_samples_made_in_inference_mode_are_fine() -> None:
    """As features of a frozen network are: they have no count of what was written to them."""
    with torch.inference_mode():
        x = classes()[0] * 1.0
    val = DataLoader([(x, classes()[1])], batch_size=None)  # type: ignore[arg-type, list-item, var-annotated]
    assert fit(problem(val=val), "linear", epochs=1).losses["val"].isfinite().all()
