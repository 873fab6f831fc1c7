"""From results to figures."""

from paretomtl.report._comparison import draw_comparison
from paretomtl.report._sheet import draw_sheet
from paretomtl.report._synthetic import draw_synthetic

DRAWINGS = {"synthetic": draw_synthetic}
"""What draws the figures of a study, by its name."""

__all__ = ["DRAWINGS", "draw_comparison", "draw_sheet", "draw_synthetic"]
