"""Claims on the paper's tables for faces and localization."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from paretomtl._support.significance import difference, mean
from paretomtl.compare import Row
from paretomtl.paper.claims import Claim, judge, measured_claim
from paretomtl.paper.number_text import starred
from paretomtl.paper.real_data.cell_facts import cell_facts, scale_facts
from paretomtl.paper.real_data.shared_claims import AHEAD, trade_offs
from paretomtl.paper.real_data.tables import TABLE_METRICS, metrics_of, solution_values, vector_lines
from paretomtl.paper.rows import favouring, has, pick

_ALIKE = 5e-5  # means that differ less are tied: rows hold five digits
RIVALS = ("linear", "gradnorm", "uncertainty", "mgda")
"""The other methods of the paper's tables, on shared networks."""


def table_claims(rows: Sequence[Row], where: str, diversity: str) -> list[Claim]:
    """Claims on a table: the vector that favours a task has the best value in it, and trade-offs differ.

    Args:
        rows: the rows of the study.
        where: the place of the table in the paper.
        diversity: what Pareto MTL finds according to the paper.
    """
    notes = list(dict.fromkeys(row["note"] for row in rows if row["method"] == "pareto-mtl"))
    claims = [_favoured(rows, note, where) for note in notes]
    for group in filter(None, ([note for note in notes if not note], [note for note in notes if note])):
        claims += [_best_of_all(rows, group, where), _diverse(rows, group, where, diversity)]
    return claims


def _favoured(rows: Sequence[Row], note: str, where: str) -> Claim:
    mine = pick(rows, method="pareto-mtl", note=note)
    problem, tasks = mine[0]["problem"], mine[0]["tasks"]
    measured, hits = [], []
    for i, metric in enumerate(TABLE_METRICS[problem]):
        means = [_mean(values) for values in zip(*(row["metrics"][metric] for row in mine), strict=True)]
        known = [value for value in means if not math.isnan(value)]
        best = (min if mine[0]["better"][metric] == "lower" else max)(known, default=math.nan)
        favoured = favouring(mine[0], i)
        hits.append(math.isclose(means[favoured], best, rel_tol=_ALIKE))
        measured.append(f"{tasks[i]}: {metric} {means[favoured]:.4g}, best of all vectors {best:.4g}")
    return measured_claim(
        where,
        "for each task the vector that favours it has the best value" + (f" ({note})" if note else ""),
        f"mean over {len(mine)} seeds on test",
        measured,
        judge(all(hits), any(hits)),
    )


def _best_of_all(rows: Sequence[Row], notes: Sequence[str], where: str) -> Claim:
    """In each column of the paper's table the vector that favours the task is the best; "partly" if another one is."""
    rivals = [row for row in rows if row["method"] != "pareto-mtl"]
    problem, tasks = rows[0]["problem"], rows[0]["tasks"]
    best, first, any_first = [], [], []
    gaps: dict[str, list[str]] = {note: [] for note in notes}
    for task, metric in enumerate(TABLE_METRICS[problem] if rivals else ()):
        sign = -1.0 if rows[0]["better"][metric] == "lower" else 1.0
        name, theirs = _best(solution_values(rivals, metric), sign)
        best.append(f"{metric} {abs(mean(theirs)):.4g} of {name}")
        for note in notes:
            mine = pick(rows, method="pareto-mtl", note=note)
            values = solution_values(mine, metric)
            best_vector, most = _best(values, sign)
            favoured = list(values)[favouring(mine[0], task)]
            own, other = difference(_signed(values[favoured], sign), theirs), difference(most, theirs)
            first.append(own.sign > 0)
            any_first.append(other.sign > 0)
            gaps[note].append(
                f"{tasks[task]} {starred(own, 4)}"
                + ("" if best_vector == favoured else f" (best vector {starred(other, 4)})")
            )
    return measured_claim(
        where,
        f"a vector of Pareto MTL, the one that favours the task, is the best of all methods in each task{_how(notes)}",
        "best mean of the others on test, and how much better the vector is (* more than seeds explain)",
        [", ".join(best), *(", ".join([*filter(None, [note]), *measured]) for note, measured in gaps.items())]
        if best
        else [],
        judge(all(first), any(any_first)),
        whole=is_complete(rows),
    )


def _best(solutions: Mapping[str, Sequence[float | None]], sign: float) -> tuple[str, list[float]]:
    """The solution with the best mean, and its values, signed so that larger is better."""
    known = {name: _signed(values, sign) for name, values in solutions.items()}
    name = max(known, key=lambda each: -math.inf if math.isnan(mean(known[each])) else mean(known[each]))
    return name, known[name]


def _signed(values: Sequence[float | None], sign: float) -> list[float]:
    return [math.nan if value is None else sign * value for value in values]


def _diverse(rows: Sequence[Row], notes: Sequence[str], where: str, diversity: str) -> Claim:
    results = {note: trade_offs(pick(rows, method="pareto-mtl", note=note)) for note in notes}
    ahead = [each for _, signs, _ in results.values() for each in signs]
    return measured_claim(
        where,
        f"Pareto MTL finds {diversity}{_how(notes)}",
        AHEAD.format("test metric"),
        [", ".join(filter(None, (note, text))) for note, (text, _, _) in results.items()],
        judge(all(ahead) and all(useful for _, _, useful in results.values()), any(ahead)),
    )


def _how(notes: Sequence[str]) -> str:
    return f" (losses scaled in {len(notes)} way{'s' if len(notes) > 1 else ''})" if any(notes) else ""


def is_complete(rows: Sequence[Row]) -> bool:
    """Whether all methods of the paper's tables were trained."""
    return all(has(rows, method=method) for method in (*RIVALS, "single-task"))


def _mean(values: Sequence[float | None]) -> float:
    return mean([math.nan if value is None else value for value in values])


def table_facts(rows: Sequence[Row], paper: Mapping[str, tuple[float, ...]]) -> list[tuple[str, str]]:
    """The paper's table as measured here, with the paper's own numbers; every cell; every way to scale the losses."""
    results = []
    metrics = metrics_of(rows[0]) if rows else ()
    for line in vector_lines(rows, paper):
        here = ", ".join(f"{metric} {value}" for metric, value in zip(metrics, line.values, strict=True))
        there = ", ".join(f"{value:g}" for value in line.paper)
        results.append((line.name, f"{here}; in the paper, on other data, {there}" if there else here))
    return results + cell_facts(rows) + scale_facts(rows, "")
