"""Table lines from the rows of studies on real data: cells, vectors, ways to scale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from paretomtl._support.significance import difference, mean
from paretomtl.compare.row_store import Row
from paretomtl.compare.rows import is_ideal
from paretomtl.core import FEASIBLE_TOLERANCE, constraint_values, region_rows
from paretomtl.methods.registry import paper_label_of
from paretomtl.paper.number_text import plus_minus
from paretomtl.paper.rows import has, pick

TABLE_METRICS = {
    "utkface": ("gender accuracy", "race accuracy", "age error"),
    "localization": ("translation error", "rotation error"),
}
"""The metrics of the paper's tables, one per task."""

AS_THEY_ARE = "as they are"
_NONE = "–"


@dataclass(frozen=True)
class CellLine:
    """One cell over all its seeds; text for a table.

    Attributes:
        part: the part of the study.
        label: the method, and the note that distinguishes the cell.
        models: the number of models of a front.
        seeds: the number of fronts.
        hypervolume: that of the test losses.
        spread: that of the test losses; empty for separate networks.
        nondominated: the number of nondominated solutions on test; empty for separate networks.
        regions: the share of solutions in their own region on training and on test, in the units of training; empty
            without regions.
        best: for each task the best value of any solution, on test.
        seconds: the time of one front; ‡ if other studies trained on the same device.
    """

    part: str
    label: str
    models: int
    seeds: int
    hypervolume: str
    spread: str
    nondominated: str
    regions: tuple[str, str]
    best: tuple[str, ...]
    seconds: str


@dataclass(frozen=True)
class VectorLine:
    """One solution of a table of the paper, over all seeds.

    Attributes:
        name: the name in the paper's table, and how losses were scaled.
        values: the values of :func:`metrics_of`.
        regions: as in :class:`CellLine`, for all vectors of the cell together.
        paper: the numbers of the paper, on other data; empty if it has none, as for scaled losses.
    """

    name: str
    values: tuple[str, ...]
    regions: tuple[str, str]
    paper: tuple[float, ...]


@dataclass(frozen=True)
class ScaleLine:
    """Pareto MTL with one way to scale the losses, compared with unscaled losses.

    Attributes:
        losses: how losses are scaled.
        hypervolume: that of the test losses, unscaled.
        spread: that of the test losses, unscaled.
        regions: the share of solutions in their own region on training and on test, in the units of training.
        plain: the same by unscaled losses.
        best: for each task the best value of any solution, on test.
        verdict: which numbers differ from those with unscaled losses by more than seeds explain.
    """

    losses: str
    hypervolume: str
    spread: str
    regions: tuple[str, str]
    plain: tuple[str, str]
    best: tuple[str, ...]
    verdict: str


def metrics_of(row: Row) -> tuple[str, ...]:
    """The metrics in tables: first one for each task, then all others."""
    first = TABLE_METRICS.get(row["problem"]) or tuple(f"{task} accuracy" for task in row["tasks"])
    return (*first, *(name for name in row["metrics"] if name not in first))


def cell_lines(rows: Sequence[Row]) -> list[CellLine]:
    """A line for each cell, in the order of the rows."""
    results = []
    for part, method, note in dict.fromkeys((row["part"], row["method"], row["note"]) for row in rows):
        mine = pick(rows, part=part, method=method, note=note)
        ideal = is_ideal(mine[0])
        nondominated = f"{mean([row['nondominated'] for row in mine]):.1f} of {mine[0]['preferences']}"
        line = CellLine(
            part,
            ", ".join(filter(None, (paper_label_of(method), note))),
            mine[0]["preferences"],
            len(mine),
            _mean_text([row["hypervolume"] for row in mine], 4),
            "" if ideal else _mean_text([row["spread"] for row in mine], 3),
            "" if ideal else nondominated,
            _regions(mine),
            _best(mine),
            f"{mean([row['seconds'] / row['seeds_at_once'] for row in mine]):.3g}"
            f"{'‡' if any(row.get('beside') for row in mine) else ''}",
        )
        results.append(line)
    return results


def vector_lines(rows: Sequence[Row], paper: Mapping[str, tuple[float, ...]]) -> list[VectorLine]:
    """The table of the paper as measured, next to the paper's own numbers: every method and vector."""
    results = []
    for method, note in dict.fromkeys((row["method"], row["note"]) for row in rows):
        mine = pick(rows, method=method, note=note)
        metrics = metrics_of(mine[0])
        published, regions = {} if note else paper, _regions(mine)
        columns = [solution_values(mine, metric) for metric in metrics]
        for name in columns[0]:
            scaled = ", ".join(filter(None, (name, note)))
            values = tuple(_mean_text(column[name], 4) for column in columns)
            results.append(VectorLine(scaled, values, regions, published.get(name, ())))
    return results


def solution_values(rows: Sequence[Row], metric: str) -> dict[str, list[float | None]]:
    """The values of a metric over the seeds, for each solution by its name in the paper's table."""
    results: dict[str, list[float | None]] = {}
    for row in rows:
        for model in range(1 if is_ideal(row) else row["preferences"]):
            value = row["metrics"][metric][_model(row, metric, model)]
            results.setdefault(_solution(row, model), []).append(value)
    return results


def _model(row: Row, metric: str, model: int) -> int:
    """The model whose value of a metric is shown in a line; for separate networks, the task's own network."""
    if not is_ideal(row):
        return model
    return next(i for i, name in enumerate(TABLE_METRICS[row["problem"]]) if metric.endswith(name))


def _solution(row: Row, model: int) -> str:
    """The name of a solution in the paper's table."""
    label, vector = paper_label_of(row["method"]), row["vectors"][model]
    if row["method"] == "linear" and row["preferences"] == 1:
        return "fixed"
    if row["method"] not in ("pareto-mtl", "linear"):
        return label
    whole = max(vector) if row["reading"] == "direction" else sum(vector)
    return f"{label} ({', '.join(f'{value / whole:.3g}' for value in vector)})"


def scaled_rows(rows: Sequence[Row], base: str) -> dict[str, list[Row]]:
    """The rows with scaled losses, by the way to scale them; ``base`` is the note of rows with unscaled losses."""
    start = ", ".join(filter(None, (base, "scaled by ")))
    notes = dict.fromkeys(row["note"] for row in rows if row["note"].startswith(start))
    return {note.removeprefix(start): pick(rows, note=note, method="pareto-mtl") for note in notes}


def scale_lines(rows: Sequence[Row], base: str) -> list[ScaleLine]:
    """A line for unscaled losses, and one for every way to scale them; empty without the former.

    The rows are those of one part of a study.
    """
    if not has(rows, note=base, method="pareto-mtl"):
        return []
    plain = pick(rows, note=base, method="pareto-mtl")
    results = [_scale_line(AS_THEY_ARE, plain, "")]
    for scale, mine in scaled_rows(rows, base).items():
        results.append(_scale_line(f"by {scale}", mine, ", ".join(_compared(mine, plain))))
    return results


def _compared(mine: Sequence[Row], plain: Sequence[Row]) -> list[str]:
    """Which numbers are higher and lower than those of ``plain`` by more than seeds explain."""
    numbers = {
        "hypervolume": [[row["hypervolume"] for row in each] for each in (mine, plain)],
        "spread": [[row["spread"] for row in each] for each in (mine, plain)],
        "share in regions": [in_own_region(each, "in_region") for each in (mine, plain)],
    }
    results = []
    for what, (ours, theirs) in numbers.items():
        if None in (*ours, *theirs):
            continue
        gap = difference(ours, theirs)
        results.append(f"{'more' if gap.sign > 0 else 'less'} {what}" if gap.significant else f"{what} not told apart")
    return results


def _scale_line(losses: str, mine: Sequence[Row], verdict: str) -> ScaleLine:
    return ScaleLine(
        losses,
        _mean_text([row["hypervolume"] for row in mine], 4),
        _mean_text([row["spread"] for row in mine], 3),
        _regions(mine),
        _percent(tuple(mean([plain_share(row, field) for row in mine]) for field in ("train_losses", "losses"))),
        _best(mine),
        verdict,
    )


def _regions(rows: Sequence[Row]) -> tuple[str, str]:
    return ("", "") if rows[0]["in_region"] is None else _percent(region_shares(rows))


def region_shares(rows: Sequence[Row]) -> tuple[float, float]:
    """The share of solutions in the region of their own vector, in the units of training, on training and on test."""
    return mean(in_own_region(rows, "in_region")), mean(in_own_region(rows, "in_region_test"))


def in_own_region(rows: Sequence[Row], field: str) -> list[float]:
    """The share of solutions in the region of their own vector, for each row, on one split."""
    return [row[field] / row["preferences"] for row in rows]


def plain_share(row: Row, field: str) -> float:
    """The share of solutions whose unscaled losses lie in the region of their own vector."""
    values = [[math.nan if value is None else value for value in point] for point in row[field]]
    constraints = region_rows(torch.tensor(row["vectors"], dtype=torch.float64))
    inside = constraint_values(constraints, torch.tensor(values, dtype=torch.float64)) <= FEASIBLE_TOLERANCE
    return float(inside.all(-1).double().mean())


def _best(rows: Sequence[Row]) -> tuple[str, ...]:
    """The best value of each row in each task, mean over the rows."""
    results = []
    for task in range(len(rows[0]["tasks"])):
        metric = metrics_of(rows[0])[task]
        choose = min if rows[0]["better"][metric] == "lower" else max
        each = [[v for k, v in enumerate(row["metrics"][metric]) if not is_ideal(row) or k == task] for row in rows]
        results.append(_mean_text([choose((v for v in values if v is not None), default=None) for values in each], 4))
    return tuple(results)


def _mean_text(values: Sequence[float | None], digits: int) -> str:
    """Mean ± standard deviation of the known values; numbers above 1 have as many digits in all."""
    results = [value for value in values if value is not None]
    if not results:
        return _NONE
    size = abs(mean(results))
    return plus_minus(results, digits if size < 1 else max(0, digits - 1 - int(math.log10(size))))


def _percent(shares: Sequence[float]) -> tuple[str, str]:
    train, test = (f"{share:.0%}" for share in shares)
    return train, test
