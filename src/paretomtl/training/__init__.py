"""From a problem and a method to a front: the loop, and the pieces for a loop of one's own."""

from paretomtl.training._backward import backward
from paretomtl.training._doctor import Finding, examine, mend
from paretomtl.training._executors import Executor, Jobs, Link, Room, SerialExecutor
from paretomtl.training._fit import fit, fit_seeds
from paretomtl.training._process import is_running
from paretomtl.training._progress import Callback, Report, TensorBoard, plain_numbers
from paretomtl.training._ray import RayExecutor
from paretomtl.training._run import read_log
from paretomtl.training._strategies import Strategy

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
