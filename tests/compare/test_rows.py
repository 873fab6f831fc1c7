"""Comparisons rank by validation, else by training; test is beside it, and rows of other splits are never mixed."""

from __future__ import annotations

import dataclasses
import json
import statistics
from pathlib import Path
from typing import Any

import pytest
import torch

import paretomtl as pm
from _support.test_splits import front
from paretomtl.compare import common_reference, compare, load_rows, save_rows, summaries, tight_references, verdict
from paretomtl.compare.rows import read_row, row_of


def rows_of(*splits: str) -> list[dict[str, Any]]:
    """Two methods: "linear" is better on validation, "mgda" on test and on training."""
    one = dataclasses.replace(front(*splits), history={"losses": torch.zeros(1, 4, 2)}, method="linear")
    swapped = {split: losses if split == "val" else losses / 2 for split, losses in one.losses.items()}
    if "val" in swapped:
        swapped["val"] = swapped["val"] * 1.05
    other = dataclasses.replace(one, losses=swapped, method="mgda")
    return [json.loads(json.dumps(row_of(each))) for each in (one, other)]


def test_rows_have_the_numbers_of_all_splits_by_name() -> None:
    row, _ = rows_of("val", "test")
    found = front("val", "test")
    assert row["split"] == "val"
    for split in ("train", "val", "test"):
        assert row["losses"][split] == found.losses[split].tolist()
        assert row["metrics"][split]["score"] == pytest.approx(found.metrics[split]["score"].tolist())
        assert row["spread"][split] == pytest.approx(found.spread(split), abs=1e-5)
        assert row["nondominated"][split] == int(found.nondominated(split).sum())
    assert row["in_region"] == found.region_hits("train")
    assert row["angles"] == pytest.approx(found.angle("train").tolist(), abs=1e-3)


def test_methods_are_ranked_on_validation_and_test_is_beside() -> None:
    rows = rows_of("val", "test")
    first, second = summaries(rows)
    assert (first.method, first.split, second.method) == ("linear", "val", "mgda")
    assert first.hypervolume[0] == pytest.approx(front("val", "test").hypervolume())
    assert first.test is not None
    assert first.test.split == "test"
    assert first.test.hypervolume[0] == pytest.approx(front("val", "test").hypervolume(split="test"))
    assert first.best == [0.1, 0.1]
    assert first.test.best == [0.2, 0.1], "the losses on test of the models that are best on validation, 0 and 2"
    assert "linear has the largest hypervolume on val" in verdict([first, second])
    first, second = summaries(rows_of("test"))
    assert (first.method, first.split) == ("mgda", "train")


def earlier(row: dict[str, Any], split: str) -> dict[str, Any]:
    """As versions before stored it: one split, and losses on training."""
    own = {name: row[name].get(split, {}) for name in ("losses", "metrics", "spread", "nondominated")}
    return {**row, **own, "split": split, "train_losses": row["losses"]["train"]}


@pytest.mark.parametrize("split", ["train", "val", "test"])
def test_rows_of_earlier_versions_are_read_by_split(split: str) -> None:
    row, _ = rows_of("val", "test")
    found = read_row(earlier(row, split))
    assert found["losses"] == {name: row["losses"][name] for name in {split, "train"}}
    assert found["split"] == ("val" if split == "val" else "train")
    for name in found["losses"]:
        assert found["spread"][name] == pytest.approx(row["spread"][name], abs=1e-5)
        assert found["nondominated"][name] == row["nondominated"][name]
    assert read_row(row) == row


def test_indicators_of_stored_rows_are_those_of_their_fronts() -> None:
    """Of rows of earlier versions, too, which have neither angles nor the other split."""
    rows = rows_of("val", "test")
    one = front("val", "test")
    other = dataclasses.replace(one, losses={"val": one.losses["val"] * 1.05, "test": one.losses["test"] / 2})
    points = {split: one.tight_reference(other, split=split) for split in ("val", "test")}
    assert tight_references(rows) == {split: pytest.approx(point) for split, point in points.items()}
    first, _ = summaries(rows)
    assert first.test is not None
    for part, split in ((first, "val"), (first.test, "test")):
        assert part.box_share == pytest.approx(one.box_share(split=split))
        assert part.delta_m is None
    assert first.tight_hypervolumes == pytest.approx((one.hypervolume(points["val"], "val"),))
    assert first.test.tight_hypervolumes == (0.0,), "the other front is twice as good on test, and this one beyond it"
    assert first.in_region == one.region_hits("train") / 4
    assert first.median_angle == pytest.approx(statistics.median(one.angle("train").tolist()), abs=1e-3)
    assert (first.test.in_region, first.test.median_angle) == (None, None), "regions are those of training"
    for row in rows:
        del row["angles"]
    old, _ = summaries([earlier(row, "val") for row in rows])
    assert (old.tight_hypervolumes, old.box_share) == (first.tight_hypervolumes, first.box_share)
    assert (old.in_region, old.median_angle, old.test) == (first.in_region, None, None)


def test_splits_are_never_mixed() -> None:
    row, other = rows_of("val", "test")
    with pytest.raises(ValueError, match=r"These rows have no validation losses: mgda with seed 0\. The others have"):
        summaries([row, earlier(other, "test")])
    with pytest.raises(ValueError, match="These rows have no validation losses: mgda with seed 0"):
        common_reference([{**each, "reference": None} for each in (row, earlier(other, "test"))])


def problem(**splits: Any) -> pm.Problem:
    x = torch.linspace(-1, 1, 12)[:, None]
    data = (x, torch.cat([x.sin(), x.cos()], 1))
    model, losses = (lambda: torch.nn.Linear(1, 1)), (lambda outputs, targets: (outputs - targets).square().mean(0))
    given = dict.fromkeys(splits, data)
    return pm.Problem(model, losses, ["sine", "cosine"], train=data, **given)


def test_stored_rows_without_validation_losses_are_refused(tmp_path: Path) -> None:
    options: dict[str, Any] = {"folder": tmp_path, "epochs": 1, "device": "cpu", "progress": "quiet"}
    both = problem(val=True, test=True)
    (row,), _ = compare(both, ["linear"], 1, **options)
    assert set(row["losses"]) == {"train", "val", "test"}
    save_rows(tmp_path / "compare.json", "compare", "", [earlier(row, "test")])
    message = r"compare.json': these rows have no validation losses: linear with seed 0\. .*Delete that file"
    with pytest.raises(ValueError, match=message):
        compare(both, ["linear"], 1, **options)
    assert load_rows(tmp_path / "compare.json") == [earlier(row, "test")], "what is refused is left as it is"


def test_rows_of_a_problem_without_validation_are_read(tmp_path: Path) -> None:
    """Training ranks them, whichever version stored them."""
    options: dict[str, Any] = {"folder": tmp_path, "epochs": 1, "device": "cpu", "progress": "quiet"}
    (row,), _ = compare(problem(test=True), ["linear"], 1, **options)
    save_rows(tmp_path / "compare.json", "compare", "", [earlier(row, "test")])
    rows, _ = compare(problem(test=True), ["linear", "mgda"], 1, **options)
    assert [each["split"] for each in rows] == ["train", "train"]
    assert rows[0]["losses"] == row["losses"]
    assert {summary.split for summary in summaries(rows)} == {"train"}
