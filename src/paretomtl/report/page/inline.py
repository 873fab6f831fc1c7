"""The page inside a notebook: an object that shows itself."""

from __future__ import annotations

import html
from pathlib import Path

from paretomtl._support.argument_checks import as_whole, quote
from paretomtl._support.files.atomic_files import check_file, write_text
from paretomtl.front import Front
from paretomtl.report.page._page import common_reference, page_text, payload_of
from paretomtl.report.page.verdict import verdict_of
from paretomtl.report.page.view import view_of


class InlinePage:
    """The page of fronts that are in memory; the last line of a notebook's cell shows it.

    It runs in a frame that has no access to the notebook.

    Args:
        text: the HTML of the page.
        height: of the frame, in pixels.
    """

    def __init__(self, text: str, height: int) -> None:
        self._text = text
        self._height = height

    def save(self, path: str | Path) -> Path:
        """Write the page to a file that ends in ``.html``."""
        path = Path(path)
        if path.suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"'path' must end in .html. Got '{path}' instead.")
        check_file(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, self._text)
        return path

    def _repr_html_(self) -> str:
        frame = f'width="100%" height="{self._height}" style="border:0" sandbox="allow-scripts" allow="clipboard-write"'
        return f'<iframe srcdoc="{html.escape(self._text)}" {frame} title="Page of the front"></iframe>'

    def __repr__(self) -> str:
        return f"Page of {len(self._text) / 1e6:.1f} MB; show it in a notebook, or write it with save('page.html')."


def explore(front: Front, *, name: str = "front", height: int = 900) -> InlinePage:
    """Make the page of one front; see :meth:`paretomtl.Front.explore`."""
    height = as_whole(height)
    if type(height) is not int or height < 100:
        raise ValueError(f"'height' must be an integer of at least 100 pixels. Got {quote(height)} instead.")
    view = view_of(front, name, name, reference=common_reference([front]))
    verdict = verdict_of([front], [name], [view["hypervolume"]])
    return InlinePage(page_text(payload_of([view], verdict=verdict)), height)
