"""Rows of census, faces, localization and three digits as lines of tables: cells, vectors, ways to scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from paretomtl.compare.indicators import is_ideal
from paretomtl.compare.row_store import Row
from paretomtl.core import FEASIBLE_TOLERANCE, constraint_values, region_rows
from paretomtl.paper.labels import LABELS
from paretomtl.paper.statistics import difference, has, mean, pick, plus_minus

PAPER_TABLES: dict[str, dict[str, tuple[float, ...]]] = {
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

AS_THEY_ARE = "as they are"
_NONE = "–"


@dataclass(frozen=True)
class CellLine:
    """One cell over all its seeds; text for a table.

    Attributes:
        part: of the study.
        label: the method, and what tells the cell from others of it.
        models: how many a front has.
        seeds: how many fronts.
        hypervolume: of the test losses.
        spread: of the test losses; empty for separate networks.
        kept: how many no other one dominates, on test; empty for separate networks.
        regions: the share in its own region on training and on test, in the units of training; empty without regions.
        best: for each task the best value of any solution, on test.
        seconds: for one front; ‡ where other studies trained on the same device.
    """

    part: str
    label: str
    models: int
    seeds: int
    hypervolume: str
    spread: str
    kept: str
    regions: tuple[str, str]
    best: tuple[str, ...]
    seconds: str


@dataclass(frozen=True)
class VectorLine:
    """One solution of a table of the paper, over all seeds.

    Attributes:
        name: as in :data:`PAPER_TABLES`, and how losses were scaled.
        values: of the metrics of :func:`metrics_of`.
        regions: as in :class:`CellLine`, of all vectors of the cell together.
        paper: the numbers of the paper, on other data; empty where it has none, as for scaled losses.
    """

    name: str
    values: tuple[str, ...]
    regions: tuple[str, str]
    paper: tuple[float, ...]


@dataclass(frozen=True)
class ScaleLine:
    """Pareto MTL with one way to scale the losses, beside losses as they are.

    Attributes:
        losses: how they are scaled.
        hypervolume: of the test losses, unscaled.
        spread: of the test losses, unscaled.
        regions: the share in its own region on training and on test, in the units of training.
        plain: the same by losses as they are.
        best: for each task the best value of any solution, on test.
        verdict: what is more or less than with losses as they are by more than seeds explain.
    """

    losses: str
    hypervolume: str
    spread: str
    regions: tuple[str, str]
    plain: tuple[str, str]
    best: tuple[str, ...]
    verdict: str


def metrics_of(row: Row) -> tuple[str, ...]:
    """Those that tables show, one for each task first."""
    first = SHOWN.get(row["problem"]) or tuple(f"{task} accuracy" for task in row["tasks"])
    return (*first, *(name for name in row["metrics"] if name not in first))


def cell_lines(rows: Sequence[Row]) -> list[CellLine]:
    """A line for each cell, in the order of the rows."""
    found = []
    for part, method, note in dict.fromkeys((row["part"], row["method"], row["note"]) for row in rows):
        mine = pick(rows, part=part, method=method, note=note)
        ideal = is_ideal(mine[0])
        kept = f"{mean([row['nondominated'] for row in mine]):.1f} of {mine[0]['preferences']}"
        line = CellLine(
            part,
            ", ".join(filter(None, (LABELS[method], note))),
            mine[0]["preferences"],
            len(mine),
            _told([row["hypervolume"] for row in mine], 4),
            "" if ideal else _told([row["spread"] for row in mine], 3),
            "" if ideal else kept,
            _regions(mine),
            _best(mine),
            f"{mean([row['seconds'] / row['seeds_at_once'] for row in mine]):.3g}"
            f"{'‡' if any(row.get('beside') for row in mine) else ''}",
        )
        found.append(line)
    return found


def vector_lines(rows: Sequence[Row]) -> list[VectorLine]:
    """The paper's table as measured: every method and vector."""
    found = []
    for method, note in dict.fromkeys((row["method"], row["note"]) for row in rows):
        mine = pick(rows, method=method, note=note)
        metrics = metrics_of(mine[0])
        paper, regions = {} if note else PAPER_TABLES[mine[0]["problem"]], _regions(mine)
        columns = [solution_values(mine, metric) for metric in metrics]
        for name in columns[0]:
            scaled = ", ".join(filter(None, (name, note)))
            values = tuple(_told(column[name], 4) for column in columns)
            found.append(VectorLine(scaled, values, regions, paper.get(name, ())))
    return found


def solution_values(rows: Sequence[Row], metric: str) -> dict[str, list[float | None]]:
    """Each solution, as the paper's table calls it, and its values of a metric over the seeds."""
    found: dict[str, list[float | None]] = {}
    for row in rows:
        for model in range(1 if is_ideal(row) else row["preferences"]):
            value = row["metrics"][metric][_model(row, metric, model)]
            found.setdefault(_solution(row, model), []).append(value)
    return found


def _model(row: Row, metric: str, model: int) -> int:
    """Whose value of a metric stands in a line: of separate networks that of the task's own one."""
    if not is_ideal(row):
        return model
    return next(i for i, name in enumerate(SHOWN[row["problem"]]) if metric.endswith(name))


def _solution(row: Row, model: int) -> str:
    """What the paper's table calls a solution."""
    label, vector = LABELS[row["method"]], row["vectors"][model]
    if row["method"] == "linear" and row["preferences"] == 1:
        return "fixed"
    if row["method"] not in ("pareto-mtl", "linear"):
        return label
    whole = max(vector) if row["reading"] == "direction" else sum(vector)
    return f"{label} ({', '.join(f'{value / whole:.3g}' for value in vector)})"


def scaled_rows(rows: Sequence[Row], base: str) -> dict[str, list[Row]]:
    """The rows whose losses are scaled, by how they are; ``base`` is the note of those whose losses are not."""
    start = ", ".join(filter(None, (base, "scaled by ")))
    notes = dict.fromkeys(row["note"] for row in rows if row["note"].startswith(start))
    return {note.removeprefix(start): pick(rows, note=note, method="pareto-mtl") for note in notes}


def scale_lines(rows: Sequence[Row], base: str) -> list[ScaleLine]:
    """Of one part of a study: losses as they are, and every way to scale them; empty without the former."""
    if not has(rows, note=base, method="pareto-mtl"):
        return []
    plain = pick(rows, note=base, method="pareto-mtl")
    found = [_scale_line(AS_THEY_ARE, plain, "")]
    for scale, mine in scaled_rows(rows, base).items():
        found.append(_scale_line(f"by {scale}", mine, ", ".join(_compared(mine, plain))))
    return found


def _compared(mine: Sequence[Row], plain: Sequence[Row]) -> list[str]:
    """What is more with these rows than with those, what is less, and what cannot be told by so many seeds."""
    numbers = {
        "hypervolume": [[row["hypervolume"] for row in each] for each in (mine, plain)],
        "spread": [[row["spread"] for row in each] for each in (mine, plain)],
        "share in regions": [in_own_region(each, "in_region") for each in (mine, plain)],
    }
    found = []
    for what, (ours, theirs) in numbers.items():
        if None in (*ours, *theirs):
            continue
        gap, sure = difference(ours, theirs)
        found.append(f"{'more' if gap > 0 else 'less'} {what}" if sure else f"{what} not told apart")
    return found


def _scale_line(losses: str, mine: Sequence[Row], verdict: str) -> ScaleLine:
    return ScaleLine(
        losses,
        _told([row["hypervolume"] for row in mine], 4),
        _told([row["spread"] for row in mine], 3),
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
    """The same for each row, of one split."""
    return [row[field] / row["preferences"] for row in rows]


def plain_share(row: Row, field: str) -> float:
    """The share of solutions whose losses, as they are, lie in the region of their own vector."""
    values = [[math.nan if value is None else value for value in point] for point in row[field]]
    constraints = region_rows(torch.tensor(row["vectors"], dtype=torch.float64))
    inside = constraint_values(constraints, torch.tensor(values, dtype=torch.float64)) <= FEASIBLE_TOLERANCE
    return float(inside.all(-1).double().mean())


def _best(rows: Sequence[Row]) -> tuple[str, ...]:
    """The best values of each row, one for each task, as mean over the rows."""
    found = []
    for task in range(len(rows[0]["tasks"])):
        metric = metrics_of(rows[0])[task]
        choose = min if rows[0]["better"][metric] == "lower" else max
        each = [[v for k, v in enumerate(row["metrics"][metric]) if not is_ideal(row) or k == task] for row in rows]
        found.append(_told([choose((v for v in values if v is not None), default=None) for values in each], 4))
    return tuple(found)


def _told(values: Sequence[float | None], digits: int) -> str:
    """Mean ± standard deviation of what there is; four figures of larger numbers."""
    found = [value for value in values if value is not None]
    if not found:
        return _NONE
    size = abs(mean(found))
    return plus_minus(found, digits if size < 1 else max(0, digits - 1 - int(math.log10(size))))


def _percent(shares: Sequence[float]) -> tuple[str, str]:
    train, test = (f"{share:.0%}" for share in shares)
    return train, test
