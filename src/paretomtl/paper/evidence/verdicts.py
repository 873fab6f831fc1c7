"""Verdicts of the study: each question, answered on each problem by differences that are paired by seed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import is_not

import torch

from paretomtl._support.significance import adjusted, difference, half_width, mean
from paretomtl._support.splits import split_word
from paretomtl.compare import Summary, summaries
from paretomtl.compare.row_store import Row
from paretomtl.compare.rows import is_ideal, points_tensor
from paretomtl.paper.claims import Claim

AHEAD, EQUAL, BEHIND = "ahead", "not told apart", "behind"


@dataclass(frozen=True)
class Question:
    """Two arms that are compared, and what is asked.

    Attributes:
        text: the question, as a statement that the rows may refute.
        arm: the arm that should be better.
        rival: the arm that it is compared with.
        as_good: whether "not told apart" is enough: the arm is cheaper.
    """

    text: str
    arm: str
    rival: str
    as_good: bool = False


QUESTIONS = (
    Question("weights inside the simplex beat the paper's grid with corners", "linear, interior", "linear, corners"),
    Question("interior weights beat Pareto MTL as in the paper", "linear, interior", "pareto-mtl"),
    Question("vectors that models reach help Pareto MTL", "pareto-mtl, reachable", "pareto-mtl"),
    Question("auto is at least as good as interior weights", "auto", "linear, interior", as_good=True),
    Question("the p-norm beats Pareto MTL along reached vectors", "p-norm", "pareto-mtl, reachable"),
    Question("weights in a lattice beat weights at random", "linear, interior", "random-search"),
    Question("a front beats as many starts of equal weights", "auto", "equal starts"),
    Question("two models in the largest gaps beat two more weights", "linear, gaps", "linear, own order"),
    Question("a shared first quarter costs nothing but time", "linear, branch", "linear, interior", as_good=True),
    Question("averages of weights are better than the last ones", "linear, average", "linear, interior"),
    Question("a front beats MOO-MTL from as many starts", "auto", "mgda"),
)
"""What the study answers, in the order of its tables."""


def by_setting(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each setting, in the order of the study."""
    return {
        title: [row for row in rows if row["setting"] == title] for title in dict.fromkeys(r["setting"] for r in rows)
    }


@dataclass
class _Known:
    """The summaries of the last rows of each setting, which take seconds for thousands of models."""

    rows: Sequence[Row]
    summaries: list[Summary]


_KNOWN: dict[str, _Known] = {}


def summaries_of(rows: Sequence[Row]) -> list[Summary]:
    """:func:`~paretomtl.compare.summaries` of one setting, computed once for the same rows."""
    known = _KNOWN.get(rows[0]["setting"])
    if known is None or len(known.rows) != len(rows) or any(map(is_not, known.rows, rows)):
        known = _KNOWN[rows[0]["setting"]] = _Known(list(rows), summaries(rows))
    return known.summaries


def measured_on(summary: Summary) -> Summary:
    """The summary on test if there is such a split, which no choice was made on."""
    return summary.test or summary


def gains_of(found: Mapping[str, Summary], rows: Sequence[Row], question: Question) -> list[float]:
    """The hypervolume of the arm less that of its rival, for each seed that both have; empty without any."""
    volumes = []
    for name in (question.arm, question.rival):
        if name not in found:
            return []
        seeds = [row["seed"] for row in rows if row["method"] == name]
        volumes.append(dict(zip(seeds, measured_on(found[name]).hypervolumes, strict=True)))
    own, other = volumes
    return [own[seed] - other[seed] for seed in sorted(own.keys() & other.keys())]


def answers(gains: Sequence[Sequence[float]]) -> list[str]:
    """Whether an arm is ahead of its rival, behind it, or neither, in each setting: by all settings together."""
    return [{1: AHEAD, 0: EQUAL, -1: BEHIND}[gap.sign] for gap in adjusted([difference(each) for each in gains])]


def claims(rows: Sequence[Row]) -> list[Claim]:
    """Each question, with its answer on every problem that has rows for it."""
    parts = {title: (own, {each.method: each for each in summaries_of(own)}) for title, own in by_setting(rows).items()}
    judged = []
    for question in QUESTIONS:
        texts, known = [], []
        for title, (own, found) in parts.items():
            gains = gains_of(found, own, question)
            if not gains:
                continue
            width = half_width(gains) if len(gains) > 1 else math.nan
            texts.append(f"{title} {mean(gains):+.4f} ± {width:.4f} ({len(gains)})")
            known.append(gains)
        if texts:
            where = f"{question.arm} minus {question.rival}"
            verdict = _verdict(answers(known), as_good=question.as_good)
            judged.append(Claim(where, question.text, "; ".join(texts), verdict))
    return judged


def _verdict(found: Sequence[str], *, as_good: bool) -> str:
    """One verdict of the answers on several problems."""
    good = [each != BEHIND if as_good else each == AHEAD for each in found]
    if all(good):
        return "holds"
    if not any(good):
        return "does not hold" if BEHIND in found else EQUAL
    return f"holds on {sum(good)} of {len(good)}"


def regions_hit(rows: Sequence[Row], row: Row) -> float | None:
    """The share of another seed's regions that hold at least one model of a row, on training losses.

    The vectors are those that ``auto`` found with the next seed, so that no arm is judged by vectors of its own run.
    None without such a row.
    """
    others = sorted((each for each in rows if each["method"] == "auto"), key=lambda each: int(each["seed"]))
    others = [each for each in others if each["seed"] != row["seed"] and each["reading"] == "direction"]
    losses = points_tensor(row, "train")
    if is_ideal(row) or not others or not len(losses):
        return None
    judge = next((each for each in others if each["seed"] > row["seed"]), others[0])
    vectors = torch.nn.functional.normalize(torch.tensor(judge["vectors"], dtype=torch.float64), dim=-1)
    scale = 1.0 if judge["scale"] is None else torch.tensor(judge["scale"], dtype=torch.float64)
    regions = (losses * scale @ vectors.T).argmax(-1)
    return len(set(regions.tolist())) / len(vectors)


def table_lines(rows: Sequence[Row], title: str) -> list[list[str]]:
    """The lines of a setting's table, the best hypervolume on the ranking split first."""
    own = by_setting(rows).get(title, [])
    if not own:
        return []
    lines = []
    for summary in summaries_of(own):
        there = [row for row in own if row["method"] == summary.method]
        shown = measured_on(summary)
        shares = [share for row in there if (share := regions_hit(own, row)) is not None]
        passes = statistics.fmean(row["passes"] for row in there)
        lines.append(
            [
                summary.method,
                f"{summary.seeds}",
                _spread_text(shown.hypervolumes, 4),
                _spread_text(shown.tight_hypervolumes, 4),
                _number(shown.box_share, "{:.1%}"),
                _spread_text(shown.regrets, 4),
                _spread_text(shown.igd_plus_values, 4),
                _number(summary.in_region, "{:.0%}"),
                f"{statistics.fmean(shares):.0%}" if shares else "",
                f"{passes:.2f}",
                f"{summary.seconds:.0f}",
            ]
        )
    return lines


COLUMNS = (
    "arm",
    "seeds",
    "hypervolume",
    "at the tight reference",
    "of the box",
    "regret",
    "IGD+",
    "in region, own vectors",
    "regions hit, another seed's",
    "passes a step",
    "seconds",
)
"""The columns of :func:`table_lines`."""


def facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """For each setting the best arms, in words."""
    said = []
    for title, own in by_setting(rows).items():
        fronts = [summary for summary in summaries_of(own) if not summary.ideal]
        named = [f"{each.method} {_spread_text(measured_on(each).hypervolumes, 4)}" for each in fronts[:4]]
        split = measured_on(fronts[0]).split if fronts else ""
        said.append((f"{title}: hypervolume on {split_word(split)}, best on validation first", ", ".join(named)))
    return said


def _spread_text(values: Sequence[float], digits: int) -> str:
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return ""
    spread = f" ± {statistics.stdev(known):.{digits}f}" if len(known) > 1 else ""
    return f"{statistics.fmean(known):.{digits}f}{spread}"


def _number(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)
