"""ResNet-18 on the three sets (supplement, section 6, figure 13): training losses, and their gain on test."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from paretomtl._support.significance import Difference, difference, mean
from paretomtl.compare import Row
from paretomtl.compare.rows import accuracies
from paretomtl.methods.registry import is_separate, paper_label_of
from paretomtl.paper.claims import Claim, judge, measured_claim
from paretomtl.paper.images.cells import SET_TITLES, SETS, ImageCell
from paretomtl.paper.images.rows import best_accuracies, own_accuracies
from paretomtl.paper.images.two_task_figures import draw_methods, how_drawn
from paretomtl.paper.number_text import plus_minus, starred
from paretomtl.paper.panels import grid, legend, panel_title
from paretomtl.paper.rows import direction_rank_correlation, favouring, has, pick, pick_by_seed
from paretomtl.paper.study import Size, Study
from paretomtl.report.figures.layers import TEST_ACCURACY, TRAIN_ACCURACY, TRAIN_LOSS
from paretomtl.report.figures.scatter2d import label_outer, point_to_better
from paretomtl.report.figures.style import add_caption

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_EARLY, _END = "early stop", "to the end"
_SMALL = 0.05  # a training loss, to be called close to 0: right answers have 95 % of the probability


def cells(size: Size) -> list[ImageCell]:
    """ResNet-18 on all sets: stopped early on the first, to the end on the others (supplement, section 6).

    The end is after 12 epochs, while the paper's code takes 20; both drop the learning rate to a tenth halfway. Early
    is after 4 epochs, at the full rate, for all methods.
    """
    study = [
        ImageCell(
            _EARLY if name == SETS[0] else _END,
            name,
            method,
            None if is_separate(method) else 5,
            recipe="resnet",
            epochs=4 if name == SETS[0] else 12,
            seeds=2,
            network="ResNet-18",
            precision="bfloat16",
        )
        for name in SETS
        for method in ("pareto-mtl", "linear", "single-task")
    ]
    if size == "full":
        return study
    study = [replace(cell, precision="float32", epochs=1, seeds=1) for cell in study]
    if size == "quick":
        return [replace(cell, samples=256, preferences=cell.preferences and 2) for cell in study]
    return [replace(cell, samples=0, preferences=cell.preferences and 2, strategy="sequential") for cell in study]


def claims(rows: Sequence[Row]) -> list[Claim]:
    """The claims of the supplement, section 6."""
    spreads = []
    for problem in _trained(rows):
        part = _EARLY if problem == SETS[0] else _END
        mine = pick(rows, problem=problem, part=part, method="pareto-mtl")
        ratios = [_ratio(row["train_losses"]) for row in mine]
        spreads.append((problem, ratios, [direction_rank_correlation(row, "train_losses") for row in mine]))
    wide = [mean(ratios) > 2 and mean(orders) > 0.9 for _, ratios, orders in spreads]
    early, end = [p for p in _trained(rows) if p == SETS[0]], [p for p in _trained(rows) if p != SETS[0]]
    return [
        measured_claim(
            "supplement 6, figure 13",
            "Pareto MTL has widely distributed solutions on the training losses",
            "largest over smallest training loss, the lesser of both tasks, and rank correlation with the preferences",
            [f"{SET_TITLES[name]} {mean(ratios):.1f}, {mean(orders):.2f}" for name, ratios, orders in spreads],
            judge(all(wide), any(wide)),
            whole=len(spreads) == len(SETS),
        ),
        _against_single(
            rows, early, "train_metrics", -1, "with early stop, single task beats Pareto MTL on training accuracy"
        ),
        _against_single(rows, early, "metrics", 1, "with early stop, Pareto MTL beats single task on test accuracy"),
        _against_single(rows, end, "metrics", -1, "trained to the end, single task beats Pareto MTL on test accuracy"),
        measured_claim(
            "supplement 6",
            "trained to the end, the training accuracy of most solutions is close to 100 %",
            "median and least training accuracy of all solutions of Pareto MTL",
            [
                f"{SET_TITLES[p]} {statistics.median(values):.4f} and {min(values):.4f}"
                for p in end
                for values in [_all_accuracies(rows, p)]
            ],
            judge(all(fitted := [statistics.median(_all_accuracies(rows, p)) > 0.99 for p in end]), any(fitted)),
            whole=len(end) == 2,
        ),
        _fitted(rows, end),
        _matched(rows, end),
        _less_diverse(rows, early),
        Claim(
            "supplement 6",
            "other adaptive weight methods have no clear advantage over single task and fixed weights",
            "no adaptive weights were trained with ResNet-18",
            "not measured",
        ),
    ]


def _fitted(rows: Sequence[Row], problems: Sequence[str]) -> Claim:
    measured, shares = [], []
    for problem in problems:
        points = [point for row in rows if _is(row, problem, "pareto-mtl") for point in row["train_losses"]]
        losses = [math.inf if value is None else value for point in points for value in point]
        shares.append(mean([float(loss < _SMALL) for loss in losses]))
        measured.append(
            f"{SET_TITLES[problem]} {statistics.median(losses):.3f}, {max(losses):.3f} and {shares[-1]:.0%}"
        )
    return measured_claim(
        "supplement 6",
        "trained to the end, the training losses of all solutions are close to 0",
        f"median and largest training loss of all solutions of Pareto MTL, and how many are below {_SMALL}",
        measured,
        judge(all(share == 1.0 for share in shares), any(share > 0.5 for share in shares)),
        whole=len(problems) == 2,
    )


def _matched(rows: Sequence[Row], problems: Sequence[str]) -> Claim:
    """Whether a solution that favours a task matches its network, and whether one solution matches both networks.

    To match means not to be worse, so this needs no significant difference.
    """
    measured, matched, both = [], [], []
    for problem in problems:
        ours, theirs = (
            list(zip(*(_own_losses(row) for row in rows if _is(row, problem, method)), strict=True))
            for method in ("pareto-mtl", "single-task")
        )
        gaps = [difference(own, alone) for own, alone in zip(ours, theirs, strict=True)]
        matched += [gap.value <= 0 for gap in gaps]
        networks = {row["seed"]: _own_losses(row) for row in rows if _is(row, problem, "single-task")}
        mine = [row for row in rows if _is(row, problem, "pareto-mtl") and row["seed"] in networks]
        points = [(point, networks[row["seed"]]) for row in mine for point in row["train_losses"]]
        both.append(sum(None not in p and all(a <= b for a, b in zip(p, best, strict=True)) for p, best in points))
        measured.append(
            f"{SET_TITLES[problem]} {' and '.join(_starred_or_equal(gap) for gap in gaps)}, in both tasks at once "
            f"{both[-1]} of {len(points)} solutions"
        )
    return measured_claim(
        "supplement 6, figure 13",
        "trained to the end, some solutions match the single-task baseline on the training loss",
        "training loss of the solution that favours a task above that of the network for it (* more than seeds "
        "explain), and solutions no worse than both networks",
        measured,
        judge(all(matched) and all(both), any(matched)),
        whole=len(problems) == 2,
    )


def _less_diverse(rows: Sequence[Row], problems: Sequence[str]) -> Claim:
    measured, less = [], []
    for problem in problems:
        mine = [row for row in rows if _is(row, problem, "pareto-mtl")]
        test, train = (
            list(zip(*(_ranges(row, split) for row in mine), strict=True)) for split in ("metrics", "train_metrics")
        )
        gaps = [difference(here, there) for here, there in zip(test, train, strict=True)]
        less += [gap.sign < 0 for gap in gaps]
        measured += [
            f"{SET_TITLES[problem]}, {task}: {plus_minus(here, 4)} against {plus_minus(there, 4)}, "
            f"{_starred_or_equal(gap)}"
            for task, here, there, gap in zip(mine[0]["tasks"], test, train, gaps, strict=True)
        ]
    return measured_claim(
        "supplement 6, figure 13",
        "with early stop, Pareto MTL's test accuracies are not diverse enough, unlike its training accuracies",
        "best less worst accuracy of all solutions, on test against training (* more than seeds explain)",
        measured,
        judge(all(less), any(less)),
    )


def _against_single(rows: Sequence[Row], problems: Sequence[str], field: str, sign: int, claim: str) -> Claim:
    """The accuracy of the solution that favours a task, compared with that of the network for this task alone."""
    measured, holds = [], []
    for problem in problems:
        ours, theirs = (
            list(zip(*(own_accuracies(row, field) for row in rows if _is(row, problem, method)), strict=True))
            for method in ("pareto-mtl", "single-task")
        )
        gaps = [difference(mine, alone) for mine, alone in zip(ours, theirs, strict=True)]
        holds += [sign * gap.sign > 0 for gap in gaps]
        measured.append(f"{SET_TITLES[problem]} " + " and ".join(_starred_or_equal(gap) for gap in gaps))
    what = "accuracy of the solution that favours a task above that of the network for it (* more than seeds explain)"
    where, wanted = "supplement 6, figure 13", 1 if "early stop" in claim else 2
    verdict = judge(all(holds), any(holds))
    return measured_claim(where, claim, what, measured, verdict, whole=len(measured) == wanted)


def facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Best accuracies of every method."""
    results = []
    for problem in SETS:
        for method in ("pareto-mtl", "linear", "single-task"):
            if has(rows, problem=problem, method=method):
                mine = [row for row in rows if row["problem"] == problem and row["method"] == method]
                text = "; ".join(
                    f"{split}: {' and '.join(plus_minus(values, 4) for values in zip(*best, strict=True))}"
                    for split, field in (("training", "train_metrics"), ("test", "metrics"))
                    for best in [[best_accuracies(row, field) for row in mine]]
                )
                name = paper_label_of(method)
                results.append((f"best accuracies, {SET_TITLES[problem]}, {mine[0]['part']}, {name}", text))
    return results


def _trained(rows: Sequence[Row]) -> list[str]:
    return [p for p in SETS if all(has(rows, problem=p, method=m) for m in ("pareto-mtl", "single-task"))]


def _ranges(row: Row, split: str) -> list[float]:
    """For each task the difference between the best and the worst accuracy of the solutions."""
    known = [point for point in accuracies(row, split) if not any(math.isnan(value) for value in point)]
    return [max(values) - min(values) for values in zip(*known, strict=True)] or [math.nan] * len(row["tasks"])


def _own_losses(row: Row) -> list[float]:
    """For each task the training loss of the solution whose preference favours it most."""
    results = [row["train_losses"][favouring(row, task)][task] for task in range(len(row["tasks"]))]
    return [math.nan if value is None else value for value in results]


def _all_accuracies(rows: Sequence[Row], problem: str) -> list[float]:
    mine = [row for row in rows if _is(row, problem, "pareto-mtl")]
    return [value for row in mine for point in accuracies(row, "train_metrics") for value in point]


def _ratio(points: Sequence[Sequence[float]]) -> float:
    """The ratio of the largest to the smallest loss, in the task where it is smaller."""
    finite = [point for point in points if None not in point]
    return min(max(values) / max(min(values), 1e-12) for values in zip(*finite, strict=True)) if finite else 0.0


def _is(row: Row, problem: str, method: str) -> bool:
    return bool(row["problem"] == problem and row["method"] == method)


def _starred_or_equal(gap: Difference) -> str:
    return starred(gap, 4) if gap.sign else f"{starred(gap, 4)} (not told apart)"


def _draw_planes(rows: Sequence[Row]) -> Figure | None:
    """Draw a line of panels for each set."""
    results = [(problem, pick_by_seed(rows, problem=problem)) for problem in SETS]
    results = [(problem, mine) for problem, mine in results if mine]
    if not results:
        return None
    quantities = (TRAIN_LOSS, TRAIN_ACCURACY, TEST_ACCURACY)
    figure, axes = grid(len(results), 3, height=3.0)
    for i, axis in enumerate(axes):
        (problem, mine), quantity = results[i // 3], quantities[i % 3]
        beyond = draw_methods(axis, mine, quantity) or " "
        panel_title(axis, SET_TITLES[problem], f"{quantity.words}, {mine[0]['part']}", beyond)
    label_outer(axes)
    point_to_better(axes[0], quantities[0])
    legend(figure)
    title = "ResNet-18: one image against the other, on training and on test"
    add_caption(figure, title, how_drawn(rows))
    return figure


STUDY = Study(cells=cells, claims=claims, facts=facts, figures={"images-resnet": _draw_planes})
