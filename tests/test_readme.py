"""The README's example prints what the README says, up to rounding on other machines. So do its commands."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import shlex
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from _helpers.places import DOCS, ROOT
from paretomtl.cli._app import app
from paretomtl.compare import load_rows
from paretomtl.paper import STUDIES
from paretomtl.paper.evidence.verdicts import by_setting, measured_on, summaries_of
from paretomtl.problems import PROBLEMS
from paretomtl.problems.registry import DATA_SETS

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_first_example_prints_what_is_written() -> None:
    code, expected = re.search(r"```python\n(import torch.*?)```\n\n```text\n(.*?)```", README, re.DOTALL).groups()  # type: ignore[union-attr]
    assert len([line for line in code.splitlines() if line.strip()]) <= 15
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, "README.md", "exec"), {"__name__": "__main__"})
    found, wanted = printed.getvalue().split(), expected.split()
    assert len(found) == len(wanted)
    for mine, theirs in zip(found, wanted, strict=True):
        try:
            assert float(mine) == pytest.approx(float(theirs), abs=0.01)
        except ValueError:
            assert mine == theirs


@pytest.mark.filterwarnings("ignore")
def test_the_method_of_ones_own_runs() -> None:
    page = (ROOT / "docs" / "concepts" / "methods.md").read_text(encoding="utf-8")
    code = page.partition("## A method of your own")[2].partition("```python\n")[2].partition("```")[0]
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(code, "methods.md", "exec"), space)
    assert len(space["front"]) == 3
    assert space["front"].method == "powers"


def test_every_file_it_points_to_exists() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} points to {target}"


def test_it_is_short() -> None:
    """At most 700 words, with code and all."""
    assert len(README.split()) <= 700


def test_its_numbers_are_those_of_stored_rows() -> None:
    """Row by row, the table of "Does it beat tuned weights?"."""
    lines = [line for line in README.splitlines() if line.startswith("|") and re.search(r"\(\d+\)", line)]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    rows = by_setting(load_rows(ROOT / "experiments" / "results" / "beyond.json"))
    compared = {
        "synthetic 2, Adam": "auto",
        "MultiMNIST": "auto",
        "MultiFashionMNIST": "pareto-mtl, reachable",
        "income and parity": "auto",
    }
    wanted = []
    for setting, method in compared.items():
        found = {each.method: measured_on(each) for each in summaries_of(rows[setting])}
        wanted.append([found[each].hypervolumes for each in (method, "linear, interior")])
    assert len(cells) == len(wanted)
    for (name, *shown, _), pairs in zip(cells, wanted, strict=True):
        seeds = int(re.search(r"\((\d+)\)", name).group(1))  # type: ignore[union-attr]
        for text, values in zip(shown, pairs, strict=True):
            assert len(values) == seeds, name
            mean, _, deviation = text.partition(" ± ")
            digits = len(mean.partition(".")[2])
            assert f"{statistics.mean(values):.{digits}f}" == mean, name
            rounded = f"{statistics.stdev(values):.{digits}f}"
            assert rounded == (deviation or f"{0:.{digits}f}"), name


def commands() -> list[str]:
    """The commands of the README, and those of the tour."""
    text = README + (DOCS / "reference" / "tour.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(?:console)?\n(paretomtl diagnose.*?)```", text, re.DOTALL)
    lines = re.sub(r"\\\n\s*", " ", "".join(blocks)).strip().splitlines()
    return list(dict.fromkeys(line.partition("#")[0].strip() for line in lines))


def shortened(line: str) -> list[str]:
    """The words of a command as a shell sees them, with as little work as there can be."""
    words = [
        part for word in shlex.split(line) for part in (sorted(map(str, Path().glob(word))) if "*" in word else [word])
    ]
    if "run" in words or "compare" in words or "diagnose" in words:
        words += ["--epochs", "1", "--device", "cpu", "--strategy", "sequential"]
    if "compare" in words or "diagnose" in words:
        words += ["--seeds", "1"]
    return ["--smoke" if word == "--quick" else word for word in words]


@pytest.mark.system
def test_its_commands_run_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a fresh clone without a network; what is watched is left at once."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    monkeypatch.setenv("PARETOMTL_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("paretomtl.problems._data.download._PAUSE", 0.0)
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    def leave(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("paretomtl.report.page.PageServer.serve_forever", leave)
    lines = commands()
    assert len(lines) >= 12
    for line in lines:
        words = shortened(line)
        if "--ray" in words and importlib.util.find_spec("ray") is None:
            continue
        if words[0] == "torchrun":
            done = subprocess.run(
                [sys.executable, "-m", "torch.distributed.run", *words[1:]], capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr
            continue
        assert words[0] == "paretomtl"
        found = CliRunner().invoke(app, words[1:])
        expected = {"select": (0, 3), "watch": (130,), "data": (2,)}.get(words[1], (0,))  # few epochs may fit no bound
        assert found.exit_code in expected, f"{line}\n{found.output}{found.exception!r}"
    assert "could not be downloaded from any address" in found.output
    assert "--from FOLDER" in found.output


def test_its_commands_name_what_exists() -> None:
    """Without training: every command parses, and every problem, study and data set in it is there."""
    known = {"run": PROBLEMS, "compare": PROBLEMS, "diagnose": PROBLEMS, "reproduce": STUDIES, "prepare": DATA_SETS}
    for line in commands():
        words = line.split()
        command = next((word for word in words if word in known), None)
        if command is None:
            continue
        name = words[words.index(command) + 1]
        assert name in known[command] or (ROOT / name.partition(":")[0]).is_file(), line
