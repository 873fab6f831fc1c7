"""LeNet on the three sets of image pairs (section 6.1, figure 3): seven methods, two recipes."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from paretomtl._support.significance import difference, mean
from paretomtl.compare import Row
from paretomtl.compare.rows import accuracies
from paretomtl.methods.registry import is_separate, label_of, paper_label_of
from paretomtl.paper.claims import Claim, better_verdict, compare_means, count_signs, judge, measured_claim
from paretomtl.paper.images.cells import LONG, METHODS, PAPER, SET_TITLES, SETS, STRONG, ImageCell, resize
from paretomtl.paper.images.rows import best_accuracies, own_accuracies
from paretomtl.paper.images.two_task_figures import draw_methods, how_drawn
from paretomtl.paper.number_text import plus_minus, starred
from paretomtl.paper.panels import draw_strip, grid, legend, name_lines, panel_title
from paretomtl.paper.rows import column, direction_rank_correlation, has, pick, pick_by_seed
from paretomtl.paper.study import Size, Study
from paretomtl.report.figures.layers import TEST_ACCURACY, TEST_LOSS, Quantity
from paretomtl.report.figures.scatter2d import label_outer, point_to_better
from paretomtl.report.figures.style import add_caption

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_RIVALS = ("linear", "gradnorm", "uncertainty")
_OUTPERFORMS = "Pareto MTL significantly outperforms grid search, Uncertainty and GradNorm on the three sets"
_BEST = "Pareto MTL has the overall best performance among all MTL algorithms"
_MOST = 0.8  # of the solutions in their own regions, to be called well distributed
_ORDERED = 0.9  # a rank correlation, to be called in order


def cells(size: Size) -> list[ImageCell]:
    """All methods on all sets: the paper's settings, the strong recipe, and one run with all of the paper's epochs."""
    study = [
        cell for part, recipe in ((PAPER, "paper"), (STRONG, "strong")) for cell in _all_methods(SETS[:1], part, recipe)
    ]
    study += _all_methods(SETS[1:], PAPER, "paper") + _all_methods(SETS[1:], STRONG, "strong")
    study += [
        replace(cell, epochs=100, seeds=1)
        for cell in _all_methods(SETS[:1], LONG, "paper")
        if cell.method in ("pareto-mtl", "linear", "mgda", "single-task")
    ]
    return resize(study, size)


def _all_methods(sets: Sequence[str], part: str, recipe: str) -> list[ImageCell]:
    return [
        ImageCell(part, name, method, None if is_separate(method) else 5, recipe) for name in sets for method in METHODS
    ]


def claims(rows: Sequence[Row]) -> list[Claim]:
    """The claims of section 6.1, judged by the paper's settings, and again by the strong recipe."""
    return [
        _beats(rows, PAPER, "section 6.1, figure 3", _RIVALS, _OUTPERFORMS),
        _beats(rows, STRONG, "section 6.1, figure 3, with the strong recipe", _RIVALS, _OUTPERFORMS),
        _beats(rows, PAPER, "section 6.1", METHODS[1:-1], _BEST),
        _beats(rows, STRONG, "section 6.1, with the strong recipe", METHODS[1:-1], _BEST),
        _distributed(rows),
        _spreads(rows),
        _extremes(rows),
        _auxiliary(rows),
        _single_dominates(rows),
        _near_single(rows),
    ]


def facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Other measurements: order of the solutions, effect of recipe and method, all epochs."""
    results = []
    for part in (PAPER, STRONG, LONG):
        for problem in SETS:
            if has(rows, problem=problem, part=part, method="pareto-mtl"):
                mine = pick(rows, problem=problem, part=part, method="pareto-mtl")
                results.append(
                    (
                        f"rank correlation of preference and trade-off, {SET_TITLES[problem]}, {part}",
                        _describe_order(mine),
                    )
                )
    for problem in SETS:
        if all(
            has(rows, problem=problem, part=part, method=m)
            for part in (PAPER, STRONG)
            for m in ("pareto-mtl", "linear")
        ):
            values = {
                (part, m): column(pick(rows, problem=problem, part=part, method=m), "hypervolume")
                for part in (PAPER, STRONG)
                for m in ("pareto-mtl", "linear")
            }
            gain = mean(values[STRONG, "linear"]) - mean(values[PAPER, "linear"])
            gaps = [difference(values[part, "pareto-mtl"], values[part, "linear"]) for part in (PAPER, STRONG)]
            results.append(
                (
                    f"recipe against method, {SET_TITLES[problem]}",
                    f"the strong recipe adds {gain:+.3f} to the hypervolume of grid search; Pareto MTL adds "
                    f"{starred(gaps[0])} with the paper's settings and {starred(gaps[1])} with the strong recipe",
                )
            )
    if has(rows, part=LONG):
        text = ", ".join(
            f"{paper_label_of(m)} {plus_minus(column(pick(rows, part=LONG, method=m), 'hypervolume'))}"
            for m in METHODS
            if has(rows, part=LONG, method=m)
        )
        results.append(("hypervolume on MultiMNIST with the paper's settings and all 100 epochs, one seed", text))
    return results


def _beats(rows: Sequence[Row], part: str, where: str, rivals: Sequence[str], claim: str) -> Claim:
    measured, signs = [], []
    for problem in _complete_sets(rows, part):
        mine, *theirs = (
            column(pick(rows, problem=problem, part=part, method=method), "hypervolume")
            for method in ("pareto-mtl", *rivals)
        )
        text, results = compare_means(mine, dict(zip(rivals, theirs, strict=True)))
        measured.append(f"{SET_TITLES[problem]} {text}")
        signs += results
    return measured_claim(
        where,
        claim,
        "mean hypervolume, and difference (* more than seeds explain)",
        [*measured, count_signs(signs)] if measured else [],
        better_verdict(signs),
        whole=_complete_sets(rows, part) == list(SETS),
    )


def _distributed(rows: Sequence[Row]) -> Claim:
    """Solutions are in order, but not spread evenly: they would be if all were in their own regions."""
    measured, ordered, even = [], [], []
    for part in (PAPER, STRONG):
        for problem in _complete_sets(rows, part):
            mine = pick(rows, problem=problem, part=part, method="pareto-mtl")
            orders = column(mine, direction_rank_correlation)
            regions = [
                mean([row[name] / row["preferences"] for row in mine]) for name in ("in_region", "in_region_test")
            ]
            sure = difference(orders, [0.0] * len(orders)).sign > 0
            ordered.append(sure and mean(orders) > _ORDERED)
            even.append(regions[0] > _MOST)
            measured.append(
                f"{SET_TITLES[problem]}, {part}: {mean(orders):.2f}{'*' if sure else ''}, {regions[0]:.0%} and "
                f"{regions[1]:.0%}"
            )
    return measured_claim(
        "section 6.1, figure 3",
        "Pareto MTL finds well-distributed solutions with different trade-offs on all sets",
        "rank correlation of preferences and test losses (* more than seeds explain), and solutions in their own "
        "region on training and on test",
        measured,
        judge(all(ordered) and all(even), any(ordered)),
        whole=_is_whole(rows),
    )


def _spreads(rows: Sequence[Row]) -> Claim:
    measured, holds = [], []
    for part in (PAPER, STRONG):
        for problem in _complete_sets(rows, part):
            mine, theirs = (
                column(pick(rows, problem=problem, part=part, method=m), "spread") for m in ("pareto-mtl", "mgda")
            )
            gap = difference(mine, theirs)
            holds.append(gap.sign > 0)
            measured.append(f"{SET_TITLES[problem]}, {part}: {mean(mine):.2f} against {mean(theirs):.2f}")
    return measured_claim(
        "section 6.1, figure 3",
        "MOO-MTL also finds promising solutions, but their diversity is worse",
        "spread of the test losses",
        measured,
        judge(all(holds), any(holds)),
        whole=_is_whole(rows),
    )


def _extremes(rows: Sequence[Row]) -> Claim:
    measured, among_own, among_all, total = [], 0, 0, 0
    for part in (PAPER, STRONG):
        for problem in _complete_sets(rows, part):
            own = others = 0
            mine = pick(rows, problem=problem, part=part, method="pareto-mtl")
            for row in mine:
                points = accuracies(row)
                rivals = [
                    other
                    for other in pick(rows, problem=problem, part=part, seed=row["seed"])
                    if other["method"] != "pareto-mtl" and not is_separate(other["method"])
                ]
                for task in range(2):
                    extreme = points[-1 if task == 0 else 0][task]  # (0, 1), the last, favours the first task
                    own += extreme >= max(point[task] for point in points)
                    others += extreme >= max(best_accuracies(other)[task] for other in rivals)
            count = 2 * len(mine)
            measured.append(f"{SET_TITLES[problem]}, {part}: {own} and {others} of {count}")
            among_own, among_all, total = among_own + own, among_all + others, total + count
    return measured_claim(
        "section 6.1",
        "subproblems with extreme preference vectors always have the best performance in their task",
        "extreme solutions with the best test accuracy in their task, among the five of Pareto MTL and against all "
        "methods on shared networks",
        measured,
        judge(among_own == among_all == total, among_own > total / 2),
        whole=_is_whole(rows),
    )


def _auxiliary(rows: Sequence[Row]) -> Claim:
    measured, holds = [], []
    for part in (PAPER, STRONG):
        if SETS[2] not in _complete_sets(rows, part):
            continue
        single, mine = (_own_by_task(rows, SETS[2], part, m) for m in ("single-task", "pareto-mtl"))
        gaps = [difference(ours, theirs) for ours, theirs in zip(mine, single, strict=True)]
        holds += [gap.sign > 0 for gap in gaps]
        measured.append(f"{part}: " + " and ".join(f"{starred(gap, 4)}" for gap in gaps))
    return measured_claim(
        "section 6.1",
        "on Multi-(Fashion+MNIST) Pareto MTL still has the best performance for each task separately, as if the other "
        "task were an auxiliary one",
        "test accuracy of the solution that favours a task above that of the network for it alone, digit and clothing",
        measured,
        judge(all(holds), any(holds)),
        whole=len(measured) == 2,
    )


def _single_dominates(rows: Sequence[Row]) -> Claim:
    measured, shares = [], []
    for part in (PAPER, STRONG):
        for problem in _complete_sets(rows, part):
            beaten = total = 0
            for row in pick(rows, problem=problem, part=part):
                if is_separate(row["method"]):
                    continue
                (alone,) = pick(rows, problem=problem, part=part, method="single-task", seed=row["seed"])
                ideal = best_accuracies(alone)
                points = accuracies(row)
                beaten += sum(all(a > b for a, b in zip(ideal, point, strict=True)) for point in points)
                total += len(points)
            if problem == SETS[2]:
                shares.append(beaten / total)
            measured.append(f"{SET_TITLES[problem]}, {part}: {beaten / total:.0%}")
    return measured_claim(
        "section 6.1",
        "on Multi-(Fashion+MNIST) almost all MTL solutions are dominated by the single-task baseline",
        "solutions of all methods on shared networks that are worse in both test accuracies than separate networks",
        measured if shares else [],
        judge(min(shares, default=0.0) > 0.8, max(shares, default=0.0) > 0.5),
    )


def _near_single(rows: Sequence[Row]) -> Claim:
    measured, gaps = [], []
    for part in (PAPER, STRONG):
        for problem in _complete_sets(rows, part):
            single, mine = (_own_by_task(rows, problem, part, m) for m in ("single-task", "pareto-mtl"))
            ahead = [mean(ours) - mean(theirs) for ours, theirs in zip(mine, single, strict=True)]
            gaps += ahead
            measured.append(f"{SET_TITLES[problem]}, {part}: {ahead[0]:+.4f} and {ahead[1]:+.4f}")
    return measured_claim(
        "section 6.1",
        "Pareto MTL is compatible with the strong single-task baseline",
        "test accuracy of the solution that favours a task above that of the network for it alone, both tasks",
        measured,
        judge(min(gaps, default=0.0) > -0.005, statistics.median(gaps or [0.0]) > -0.005),
        whole=_is_whole(rows),
    )


def _own_by_task(rows: Sequence[Row], problem: str, part: str, method: str) -> list[list[float]]:
    """For each task the accuracies of the solutions that favour it, over the seeds."""
    mine = pick(rows, problem=problem, part=part, method=method)
    return [list(values) for values in zip(*(own_accuracies(row) for row in mine), strict=True)]


def _is_whole(rows: Sequence[Row]) -> bool:
    """Whether all methods were trained on all sets with both recipes."""
    return all(_complete_sets(rows, part) == list(SETS) for part in (PAPER, STRONG))


def _complete_sets(rows: Sequence[Row], part: str) -> list[str]:
    """The sets that all methods were trained on."""
    return [p for p in SETS if all(has(rows, problem=p, part=part, method=m) for m in METHODS)]


def _describe_order(rows: Sequence[Row]) -> str:
    train, test = ([direction_rank_correlation(row, losses) for row in rows] for losses in ("train_losses", "losses"))
    return f"{mean(test):.2f} on test ({min(test):.2f} to {max(test):.2f}), {mean(train):.2f} on training"


def _draw_scatters(rows: Sequence[Row], quantity: Quantity) -> Figure | None:
    figure, panels = _recipe_grid(rows, height=3.2)
    if figure is None:
        return None
    for axis, part, mine in panels:
        panel_title(axis, SET_TITLES[mine[0]["problem"]], part, draw_methods(axis, mine, quantity) or " ")
    axes = [axis for axis, _, _ in panels]
    label_outer(axes)
    point_to_better(axes[0], quantity)
    legend(figure)
    title = f"LeNet, all methods: {quantity.words} of one image against the other"
    add_caption(figure, title, how_drawn(rows))
    return figure


def _draw_hypervolumes(rows: Sequence[Row]) -> Figure | None:
    """Draw every seed as a point and the mean as a bar, with the methods in the same order everywhere."""
    measured = [row for row in rows if row["hypervolume"] is not None]
    methods = [method for method in METHODS if has(measured, method=method)][::-1]
    figure, panels = _recipe_grid(measured, height=0.25 * len(methods) + 0.85)
    if figure is None:
        return None
    for i, (axis, part, mine) in enumerate(panels):
        for height, method in enumerate(methods):
            draw_strip(axis, height, method, [row["hypervolume"] for row in pick_by_seed(mine, method=method)])
        first = i == 0 or panels[i - 1][1] != part  # of its line
        name_lines(axis, [label_of(method) if first else "" for method in methods])
        axis.set_xlabel(f"hypervolume at ({', '.join(f'{value:g}' for value in mine[0]['reference'])})")
        axis.locator_params(axis="x", nbins=4)
        panel_title(axis, SET_TITLES[mine[0]["problem"]], part)
    label_outer([axis for axis, _, _ in panels])
    add_caption(
        figure,
        "LeNet, all methods: hypervolume of the test losses, larger is better",
        "A marker is a seed, a bar is their mean. Single task is one point of separate networks, not a front.",
    )
    return figure


def _draw_all_epochs(rows: Sequence[Row]) -> Figure | None:
    """Draw the paper's settings with all of the paper's epochs."""
    mine = pick_by_seed(rows, part=LONG)
    if not mine:
        return None
    figure, axes = grid(1, 2, height=4.35)
    for axis, quantity in zip(axes, (TEST_ACCURACY, TEST_LOSS), strict=True):
        panel_title(axis, quantity.words.capitalize(), draw_methods(axis, mine, quantity) or " ")
    point_to_better(axes[0], TEST_ACCURACY)
    label_outer(axes)
    legend(figure)
    title = f"LeNet on {SET_TITLES[mine[0]['problem']]} after {mine[0]['epochs']} epochs, one seed"
    add_caption(figure, title, how_drawn(mine))
    return figure


def _recipe_grid(rows: Sequence[Row], **size: Any) -> tuple[Figure | None, list[tuple[Axes, str, list[Row]]]]:
    """A line of panels for each recipe, a column for each set; each panel with its recipe and its rows."""
    sets = [
        problem for problem in SETS if any(pick_by_seed(rows, part=part, problem=problem) for part in (PAPER, STRONG))
    ]
    parts = [part for part in (PAPER, STRONG) if pick_by_seed(rows, part=part)]
    if not sets or not parts:
        return None, []
    figure, axes = grid(len(parts), len(sets), **size)
    panels = []
    for axis, (part, problem) in zip(axes, itertools.product(parts, sets), strict=True):
        mine = pick_by_seed(rows, part=part, problem=problem)
        if mine:
            panels.append((axis, part, mine))
        else:
            axis.remove()
    return figure, panels


STUDY = Study(
    cells=cells,
    claims=claims,
    facts=facts,
    figures={
        "images-lenet-accuracy": partial(_draw_scatters, quantity=TEST_ACCURACY),
        "images-lenet-losses": partial(_draw_scatters, quantity=TEST_LOSS),
        "images-lenet-hypervolume": _draw_hypervolumes,
        "images-lenet-100-epochs": _draw_all_epochs,
    },
    shares=("ablation-init", "ablation-release", "preferences", "weights"),
)
