"""What the rows mean to each weighting and scalarizer of TorchJD, and which of them are refused."""

from __future__ import annotations

import itertools
import warnings

import pytest
import torch
from torch import Tensor

import paretomtl as pm
from paretomtl.methods import Step, TorchJD, _torchjd

ROWS = ["AlignedMTL", "COSMOS", "Constant", "DualProj", "PBI", "STCH", "UPGrad"]
OPTIONS = {"STCH": {"mu": 0.1}, "PBI": {"theta": 5.0}, "COSMOS": {"lambda_": 5.0}}
PLAIN = {"PBI": {"theta": 0.0}, "COSMOS": {"lambda_": 0.0}}


def descend(method: TorchJD, rows: list[list[float]], *, steps: int = 150) -> Tensor:
    """The losses of two parabolas with centres 1 and -1 after gradient descent from 0, one model a row."""
    preferences = torch.tensor(rows, dtype=torch.float64)
    x, state = torch.zeros(len(rows), 1, dtype=torch.float64), method.init(preferences)
    for _ in range(steps):
        gradients = torch.stack([x - 1.0, x + 1.0], 1)  # [K, m, 1]
        losses = gradients.square().sum(-1) / 2.0 + 0.1
        weights, state = method.weigh(Step(losses, gradients @ gradients.mT), state)
        x = x - 0.05 * (weights[..., None] * gradients).sum(1)
    return losses


def test_everything_in_torchjd_is_classified_once() -> None:
    from torchjd import aggregation, scalarization

    weightings = {name.removesuffix("Weighting") for name in aggregation.__all__ if name.endswith("Weighting")} - {""}
    scalarizers = set(scalarization.__all__) - {"Scalarizer"}
    tables = [set(_torchjd._ROWS), _torchjd._STARTS, set(_torchjd._NEEDS_MORE)]
    assert weightings | scalarizers <= set.union(*tables)
    assert not any(a & b for a, b in itertools.combinations(tables, 2))


@pytest.mark.parametrize(("name", "options"), [*((n, OPTIONS.get(n, {})) for n in ROWS), *PLAIN.items()])
def test_rows_mean_what_the_reading_says(name: str, options: dict[str, float]) -> None:
    """An importance asks for a small loss, a direction allows a large one."""
    method = TorchJD(name, options)
    losses = descend(method, [[0.8, 0.2], [0.2, 0.8]])
    first_is_better = (losses[:, 0] < losses[:, 1]).tolist()
    assert first_is_better == ([True, False] if method.reading == "importance" else [False, True])


def test_directions_are_told_to_the_front_and_to_its_choices() -> None:
    rows = [[0.6, 0.8], [0.8, 0.6]]
    sgd = lambda parameters: torch.optim.SGD(parameters, lr=0.05)  # noqa: E731
    method = TorchJD("PBI", {"theta": 2.0})
    front = pm.fit(pm.problems.quadratic(), method, rows, epochs=80, optimizer=sgd, progress="quiet", device="cpu")
    assert front.reading == "direction"
    assert [front.select(direction=row).k for row in rows] == [0, 1]
    assert bool((front.angle() < 15.0).all())


def test_a_bare_number_of_directions_is_spread_as_directions() -> None:
    torch.testing.assert_close(TorchJD("PBI", {"theta": 5.0}).spread(5, 2), pm.ParetoMTL().spread(5, 2))
    torch.testing.assert_close(TorchJD("PBI", {"theta": 0.0}).spread(5, 2), pm.Linear().spread(5, 2))


def test_rows_given_once_for_all_leave_starts() -> None:
    given = TorchJD("PBI", {"theta": 5.0, "weights": torch.tensor([0.5, 0.5])})
    assert given.reading == "start"


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("COSMOS", {}, r"'options' must set lambda_: COSMOS has no default for it, .* Got \{\} instead"),
        ("PBI", {}, "'options' must set theta: PBI has no default for it"),
        ("PBI", {"weights": torch.ones(2)}, "'options' must set theta"),
        ("UPGrad", {"prefs": 1}, "'options' must be arguments of UPGrad: pref_vector, .*Got 'prefs' instead"),
        ("Mean", {"c": 1}, "'options' must be arguments of Mean: it takes none. Got 'c' instead"),
        ("PBI", {"theta": -1.0}, "'options' must be what PBI takes.*theta"),
        ("PBI", {"theta": "much"}, "'options' must be what PBI takes. Got .'theta': 'much'. instead"),
    ],
)
def test_options_are_checked_when_the_method_is_made(source: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TorchJD(source, options)


def test_rows_of_unknown_meaning_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer TorchJD may take rows that nobody has looked up; given once for all, they are no rows of ours."""
    from torchjd import aggregation

    class NewWeighting(aggregation.Weighting):  # type: ignore[misc]
        def __init__(self, wish: Tensor | None = None) -> None:
            super().__init__()

        def forward(self, gramian: Tensor) -> Tensor:
            return gramian[0]

    monkeypatch.setattr(aggregation, "NewWeighting", NewWeighting, raising=False)
    with pytest.raises(ValueError, match=r"'options' must set wish for New: .*directions or as importances is known"):
        TorchJD("New")
    assert TorchJD("New", {"wish": None}).reading == "start"


@pytest.mark.parametrize(("theta", "warned"), [(0.1, True), (2.0, False)])
def test_losses_that_run_against_their_directions_are_warned_of(theta: float, warned: bool) -> None:
    """With a small penalty the weighted sum prevails: rows that are called directions act as importances."""
    sgd = lambda parameters: torch.optim.SGD(parameters, lr=0.05)  # noqa: E731
    rows, method = [[0.6, 0.8], [0.8, 0.6]], TorchJD("PBI", {"theta": theta})
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        pm.fit(pm.problems.quadratic(), method, rows, epochs=80, optimizer=sgd, progress="quiet", device="cpu")
    assert any("run against" in str(each.message) for each in said) == warned
