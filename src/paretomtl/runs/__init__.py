"""A run on disk: its folder, its log, its manifest, the process that trains it, and a doctor for damaged ones."""

from paretomtl.runs.doctor import Finding, inspect_run, repair_run
from paretomtl.runs.log import read_log
from paretomtl.runs.process import is_running

__all__ = ["Finding", "inspect_run", "is_running", "read_log", "repair_run"]
