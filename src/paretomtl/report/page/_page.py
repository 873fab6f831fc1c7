"""The page: views as one HTML file that needs no network, no other file and no server.

plotly's script, the page's own scripts and the numbers are inside, and a content policy forbids every request. Numbers
and plotly are packed, by gzip in base64, in which nothing can be mistaken for markup. Names enter the page as text
only; plotly interprets markup in labels, so it gets them escaped. Text and tables are drawn before plotly is parsed,
which takes longest.
"""

from __future__ import annotations

import base64
import functools
import gzip
import html
import json
from collections.abc import Sequence
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import Any, TypeAlias

import torch

from paretomtl._support.files.atomic_files import check_file, write_text
from paretomtl._support.imports.optional_packages import require, version_of
from paretomtl._support.splits import SPLIT_WORDS
from paretomtl.front import Front
from paretomtl.front.indicators import finite_nondominated, tight_reference
from paretomtl.front.union_indicators import union_numbers
from paretomtl.methods.registry import is_separate
from paretomtl.report.page.run_styles import run_styles
from paretomtl.report.page.verdict import verdict_of
from paretomtl.report.page.view import View, rounded, view_of
from paretomtl.runs.curves import POINTS

Payload: TypeAlias = dict[str, Any]
"""The content of a page; see :mod:`paretomtl.report.page.view`."""

NUMBERS = 120_000
"""The maximum of numbers in all curves of a page, about half a megabyte, as long as a curve has ten points."""

_SCRIPTS = (
    "text",
    "selection_rules",
    "style",
    "lazy_charts",
    "legend",
    "scatter2d",
    "scatter3d",
    "parallel",
    "curves",
    "tables",
    "answer",
    "limits",
    "selection_panel",
    "controls",
    "header",
    "page",
)
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; connect-src "


def write_page(runs: Sequence[str | Path], path: str | Path, *, title: str | None = None) -> Path:
    """Write the page of several runs (extra ``report``): one HTML file, whole or not at all.

    Args:
        runs: folders of runs, or of stored fronts, with the same tasks.
        path: the file, which ends in ``.html``.
        title: of the page; the problems by default.
    """
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"'out' must end in .html. Got '{path}' instead.")
    check_file(path)
    views, verdict = read_views(runs)
    text = page_text(payload_of(views, title, verdict=verdict))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)
    return path


def read_views(runs: Sequence[str | Path]) -> tuple[list[View], str]:
    """Read the views of stored fronts, with hypervolumes at one reference point, and the verdict on them."""
    folders = [Path(run) for run in runs]
    if not folders:
        raise ValueError("'runs' must name at least one folder. Got none.")
    names = names_of(folders)
    fronts = [Front.load(folder) for folder in folders]
    check_tasks(names, [front.tasks for front in fronts])
    reference, points = common_reference(fronts), room_for(fronts)
    views = [
        {**view_of(front, name, str(folder), reference=reference, points=points, runs=len(fronts)), "union": union}
        for front, name, folder, union in zip(fronts, names, folders, unions_of(fronts), strict=True)
    ]
    return views, verdict_of(fronts, names, [view["hypervolume"] for view in views])


def unions_of(fronts: Sequence[Front]) -> list[dict[str, Any] | None]:
    """What each front is worth against all fronts of its problem on the page; None where there is no other."""
    found: list[dict[str, Any] | None] = [None] * len(fronts)
    for problem in dict.fromkeys(front.problem for front in fronts):
        places = [place for place, front in enumerate(fronts) if front.problem == problem]
        for place, numbers in zip(places, union_numbers([fronts[place] for place in places]), strict=True):
            if numbers is not None:
                found[place] = {**numbers, **{name: rounded(numbers[name]) for name in ("regret", "r2", "igd_plus")}}
    return found


def names_of(folders: Sequence[Path]) -> list[str]:
    """Name each run by the shortest end of its path that no other run shares.

    Example:
        >>> names_of([Path("a/first"), Path("b/first/front"), Path("c")])
        ['a/first', 'b/first', 'c']
    """
    wholes = [folder.resolve() for folder in folders]
    parts = [whole.parent.parts if whole.name == "front" else whole.parts for whole in wholes]
    for folder, own in zip(folders, parts, strict=True):
        if parts.count(own) > 1:
            raise ValueError(f"'runs' must name each run once. Got '{folder}' twice.")
    names = []
    for own in parts:
        count = next(n for n in range(1, len(own) + 1) if sum(other[-n:] == own[-n:] for other in parts) == 1)
        names.append("/".join(own[-count:]))
    return names


def check_tasks(names: Sequence[str], tasks: Sequence[Sequence[str]]) -> None:
    """Refuse runs of different tasks, which cannot share a page."""
    for name, own in zip(names, tasks, strict=True):
        if list(own) != list(tasks[0]):
            raise ValueError(
                f"'runs' must have the same tasks, in the same order. Got {list(tasks[0])} in '{names[0]}' and "
                f"{list(own)} in '{name}'."
            )


def payload_of(
    views: Sequence[View], title: str | None = None, *, verdict: str = "", live: dict[str, Any] | None = None
) -> Payload:
    """The content of a page: views, the verdict on them, its title and origin."""
    problems = list(dict.fromkeys(view["problem"] for view in views))
    return {
        "title": title or ", ".join(problems) or "paretomtl",
        "made": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z").strip(),
        "version": version_of("paretomtl"),
        "live": live,
        "verdict": verdict,
        "splits": SPLIT_WORDS,
        "styles": run_styles([(view["method"], view["seed"]) for view in views]),
        "runs": list(views),
    }


def page_text(payload: Payload, *, more: Sequence[str] = ()) -> str:
    """The HTML of a page.

    Args:
        payload: what it shows. A live page may send requests to its own server, and to no other.
        more: names of scripts that come after the others.
    """
    scripts = "\n".join(_asset(f"{name}.js") for name in (*_SCRIPTS, *more))
    parts = {
        "policy": _POLICY + ("'none'" if payload["live"] is None else "'self'"),
        "title": html.escape(payload["title"]),
        "css": _asset("page.css"),
        "payload": pack(json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))),
        "plotly": _packed_plotly(),
        "script": scripts,
    }
    # Split once, so that nothing inside a part is mistaken for a placeholder.
    first, *rest = _asset("page.html").split("{{")
    pieces = [first]
    for piece in rest:
        name, _, after = piece.partition("}}")
        pieces += [parts[name], after]
    return "".join(pieces)


def read_once(plotly: str) -> str:
    r"""Wrap plotly's one large function in parentheses, so that browsers compile it eagerly.

    Without them it is pre-parsed first, and parsed again when it is called right after: a sixth of the time to open a
    page. A script that is packed in another way is returned unchanged.

    Example:
        >>> read_once("(typeof self : this, () => {...return Plotly;\n}));")
        '(typeof self : this, (() => {...return Plotly;\n})));'
    """
    start, end = "self : this, () => {", "return Plotly;\n}));"
    if plotly.count(start) != 1 or not plotly.endswith(end):
        return plotly
    return plotly.replace(start, "self : this, (() => {").removesuffix("}));") + "})));"


def pack(text: str) -> str:
    """Compress a text for a page: gzip in base64. The same text gives the same characters.

    Example:
        >>> len(pack("0.5," * 1000)) < 100
        True
    """
    return base64.b64encode(gzip.compress(text.encode(errors="backslashreplace"), mtime=0)).decode()


@functools.cache
def _packed_plotly() -> str:
    plotly: str = require("plotly.offline", "report").get_plotlyjs()
    return pack(read_once(plotly))


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def room_for(fronts: Sequence[Front]) -> int:
    """Return the maximum number of points per curve on a page with all of these fronts."""
    return max(10, min(POINTS, NUMBERS // (3 * len(fronts[0].tasks) * sum(map(len, fronts)))))


def common_reference(fronts: Sequence[Front]) -> list[float] | None:
    """Return the one reference point of a page, so that its hypervolumes are comparable.

    For each task it is the largest reference of the runs; runs without one are measured there, too. If no run has one,
    it is just beyond the non-dominated models of all runs, on every split. None if no run has finite losses.
    """
    known = [front.reference for front in fronts if front.reference is not None]
    if not known:
        measured = [front for front in fronts if not is_separate(front.method)] or fronts
        known = [tuple(point) for point in _points_beyond(measured)]
    return [max(values) for values in zip(*known, strict=True)] if known else None


def _points_beyond(fronts: Sequence[Front]) -> list[list[float]]:
    """For each split with finite losses, the point just beyond the non-dominated models of all fronts."""
    points = []
    for split in dict.fromkeys(split for front in fronts for split in front.losses):
        tables = [front.losses[split].double() for front in fronts if split in front.losses]
        best = torch.cat([table[finite_nondominated(table)] for table in tables])
        if len(best):
            points.append(tight_reference(best))
    return points
