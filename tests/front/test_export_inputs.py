from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import paretomtl as pm
from paretomtl.front.storage.export import ExportedModel, export_torchscript
from paretomtl.front.storage.export_inputs import export_inputs

X = torch.linspace(-2, 2, 24).reshape(6, 4)
LABELS = torch.arange(6) % 2
DATA = {"x": X, "a": LABELS, "b": LABELS.flip(0)}
ONES = torch.ones(6, 4)  # a mask of samples without padding, which change nothing

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")


class Heads(nn.Module):
    """Two heads, with the losses of those that have labels."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(4, 2), nn.Linear(4, 2)

    def both(self, x: Tensor, mask: Tensor | None = None) -> dict[str, Tensor]:
        x = x if mask is None else x * mask
        return {"one": self.one(x), "two": self.two(x)}

    def loss(self, out: dict[str, Tensor], a: Tensor | None, b: Tensor | None) -> Tensor | None:
        """The sum over the labels; None without any."""
        pairs = [(out[name], labels) for name, labels in (("one", a), ("two", b)) if labels is not None]
        return torch.stack([cross_entropy(*pair) for pair in pairs]).sum() if pairs else None


class Sums(Heads):
    def forward(self, x: Tensor, a: Tensor | None = None, b: Tensor | None = None) -> Any:
        out = self.both(x)
        loss = self.loss(out, a, b)
        return out if loss is None else {"loss": loss, **out}


class NoneForLoss(Heads):
    def forward(self, x: Tensor, a: Tensor | None = None, b: Tensor | None = None) -> Any:
        out = self.both(x)
        return {"loss": self.loss(out, a, b), **out}


class Tuples(Heads):
    def forward(self, x: Tensor, a: Tensor | None = None, b: Tensor | None = None) -> Any:
        out = self.both(x)
        loss = self.loss(out, a, b)
        return (*(() if loss is None else (loss,)), out["one"], out["two"])


class Output(NamedTuple):
    loss: Tensor | None
    one: Tensor
    two: Tensor


class NamedOutputs(Heads):
    def forward(self, x: Tensor, a: Tensor | None = None, b: Tensor | None = None) -> Any:
        out = self.both(x)
        return Output(self.loss(out, a, b), out["one"], out["two"])


class OneNeedsTheOther(Heads):
    """The last label alone is not optional."""

    def forward(self, x: Tensor, b: Tensor | None = None, a: Tensor | None = None) -> Any:
        out = self.both(x)
        if b is None:
            return out
        assert a is not None
        return {**out, "loss": self.loss(out, a, b)}


class LossesBySample(Heads):
    def forward(self, x: Tensor, a: Tensor | None = None, b: Tensor | None = None) -> Any:
        out = self.both(x)
        given = {name: labels for name, labels in (("one", a), ("two", b)) if labels is not None}
        losses = {f"{name}_loss": cross_entropy(out[name], each, reduction="none") for name, each in given.items()}
        return {**out, **losses}


class MaskAfterLabels(Heads):
    def forward(self, x: Tensor, a: Tensor | None = None, b: Tensor | None = None, mask: Tensor | None = None) -> Any:
        out = self.both(x, mask)
        return {**out, "loss": self.loss(out, a, b)}


class MaskByName(Heads):
    def forward(
        self, x: Tensor, *, a: Tensor | None = None, mask: Tensor | None = None, b: Tensor | None = None
    ) -> Any:
        out = self.both(x, mask)
        return {**out, "loss": self.loss(out, a, b)}


class SecondInput(Heads):
    """Its second output is a prediction."""

    def forward(self, x: Tensor, mask: Tensor | None = None, a: Tensor | None = None) -> Any:
        out = {"one": self.one(x)}
        if mask is not None:
            out["two"] = self.two(mask)
        return out if a is None else {**out, "loss": cross_entropy(out["one"], a)}


class Required(Heads):
    def forward(self, x: Tensor, a: Tensor, b: Tensor) -> Any:
        out = self.both(x)
        return {"loss": self.loss(out, a, b), **out}


class LossesAlone(Heads):
    def forward(self, x: Tensor, a: Tensor | None = None, b: Tensor | None = None) -> Any:
        out = self.both(x)
        return {"loss": self.loss(out, a, None), "other loss": self.loss(out, None, b)}


class Shares(Heads):
    """A label that predictions need leaves a loss that changes without the other label."""

    def forward(self, x: Tensor, a: Tensor | None = None, b: Tensor | None = None) -> Any:
        assert a is not None
        out = {"one": self.one(x) + a[:, None]}
        return {"loss": self.loss({**out, "two": self.two(x)}, a, b), **out}


class Anything(Required):
    def forward(self, *args: Tensor, **kwargs: Tensor) -> Any:
        return super().forward(*args, **kwargs)


def exported(
    model: nn.Module, data: dict[str, Tensor], file: Path, call: Callable[[nn.Module, Any], Any]
) -> ExportedModel:
    """The export of a model whose losses call it so."""

    def losses(model: nn.Module, batch: Any) -> Tensor:
        call(model, batch)
        return torch.zeros(2)

    problem = pm.Problem(type(model), losses, ["one", "two"], train=data)
    batches = [{name: tensor[:samples] for name, tensor in data.items()} for samples in (2, 3)]
    with export_inputs(problem, model, batches) as (some, more):
        found = export_torchscript(model, file, some, more)
    assert "forward" not in vars(model), "the model is as it was"
    return found


def by_name(model: nn.Module, batch: Any) -> Any:
    return model(**batch)


MASKED = {**DATA, "mask": ONES}


@pytest.mark.parametrize(
    ("made", "data", "inputs"),
    [
        (Sums, DATA, ["x"]),
        (NoneForLoss, DATA, ["x"]),
        (Tuples, DATA, ["x"]),
        (NamedOutputs, DATA, ["x"]),
        (OneNeedsTheOther, DATA, ["x"]),
        (LossesBySample, DATA, ["x"]),
        (MaskAfterLabels, MASKED, ["x", "mask"]),
        (MaskByName, MASKED, ["x", "mask"]),
        (SecondInput, {"x": X, "mask": ONES, "a": LABELS}, ["x", "mask"]),
        (Required, DATA, ["x", "a", "b"]),
        (LossesAlone, DATA, ["x", "a", "b"]),
        (Shares, DATA, ["x", "a", "b"]),
    ],
)
def test_only_inputs_that_predictions_need_remain(
    made: type[nn.Module], data: dict[str, Tensor], inputs: list[str], tmp_path: Path
) -> None:
    model, file = made().eval(), tmp_path / "model.pt"
    assert exported(model, data, file, by_name).inputs == inputs
    traced: Any = torch.jit.load(file)  # type: ignore[no-untyped-call]
    given = {**data, **({"mask": data["x"] > 0} if "mask" in data else {})}
    given = {name: given[name].to(data[name].dtype) for name in inputs}
    expected, found = model(**given), traced(*given.values())
    assert list(traced.state_dict()) == list(model.state_dict())
    if isinstance(expected, tuple):
        expected = dict(enumerate(part for part in expected if part is not None))
        found = dict(enumerate(found))
    expected = {name: part for name, part in expected.items() if part is not None}
    assert list(found) == list(expected)
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_nones_that_the_losses_pass_on_are_no_inputs(tmp_path: Path) -> None:
    model = MaskAfterLabels().eval()
    data = {"x": X, "mask": ONES}
    found = exported(
        model, data, tmp_path / "model.pt", lambda model, batch: model(batch["x"], None, None, batch["mask"])
    )
    assert found.inputs == ["x", "mask"]


def test_arguments_without_names_stay(tmp_path: Path) -> None:
    model, file = Anything().eval(), tmp_path / "model.pt"
    assert len(exported(model, DATA, file, lambda model, batch: model(*batch.values())).inputs) == 3
    traced: Any = torch.jit.load(file)  # type: ignore[no-untyped-call]
    assert torch.equal(traced(*DATA.values())["loss"], model(*DATA.values())["loss"])
    with pytest.raises(ValueError, match=r"names its arguments for an export.* Got the keywords \['a', 'b', 'x'\]"):
        exported(model, DATA, file, by_name)
