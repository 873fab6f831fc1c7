"""From a problem and a method to a front: the loop, and the pieces for a custom loop."""

from typing import TYPE_CHECKING

from paretomtl._support.imports.lazy_imports import lazy_names

if TYPE_CHECKING:
    from paretomtl.engine.strategy import Strategy
    from paretomtl.training._backward import backward
    from paretomtl.training._fit import fit, fit_seeds
    from paretomtl.training.progress.callbacks import Callback, Report
    from paretomtl.training.progress.tensorboard import TensorBoard
    from paretomtl.training.shards.executor import Capacity, Channel, Executor, JobBatch, SerialExecutor
    from paretomtl.training.shards.ray.executor import RayExecutor
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "paretomtl.engine.strategy": ("Strategy",),
            "paretomtl.training._backward": ("backward",),
            "paretomtl.training._fit": ("fit", "fit_seeds"),
            "paretomtl.training.progress.callbacks": ("Callback", "Report"),
            "paretomtl.training.progress.tensorboard": ("TensorBoard",),
            "paretomtl.training.shards.executor": ("Capacity", "Channel", "Executor", "JobBatch", "SerialExecutor"),
            "paretomtl.training.shards.ray.executor": ("RayExecutor",),
        },
    )


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
