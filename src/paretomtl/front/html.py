"""A front in a notebook: what a reader asks first, as HTML."""

from __future__ import annotations

from paretomtl._support.html_table import html_table, paragraph
from paretomtl._support.text import short_number, shorten
from paretomtl.front._data import FrontData
from paretomtl.front.choosing.candidates import Choice, build_table
from paretomtl.front.choosing.selection import least_regret
from paretomtl.front.favours import favour_words, model_favours
from paretomtl.front.indicators import finite_nondominated
from paretomtl.front.text_table import early_end

_LONG = 32  # letters of a name


def front_html(front: FrontData) -> str:
    """The models of a front: what each favours, its metrics and losses by split, and the recommended one in bold."""
    best = least_regret(build_table(front, None))
    seed = "" if front.seed is None else f", seed {front.seed}"
    lines = [paragraph(f"*{front.problem}", f", {front.method}{seed}{early_end(front)}: {len(front)} models")]
    columns, heads = _columns(front)
    rows = [list(row) for row in zip(*columns, strict=True)]
    place = None if best.k is None else front.subproblems.index(best.k)
    lines.append(html_table(heads, rows, text=1 + bool(front.names) + _has_favours(front), marked=place))
    lines.append(paragraph(*_advice(best)))
    return "".join(lines)


def _has_favours(front: FrontData) -> bool:
    return model_favours(front) is not None


def _columns(front: FrontData) -> tuple[list[list[str]], list[str]]:
    """The cells of each column, and its name."""
    columns: dict[str, list[str]] = {"model": [str(k) for k in front.subproblems]}
    if front.names:
        columns["name"] = [shorten(name, _LONG) for name in front.names]
    wished = model_favours(front)
    if wished is not None:
        columns["favours"] = [favour_words(front.tasks, row) for row in wished]
    for split in front.shown_splits:
        for name, values in front.metrics.get(split, {}).items():
            columns[f"{shorten(name, _LONG)}, {split}"] = [short_number(value) for value in values.tolist()]
    for split in front.shown_splits:
        for t, task in enumerate(front.tasks):
            losses = front.losses[split][:, t].tolist()
            columns[f"{shorten(task, _LONG)} loss, {split}"] = [short_number(value) for value in losses]
    best = finite_nondominated(front.losses[front.ranking_split]).tolist()
    finite = front.losses[front.ranking_split].isfinite().all(-1).tolist()
    if not all(best):
        notes = [
            "" if kept else "dominated" if known else "not finite" for kept, known in zip(best, finite, strict=True)
        ]
        columns["note"] = notes
    return list(columns.values()), list(columns)


def _advice(best: Choice) -> list[str]:
    if best.k is None:
        return [best.reason]
    return [f"*Recommended: model {best.k}", ", by front.select(max_regret=True). front.explore() opens the page here."]
