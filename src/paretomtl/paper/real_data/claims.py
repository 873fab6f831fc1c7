"""What the rows of census, faces, localization and three digits say about the paper's claims."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch

from paretomtl.compare.row_store import Row
from paretomtl.core import nondominated
from paretomtl.paper.images.lenet import beside, better_verdict, counted, favouring
from paretomtl.paper.real_data.dominance import dominance_facts, dominated
from paretomtl.paper.real_data.studies import EVEN, EXPERTS, SHARED
from paretomtl.paper.real_data.tables import (
    AS_THEY_ARE,
    SHOWN,
    CellLine,
    cell_lines,
    in_own_region,
    metrics_of,
    region_shares,
    scale_lines,
    scaled_rows,
    solution_values,
    vector_lines,
)
from paretomtl.paper.statistics import apart, column, difference, has, mean, pick, plus_minus, starred
from paretomtl.paper.study import Claim, judge, measured_claim

_MUCH = 0.01  # of a hypervolume, to be called "much better"
_ALIKE = 5e-5  # means that differ less are a tie: rows hold five digits
_MOST = 0.8  # of all solutions, to be called nearly all
_BALANCED = ("gradnorm", "uncertainty")  # the methods that the paper would balance tasks by
_RIVALS = ("linear", "gradnorm", "uncertainty", "mgda")  # those of the paper's tables on shared networks
_AHEAD = (
    "{} of the vector that favours a task, better by how much than the mean of the others (* more than seeds explain)"
)


def census_claims(rows: Sequence[Row]) -> list[Claim]:
    """Supplement, sections 2.1 and 3."""
    found = [
        claim
        for part in (SHARED, EXPERTS)
        for claim in (_more_vectors(rows, part), _few_vectors(rows, part), _dominates(rows, part))
    ]
    balanced = [
        _balance_first([row for row in rows if row["part"] == part], EVEN, f"supplement 3; {part}")
        for part in (SHARED, EXPERTS)
    ]
    return found + balanced


def _more_vectors(rows: Sequence[Row], part: str) -> Claim:
    said, holds, partly = [], False, False
    if all(has(rows, part=part, note=name) for name in ("5 random", "25 random")):
        few, many = (column(pick(rows, part=part, note=f"{n} random"), "hypervolume") for n in (5, 25))
        gap, sure = difference(many, few)
        said = [f"{plus_minus(few, 4)} with 5, {plus_minus(many, 4)} with 25"]
        holds, partly = sure and gap >= _MUCH * mean(few), sure and gap > 0
    return measured_claim(
        f"supplement 2.1, figure 8a; {part}",
        "25 preference vectors represent the trade-offs of three tasks much better than 5",
        "hypervolume of the test losses",
        said,
        judge(holds, partly),
    )


def _few_vectors(rows: Sequence[Row], part: str) -> Claim:
    """Beside as many solutions of MOO-MTL, which differ by their starts alone."""
    said, ahead, useful = [], [False], False
    if has(rows, part=part, note="5 random") and has(rows, part=part, method="mgda"):
        mine, starts = pick(rows, part=part, note="5 random"), pick(rows, part=part, method="mgda")
        text, ahead, useful = _trade_offs(mine)
        spreads = [column(each, "spread") for each in (mine, starts)]
        gap = difference(*spreads)
        ahead.append(apart(gap) > 0)
        said = [text, f"spread {plus_minus(spreads[0], 4)}, {starred(gap, 4)} to that of as many starts of MOO-MTL"]
    return measured_claim(
        f"supplement 2.1, figure 8a; {part}",
        "5 preference vectors also provide solutions with different trade-offs",
        _AHEAD.format("test loss"),
        said,
        judge(all(ahead) and useful, any(ahead)),
    )


def _trade_offs(rows: Sequence[Row]) -> tuple[str, list[bool], bool]:
    """For each task whether the vector that favours it is ahead of the others, and whether few solutions are dominated.

    By the metrics of the paper's tables, or else by losses.
    """
    tables = [_lower(row) for row in rows]
    said, ahead = [], []
    for task, name in enumerate(rows[0]["tasks"]):
        first = [favouring(row, task) for row in rows]  # vectors may be other ones for each seed
        own = [table[best][task] for best, table in zip(first, tables, strict=True)]
        others = [
            mean([point[task] for k, point in enumerate(table) if k != best])
            for best, table in zip(first, tables, strict=True)
        ]
        gap = difference(others, own)
        said.append(f"{name} {starred(gap, 4)}")
        ahead.append(apart(gap) > 0)
    count = len(tables[0])
    kept = mean([float(nondominated(torch.tensor(table, dtype=torch.float64)).sum()) for table in tables])
    return f"{', '.join(said)}, not dominated {kept:.1f} of {count}", ahead, kept > _MOST * count


def _lower(row: Row) -> list[list[float]]:
    """A value for each solution and task that is better when lower."""
    metrics = SHOWN.get(row["problem"])
    if metrics is None:
        return [[math.nan if value is None else value for value in point] for point in row["losses"]]
    signs = [1.0 if row["better"][metric] == "lower" else -1.0 for metric in metrics]
    columns = [
        [math.nan if value is None else sign * value for value in row["metrics"][metric]]
        for metric, sign in zip(metrics, signs, strict=True)
    ]
    return [list(point) for point in zip(*columns, strict=True)]


def _dominates(rows: Sequence[Row], part: str) -> Claim:
    said, ours, theirs = [], 0.0, 0.0
    if has(rows, part=part, note="25 random") and has(rows, part=part, method="random-search"):
        pareto, random = pick(rows, part=part, note="25 random"), pick(rows, part=part, method="random-search")
        ours, theirs = dominated(random, pareto), dominated(pareto, random)
        volumes = [plus_minus(column(each, "hypervolume"), 4) for each in (random, pareto)]
        said = [
            f"{ours:.0%} of random search by Pareto MTL, {theirs:.0%} of Pareto MTL by random search",
            f"hypervolume {volumes[0]} of random search, {volumes[1]} of Pareto MTL",
        ]
    return measured_claim(
        f"supplement 2.1, figure 8b; {part}",
        "25 solutions of Pareto MTL dominate nearly all of as many random weights",
        "solutions dominated, by test losses",
        said,
        judge(ours > _MOST, ours > theirs),
    )


def table_claims(rows: Sequence[Row]) -> list[Claim]:
    """Table 1 and the supplement's table: for each task, the vector that favours it gives the best value."""
    notes = list(dict.fromkeys(row["note"] for row in rows if row["method"] == "pareto-mtl"))
    found = [_favoured(rows, note) for note in notes]
    for group in filter(None, ([note for note in notes if not note], [note for note in notes if note])):
        found += [_best_of_all(rows, group), _diverse(rows, group)]
    if notes and rows[0]["problem"] == "localization":
        found.append(_outperforms(rows))
    return [*found, _balance_first(rows, "", "supplement 3")]


def _favoured(rows: Sequence[Row], note: str) -> Claim:
    mine = pick(rows, method="pareto-mtl", note=note)
    problem, tasks = mine[0]["problem"], mine[0]["tasks"]
    said, hits = [], []
    for i, metric in enumerate(SHOWN[problem]):
        means = [_mean(values) for values in zip(*(row["metrics"][metric] for row in mine), strict=True)]
        known = [value for value in means if not math.isnan(value)]
        best = (min if mine[0]["better"][metric] == "lower" else max)(known, default=math.nan)
        favoured = favouring(mine[0], i)
        hits.append(math.isclose(means[favoured], best, rel_tol=_ALIKE))
        said.append(f"{tasks[i]}: {metric} {means[favoured]:.4g}, best of all vectors {best:.4g}")
    return measured_claim(
        _where(problem),
        "for each task the vector that favours it has the best value" + (f" ({note})" if note else ""),
        f"mean over {len(mine)} seeds on test",
        said,
        judge(all(hits), any(hits)),
    )


def _best_of_all(rows: Sequence[Row], notes: Sequence[str]) -> Claim:
    """In each column of the paper's table the vector that favours the task is the best; partly: another vector is."""
    rivals = [row for row in rows if row["method"] != "pareto-mtl"]
    problem, tasks = rows[0]["problem"], rows[0]["tasks"]
    best, first, any_first = [], [], []
    gaps: dict[str, list[str]] = {note: [] for note in notes}
    for task, metric in enumerate(SHOWN[problem] if rivals else ()):
        sign = -1.0 if rows[0]["better"][metric] == "lower" else 1.0
        name, theirs = _best(solution_values(rivals, metric), sign)
        best.append(f"{metric} {abs(mean(theirs)):.4g} of {name}")
        for note in notes:
            mine = pick(rows, method="pareto-mtl", note=note)
            values = solution_values(mine, metric)
            chosen, most = _best(values, sign)
            favoured = list(values)[favouring(mine[0], task)]
            own, other = difference(_signed(values[favoured], sign), theirs), difference(most, theirs)
            first.append(apart(own) > 0)
            any_first.append(apart(other) > 0)
            gaps[note].append(
                f"{tasks[task]} {starred(own, 4)}"
                + ("" if chosen == favoured else f" (best vector {starred(other, 4)})")
            )
    return measured_claim(
        _where(problem),
        f"a vector of Pareto MTL, the one that favours the task, is the best of all methods in each task{_how(notes)}",
        "best mean of the others on test, and how much better the vector is (* more than seeds explain)",
        [", ".join(best), *(", ".join([*filter(None, [note]), *said]) for note, said in gaps.items())] if best else [],
        judge(all(first), any(any_first)),
        whole=_complete(rows),
    )


def _best(solutions: Mapping[str, Sequence[float | None]], sign: float) -> tuple[str, list[float]]:
    """The solution with the best mean, and its values, larger being better."""
    known = {name: _signed(values, sign) for name, values in solutions.items()}
    name = max(known, key=lambda each: -math.inf if math.isnan(mean(known[each])) else mean(known[each]))
    return name, known[name]


def _signed(values: Sequence[float | None], sign: float) -> list[float]:
    return [math.nan if value is None else sign * value for value in values]


def _diverse(rows: Sequence[Row], notes: Sequence[str]) -> Claim:
    found = {note: _trade_offs(pick(rows, method="pareto-mtl", note=note)) for note in notes}
    ahead = [each for _, signs, _ in found.values() for each in signs]
    problem = rows[0]["problem"]
    kind = "solutions with different" if problem == "localization" else "widely distributed solutions with diverse"
    return measured_claim(
        _where(problem),
        f"Pareto MTL finds {kind} trade-offs{_how(notes)}",
        _AHEAD.format("test metric"),
        [", ".join(filter(None, (note, text))) for note, (text, _, _) in found.items()],
        judge(all(ahead) and all(useful for _, _, useful in found.values()), any(ahead)),
    )


def _outperforms(rows: Sequence[Row]) -> Claim:
    said, signs = [], [0]
    rivals = [method for method in _RIVALS if has(rows, method=method)]
    if rivals and has(rows, method="pareto-mtl", note=""):
        theirs = {method: column(pick(rows, method=method), "hypervolume") for method in rivals}
        text, signs = beside(column(pick(rows, method="pareto-mtl"), "hypervolume"), theirs, 4)
        said = [text, counted(signs)]
    return measured_claim(
        _where(rows[0]["problem"]),
        "Pareto MTL outperforms other MTL approaches",
        "mean hypervolume of the test losses, and difference (* more than seeds explain)",
        said,
        better_verdict(signs),
        whole=_complete(rows),
    )


def _where(problem: str) -> str:
    return "section 6.2, figure 4" if problem == "localization" else "supplement 2.2, table 1"


def _how(notes: Sequence[str]) -> str:
    return f" (losses scaled in {len(notes)} way{'s' if len(notes) > 1 else ''})" if any(notes) else ""


def _complete(rows: Sequence[Row]) -> bool:
    return all(has(rows, method=method) for method in (*_RIVALS, "single-task"))


def _mean(values: Sequence[float | None]) -> float:
    return mean([math.nan if value is None else value for value in values])


def _balance_first(rows: Sequence[Row], base: str, where: str) -> Claim:
    """Whether tasks that another method balances first are spread better than losses as they are, of one network."""
    scaled = scaled_rows(rows, base)
    there = [scale for scale in _BALANCED if scale in scaled and has(rows, note=base, method="pareto-mtl")]
    said, wins, gains = [], [], []
    for scale in there:
        mine, plain = scaled[scale], pick(rows, note=base, method="pareto-mtl")
        texts = []
        for what, digits in (("hypervolume", 4), ("spread", 3)):
            ours, theirs = column(mine, what), column(plain, what)
            gap = difference(ours, theirs)
            texts.append(f"{what} {plus_minus(ours, digits)} against {plus_minus(theirs, digits)}, {_told(gap)}")
            gains.append(apart(gap) > 0)
            wins += gains[-1:] if what == "hypervolume" else []
        (shares, test), (plainly, plain_test) = region_shares(mine), region_shares(plain)
        gap = difference(*(in_own_region(each, "in_region") for each in (mine, plain)))
        gains.append(apart(gap) > 0)
        texts.append(
            f"in their own region {shares:.0%} / {test:.0%} against {plainly:.0%} / {plain_test:.0%}, {_told(gap)}"
        )
        said.append(f"by {scale}: {', '.join(texts)}")
    return measured_claim(
        where,
        "tasks of different scales: let GradNorm or Uncertainty balance them first, and Pareto MTL spread after",
        f"beside losses {AS_THEY_ARE}, on test, regions on training / test (* more than seeds explain)",
        said,
        judge(bool(wins) and all(wins), any(gains)),
        whole=len(there) == len(_BALANCED),
    )


def _told(gap: tuple[float, bool]) -> str:
    return {1: "more*", -1: "less*"}.get(apart(gap), "not told apart")


def census_facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Every cell: hypervolume, spread, regions, time; what dominates what; every way to scale the losses."""
    return _cells(rows) + dominance_facts(rows) + _scales(rows, EVEN)


def digits_facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Every cell, and what dominates what."""
    return _cells(rows) + dominance_facts(rows)


def table_facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """The paper's table as measured here, with the paper's own numbers; every cell; every way to scale the losses."""
    found = []
    metrics = metrics_of(rows[0]) if rows else ()
    for line in vector_lines(rows):
        here = ", ".join(f"{metric} {value}" for metric, value in zip(metrics, line.values, strict=True))
        paper = ", ".join(f"{value:g}" for value in line.paper)
        found.append((line.name, f"{here}; in the paper, on other data, {paper}" if paper else here))
    return found + _cells(rows) + _scales(rows, "")


def _cells(rows: Sequence[Row]) -> list[tuple[str, str]]:
    return [
        (f"{line.part}, {line.label}, {line.seeds} seed{'s' if line.seeds > 1 else ''}", _cell(line))
        for line in cell_lines(rows)
    ]


def _cell(line: CellLine) -> str:
    said = [f"hypervolume {line.hypervolume}"]
    said += [f"spread {line.spread}", f"not dominated {line.kept}"] if line.spread else ["of one ideal point"]
    said += ["in their own region {} on training and {} on test".format(*line.regions)] if any(line.regions) else []
    return ", ".join([*said, f"{line.seconds} s a front"])


def _scales(rows: Sequence[Row], base: str) -> list[tuple[str, str]]:
    """What scaled losses give beside losses as they are."""
    found = []
    for part in dict.fromkeys(row["part"] for row in rows):
        for line in scale_lines([row for row in rows if row["part"] == part], base)[1:]:
            regions = "by losses as they are, in their own region {} on training and {} on test".format(*line.plain)
            found.append((f"{part}, scaled {line.losses}, beside losses {AS_THEY_ARE}", f"{line.verdict}; {regions}"))
    return found
