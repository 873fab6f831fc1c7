"""What the rows of census, faces, localization and three digits say about the paper's claims."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from paretomtl.experiments._image_claims import LABELS
from paretomtl.experiments._statistics import column, difference, has, mean, pick, plus_minus
from paretomtl.experiments._store import Row
from paretomtl.experiments._study import Claim, judge, measured_claim
from paretomtl.experiments._task_studies import EXPERTS, SHARED

PAPER_TABLES = {
    "utkface": {
        "single task": (0.8792, 0.7813, 13.551),
        "fixed": (0.8740, 0.7838, 13.900),
        "GradNorm": (0.8809, 0.7660, 13.792),
        "Uncertainty": (0.8797, 0.7704, 13.969),
        "MOO-MTL": (0.8780, 0.7784, 13.808),
        "Pareto MTL (1, 1, 1)": (0.8780, 0.7867, 13.918),
        "Pareto MTL (0, 1, 1)": (0.8856, 0.7541, 14.414),
        "Pareto MTL (1, 0, 1)": (0.8722, 0.7928, 14.322),
        "Pareto MTL (1, 1, 0)": (0.8669, 0.7623, 13.518),
    },
    "localization": {
        "single task": (8.392, 2.461),
        "grid search (0.25, 0.75)": (9.927, 2.177),
        "grid search (0.5, 0.5)": (7.840, 2.306),
        "grid search (0.75, 0.25)": (7.585, 2.621),
        "GradNorm": (7.751, 2.287),
        "Uncertainty": (7.624, 2.263),
        "MOO-MTL": (7.909, 2.090),
        "Pareto MTL (0, 1)": (7.285, 2.335),
        "Pareto MTL (1, 1)": (7.724, 2.156),
        "Pareto MTL (1, 0)": (8.411, 1.771),
    },
}
"""The paper's tables, on its own data: gender and race accuracy and age error; metres and degrees."""

SHOWN = {
    "utkface": ("gender accuracy", "race accuracy", "age error"),
    "localization": ("translation error", "rotation error"),
}
"""The metrics of the paper's tables, one per task."""


def census_claims(rows: Sequence[Row]) -> list[Claim]:
    """Supplement, section 2.1."""
    return [claim for part in (SHARED, EXPERTS) for claim in (_more_vectors(rows, part), _dominates(rows, part))]


def _more_vectors(rows: Sequence[Row], part: str) -> Claim:
    said, holds, partly = [], False, False
    if all(has(rows, part=part, note=name) for name in ("5 random", "25 random")):
        few, many = (column(pick(rows, part=part, note=f"{n} random"), "hypervolume") for n in (5, 25))
        gap, sure = difference(many, few)
        said, holds, partly = [f"{plus_minus(few, 4)} with 5, {plus_minus(many, 4)} with 25"], gap > 0 and sure, gap > 0
    return measured_claim(
        f"supplement 2.1, figure 8a; {part}",
        "25 preference vectors represent the trade-offs of three tasks much better than 5",
        "hypervolume of the test losses",
        said,
        judge(holds, partly),
    )


def _dominates(rows: Sequence[Row], part: str) -> Claim:
    said, ours, theirs = [], 0.0, 0.0
    if has(rows, part=part, note="25 random") and has(rows, part=part, method="random-search"):
        pareto = {row["seed"]: row["losses"] for row in pick(rows, part=part, note="25 random")}
        random = {row["seed"]: row["losses"] for row in pick(rows, part=part, method="random-search")}
        both = sorted(pareto.keys() & random.keys())
        ours = mean([dominated_share(random[seed], pareto[seed]) for seed in both])
        theirs = mean([dominated_share(pareto[seed], random[seed]) for seed in both])
        said = [f"{ours:.0%} of random search by Pareto MTL, {theirs:.0%} of Pareto MTL by random search"]
    return measured_claim(
        f"supplement 2.1, figure 8b; {part}",
        "25 solutions of Pareto MTL dominate nearly all of as many random weights",
        "solutions dominated, by test losses",
        said,
        judge(ours > 0.8, ours > theirs),
    )


def dominated_share(points: Sequence[Sequence[float]], others: Sequence[Sequence[float]]) -> float:
    """The share of points that one of the others dominates: nowhere worse, and somewhere better."""
    mine, theirs = (torch.tensor(rows, dtype=torch.float64) for rows in (points, others))
    no_worse = (theirs[None] <= mine[:, None]).all(-1)
    better = (theirs[None] < mine[:, None]).any(-1)
    return float((no_worse & better).any(-1).double().mean())


def census_facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Every method: hypervolume, spread, regions."""
    return _summaries(rows)


def table_claims(rows: Sequence[Row]) -> list[Claim]:
    """Table 1 and the supplement's table: for each task, the vector that favours it gives the best value."""
    notes = dict.fromkeys(row["note"] for row in rows if row["method"] == "pareto-mtl")
    return [_favoured(rows, note) for note in notes]


def _favoured(rows: Sequence[Row], note: str) -> Claim:
    mine = pick(rows, method="pareto-mtl", note=note)
    problem, tasks = mine[0]["problem"], mine[0]["tasks"]
    said, hits = [], []
    for i, metric in enumerate(SHOWN[problem]):
        lower = mine[0]["better"][metric] == "lower"
        means = [mean(list(values)) for values in zip(*(row["metrics"][metric] for row in mine), strict=True)]
        best = min(means) if lower else max(means)
        favoured = min(range(len(means)), key=lambda k: mine[0]["vectors"][k][i])  # the smallest share of loss i
        hits.append(means[favoured] == best)
        said.append(f"{tasks[i]}: {metric} {means[favoured]:.4g}, best of all vectors {best:.4g}")
    return measured_claim(
        "section 6.2, figure 4" if problem == "localization" else "supplement 2.2, table 1",
        "for each task the vector that favours it has the best value" + (f" ({note})" if note else ""),
        f"mean over {len(mine)} seeds on test",
        said,
        judge(all(hits), any(hits)),
    )


def table_facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """The paper's table as measured here: every method and vector, mean over seeds, and the paper's own numbers."""
    found = []
    for method, note in dict.fromkeys((row["method"], row["note"]) for row in rows):
        mine = pick(rows, method=method, note=note)
        metrics = SHOWN[mine[0]["problem"]]
        if method == "single-task":
            values = [[row["metrics"][metric][i] for row in mine] for i, metric in enumerate(metrics)]
            found.append((_named(method, note, None), _listed(metrics, values)))
            continue
        for k in range(mine[0]["preferences"]):
            values = [[row["metrics"][metric][k] for row in mine] for metric in metrics]
            vector = None if mine[0]["reading"] == "start" else mine[0]["vectors"][k]
            found.append((_named(method, note, vector), _listed(metrics, values)))
    return found + _summaries(rows)


def _named(method: str, note: str, vector: Sequence[float] | None) -> str:
    shown = "" if vector is None else f" ({', '.join(f'{value:.3g}' for value in vector)})"
    return f"{LABELS[method]}{shown}{f', {note}' if note else ''}"


def _listed(metrics: Sequence[str], values: Sequence[Sequence[float]]) -> str:
    return ", ".join(f"{metric} {plus_minus(each, 4)}" for metric, each in zip(metrics, values, strict=True))


def _summaries(rows: Sequence[Row]) -> list[tuple[str, str]]:
    found = []
    for part, method, note in dict.fromkeys((row["part"], row["method"], row["note"]) for row in rows):
        mine = pick(rows, part=part, method=method, note=note)
        text = f"hypervolume {plus_minus(column(mine, 'hypervolume'), 4)}"
        if method == "single-task":
            text += " of the point made of separate networks"
        else:
            kept = mean(column(mine, "nondominated"))
            text += (
                f", spread {plus_minus(column(mine, 'spread'))}, not dominated {kept:.1f} of {mine[0]['preferences']}"
            )
        if mine[0]["in_region"] is not None:
            train, test = (mean(column(mine, name)) for name in ("in_region", "in_region_test"))
            text += f", in their own region {train:.1f} on training and {test:.1f} on test"
        found.append((f"{part}, {LABELS[method]}{f', {note}' if note else ''}, {len(mine)} seeds", text))
    return found
