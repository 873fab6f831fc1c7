"""TensorBoard: a callback that writes losses, weights and hypervolume of each epoch."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from paretomtl._support.imports.optional_packages import require
from paretomtl.training.progress.callbacks import Report


class TensorBoard:
    """Writes losses, weights and hypervolume of each epoch for TensorBoard (extra ``tensorboard``).

    Args:
        folder: where the event files go.

    Example:
        .. code-block:: python

            pm.fit(problem, epochs=10, callbacks=[pm.TensorBoard("runs/first")])
    """

    def __init__(self, folder: str | Path) -> None:
        require("tensorboard", "tensorboard")
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder))

    def __call__(self, report: Report) -> None:
        groups = {"train": report.losses, "weight": report.weights}
        models = [str(k) for k in report.subproblems]
        if report.seeds:
            models = [f"{k}/seed-{seed}" for k, seed in zip(models, report.seeds, strict=True)]
        if report.val_losses is not None:
            groups["val"] = report.val_losses
        for kind, table in groups.items():
            for i, task in enumerate(report.tasks):
                for k, row in zip(models, table, strict=True):
                    self._add(f"{kind}/{task}/{k}", float(row[i]), report.epoch)
        for name, values in report.val_metrics.items():
            for k, value in zip(models, values.tolist(), strict=True):
                self._add(f"val/{name}/{k}", value, report.epoch)
        if report.hypervolume is not None:
            self._add(f"{report.split}/hypervolume", report.hypervolume, report.epoch)

    def _add(self, name: str, value: float, epoch: int) -> None:
        self._writer.add_scalar(name, value, epoch)

    def close(self) -> None:
        """Flush and close the event file."""
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
