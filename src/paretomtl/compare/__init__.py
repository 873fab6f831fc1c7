"""Methods side by side on one problem: the runs, their stored rows, and the verdict."""

from paretomtl.compare._compare import RESULTS, compare
from paretomtl.compare._comparison import Comparison
from paretomtl.compare._verdict import Summary, best_hypervolume, common_reference, summaries, tight_references, verdict
from paretomtl.compare.failed_runs import FailedRun
from paretomtl.compare.row_store import Row, environment, load_rows, numbers, save_rows

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
