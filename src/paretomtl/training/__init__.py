"""From a problem and a method to a front: the loop, and the pieces for a loop of one's own."""

from paretomtl.engine.plan import Strategy
from paretomtl.training._backward import backward
from paretomtl.training._fit import fit, fit_seeds
from paretomtl.training.progress.callbacks import Callback, Report
from paretomtl.training.progress.tensorboard import TensorBoard
from paretomtl.training.shards.executor import Capacity, Channel, Executor, JobBatch, SerialExecutor
from paretomtl.training.shards.ray.executor import RayExecutor

__all__ = [
    "Callback",
    "Capacity",
    "Channel",
    "Executor",
    "JobBatch",
    "RayExecutor",
    "Report",
    "SerialExecutor",
    "Strategy",
    "TensorBoard",
    "backward",
    "fit",
    "fit_seeds",
]
