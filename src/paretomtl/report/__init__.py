"""From results to figures, and to a page."""

from paretomtl.report.figures.comparison import draw_comparison
from paretomtl.report.figures.contact_sheet import draw_sheet
from paretomtl.report.figures.front import draw_front
from paretomtl.report.page import write_page

__all__ = ["draw_comparison", "draw_front", "draw_sheet", "write_page"]
