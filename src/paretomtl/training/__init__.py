"""From a problem and a method to a front: the loop, and the pieces for a loop of one's own."""

from paretomtl.engine.plan import Strategy
from paretomtl.runs.doctor import Finding, examine, mend
from paretomtl.runs.folder import read_log
from paretomtl.runs.process import is_running
from paretomtl.training._backward import backward
from paretomtl.training._fit import fit, fit_seeds
from paretomtl.training.progress.progress import Callback, Report, TensorBoard, plain_numbers
from paretomtl.training.shards.executor import Executor, Jobs, Link, Room, SerialExecutor
from paretomtl.training.shards.ray.executor import RayExecutor

__all__ = [
    "Callback",
    "Executor",
    "Finding",
    "Jobs",
    "Link",
    "RayExecutor",
    "Report",
    "Room",
    "SerialExecutor",
    "Strategy",
    "TensorBoard",
    "backward",
    "examine",
    "fit",
    "fit_seeds",
    "is_running",
    "mend",
    "plain_numbers",
    "read_log",
]
