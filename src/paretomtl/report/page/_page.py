"""The page: views as one HTML file that needs no network, no other file and no server.

plotly's script, the page's own scripts and the numbers are inside, and a policy forbids every request. Numbers travel
as JSON in which ``<`` is escaped. Names go into the page as text only, and plotly, which reads markup in labels, gets
them escaped. Text and tables are made before plotly is read, which takes longest.
"""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import Any, TypeAlias

from paretomtl._support.atomic_files import check_file, write_text
from paretomtl._support.optional_packages import require, version_of
from paretomtl.front import Front
from paretomtl.report.page.run_styles import run_styles
from paretomtl.report.page.view import View, view_of
from paretomtl.runs.curves import POINTS

Payload: TypeAlias = dict[str, Any]
"""The content of a page; see :mod:`paretomtl.report.page`."""

NUMBERS = 60_000
"""The most numbers in all curves of a page, about half a megabyte: a page stays under 6 MB."""

_SCRIPTS = (
    "text",
    "selection_rules",
    "style",
    "lazy_charts",
    "scatter2d",
    "scatter3d",
    "parallel",
    "curves",
    "tables",
    "selection_panel",
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
    text = page_text(payload_of(read_views(runs), title))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)
    return path


def read_views(runs: Sequence[str | Path]) -> list[View]:
    """The views of stored fronts, with hypervolumes at one reference point, and curves that a page has room for."""
    folders = [Path(run) for run in runs]
    if not folders:
        raise ValueError("'runs' must name at least one folder. Got none.")
    names = names_of(folders)
    fronts = [Front.load(folder) for folder in folders]
    check_tasks(names, [front.tasks for front in fronts])
    reference, points = common_reference(fronts), room_for(fronts)
    return [
        view_of(front, name, str(folder), reference=reference, points=points)
        for front, name, folder in zip(fronts, names, folders, strict=True)
    ]


def names_of(folders: Sequence[Path]) -> list[str]:
    """A name for each run: as much of the end of its path as tells it from the others.

    Example:
        >>> names_of([Path("a/first"), Path("b/first/front"), Path("c")])
        ['a/first', 'b/first', 'c']
    """
    wholes = [folder.resolve() for folder in folders]
    parts = [whole.parent.parts if whole.name == "front" else whole.parts for whole in wholes]
    for folder, own in zip(folders, parts, strict=True):
        if parts.count(own) > 1:
            raise ValueError(f"'runs' must name each run once. Got '{folder}' twice.")
    found = []
    for own in parts:
        count = next(n for n in range(1, len(own) + 1) if sum(other[-n:] == own[-n:] for other in parts) == 1)
        found.append("/".join(own[-count:]))
    return found


def check_tasks(names: Sequence[str], tasks: Sequence[Sequence[str]]) -> None:
    """Refuse runs that cannot be in one page, by name."""
    for name, own in zip(names, tasks, strict=True):
        if list(own) != list(tasks[0]):
            raise ValueError(
                f"'runs' must have the same tasks, in the same order. Got {list(tasks[0])} in '{names[0]}' and "
                f"{list(own)} in '{name}'."
            )


def payload_of(views: Sequence[View], title: str | None = None, *, live: dict[str, Any] | None = None) -> Payload:
    """The content of a page: views, and its title and origin."""
    problems = list(dict.fromkeys(view["problem"] for view in views))
    return {
        "title": title or ", ".join(problems) or "paretomtl",
        "made": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z").strip(),
        "version": version_of("paretomtl"),
        "live": live,
        "styles": run_styles([view["method"] for view in views]),
        "runs": list(views),
    }


def page_text(payload: Payload, *, more: Sequence[str] = ()) -> str:
    """The HTML of a page.

    Args:
        payload: what it shows. Where it is live, the page may ask its own server for news, and no other server.
        more: names of scripts that come after the others.
    """
    plotly: str = require("plotly.offline", "report").get_plotlyjs()
    scripts = "\n".join(_asset(f"{name}.js") for name in (*_SCRIPTS, *more))
    parts = {
        "policy": _POLICY + ("'none'" if payload["live"] is None else "'self'"),
        "title": html.escape(payload["title"]),
        "css": _asset("page.css"),
        "payload": json_in_html(payload),
        "plotly": read_once(plotly).replace("</script", "<\\/script"),
        "script": scripts,
    }
    # Cut once, so that nothing in one part is taken for the place of another.
    first, *rest = _asset("page.html").split("{{")
    pieces = [first]
    for piece in rest:
        name, _, after = piece.partition("}}")
        pieces += [parts[name], after]
    return "".join(pieces)


def read_once(plotly: str) -> str:
    r"""The script of plotly with its one large function in brackets, which a browser compiles as it reads it.

    Without brackets it is skimmed first, and read again when it is called right after: a sixth of the time to open a
    page. A script that is packed in another way stays as it is.

    Example:
        >>> read_once("(typeof self : this, () => {...return Plotly;\n}));")
        '(typeof self : this, (() => {...return Plotly;\n})));'
    """
    start, end = "self : this, () => {", "return Plotly;\n}));"
    if plotly.count(start) != 1 or not plotly.endswith(end):
        return plotly
    return plotly.replace(start, "self : this, (() => {").removesuffix("}));") + "})));"


def json_in_html(content: Any) -> str:
    r"""JSON that no parser of HTML takes for a tag, and no parser of JavaScript for the end of a line.

    Example:
        >>> json_in_html("</script>")
        '"\\u003c/script>"'
    """
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def room_for(fronts: Sequence[Front]) -> int:
    """The largest number of points of each curve of a page with all of these."""
    return max(20, min(POINTS, NUMBERS // (3 * len(fronts[0].tasks) * sum(map(len, fronts)))))


def common_reference(fronts: Sequence[Front]) -> list[float] | None:
    """The largest reference of each task, so that hypervolumes compare; None where a run has none."""
    found = [front.reference for front in fronts]
    if any(reference is None for reference in found):
        return None
    return [max(values) for values in zip(*(reference for reference in found if reference is not None), strict=True)]
