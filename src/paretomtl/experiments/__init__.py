"""The paper's studies as lists of cells, and what their results say about its claims."""

from paretomtl.experiments._compare import RESULTS, Summary, common_reference, compare, summaries, verdict
from paretomtl.experiments._failed_runs import FailedRun
from paretomtl.experiments._runner import Progress, results_file, run_study, stored_study
from paretomtl.experiments._store import Row, environment, load_rows, numbers, save_rows
from paretomtl.experiments._studies import STUDIES
from paretomtl.experiments._study import Cell, Claim, Size, Study, diverged

__all__ = [
    "RESULTS",
    "STUDIES",
    "Cell",
    "Claim",
    "FailedRun",
    "Progress",
    "Row",
    "Size",
    "Study",
    "Summary",
    "common_reference",
    "compare",
    "diverged",
    "environment",
    "load_rows",
    "numbers",
    "results_file",
    "run_study",
    "save_rows",
    "stored_study",
    "summaries",
    "verdict",
]
