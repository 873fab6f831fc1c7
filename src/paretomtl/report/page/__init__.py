"""The page: fronts in one HTML file that needs nothing else."""

from paretomtl.report.page._page import Payload, page_text, payload_of, read_views, write_page
from paretomtl.report.page._server import PageServer, Watched
from paretomtl.report.page.view import View, history_of, view_of

__all__ = [
    "PageServer",
    "Payload",
    "View",
    "Watched",
    "history_of",
    "page_text",
    "payload_of",
    "read_views",
    "view_of",
    "write_page",
]
