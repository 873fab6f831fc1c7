"""The page: fronts in one HTML file that needs nothing else."""

from paretomtl.report.page._view import View, view_of

__all__ = ["View", "view_of"]
