"""What the rows of the other image studies say: ResNet-18, ablations, preference sets, weights, acceptance."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from paretomtl.experiments._image_claims import LABELS, TITLES, accuracies, best_accuracies, own_accuracies
from paretomtl.experiments._image_studies import EARLY, END, SETS
from paretomtl.experiments._statistics import column, difference, has, mean, order, pick, plus_minus
from paretomtl.experiments._store import Row
from paretomtl.experiments._study import Claim, judge, measured_claim

PUBLISHED = {
    "multi-mnist": (0.9137, 0.8947),
    "multi-fashion": (0.8182, 0.8170),
    "multi-fashion-mnist": (0.9469, 0.8437),
}
"""Accuracies of networks for one task on the lost files: top left, bottom right."""


def no_claims(rows: Sequence[Row]) -> list[Claim]:
    """For a study of which the paper says nothing that could be judged."""
    return []


def no_facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """For a study whose claims say everything."""
    return []


def resnet_claims(rows: Sequence[Row]) -> list[Claim]:
    """Supplement, section 6."""
    spreads = []
    for problem in _trained(rows):
        part = EARLY if problem == SETS[0] else END
        mine = pick(rows, problem=problem, part=part, method="pareto-mtl")
        ratios = [_ratio(row["train_losses"]) for row in mine]
        spreads.append((problem, ratios, [order(row, "train_losses") for row in mine]))
    wide = [mean(ratios) > 2 and mean(orders) > 0.9 for _, ratios, orders in spreads]
    early, end = [p for p in _trained(rows) if p == SETS[0]], [p for p in _trained(rows) if p != SETS[0]]
    return [
        measured_claim(
            "supplement 6, figure 13",
            "Pareto MTL has widely distributed solutions on the training losses",
            "largest over smallest training loss, the lesser of both tasks, and rank correlation with the preferences",
            [f"{TITLES[name]} {mean(ratios):.1f}, {mean(orders):.2f}" for name, ratios, orders in spreads],
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
                f"{TITLES[p]} {statistics.median(values):.4f} and {min(values):.4f}"
                for p in end
                for values in [_all_accuracies(rows, p)]
            ],
            judge(all(fitted := [statistics.median(_all_accuracies(rows, p)) > 0.99 for p in end]), any(fitted)),
            whole=len(end) == 2,
        ),
    ]


def resnet_facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Best accuracies of every method."""
    found = []
    for problem in SETS:
        for method in ("pareto-mtl", "linear", "single-task"):
            if has(rows, problem=problem, method=method):
                mine = [row for row in rows if row["problem"] == problem and row["method"] == method]
                text = "; ".join(
                    f"{split}: {' and '.join(plus_minus(values, 4) for values in zip(*best, strict=True))}"
                    for split, field in (("training", "train_metrics"), ("test", "metrics"))
                    for best in [[best_accuracies(row, field) for row in mine]]
                )
                found.append((f"best accuracies, {TITLES[problem]}, {mine[0]['part']}, {LABELS[method]}", text))
    return found


def _against_single(rows: Sequence[Row], problems: Sequence[str], field: str, sign: int, claim: str) -> Claim:
    """The accuracy of the solution that favours a task beside that of the network for this task alone."""
    said, holds, sure = [], [], []
    for problem in problems:
        ours, theirs = (
            list(zip(*(own_accuracies(row, field) for row in rows if _is(row, problem, method)), strict=True))
            for method in ("pareto-mtl", "single-task")
        )
        gaps = [difference(mine, alone) for mine, alone in zip(ours, theirs, strict=True)]
        holds += [sign * gap > 0 for gap, _ in gaps]
        sure += [clear for _, clear in gaps]
        said.append(f"{TITLES[problem]} " + " and ".join(f"{gap:+.4f}{'*' if clear else ''}" for gap, clear in gaps))
    what = "accuracy of the solution that favours a task above that of the network for it (* more than seeds explain)"
    where, wanted = "supplement 6, figure 13", 1 if "early stop" in claim else 2
    verdict = judge(all(holds) and all(sure), any(holds))
    return measured_claim(where, claim, what, said, verdict, whole=len(said) == wanted)


def init_claims(rows: Sequence[Row]) -> list[Claim]:
    """Supplement, section 1."""
    with_it = pick(rows, method="pareto-mtl")
    without = pick(rows, method="pareto-mtl", note="no initial phase")
    mgda = pick(rows, method="mgda")
    spreads = [column(part, "spread") for part in (with_it, without, mgda)]
    hits = [f"{sum(row['in_region'] for row in part)} of {_total(part)}" for part in (with_it, without)]
    volumes = [plus_minus(column(part, "hypervolume")) for part in (with_it, without, mgda)]
    gap, sure = difference(spreads[0], spreads[1])
    other, clear = difference(spreads[1], spreads[2])
    return [
        Claim(
            "supplement 1, figure 7",
            "without the initial phase the diversity is much worse",
            f"spread {plus_minus(spreads[0], 2)} with and {plus_minus(spreads[1], 2)} without; in their own region on "
            f"training {hits[0]} and {hits[1]}; hypervolume {volumes[0]} and {volumes[1]}",
            judge(gap > 0.2 * mean(spreads[0]) and sure, gap > 0 and sure),
        ),
        Claim(
            "supplement 1, figure 7",
            "without the initial phase it still has different trade-offs",
            f"spread {plus_minus(spreads[1], 2)}, MOO-MTL {plus_minus(spreads[2], 2)}; hypervolume {volumes[1]} and "
            f"{volumes[2]}",
            judge(other > 0 and clear, other > 0),
        ),
    ]


def release_facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Before and after the constraints are dropped, and with the constraints kept."""
    parts = {
        "constraints kept for all 30 epochs": pick(rows, method="pareto-mtl"),
        "snapshot after 20 epochs": pick(rows, note="released", stage="snapshot"),
        "10 released epochs later": pick(rows, note="released"),
    }
    return [
        (
            name,
            f"{_volume_and_spread(part)}, in their own region {sum(row['in_region'] for row in part)} of "
            f"{_total(part)} on training",
        )
        for name, part in parts.items()
    ]


def preference_claims(rows: Sequence[Row]) -> list[Claim]:
    """Supplement, section 5."""
    even = pick(rows)
    sets = sorted({row["note"] for row in rows if row["note"].startswith("5 random")})
    random = {name: pick(rows, note=name) for name in sets}
    own = column(even, "spread")
    ratio = {name: mean(column(part, "spread")) / max(mean(own), 1e-12) for name, part in random.items()}
    better = [mean(column(part, "hypervolume")) > mean(column(even, "hypervolume")) for part in random.values()]
    close = {name: pick(rows, note=name) for name in ("5 close", "5 narrow")}
    middle = {name: [_sum(row["losses"][2]) for row in part] for name, part in {"5 even": even, **close}.items()}
    gap, sure = difference(middle["5 close"], middle["5 even"])
    return [
        Claim(
            "supplement 5",
            "random sets of vectors consistently give well-distributed solutions, better or worse than the even set",
            f"hypervolume {plus_minus(column(even, 'hypervolume'))} for the even set; "
            + ", ".join(f"{plus_minus(column(part, 'hypervolume'))}" for part in random.values())
            + " for random ones, whose spread is "
            + ", ".join(f"{value:.2f}" for value in ratio.values())
            + " times that of the even set",
            judge(min(ratio.values()) > 0.8 and any(better) and not all(better), min(ratio.values()) > 0.5),
        ),
        Claim(
            "supplement 5",
            "vectors that are too close together, and so narrow regions, can hurt",
            "sum of the two test losses at 45 degrees: "
            + ", ".join(f"{plus_minus(values)} ({name})" for name, values in middle.items()),
            judge(gap > 0 and sure, gap > 0),
        ),
    ]


def preference_facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Every set of vectors."""
    found = []
    for name in dict.fromkeys(row["note"] for row in rows):
        part = pick(rows, note=name)
        found.append(
            (
                name or "5 even",
                f"{_volume_and_spread(part)}, in their own region {sum(row['in_region'] for row in part)} of "
                f"{_total(part)} on training and {sum(row['in_region_test'] for row in part)} on test, rank "
                f"correlation {mean(column(part, order)):.2f}",
            )
        )
    return found


def weight_claims(rows: Sequence[Row]) -> list[Claim]:
    """Supplement, section 3."""
    own, *others = (_first_shares(rows, method) for method in ("pareto-mtl", "mgda", "gradnorm"))
    balanced = [mean(shares) for shares in others]
    low, high = own[0], own[-1]
    return [
        Claim(
            "supplement 3, figure 10",
            "Pareto MTL leans to the task of an extreme preference vector, and balances for a balanced one",
            f"mean share of the first task's weight: {own[-1]:.2f} for (0, 1), {own[len(own) // 2]:.2f} for the "
            f"balanced vector, {own[0]:.2f} for (1, 0)",
            judge(low < 0.4 < own[len(own) // 2] < 0.6 < high, low < high),
        ),
        Claim(
            "supplement 3, figure 10",
            "MOO-MTL and GradNorm always try to balance the tasks",
            f"mean share of the first task's weight: {balanced[0]:.2f} for MOO-MTL, {balanced[1]:.2f} for GradNorm",
            judge(
                all(0.4 < share < 0.6 for shares in others for share in shares), all(0.4 < s < 0.6 for s in balanced)
            ),
        ),
    ]


def weight_facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """The shares by model."""
    return [
        (
            f"mean share of the first task's weight, {LABELS[method]}, for each model",
            ", ".join(f"{share:.2f}" for share in _first_shares(rows, method)),
        )
        for method in dict.fromkeys(row["method"] for row in rows)
    ]


def _first_shares(rows: Sequence[Row], method: str) -> list[float]:
    """For each model the share of the first task in the absolute weights, mean over epochs and seeds."""
    by_seed = [
        [mean([_share(epoch[k]) for epoch in row["weights"]]) for k in range(row["preferences"])]
        for row in pick(rows, method=method)
    ]
    return [mean(values) for values in zip(*by_seed, strict=True)]


def _share(weights: Sequence[float]) -> float:
    if None in weights:
        return math.nan
    return abs(weights[0]) / max(sum(abs(weight) for weight in weights), 1e-12)


def acceptance_facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Accuracies of separate networks beside those on the lost files."""
    found = []
    for problem in SETS:
        if has(rows, problem=problem):
            mine = [row for row in rows if row["problem"] == problem]
            own = [[point[task] for task, point in enumerate(accuracies(row))] for row in mine]
            values = list(zip(*own, strict=True))
            said = "; ".join(
                f"{task}: {plus_minus(here, 4)} here, {there:.4f} there ({mean(here) - there:+.4f})"
                for task, here, there in zip(mine[0]["tasks"], values, PUBLISHED[problem], strict=True)
            )
            found.append((f"test accuracy, {TITLES[problem]}, {len(mine)} seeds", said))
    return found


def _trained(rows: Sequence[Row]) -> list[str]:
    return [p for p in SETS if all(has(rows, problem=p, method=m) for m in ("pareto-mtl", "single-task"))]


def _is(row: Row, problem: str, method: str) -> bool:
    return bool(row["problem"] == problem and row["method"] == method)


def _all_accuracies(rows: Sequence[Row], problem: str) -> list[float]:
    mine = [row for row in rows if _is(row, problem, "pareto-mtl")]
    return [value for row in mine for point in accuracies(row, "train_metrics") for value in point]


def _ratio(points: Sequence[Sequence[float]]) -> float:
    """The largest over the smallest loss in a task, of the task where that is less."""
    finite = [point for point in points if None not in point]
    return min(max(values) / max(min(values), 1e-12) for values in zip(*finite, strict=True)) if finite else 0.0


def _sum(point: Sequence[float]) -> float:
    return math.nan if None in point else sum(point)


def _volume_and_spread(rows: Sequence[Row]) -> str:
    volumes, spreads = column(rows, "hypervolume"), column(rows, "spread")
    return f"hypervolume {plus_minus(volumes)}, spread {plus_minus(spreads, 2)}"


def _total(rows: Sequence[Row]) -> int:
    return sum(row["preferences"] for row in rows)
