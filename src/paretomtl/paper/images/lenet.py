"""What the rows of LeNet on the three sets say about the paper's claims (section 6.1)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paretomtl.compare.row_store import Row
from paretomtl.compare.rows import accuracies
from paretomtl.paper.images.studies import LONG, METHODS, PAPER, SETS, STRONG
from paretomtl.paper.labels import LABELS
from paretomtl.paper.statistics import apart, column, difference, has, mean, order, pick, plus_minus, starred
from paretomtl.paper.study import Claim, judge, measured_claim

TITLES = {
    "multi-mnist": "MultiMNIST",
    "multi-fashion": "MultiFashionMNIST",
    "multi-fashion-mnist": "Multi-(Fashion+MNIST)",
}
RIVALS = ("linear", "gradnorm", "uncertainty")
_OUTPERFORMS = "Pareto MTL significantly outperforms grid search, Uncertainty and GradNorm on the three sets"
_BEST = "Pareto MTL has the overall best performance among all MTL algorithms"
_MOST = 0.8  # of the solutions in their own regions, to be called well distributed
_ORDERED = 0.9  # a rank correlation, to be called in order


@dataclass(frozen=True)
class Line:
    """One method on one set with one recipe, over all seeds; text for a table.

    Attributes:
        method: its name.
        hypervolume: of the test losses at (2, 2).
        error_hypervolume: of the test error rates at (1, 1).
        accuracy: the best for each task.
        spread: of the test losses; empty for separate networks.
        regions: the share in its own region on training and on test; empty for methods without regions.
        seconds: for all seeds at once; marked where another process trained on the same GPU.
        ideal: whether the hypervolumes are those of one point made of separate networks.
    """

    method: str
    hypervolume: str
    error_hypervolume: str
    accuracy: tuple[str, ...]
    spread: str
    regions: tuple[str, str]
    seconds: str
    ideal: bool


def lines(rows: Sequence[Row], problem: str, part: str) -> list[Line]:
    """The table of a set and a recipe, best mean hypervolume first."""
    found = []
    for method in METHODS:
        if not has(rows, problem=problem, part=part, method=method):
            continue
        mine = pick(rows, problem=problem, part=part, method=method)
        ideal = method == "single-task"
        best = [best_accuracies(row) for row in mine]
        regions = ("", "")
        if mine[0]["in_region"] is not None:
            shares = [[row[name] / row["preferences"] for row in mine] for name in ("in_region", "in_region_test")]
            regions = (f"{mean(shares[0]):.0%}", f"{mean(shares[1]):.0%}")
        line = Line(
            method,
            plus_minus(column(mine, "hypervolume")),
            plus_minus(column(mine, "error_hypervolume"), 4),
            tuple(plus_minus(values, 4) for values in zip(*best, strict=True)),
            "" if ideal else plus_minus(column(mine, "spread"), 2),
            regions,
            f"{mine[0]['seconds']:.0f}{'‡' if mine[0].get('beside') else ''}",
            ideal,
        )
        found.append((mean(column(mine, "hypervolume")), line))
    return [line for _, line in sorted(found, key=lambda pair: -pair[0])]


def best_accuracies(row: Row, split: str = "metrics") -> list[float]:
    """For each task the best accuracy of any solution."""
    return [
        max((v for v in values if v == v), default=math.nan) for values in zip(*accuracies(row, split), strict=True)
    ]


def own_accuracies(row: Row, split: str = "metrics") -> list[float]:
    """For each task the accuracy of the solution whose preference favours it most, not of the one with the best."""
    points = accuracies(row, split)
    return [points[favouring(row, task)][task] for task in range(len(row["tasks"]))]


def favouring(row: Row, task: int) -> int:
    """The solution whose preference favours a task most."""
    sign = 1.0 if row["reading"] == "direction" else -1.0  # a direction allows, an importance asks
    return min(range(len(row["vectors"])), key=lambda k: sign * row["vectors"][k][task])


def lenet_claims(rows: Sequence[Row]) -> list[Claim]:
    """The claims of section 6.1, judged by the paper's settings, and again by the strong recipe."""
    return [
        _beats(rows, PAPER, "section 6.1, figure 3", RIVALS, _OUTPERFORMS),
        _beats(rows, STRONG, "section 6.1, figure 3, with the strong recipe", RIVALS, _OUTPERFORMS),
        _beats(rows, PAPER, "section 6.1", METHODS[1:-1], _BEST),
        _beats(rows, STRONG, "section 6.1, with the strong recipe", METHODS[1:-1], _BEST),
        _distributed(rows),
        _spreads(rows),
        _extremes(rows),
        _auxiliary(rows),
        _single_dominates(rows),
        _near_single(rows),
    ]


def lenet_facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """What else was measured."""
    found = []
    for part in (PAPER, STRONG, LONG):
        for problem in SETS:
            if has(rows, problem=problem, part=part, method="pareto-mtl"):
                mine = pick(rows, problem=problem, part=part, method="pareto-mtl")
                found.append(
                    (f"rank correlation of preference and trade-off, {TITLES[problem]}, {part}", _orders(mine))
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
            found.append(
                (
                    f"recipe against method, {TITLES[problem]}",
                    f"the strong recipe adds {gain:+.3f} to the hypervolume of grid search; Pareto MTL adds "
                    f"{starred(gaps[0])} with the paper's settings and {starred(gaps[1])} with the strong recipe",
                )
            )
    if has(rows, part=LONG):
        text = ", ".join(
            f"{LABELS[m]} {plus_minus(column(pick(rows, part=LONG, method=m), 'hypervolume'))}"
            for m in METHODS
            if has(rows, part=LONG, method=m)
        )
        found.append(("hypervolume on MultiMNIST with the paper's settings and all 100 epochs, one seed", text))
    return found


def _beats(rows: Sequence[Row], part: str, where: str, rivals: Sequence[str], claim: str) -> Claim:
    said, signs = [], []
    for problem in _sets(rows, part):
        mine, *theirs = (
            column(pick(rows, problem=problem, part=part, method=method), "hypervolume")
            for method in ("pareto-mtl", *rivals)
        )
        text, found = beside(mine, dict(zip(rivals, theirs, strict=True)))
        said.append(f"{TITLES[problem]} {text}")
        signs += found
    return measured_claim(
        where,
        claim,
        "mean hypervolume, and difference (* more than seeds explain)",
        [*said, counted(signs)] if said else [],
        better_verdict(signs),
        whole=_sets(rows, part) == list(SETS),
    )


def beside(mine: Sequence[float], rivals: Mapping[str, Sequence[float]], digits: int = 3) -> tuple[str, list[int]]:
    """The mean and its difference to that of each method as text; and for each 1, -1, or 0 for not told apart."""
    gaps = {method: difference(mine, theirs) for method, theirs in rivals.items()}
    text = ", ".join(f"{starred(gap, digits)} to {LABELS[method]}" for method, gap in gaps.items())
    return f"{mean(mine):.{digits}f}: {text}", [apart(gap) for gap in gaps.values()]


def counted(signs: Sequence[int]) -> str:
    """How often better, not told apart and worse."""
    better, equal, worse = (signs.count(sign) for sign in (1, 0, -1))
    return f"better in {better} of {len(signs)}, not to be told apart in {equal}, worse in {worse}"


def better_verdict(signs: Sequence[int]) -> str:
    """On being better than all others: so against each; or at least more often than worse."""
    return judge(all(sign > 0 for sign in signs), sum(signs) > 0)


def _distributed(rows: Sequence[Row]) -> Claim:
    """Solutions are in order without being spread evenly, which their regions would make them."""
    said, ordered, even = [], [], []
    for part in (PAPER, STRONG):
        for problem in _sets(rows, part):
            mine = pick(rows, problem=problem, part=part, method="pareto-mtl")
            orders = column(mine, order)
            regions = [
                mean([row[name] / row["preferences"] for row in mine]) for name in ("in_region", "in_region_test")
            ]
            sure = apart(difference(orders, [0.0] * len(orders))) > 0
            ordered.append(sure and mean(orders) > _ORDERED)
            even.append(regions[0] > _MOST)
            said.append(
                f"{TITLES[problem]}, {part}: {mean(orders):.2f}{'*' if sure else ''}, {regions[0]:.0%} and "
                f"{regions[1]:.0%}"
            )
    return measured_claim(
        "section 6.1, figure 3",
        "Pareto MTL finds well-distributed solutions with different trade-offs on all sets",
        "rank correlation of preferences and test losses (* more than seeds explain), and solutions in their own "
        "region on training and on test",
        said,
        judge(all(ordered) and all(even), any(ordered)),
        whole=_whole(rows),
    )


def _spreads(rows: Sequence[Row]) -> Claim:
    said, holds = [], []
    for part in (PAPER, STRONG):
        for problem in _sets(rows, part):
            mine, theirs = (
                column(pick(rows, problem=problem, part=part, method=m), "spread") for m in ("pareto-mtl", "mgda")
            )
            gap, sure = difference(mine, theirs)
            holds.append(gap > 0 and sure)
            said.append(f"{TITLES[problem]}, {part}: {mean(mine):.2f} against {mean(theirs):.2f}")
    return measured_claim(
        "section 6.1, figure 3",
        "MOO-MTL also finds promising solutions, but their diversity is worse",
        "spread of the test losses",
        said,
        judge(all(holds), any(holds)),
        whole=_whole(rows),
    )


def _extremes(rows: Sequence[Row]) -> Claim:
    said, among_own, among_all, total = [], 0, 0, 0
    for part in (PAPER, STRONG):
        for problem in _sets(rows, part):
            own = others = 0
            mine = pick(rows, problem=problem, part=part, method="pareto-mtl")
            for row in mine:
                points = accuracies(row)
                rivals = [
                    other
                    for other in pick(rows, problem=problem, part=part, seed=row["seed"])
                    if other["method"] not in ("pareto-mtl", "single-task")
                ]
                for task in range(2):
                    extreme = points[-1 if task == 0 else 0][task]  # (0, 1), the last, favours the first task
                    own += extreme >= max(point[task] for point in points)
                    others += extreme >= max(best_accuracies(other)[task] for other in rivals)
            count = 2 * len(mine)
            said.append(f"{TITLES[problem]}, {part}: {own} and {others} of {count}")
            among_own, among_all, total = among_own + own, among_all + others, total + count
    return measured_claim(
        "section 6.1",
        "subproblems with extreme preference vectors always have the best performance in their task",
        "extreme solutions with the best test accuracy in their task, among the five of Pareto MTL and against all "
        "methods on shared networks",
        said,
        judge(among_own == among_all == total, among_own > total / 2),
        whole=_whole(rows),
    )


def _auxiliary(rows: Sequence[Row]) -> Claim:
    said, holds = [], []
    for part in (PAPER, STRONG):
        if SETS[2] not in _sets(rows, part):
            continue
        single, mine = (_own(rows, SETS[2], part, m) for m in ("single-task", "pareto-mtl"))
        gaps = [difference(ours, theirs) for ours, theirs in zip(mine, single, strict=True)]
        holds += [gap > 0 and sure for gap, sure in gaps]
        said.append(f"{part}: " + " and ".join(f"{starred(gap, 4)}" for gap in gaps))
    return measured_claim(
        "section 6.1",
        "on Multi-(Fashion+MNIST) Pareto MTL still has the best performance for each task separately, as if the other "
        "task were an auxiliary one",
        "test accuracy of the solution that favours a task above that of the network for it alone, digit and clothing",
        said,
        judge(all(holds), any(holds)),
        whole=len(said) == 2,
    )


def _single_dominates(rows: Sequence[Row]) -> Claim:
    said, shares = [], []
    for part in (PAPER, STRONG):
        for problem in _sets(rows, part):
            beaten = total = 0
            for row in pick(rows, problem=problem, part=part):
                if row["method"] == "single-task":
                    continue
                (alone,) = pick(rows, problem=problem, part=part, method="single-task", seed=row["seed"])
                ideal = best_accuracies(alone)
                points = accuracies(row)
                beaten += sum(all(a > b for a, b in zip(ideal, point, strict=True)) for point in points)
                total += len(points)
            if problem == SETS[2]:
                shares.append(beaten / total)
            said.append(f"{TITLES[problem]}, {part}: {beaten / total:.0%}")
    return measured_claim(
        "section 6.1",
        "on Multi-(Fashion+MNIST) almost all MTL solutions are dominated by the single-task baseline",
        "solutions of all methods on shared networks that are worse in both test accuracies than separate networks",
        said if shares else [],
        judge(min(shares, default=0.0) > 0.8, max(shares, default=0.0) > 0.5),
    )


def _near_single(rows: Sequence[Row]) -> Claim:
    said, gaps = [], []
    for part in (PAPER, STRONG):
        for problem in _sets(rows, part):
            single, mine = (_own(rows, problem, part, m) for m in ("single-task", "pareto-mtl"))
            apart = [mean(ours) - mean(theirs) for ours, theirs in zip(mine, single, strict=True)]
            gaps += apart
            said.append(f"{TITLES[problem]}, {part}: {apart[0]:+.4f} and {apart[1]:+.4f}")
    return measured_claim(
        "section 6.1",
        "Pareto MTL is compatible with the strong single-task baseline",
        "test accuracy of the solution that favours a task above that of the network for it alone, both tasks",
        said,
        judge(min(gaps, default=0.0) > -0.005, statistics.median(gaps or [0.0]) > -0.005),
        whole=_whole(rows),
    )


def _own(rows: Sequence[Row], problem: str, part: str, method: str) -> list[list[float]]:
    """For each task the accuracies of the solutions that favour it, over the seeds."""
    mine = pick(rows, problem=problem, part=part, method=method)
    return [list(values) for values in zip(*(own_accuracies(row) for row in mine), strict=True)]


def _whole(rows: Sequence[Row]) -> bool:
    """Whether all methods were trained on all sets with both recipes."""
    return all(_sets(rows, part) == list(SETS) for part in (PAPER, STRONG))


def _sets(rows: Sequence[Row], part: str) -> list[str]:
    """The sets that all methods were trained on."""
    return [p for p in SETS if all(has(rows, problem=p, part=part, method=m) for m in METHODS)]


def _orders(rows: Sequence[Row]) -> str:
    train, test = ([order(row, losses) for row in rows] for losses in ("train_losses", "losses"))
    return f"{mean(test):.2f} on test ({min(test):.2f} to {max(test):.2f}), {mean(train):.2f} on training"
