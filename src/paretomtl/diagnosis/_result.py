"""A diagnosis as numbers, as text and as JSON."""

from __future__ import annotations

import functools
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paretomtl._support.html_table import html_table, paragraph
from paretomtl._support.imports import facade
from paretomtl._support.tensor_json import to_numbers
from paretomtl._support.text import shorten
from paretomtl.diagnosis._measurements import Measurements
from paretomtl.diagnosis._rules import Verdict, judge
from paretomtl.diagnosis.evidence import task_gaps
from paretomtl.diagnosis.proposal import Proposal

_WIDE = 80  # characters in a line


@dataclass(frozen=True, repr=False, eq=False)
class Diagnosis(Measurements):
    """The result of :func:`paretomtl.diagnose` for m tasks and S seeds. The command prints its text.

    Attributes:
        problem: the name of the problem.
        tasks: the names of the tasks.
        epochs: how long each model was trained; steps for a problem without data.
        seeds: the seeds of the models.
        split: the split of the losses ``joint`` and ``alone``.
        cosines: mean cosines of the task gradients in each third of joint training, ``[3, m, m]``; NaN for none.
        cosines_by_seed: the same for each seed, ``[S, 3, m, m]``.
        negative: the share of steps with a negative cosine, ``[3, m, m]``.
        norms: mean norms of the task gradients, ``[m]``; NaN for a task without labels.
        first: losses of the first batch with labels, ``[m]``.
        last: losses on training after joint training, ``[m]``.
        learnt: the share of the loss before training that a separate network removed in each task, on training,
            ``[m]``; relative to the loss of the first batch if data are not tensors.
        joint: losses after joint training with equal weights, ``[S, m]``.
        alone: losses of separate networks, each in its own task, ``[S, m]``.
        models: how many were trained, jointly and separately.
        broken: how many of them had losses or gradients that were not finite.
        seconds: how long it took.
        without_data: whether the problem has no data, so that an epoch is a step.
        planned: the epochs of the problem's recipe; None if it has none.
        ends: losses on training of models that were trained mostly for one task each, ``[S, m, m]``; None if a front is
            not worth it.
        factors: the factors of the losses in training; None for unscaled losses. All losses and norms here are
            unscaled.
    """

    @functools.cached_property
    def verdict(self) -> Verdict:
        """The recommendation, by the rules in docs/start/do-i-need-it.md."""
        return judge(self)

    @property
    def proposal(self) -> Proposal | None:
        """How to train the front that the verdict recommends; None if it recommends none."""
        verdict = self.verdict
        if verdict.preferences is None:
            return None
        method = "pareto-mtl" if verdict.directions else "auto"  # the default method reads rows as importances
        rows = verdict.directions or verdict.preferences
        scale = verdict.scale if verdict.factors is None else verdict.factors
        return Proposal(self.problem, self.tasks, method, rows, scale)

    def numbers(self) -> dict[str, Any]:
        """Everything as numbers, strings and lists, for JSON; NaN as None."""
        verdict = self.verdict
        measured = {
            name: to_numbers(getattr(self, name))
            for name in ("cosines", "negative", "norms", "first", "last", "learnt", "joint", "alone", "ratios")
        }
        measured["cosines_by_seed"] = to_numbers(self.cosines_by_seed)
        gaps = [
            {
                "task": task,
                "verdict": gap.word,
                **to_numbers({"gap": gap.value, "reach": gap.half_width, "margin": gap.margin, "tight": gap.tight}),
            }
            for task, gap in zip(self.tasks, task_gaps(self), strict=True)
        ]
        return {
            "problem": self.problem,
            "tasks": list(self.tasks),
            "epochs": self.epochs,
            "seeds": list(self.seeds),
            "split": self.split,
            "splits": {
                **dict.fromkeys(("cosines", "negative", "norms", "first", "last", "learnt", "ends"), "train"),
                **dict.fromkeys(("joint", "alone", "ratios", "gaps"), self.split),
            },
            **measured,
            "ends": None if self.ends is None else to_numbers(self.ends),
            "scaled_by": None if self.factors is None else list(self.factors),
            "without_data": self.without_data,
            "planned": self.planned,
            "models": self.models,
            "broken": self.broken,
            "seconds": round(self.seconds, 3),
            "gaps": gaps,
            "verdict": verdict.word,
            "text": verdict.text,
            "preferences": verdict.preferences,
            "directions": [list(row) for row in verdict.directions],
            "scale": verdict.scale,
            "factors": None if verdict.factors is None else list(verdict.factors),
            "again": None if verdict.again is None else dict(verdict.again),
            "notes": list(verdict.notes),
        }

    def plot(self, path: str | Path | None = None, *, dark: bool = False) -> Any:
        """Plot what joint training costs each task, and which gradients conflict (extra ``figures``).

        Args:
            path: the file to write; its suffix, such as ``.pdf``, ``.svg`` or ``.png``, sets the format.
            dark: whether to plot for a dark background.

        Returns:
            A matplotlib figure; closed if it was written to ``path``.
        """
        return facade.draw_diagnosis(self, path, dark=dark)

    def figure(self) -> Any:
        """Draw the same for a screen, as a plotly figure (extra ``report``)."""
        return facade.interactive_diagnosis(self)

    def __repr__(self) -> str:
        return "\n".join([*self.tables(), "", *self.sentences()])

    def _repr_html_(self) -> str:
        """The verdict and the measurements, as notebooks show them."""
        columns = [self.first, self.last, self.norms, self.alone.mean(0), self.joint.mean(0)]
        heads = ["task", "first", "last", "gradient", f"alone, {self.split}", f"joint, {self.split}", "ratio"]
        rows = [
            [shorten(task, 32), *(f"{float(column[i]):.3g}" for column in columns), _ratio(float(self.ratios[i]))]
            for i, task in enumerate(self.tasks)
        ]
        return "".join([*map(paragraph, self.sentences()), html_table(heads, rows)])

    def tables(self, width: int = _WIDE, most: int = 10) -> list[str]:
        """The measurements as lines; of the pairs of tasks, the ``most`` that agree least.

        Names are cut so that lines of numbers fit into ``width`` characters, but never below 80.
        """
        unit = "steps" if self.without_data else "epoch" if self.epochs == 1 else "epochs"
        seeds = "1 seed" if len(self.seeds) == 1 else f"{len(self.seeds)} seeds"
        wide = max(len("task"), min(max(map(len, self.tasks)), 18 + max(0, width - _WIDE)))
        lines = [f"{self.problem}: {seeds}, {self.epochs} {unit} each", ""]
        splits = ["train", "train", "train", self.split, self.split]
        lines += [f"{'':<{wide}} {' '.join(f'{split:>9}' for split in splits)} {self.split:>7}"]
        lines += [f"{'task':<{wide}} {'first':>9} {'last':>9} {'gradient':>9} {'alone':>9} {'joint':>9} {'ratio':>7}"]
        columns = [self.first, self.last, self.norms, self.alone.mean(0), self.joint.mean(0)]
        for i, task in enumerate(self.tasks):
            values = " ".join(f"{float(column[i]):9.3g}" for column in columns)
            lines.append(f"{shorten(task, wide):<{wide}} {values} {_ratio(float(self.ratios[i])):>7}")
        name = min(wide, 17 + max(0, width - _WIDE) // 2)
        pair = max(len("pair"), 2 * name + 3)
        lines += ["", f"{'pair':<{pair}} {'cosine, by thirds':<20} steps with a negative"]
        for i, j in self.pairs[:most]:
            names = f"{shorten(self.tasks[i], name)} / {shorten(self.tasks[j], name)}"
            cosines = " ".join(_or_dash(float(value), "{:6.2f}", 6) for value in self.cosines[:, i, j])
            shares = " ".join(_or_dash(100 * float(value), "{:3.0f} %", 5) for value in self.negative[:, i, j])
            lines.append(f"{names:<{pair}} {cosines} {shares:>21}")
        if len(self.pairs) > most:
            lines.append(f"and {len(self.pairs) - most} pairs that agree more")
        return lines

    def paragraphs(self) -> list[str]:
        """The verdict and the notes, a paragraph each."""
        return [f"Verdict: {self.verdict.word}. {self.verdict.text}", *self.verdict.notes]

    def sentences(self, width: int = _WIDE) -> list[str]:
        """The verdict and the notes, wrapped."""
        return [line for text in self.paragraphs() for line in textwrap.wrap(text, width, break_on_hyphens=False)]


def _or_dash(value: float, form: str, width: int) -> str:
    return f"{'-':>{width}}" if value != value else form.format(value)


def _ratio(value: float) -> str:
    return "-" if value != value else f"{value:.3g}" if value < 1000 else ">1000"
