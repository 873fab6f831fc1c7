"""What the rows of the other image studies say: ablations, preference sets, weights, acceptance."""

from __future__ import annotations

import math
from collections.abc import Sequence

from paretomtl.compare.row_store import Row
from paretomtl.compare.rows import accuracies
from paretomtl.paper.images.lenet import TITLES
from paretomtl.paper.images.studies import SETS
from paretomtl.paper.labels import LABELS
from paretomtl.paper.statistics import apart, column, difference, has, mean, order, pick, plus_minus, starred
from paretomtl.paper.study import Claim, judge, measured_claim

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


def release_claims(rows: Sequence[Row]) -> list[Claim]:
    """Supplement, section 1: the snapshot has had fewer epochs, so that keeping the constraints for as many counts."""
    kept, snapshot, released = _release(rows).values()
    said, better = [], []
    for what, sign, values in (
        ("hypervolume", 1, [column(part, "hypervolume") for part in (released, kept, snapshot)]),
        ("sum of the training losses", -1, [column(part, _sum_of_losses) for part in (released, kept, snapshot)]),
    ):
        after, *before = values
        gaps = [difference(after, other) for other in before]
        better += [sign * apart(gap) > 0 for gap in gaps]
        said.append(f"{what} {plus_minus(after)}, {starred(gaps[0])} and {starred(gaps[1])}")
    spreads = [column(part, "spread") for part in (released, kept, snapshot)]
    lost = [starred(difference(spreads[0], other), 2) for other in spreads[1:]]
    return [
        measured_claim(
            "supplement 1",
            "relaxed after a snapshot, the solutions have potentially better convergence",
            "after the constraints are dropped, and difference to keeping them for as many epochs and to the snapshot "
            "(* more than seeds explain)",
            [*said, f"spread {plus_minus(spreads[0], 2)}, {lost[0]} and {lost[1]}"],
            judge(all(better), any(better)),
        )
    ]


def _sum_of_losses(row: Row) -> float:
    """Both training losses, mean over the solutions."""
    return mean([_sum(point) for point in row["train_losses"]])


def _release(rows: Sequence[Row]) -> dict[str, list[Row]]:
    return {
        "constraints kept for all 30 epochs": pick(rows, method="pareto-mtl"),
        "snapshot after 20 epochs": pick(rows, note="released", stage="snapshot"),
        "10 released epochs later": pick(rows, note="released"),
    }


def release_facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Before and after the constraints are dropped, and with the constraints kept."""
    return [
        (
            name,
            f"{_volume_and_spread(part)}, in their own region {sum(row['in_region'] for row in part)} of "
            f"{_total(part)} on training",
        )
        for name, part in _release(rows).items()
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


def _sum(point: Sequence[float]) -> float:
    return math.nan if None in point else sum(point)


def _volume_and_spread(rows: Sequence[Row]) -> str:
    volumes, spreads = column(rows, "hypervolume"), column(rows, "spread")
    return f"hypervolume {plus_minus(volumes)}, spread {plus_minus(spreads, 2)}"


def _total(rows: Sequence[Row]) -> int:
    return sum(row["preferences"] for row in rows)
