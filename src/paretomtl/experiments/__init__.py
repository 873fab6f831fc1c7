"""The paper's studies as lists of cells, and what their results say about its claims."""

from paretomtl.experiments._compare import Summary, common_reference, compare, summaries, verdict
from paretomtl.experiments._store import Row, environment, load_rows, numbers, save_rows
from paretomtl.experiments._studies import STUDIES, Study

__all__ = [
    "STUDIES",
    "Row",
    "Study",
    "Summary",
    "common_reference",
    "compare",
    "environment",
    "load_rows",
    "numbers",
    "save_rows",
    "summaries",
    "verdict",
]
