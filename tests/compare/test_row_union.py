"""Regret, R2 and IGD+ of stored rows: those of their fronts, against all rows of a table, whenever they were stored."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import pytest
import torch

import paretomtl as pm
from _support.test_splits import front
from paretomtl.compare import Summary, load_rows, save_rows, summaries, verdict
from paretomtl.compare.row_union import RowUnion
from paretomtl.compare.rows import row_of


def fronts(*splits: str) -> list[pm.Front]:
    """Three methods; the second is twice as good on all splits but validation."""
    one = dataclasses.replace(front(*splits), history={"losses": torch.zeros(1, 4, 2)}, method="linear")
    better = {split: losses * (1.05 if split == "val" else 0.5) for split, losses in one.losses.items()}
    turned = {split: losses.flip(0) + 0.03 for split, losses in one.losses.items()}
    return [
        one,
        dataclasses.replace(one, losses=better, method="mgda"),
        dataclasses.replace(one, losses=turned, method="uncertainty"),
    ]


def stored(fronts: list[pm.Front]) -> list[dict[str, Any]]:
    return [json.loads(json.dumps(row_of(each))) for each in fronts]


@pytest.mark.parametrize("splits", [("val", "test"), ("test",), ("val",), ()])
def test_rows_are_worth_what_their_fronts_are(splits: Any) -> None:
    whole = fronts(*splits)
    found = {each.method: each for each in summaries(stored(whole))}
    for one in whole:
        others = [each for each in whole if each is not one]
        summary = found[one.method]
        for part in filter(None, (summary, summary.test)):
            assert part.regrets == pytest.approx((one.regret(*others, split=part.split),), abs=1e-6)
            assert part.r2_values == pytest.approx((one.r2(*others, split=part.split),), abs=1e-6)
            assert part.igd_plus_values == pytest.approx((one.igd_plus(others, part.split, scaled=True),), abs=1e-6)
        assert (summary.test is None) == ("test" not in splits)


def test_more_rows_are_another_union(tmp_path: Any) -> None:
    """Rows of earlier methods are read from their file as they are; what they are worth depends on the table."""
    rows = stored(fronts("val", "test"))
    save_rows(tmp_path / "compare.json", "compare", "", rows[:1])
    before = load_rows(tmp_path / "compare.json")
    (alone,) = summaries(before)
    assert alone.test is not None
    assert alone.test.igd_plus_values == (0.0,)
    again = {each.method: each for each in summaries([*before, *rows[1:]])}["linear"]
    assert again.test is not None
    assert again.test.igd_plus_values > (0.1,)
    assert again.test.regrets > alone.test.regrets
    assert load_rows(tmp_path / "compare.json") == rows[:1]
    assert not {"regret", "regrets", "r2", "igd_plus"} & set(rows[0]), "nothing that depends on others is stored"


def test_separate_networks_and_broken_runs() -> None:
    one, other, third = fronts("val", "test")
    separate = dataclasses.replace(other, method="single-task", reading="importance")
    nothing = {split: torch.full_like(losses, torch.nan) for split, losses in third.losses.items()}
    broken = dataclasses.replace(third, losses=nothing)
    rows = stored([one, separate, broken, dataclasses.replace(third, seed=1)])
    found = {each.method: each for each in summaries(rows)}
    alone = found["single-task"]
    assert (alone.regret, alone.r2, alone.igd_plus) == (None, None, None)
    assert found["linear"].regrets == pytest.approx((one.regret(third, split="val"),)), "they are no part of the union"
    lost = found["uncertainty"]
    assert lost.regrets[0] == lost.r2_values[0] == lost.igd_plus_values[0] == math.inf, "no models, no luck"
    assert lost.regret is not None
    assert lost.regret[0] == math.inf
    assert math.isnan(lost.regret[1])
    assert "uncertainty is ahead" not in verdict([each for each in found.values() if not each.ideal])
    empty = RowUnion(stored([broken]), "val")
    assert empty.regrets(rows) == empty.r2_values(rows) == empty.igd_plus_values(rows) == ()
    assert RowUnion(stored([separate]), "val").regrets(rows) == ()


def of(method: str, volume: float, **numbers: tuple[float, ...]) -> Summary:
    volumes = (volume - 0.01, volume, volume + 0.01)
    return Summary(method, 5, volumes, False, 1.0, [0.1, 0.1], 5.0, 1.0, **numbers)  # type: ignore[arg-type]


def test_the_verdict_says_who_leads_by_what() -> None:
    low, high, wide = (0.1, 0.11, 0.09), (0.2, 0.21, 0.19), (0.05, 0.11, 0.1)
    every = {"regrets": low, "r2_values": low, "igd_plus_values": low}
    first = of("linear", 2.0, **every)
    worse = of("mgda", 1.0, regrets=high, r2_values=high, igd_plus_values=high)
    assert verdict([first, worse]).endswith(" linear leads by regret, R2 and IGD+ on training, too.")
    mixed = of("mgda", 1.0, regrets=wide, r2_values=high, igd_plus_values=(0.01, 0.02, 0.03))
    assert verdict([first, mixed]).endswith(
        " By regret on training, mgda is ahead of linear, but they cannot be told apart there. linear leads by R2 on "
        "training, too. By IGD+ on training, mgda is ahead of linear, by more than seeds explain."
    )
    assert "regret" not in verdict([first, of("mgda", 1.0)]), "unknown for one of them"
    on_test = dataclasses.replace(first, test=dataclasses.replace(first, split="test"))
    behind = dataclasses.replace(mixed, test=dataclasses.replace(worse, split="test"))
    assert verdict([on_test, behind]).endswith(" linear leads by regret, R2 and IGD+ on test, too.")
    once = [dataclasses.replace(each, hypervolumes=(2.0,), regrets=each.regrets[:1]) for each in (worse, first)]
    assert "By regret, R2 and IGD+ on training, linear is ahead of mgda, but they cannot be told apart" in verdict(once)
    lost = dataclasses.replace(worse, regrets=(0.1, math.inf, 0.1))
    assert "No method can be told apart from linear by regret" in verdict([first, lost]), "one seed proves nothing"
