"""The paper's studies as lists of cells, and what their results say about its claims."""

from paretomtl.paper.runner import Progress, results_file, run_study, stored_study
from paretomtl.paper.studies import STUDIES
from paretomtl.paper.study import Cell, Claim, Size, Study, diverged

__all__ = [
    "STUDIES",
    "Cell",
    "Claim",
    "Progress",
    "Size",
    "Study",
    "diverged",
    "results_file",
    "run_study",
    "stored_study",
]
