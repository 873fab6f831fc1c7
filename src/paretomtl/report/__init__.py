"""Figures of results, and the page that shows them."""

from typing import TYPE_CHECKING

from paretomtl._support.imports.lazy_imports import lazy_names

if TYPE_CHECKING:
    from paretomtl.report.figures.comparison import draw_comparison
    from paretomtl.report.figures.contact_sheet import draw_sheet
    from paretomtl.report.figures.cost import draw_cost
    from paretomtl.report.figures.front import draw_front
    from paretomtl.report.page import write_page
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "paretomtl.report.figures.comparison": ("draw_comparison",),
            "paretomtl.report.figures.contact_sheet": ("draw_sheet",),
            "paretomtl.report.figures.cost": ("draw_cost",),
            "paretomtl.report.figures.front": ("draw_front",),
            "paretomtl.report.page": ("write_page",),
        },
    )


__all__ = ["draw_comparison", "draw_cost", "draw_front", "draw_sheet", "write_page"]
