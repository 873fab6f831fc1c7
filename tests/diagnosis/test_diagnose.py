"""Problems whose answer is known."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import paretomtl as pm
from paretomtl.diagnosis._diagnose import usual_epochs

FAST = {"device": "cpu", "strategy": "batched", "optimizer": lambda p: torch.optim.Adam(p, lr=0.02)}


def data(count: int = 96, targets: int = 2, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Inputs, and linear functions of them."""
    g = torch.Generator().manual_seed(seed)
    weights = torch.randn(6, targets, generator=torch.Generator().manual_seed(1))
    x = torch.randn(count, 6, generator=g)
    return x, x @ weights


class Pair(nn.Module):
    """Two networks that share nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(6, 1), nn.Linear(6, 1)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.left(x), self.right(x)], -1)


def squares(outputs: Tensor, targets: Tensor) -> Tensor:
    return torch.stack([(outputs[:, i] - targets[:, i]).square().mean() for i in range(2)])


def shared(losses: Callable[[Tensor, Tensor], Any], tasks: tuple[str, ...] = ("a", "b"), **options: Any) -> pm.Problem:
    """One linear output for all tasks."""
    options = {"train": data(), **options}
    return pm.Problem(lambda: nn.Linear(6, 1), losses, tasks, **options)


def diagnose(problem: pm.Problem, **options: Any) -> pm.Diagnosis:
    return pm.diagnose(problem, **{"epochs": 150, **FAST, **options})


def off_diagonal(found: pm.Diagnosis) -> Tensor:
    return found.cosines[:, 0, 1]


@pytest.mark.parametrize("problem", [pm.problems.quadratic(), pm.problems.synthetic()], ids=["quadratic", "synthetic"])
def test_a_known_trade_off_wants_a_front(problem: pm.Problem) -> None:
    found = diagnose(problem, epochs=300)
    assert found.late_cosines[0, 1] < -0.9  # on the segment between the two centres
    assert found.verdict.word == "front"
    assert found.verdict.preferences == 5
    assert found.verdict.scale is None
    assert (found.alone.mean(0) < 0.05).all()


def test_three_tasks_want_more_preferences() -> None:
    found = diagnose(pm.problems.quadratic(3, 3), epochs=300)
    assert found.verdict.word == "front"
    assert found.verdict.preferences == 15
    assert len(found.pairs) == 3
    # At the centre of the simplex the three gradients are the corners of a regular one.
    torch.testing.assert_close(found.late_cosines[0, 1], torch.tensor(-0.5).double(), atol=0.05, rtol=0)


@pytest.mark.filterwarnings("ignore:tasks 'a' and 'b' have the same loss and gradients")
def test_identical_tasks_want_one_model() -> None:
    def same(outputs: Tensor, targets: Tensor) -> Tensor:
        return torch.stack([(outputs[:, 0] - targets[:, 0]).square().mean()] * 2)

    found = diagnose(shared(same))
    torch.testing.assert_close(off_diagonal(found), torch.ones(3).double(), atol=1e-5, rtol=0)
    assert not found.negative.any()
    assert found.verdict.word == "one-model"
    assert found.verdict.preferences is None


def test_tasks_that_share_nothing_want_one_model() -> None:
    found = diagnose(pm.Problem(Pair, squares, ["a", "b"], train=data()))
    assert not off_diagonal(found).any()
    assert found.verdict.word == "one-model"


def test_opposed_tasks_want_a_front() -> None:
    def opposed(outputs: Tensor, targets: Tensor) -> Tensor:
        y = targets[:, 0]
        return torch.stack([(outputs[:, 0] - y).square().mean(), (outputs[:, 0] + y).square().mean()])

    found = diagnose(shared(opposed))
    assert found.late_cosines[0, 1] < -0.99
    assert found.negative[2, 0, 1] == 1
    assert found.verdict.word == "front"


def test_losses_of_different_units_want_scaling() -> None:
    def units(outputs: Tensor, targets: Tensor) -> Tensor:
        return (squares(outputs, targets) + 1) * torch.tensor([1.0, 1000.0])

    found = diagnose(pm.Problem(Pair, units, ["small", "large"], train=data()))
    assert found.verdict.scale == "first"
    assert "large is" in found.verdict.notes[0]
    assert found.verdict.word == "one-model"


def test_gradients_of_different_lengths_want_no_scale_and_are_named() -> None:
    """Measured: Pareto MTL does best with losses that compare as they are (docs/concepts/methods.md)."""

    def steep(outputs: Tensor, targets: Tensor) -> Tensor:
        return torch.stack([outputs.square().mean() * 100 + 1, 0.1 * (outputs - 10 * targets[:, :1]).abs().mean()])

    found = diagnose(shared(steep), epochs=20)
    assert found.norms[0] > 10 * found.norms[1]
    assert found.verdict.scale is None
    assert found.verdict.notes[-1].startswith("Gradients of a are ")
    assert "needs no scale" in found.verdict.notes[-1]


class Narrow(nn.Module):
    """Two heads on one feature."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.heads = nn.Sequential(nn.Linear(6, 1), nn.Tanh()), nn.Linear(1, 2)

    def forward(self, x: Tensor) -> Any:
        return self.heads(self.trunk(x))


def few_labels(noise: float) -> pm.Problem:
    """The same function to learn twice, the second time from six samples; most batches have none of these."""

    def losses(outputs: Tensor, targets: Tensor) -> Tensor:
        known = targets.isfinite()
        squared = (outputs - torch.where(known, targets, 0.0)).square()
        each = torch.where(known, squared, 0.0).sum(0) / known.sum(0)
        return torch.stack([each[0], each[1]])

    def labelled(count: int, seed: int) -> tuple[Tensor, Tensor]:
        x, y = data(count, seed=seed)
        y = y[:, :1].tanh()
        return x, torch.cat([y, 2 * y], -1)

    x, y = labelled(256, 0)
    y = y + noise * torch.randn(y.shape, generator=torch.Generator().manual_seed(2))
    y[6:, 1] = torch.nan
    return pm.Problem(Narrow, losses, ["many", "few"], train=(x, y), val=labelled(256, 1))


@pytest.mark.study
def test_a_task_with_few_labels_is_helped() -> None:
    found = diagnose(few_labels(noise=0.0), epochs=100, batch_size=32, seeds=4)
    assert found.split == "val"
    assert found.verdict.word == "helping"
    assert "it beats separate networks in few" in found.verdict.text
    assert found.ratios[1] < 0.5


@pytest.mark.study
def test_help_for_one_task_at_the_cost_of_another_is_told() -> None:
    """Noise of six samples spoils the feature."""
    found = diagnose(few_labels(noise=0.5), epochs=100, batch_size=32, seeds=4)
    assert found.verdict.word == "gap-only"
    assert "worse than separate networks in many" in found.verdict.text
    assert "better in few" in found.verdict.text


def test_a_gap_that_stays_to_the_end_is_a_trade_off() -> None:
    """Noise hides conflict, as in multi-digits; what joint training costs after the whole recipe does not lie."""
    found = diagnose(pm.Problem(Pair, squares, ["a", "b"], train=data()), epochs=20)

    def told(
        gaps: list[float], planned: int | None, norms: list[float] | None = None, units: tuple[float, ...] = (1.0, 1.0)
    ) -> pm.diagnosis.Verdict:
        first = found.first * torch.tensor(units).double()
        alone = first * torch.tensor([[0.405], [0.41], [0.415]])
        joint = alone + first * torch.tensor(gaps)
        lengths = found.norms if norms is None else torch.tensor(norms).double()
        losses = {"first": first, "last": joint.mean(0), "alone": alone, "joint": joint}
        return replace(found, **losses, planned=planned, norms=lengths).verdict

    assert told([0.0, 0.0], 20).word == "one-model"
    short = told([0.2, 0.2], 200)
    assert (short.word, short.preferences) == ("gap-only", None)
    assert "Diagnose again with all 200 epochs" in short.text
    assert "as many epochs as you are going to train" in told([0.2, 0.2], None).text
    for gaps in ([0.2, 0.2], [0.2, 0.0]):
        whole = told(gaps, 20)
        assert (whole.word, whole.preferences) == ("front", 5)
        assert "gradients hardly conflict, but over all epochs" in whole.text
    assert told([0.2, -0.2], 20).word == "gap-only", "one task gains from the other"
    lopsided = told([0.2, 0.2], 20, norms=[1.0, 100.0])
    assert lopsided.word == "gap-only"
    assert "Try other weights" in lopsided.text
    scaled = told([0.2, 0.2], 20, units=(1.0, 100.0))
    assert (scaled.word, scaled.scale) == ("gap-only", "first")
    assert "only if losses differ by no more than a factor of 10: here losses of b are 33 times" in scaled.text
    assert '(scale="auto", or --set scale=auto)' in scaled.text
    assert dict(scaled.again or ()) == {"seeds": 3, "epochs": 20, "scale": "auto"}
    assert told([0.2, 0.2], 20, units=(1.0, 1.0)).word == "front", "the same data with comparable losses"
    early = told([0.2, 0.2], 200, units=(1.0, 100.0))
    assert "Diagnose again with scaled losses and all 200 epochs" in early.text
    assert dict(early.again or ()) == {"seeds": 3, "epochs": 200, "scale": "auto"}


def test_a_task_without_gradient_is_named() -> None:
    def flat(outputs: Tensor, targets: Tensor) -> Tensor:
        return torch.stack([(outputs[:, 0] - targets[:, 0]).square().mean(), 1 + 0 * outputs.sum()])

    with pytest.warns(UserWarning, match=r"losses of tasks \['b'\] were the same number in all epochs"):
        found = diagnose(shared(flat), epochs=20)
    assert found.norms[1] == 0
    assert off_diagonal(found).isnan().all()
    assert found.verdict.word == "unclear"
    assert found.verdict.text.startswith("No gradient: b.")


def test_a_task_that_never_has_labels_is_named() -> None:
    def unlabelled(outputs: Tensor, targets: Tensor) -> Tensor:
        none = (outputs[:, 0] * torch.nan).mean()
        return torch.stack([(outputs[:, 0] - targets[:, 0]).square().mean(), none])

    found = diagnose(shared(unlabelled), epochs=20)
    assert found.verdict.word == "unclear"
    assert "No labels in any batch, or some that are NaN: b." in found.verdict.text
    assert json.loads(json.dumps(found.numbers(), allow_nan=False))["norms"][1] is None


def test_too_short_a_run_says_so() -> None:
    found = diagnose(pm.Problem(Pair, squares, ["a", "b"], train=data()), epochs=1, optimizer=None)
    assert found.verdict.word == "unclear"
    assert "Hardly learnt" in found.verdict.text
    assert found.verdict.again is None, "nobody knows how many epochs are enough"
    of = pm.Problem(Pair, squares, ["a", "b"], train=data(), recipe=pm.Recipe(epochs=40))
    assert dict(diagnose(of, epochs=1, optimizer=None).verdict.again or ()) == {"seeds": 3, "epochs": 40}


@pytest.mark.filterwarnings("ignore:targets of tasks .* are in large units")
def test_what_is_learnt_is_counted_from_the_whole_split() -> None:
    """The first batch of a task with large targets may have a far larger loss, by chance."""
    x, y = data()
    far = torch.stack([y[:, 0], 1e4 * (1 + y[:, 1].square())], 1)  # out of reach, and with a long tail
    found = diagnose(pm.Problem(Pair, squares, ["near", "far"], train=(x, far)), epochs=4, seeds=2, batch_size=4)
    assert (found.first[1] / found.last[1] - 1).abs() > 0.1
    assert found.learnt[1].abs() < 0.01
    assert found.learnt[0] > 0.1
    assert "Hardly learnt, even by a separate network: far." in found.verdict.text


def test_models_that_break_are_named() -> None:
    found = diagnose(
        pm.Problem(Pair, squares, ["a", "b"], train=data()), optimizer=lambda p: torch.optim.SGD(p, lr=1e6)
    )
    assert found.broken > 0
    assert found.verdict.word == "unclear"
    assert "not finite" in found.verdict.text


@pytest.mark.parametrize("strategy", ["sequential", "batched"])
def test_strategies_measure_the_same(strategy: Any) -> None:
    found = diagnose(pm.problems.quadratic(), epochs=30, strategy=strategy)
    other = diagnose(pm.problems.quadratic(), epochs=30)
    torch.testing.assert_close(found.cosines, other.cosines, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(found.joint, other.joint, atol=1e-4, rtol=1e-4)


def test_one_seed_bears_no_verdict() -> None:
    found = diagnose(pm.problems.quadratic(), seeds=1, epochs=300)
    assert found.verdict.word == "cannot-tell-yet"
    assert found.verdict.text.startswith("One seed cannot tell")
    assert found.verdict.again == (("seeds", 3), ("epochs", 300))
    assert found.ends is None, "and no models near the ends are trained"
    assert diagnose(pm.problems.quadratic(), **dict(found.verdict.again)).verdict.word == "front"


def test_the_text_fits_into_80_columns() -> None:
    names = [f"a task with a very long name, number {i}" for i in range(6)]
    weights = torch.randn(6, 6, generator=torch.Generator().manual_seed(0))
    problem = pm.Problem(
        lambda: nn.Linear(6, 1),
        lambda outputs, targets: (outputs - 1e4 * targets).square().mean(0),
        names,
        train=(data()[0], data()[0] @ weights),
    )
    text = repr(diagnose(problem, epochs=5))
    assert max(map(len, text.splitlines())) <= 80
    assert "and 5 pairs that agree more" in text


@pytest.mark.parametrize(
    ("epochs", "expected"),
    [(None, 5), (2, 2), (4, 3), (30, 3), (100, 10)],
    ids=["none", "fewest", "few", "usual", "many"],
)
def test_a_tenth_of_the_recipe_and_three_epochs_at_least(epochs: int | None, expected: int) -> None:
    assert usual_epochs(shared(squares, recipe=pm.Recipe(epochs=epochs))) == expected
    assert usual_epochs(pm.problems.quadratic()) == 1000


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"epochs": 0}, "'epochs' must be a whole number of at least 1"),
        ({"seeds": 0}, "'seeds' must be a whole number of at least 1"),
        ({"seeds": []}, "'seeds' must be one or more numbers"),
        ({"split": "val"}, "'split' must be one that the problem has"),
        ({"split": "nix"}, "'split' must be one that the problem has"),
    ],
    ids=str,
)
def test_bad_input_is_named(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        diagnose(pm.problems.quadratic(), **options)


def test_only_problems_are_diagnosed() -> None:
    with pytest.raises(TypeError, match="'problem' must be a Problem"):
        pm.diagnose("quadratic")  # type: ignore[arg-type]


def test_a_diagnosis_of_scaled_losses_is_that_of_losses_in_other_units() -> None:
    """By given factors; "auto" makes units not matter, and leaves losses alone that compare."""
    plain, unit = pm.problems.quadratic(), torch.tensor([1.0, 64.0])
    scaled = replace(plain, losses=lambda x: plain.losses(x) * unit, truth=None)
    options: dict[str, Any] = {"epochs": 25, "device": "cpu", "precision": "float64", "strategy": "batched"}
    options["optimizer"] = lambda parameters: torch.optim.Adam(parameters, lr=0.05)
    expected = pm.diagnose(plain, **options)
    found = pm.diagnose(scaled, scale=(1.0, 1 / 64), **options)
    assert expected.factors is None
    assert found.verdict.word == expected.verdict.word == "front"
    torch.testing.assert_close(found.cosines, expected.cosines)
    for name in ("first", "last", "norms", "joint", "alone"):
        torch.testing.assert_close(getattr(found, name), getattr(expected, name) * unit)
    torch.testing.assert_close(
        torch.tensor(found.verdict.directions), torch.tensor(expected.verdict.directions), rtol=0, atol=2e-3
    )
    assert found.verdict.factors == (1.0, 1 / 64)
    assert found.verdict.scale is None
    assert pm.diagnose(plain, scale="auto", **options).factors == (1.0, 1.0)
    automatic = pm.diagnose(scaled, scale="auto", **options)
    assert (automatic.verdict.scale, automatic.verdict.word) == (None, "front")
    with pytest.raises(ValueError, match="'scale' of 'diagnose' must be one of"):
        pm.diagnose(plain, scale="running")
