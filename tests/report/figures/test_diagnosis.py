from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
import torch
from matplotlib import pyplot

import paretomtl as pm
from paretomtl.diagnosis.evidence import conflicts, task_gaps
from paretomtl.report.figures.diagnosis import pair_marks, task_marks

mpl.use("Agg")


@pytest.fixture(scope="module")
def diagnosis() -> pm.Diagnosis:
    return pm.diagnose(pm.problems.quadratic(), epochs=300, device="cpu", progress="quiet")


@pytest.fixture(autouse=True)
def closed() -> Any:
    yield
    pyplot.close("all")


def many(tasks: int) -> pm.Problem:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(40, 4, generator=generator)
    y = x @ torch.randn(4, tasks, generator=generator)
    names = [f"a task with a name that is long {i}" for i in range(tasks)]
    losses = lambda outputs, targets: (outputs - targets).square().mean(0)  # noqa: E731
    return pm.Problem(lambda: torch.nn.Linear(4, tasks), losses, names, train=(x, y))


def test_marks_are_the_evidence_of_the_verdict(diagnosis: pm.Diagnosis) -> None:
    gaps = task_gaps(diagnosis)
    for mark, gap, alone in zip(task_marks(diagnosis), gaps, diagnosis.alone.mean(0).tolist(), strict=True):
        assert (mark.word, mark.value) == (gap.word, pytest.approx(100 * gap.value / alone))
        assert mark.half_width == pytest.approx(100 * gap.half_width / alone)
    (pull,), (pair,) = conflicts(diagnosis), pair_marks(diagnosis)
    assert (pair.name, pair.value, pair.word) == ("f1 / f2", pull.cosine, "conflict")


def test_the_figure_names_tasks_and_gives_the_verdict(diagnosis: pm.Diagnosis) -> None:
    figure = diagnosis.plot()
    left, right = figure.axes
    assert [label.get_text() for label in left.get_yticklabels()] == ["f2", "f1"], "the first task is on top"
    assert [label.get_text() for label in right.get_yticklabels()] == ["f1 / f2"]
    words = [text.get_text() for text in (*left.texts, *right.texts)]
    assert words == [*(mark.word for mark in reversed(task_marks(diagnosis))), "conflict"]
    title, caption = (text.get_text().replace("\n", " ") for text in figure.texts)
    assert title == "quadratic: is a front worth it? Verdict: front"
    assert caption.startswith("A front is worth it: ")


@pytest.mark.parametrize("tasks", [2, 6])
def test_it_is_drawn_for_any_number_of_tasks(tasks: int, tmp_path: Path) -> None:
    found = pm.diagnose(many(tasks), epochs=2, seeds=1, device="cpu", progress="quiet")
    found.plot(tmp_path / "diagnosis.pdf")
    found.plot(tmp_path / "dark.png", dark=True)
    assert (tmp_path / "diagnosis.pdf").read_bytes().startswith(b"%PDF")
    assert len(pair_marks(found)) == min(10, tasks * (tasks - 1) // 2)
    assert len(found.figure().data) == 2
    assert not pyplot.get_fignums()


def test_losses_that_are_not_finite_are_left_out() -> None:
    breaks = pm.Problem(lambda: torch.nn.Linear(1, 2), lambda o, t: o.mean(0) * torch.nan, ["a", "b"],
                        train=(torch.ones(4, 1), torch.ones(4, 2)))  # fmt: skip
    found = pm.diagnose(breaks, epochs=1, seeds=1, device="cpu", progress="quiet")
    assert task_marks(found) == []
    assert found.plot().axes[0].get_yticklabels() == []
