"""Every example runs, prints what its reader is promised, and is shown in the gallery."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import paretomtl as pm
from _helpers.places import DOCS, ROOT

FOLDER, GUIDES = ROOT / "examples", DOCS / "guides"
PROMISED = {
    "own_model": ["Front of 5 models: sensors", "failures found", "chosen: Sensors of model"],
    "own_loop": ["Front of 5 models: one curve, pareto-mtl", "regions: feasible"],
    "shared_loop": ["processes: 1", "Front of 3 models: one curve, pareto-mtl"],
    "missing_labels": ["Front of 5 models: half-labelled", "topic", "regret"],
    "task_loaders": ["Front of 5 models: two data sets", "smile", "with accuracy at least 0.85"],
    "images": ["Front of 5 models: figures", "with shape accuracy at least 0.7", "the best size"],
    "four_tasks": ["Front of 10 models: feed", "weighted by (1, 1, 1, 5)"],
    "fairness": ["Front of 9 models: loans", "with accuracy at least 0.78 on validation, it has the best parity gap"],
    "recommender": ["Front of 7 models: videos", "with top clicks at least 0.9", "the best top minutes"],
    "other_fronts": ["Front of 5 models: sensors, fixed weights", "weight 0.9", "hypervolume on validation"],
    "cluster": ["Front of 6 models: sensors", "3 jobs of 2 models each", "one process: "],
    "transformer": ["Front of 5 models: sequences", "right topics", "farthest below the chord"],
}
SLOW = {"transformer": pytest.mark.study, "cluster": pytest.mark.system}
RUNS = [pytest.param(name, marks=SLOW.get(name, ())) for name in PROMISED]
LINES, WIDE, BYTES = 80, 88, 60_000


def output(name: str, **options: Any) -> str:
    """What an example prints; its front is a trade-off, and its losses are numbers."""
    space = runpy.run_path(str(FOLDER / f"{name}.py"))
    with contextlib.redirect_stdout(io.StringIO()) as stdout:
        front = space["main"](**options)
    assert isinstance(front, pm.Front)
    assert front.nondominated().sum() >= 3
    assert front.losses[front.ranking_split].isfinite().all()
    printed = stdout.getvalue()
    for words in PROMISED[name]:
        assert words in printed
    return printed


def test_no_example_is_forgotten() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == set(PROMISED)


@pytest.mark.parametrize("name", RUNS)
def test_it_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # one of them stores its front
    assert "No model" not in output(name), "the rule finds one"


def test_the_transformer_takes_a_few_steps() -> None:
    problem = runpy.run_path(str(FOLDER / "transformer.py"))["problem"]
    front = pm.fit(problem, preferences=2, epochs=1, progress="quiet", device="cpu")
    assert front.losses["val"].isfinite().all()


def test_jobs_without_ray_are_those_of_one_process() -> None:
    printed = output("cluster", executor=lambda: pm.training.SerialExecutor(shard_size=2))
    assert "SerialExecutor" in printed
    assert float(printed.split()[-1]) < 1e-5


@pytest.mark.system
def test_two_processes_train_what_one_does() -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    path = str(FOLDER / "shared_loop.py")
    alone = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True)
    done = subprocess.run(
        [*command, path], capture_output=True, text=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    shared, single = done.stdout.split(), alone.stdout.split()
    assert shared[:2] == ["processes:", "2"]
    for mine, theirs in zip(shared[2:], single[2:], strict=True):
        if re.fullmatch(r"[\d.e-]+", mine):
            assert float(mine) == pytest.approx(float(theirs), abs=0.01)
        else:
            assert mine == theirs


@pytest.mark.parametrize("name", PROMISED)
def test_it_can_be_read_on_a_page(name: str) -> None:
    """Short enough for a page, with a description and the command that runs it."""
    code = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    lines = code.splitlines()
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= WIDE
    assert f"python examples/{name}.py" in (ast.get_docstring(ast.parse(code)) or "")


@pytest.mark.parametrize("name", PROMISED)
def test_the_gallery_shows_it(name: str) -> None:
    """A card with a picture for light and dark pages, a link to the file, its code and its output."""
    page = (GUIDES / "gallery.md").read_text(encoding="utf-8")
    assert f":img-top: gallery-{name}.png" in page
    assert f"(../../examples/{name}.py)" in page
    section = page.partition(f"{{literalinclude}} ../../examples/{name}.py\n")[2].partition("\n## ")[0]
    shown = section.partition("```text\n")[2].partition("```")[0]
    for words in PROMISED[name]:
        assert " ".join(words.split()) in " ".join(shown.split())
    for path in (GUIDES / f"gallery-{name}.png", GUIDES / f"gallery-{name}-dark.png"):
        with Image.open(path) as image:
            assert image.mode == "P"
        assert path.stat().st_size < BYTES
