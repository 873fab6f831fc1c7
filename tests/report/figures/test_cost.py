from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

import paretomtl as pm
from _helpers.fronts import front_of
from compare.test_cost import row, run
from paretomtl.report import draw_cost

mpl.use("Agg")


def test_the_numbers_lie_beside_the_figure(tmp_path: Path) -> None:
    paths = draw_cost([run(), run("mgda"), row(run("mgda", 1))], tmp_path)
    assert [path.name for path in paths] == [
        "compare-cost.png",
        "compare-cost-dark.png",
        "compare-cost.svg",
        "compare-cost.json",
    ]
    assert paths[0].stat().st_size > 5000
    numbers = json.loads(paths[3].read_text())
    assert (numbers["split"], numbers["left_out"]) == ("val", [])
    assert [(curve["method"], curve["seed"]) for curve in numbers["curves"]] == [
        ("linear", 0),
        ("mgda", 0),
        ("mgda", 1),
    ]
    assert numbers["curves"][1]["passes"] == pytest.approx([10 / 3, 20 / 3, 10, 40 / 3], rel=1e-5)
    assert numbers["curves"][0]["hypervolumes"][-1] == pytest.approx(2 * 0.08 * 0.68 - 0.08**2)


def test_panels_and_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr("paretomtl.report.figures.cost.save_figure", lambda figure, *_: seen.append(figure) or [])
    draw_cost([run(), run("mgda"), run("mgda", 1), run("pareto-mtl"), run("pareto-mtl", 1, epochs=3)], tmp_path)
    left, right = seen[0].axes
    assert (left.get_xlabel(), right.get_xlabel()) == ("seconds", "network passes")
    assert left.get_ylabel() == "hypervolume on validation"
    assert "Reference point: (0.88, 0.88)." in seen[0].texts[1].get_text()
    assert len(left.get_lines()) == 1 + (2 + 1) + 2, "one seed, two seeds with their mean, two of different length"
    named = [line.get_label() for line in right.get_lines() if not line.get_label().startswith("_")]
    assert named == ["Linear scalarization", "MOO-MTL", "Pareto MTL"]
    assert list(right.get_lines()[0].get_xdata()) == [2, 4, 6, 8]
    draw_cost([run("mine", val=False)], tmp_path)
    (only,) = seen[1].axes
    assert only.get_xlabel() == "seconds", "the passes of an unknown method are unknown"
    assert only.get_ylabel() == "hypervolume on training, means over epochs"


def test_what_has_no_history_has_no_figure(tmp_path: Path) -> None:
    old = {name: value for name, value in row(run()).items() if name != "history"}
    assert draw_cost([old], tmp_path / "none") == []
    assert not (tmp_path / "none").exists()
    with pytest.raises(ValueError, match=r"'runs' must have a history: .* Got one of 'given'"):
        draw_cost([pm.Front.from_losses([[1.0, 1.0]], tasks=["a", "b"])], tmp_path)
    assert "losses" not in front_of([[1.0, 1.0]]).history
