"""Cost curves: what a step costs, what rows store of a history, and hypervolumes against both costs."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import paretomtl as pm
from _helpers.fronts import front_of
from compare.test_rows import problem
from paretomtl.compare import compare, load_rows, save_rows, summaries
from paretomtl.compare.cost import cost_curves, cost_fields, step_cost
from paretomtl.compare.rows import row_of

LATE = torch.tensor([[0.2, 0.8], [0.8, 0.2]], dtype=torch.float64)


def run(method: str = "linear", seed: int = 0, *, val: bool = True, epochs: int = 4, **fields: Any) -> pm.Front:
    """Two models whose losses fall from epoch to epoch to those of the front, halving the distance."""
    steps = torch.stack([LATE + 0.5**t for t in range(1, epochs)] + [LATE])
    splits = {"val": LATE} if val else {}
    history = {"losses": steps + 0.5, "weights": steps, **({"val": steps} if val else {})}
    made = front_of(LATE.tolist(), method=method, splits=splits, reference=(2.0, 2.0), **fields)
    return dataclasses.replace(made, history=history, seed=seed, seconds=8.0)


def row(front: pm.Front, **fields: Any) -> dict[str, Any]:
    return json.loads(json.dumps({**row_of(front), **cost_fields(front), **fields}))  # type: ignore[no-any-return]


@given(st.integers(2, 40), st.integers(1, 100))
def test_what_a_step_costs(tasks: int, every: int) -> None:
    """A backward pass is twice a forward pass: m of them over one forward pass are (1 + 2m)/3 of one pair."""
    assert step_cost(False, tasks, every) == 1.0
    assert step_cost(True, tasks) == pytest.approx((1 + 2 * tasks) / 3)
    assert step_cost(True, tasks, every) == pytest.approx((step_cost(True, tasks) + (every - 1)) / every)


def test_methods_say_how_many_backward_passes_they_take() -> None:
    costs = {name: cost_fields(run(name))["step_cost"] for name in ("linear", "p-norm", "pareto-mtl", "mgda", "mine")}
    two = pytest.approx(5 / 3)
    assert costs == {"linear": 1.0, "p-norm": 1.0, "pareto-mtl": two, "mgda": two, "mine": None}
    assert cost_fields(run("mine"), pm.ParetoMTL(), 2)["step_cost"] == pytest.approx(4 / 3), "as it was configured"


def test_curves_have_the_hypervolume_of_each_epoch() -> None:
    found = cost_curves([row(run()), row(run("mgda", 1))])
    assert found is not None
    assert (found.split, found.reference) == ("val", pytest.approx([0.88, 0.88]))
    one, other = found.curves
    history = run().history["val"]
    for epoch, volume in zip(one.epochs, one.hypervolumes, strict=True):
        points = history[epoch - 1]
        inside = points[(points < 0.88).all(-1)].tolist()
        expected = pm.Front.from_losses(inside, tasks=["a", "b"]).hypervolume(found.reference) if inside else 0.0
        assert volume == pytest.approx(expected, abs=1e-5)
    assert one.hypervolumes[0] == 0.0
    assert one.hypervolumes[-1] == pytest.approx(2 * 0.08 * 0.68 - 0.08**2)
    assert one.epochs == [1, 2, 3, 4]
    assert one.seconds == pytest.approx([2.0, 4.0, 6.0, 8.0])
    assert one.passes == [2.0, 4.0, 6.0, 8.0], "two models"
    assert other.passes == pytest.approx([10 / 3, 20 / 3, 10, 40 / 3])


def test_the_mean_over_seeds_needs_the_same_epochs() -> None:
    late = dataclasses.replace(run(seed=1), seconds=16.0)
    found = cost_curves([row(run()), row(late), row(run("mgda")), row(run("mgda", 1, epochs=3))])
    assert found is not None
    mean = found.mean("linear")
    assert mean is not None
    assert mean.seconds == pytest.approx([3.0, 6.0, 9.0, 12.0])
    assert mean.hypervolumes == found.curves[0].hypervolumes
    assert found.mean("mgda") is None
    assert found.mean("nobody") is None


def test_validation_else_training_and_never_both() -> None:
    alone = cost_curves([row(run(val=False))])
    assert alone is not None
    assert alone.split == "train"
    assert alone.curves[0].hypervolumes == [0.0] * 4, "means over an epoch are half a unit above the final losses"
    mixed = cost_curves([row(run()), row(run("mgda", val=False), split="val")])
    assert mixed is not None
    assert [curve.method for curve in mixed.curves] == ["linear"]
    assert mixed.left_out == ["mgda with seed 0: it has no history on validation"]


def test_rows_of_earlier_versions_have_no_curve() -> None:
    old = {name: value for name, value in row(run("mgda")).items() if name not in ("history", "step_cost")}
    assert cost_curves([old]) is None
    found = cost_curves([old, row(run()), row(run("single-task", reading="importance"))])
    assert found is not None
    assert found.left_out == ["mgda with seed 0: its row has no history"]
    assert [curve.method for curve in found.curves] == ["linear"], "separate networks are not a front"
    unknown = cost_curves([{**row(run()), "step_cost": None}])
    assert unknown is not None
    assert unknown.curves[0].passes is None


def test_broken_models_count_for_nothing() -> None:
    front = run()
    history = {name: table.clone() for name, table in front.history.items()}
    history["val"][1:, 0] = torch.nan
    found = cost_curves([row(dataclasses.replace(front, history=history))])
    assert found is not None
    assert found.curves[0].hypervolumes[-1] == pytest.approx(0.08 * 0.68)
    nothing = torch.full_like(LATE, torch.nan)
    broken = dataclasses.replace(front, losses={"train": nothing, "val": nothing})
    assert cost_curves([row(broken)]) is None, "without final losses there is no reference"


@given(st.integers(1, 400), st.integers(1, 60), st.integers(2, 6))
def test_long_histories_are_thinned(epochs: int, models: int, tasks: int) -> None:
    table = torch.arange(epochs, dtype=torch.float64)[:, None, None].expand(epochs, models, tasks)
    front = pm.Front.from_losses(torch.ones(models, tasks), tasks=list("abcdef"[:tasks]))
    stored = cost_fields(dataclasses.replace(front, history={"losses": table, "val": table}))["history"]
    kept = stored["epochs"]
    assert (kept[0], kept[-1]) == (1, epochs)
    assert kept == sorted(set(kept))
    assert [losses[0][0] + 1 for losses in stored["losses"]] == kept
    assert len(kept) <= 60
    assert len(kept) == epochs or len(kept) >= 10
    assert len(kept) * models * tasks <= max(6000, 10 * models * tasks)


def test_compare_stores_what_curves_need_and_recognises_rows_without(tmp_path: Path) -> None:
    options: dict[str, Any] = {"folder": tmp_path, "epochs": 3, "device": "cpu", "progress": "quiet", "weigh_every": 2}
    made = problem(val=True, test=True)
    compare(made, ["mgda"], 1, preferences=2, **options)
    (stored,) = load_rows(tmp_path / "compare.json")
    assert stored["step_cost"] == pytest.approx((5 / 3 + 1) / 2)
    assert stored["history"]["split"] == "val"
    assert stored["history"]["losses"][-1] == stored["losses"]["val"]
    old = {name: value for name, value in stored.items() if name not in ("history", "step_cost")}
    save_rows(tmp_path / "compare.json", "compare", "", [old])
    rows, _ = compare(made, ["mgda", "linear"], 1, preferences=2, **options)
    assert rows[0] == old, "not trained again"
    assert rows[1]["step_cost"] == 1.0
    assert len(summaries(rows)) == 2
    found = cost_curves(rows)
    assert found is not None
    assert [curve.method for curve in found.curves] == ["linear"]
