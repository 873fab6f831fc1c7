"""Methods side by side on one problem: the runs, their stored rows, and the verdict."""

from typing import TYPE_CHECKING

from paretomtl._support.imports.lazy_imports import lazy_names

if TYPE_CHECKING:
    from paretomtl.compare._compare import RESULTS, compare
    from paretomtl.compare._comparison import Comparison
    from paretomtl.compare._verdict import (
        Summary,
        best_hypervolume,
        common_reference,
        summaries,
        tight_references,
        verdict,
    )
    from paretomtl.compare.failed_runs import FailedRun
    from paretomtl.compare.row_store import Row, environment, load_rows, numbers, save_rows
else:  # a page needs the verdict, and no training
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "paretomtl.compare._compare": ("RESULTS", "compare"),
            "paretomtl.compare._comparison": ("Comparison",),
            "paretomtl.compare._verdict": (
                "Summary",
                "best_hypervolume",
                "common_reference",
                "summaries",
                "tight_references",
                "verdict",
            ),
            "paretomtl.compare.failed_runs": ("FailedRun",),
            "paretomtl.compare.row_store": ("Row", "environment", "load_rows", "numbers", "save_rows"),
        },
    )

__all__ = [
    "RESULTS",
    "Comparison",
    "FailedRun",
    "Row",
    "Summary",
    "best_hypervolume",
    "common_reference",
    "compare",
    "environment",
    "load_rows",
    "numbers",
    "save_rows",
    "summaries",
    "tight_references",
    "verdict",
]
