"""Commands in terminals of 80 and 120 columns, five tasks with long names: a row is a line, and no word is broken."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from _helpers.pages import page_front
from paretomtl.cli._app import app

TASKS = [
    "clicks on recommended items",
    "watch time in minutes",
    "shares of friends",
    "negative feedback",
    "satisfactionsurveyofquarter",
]
PROBLEM = f"""
import torch
import paretomtl as pm

g = torch.Generator().manual_seed(0)
x = torch.randn(120, 8, generator=g)
y = x @ torch.randn(8, 5, generator=g)


def model():
    return torch.nn.Sequential(torch.nn.Linear(8, 3), torch.nn.Tanh(), torch.nn.Linear(3, 5))


def losses(outputs, targets):
    return (outputs - targets).square().mean(0)


splits = {{"train": (x[:60], y[:60]), "val": (x[60:90], y[60:90]), "test": (x[90:], y[90:])}}
problem = pm.Problem(model, losses, {TASKS!r}, name="feed", **splits)
"""
RUN = ["run", "feed.py:problem", "--preferences", "6", "--epochs", "4", "--device", "cpu", "--out", "trained"]
COMMANDS = {
    "run": [*RUN, "--progress", "quiet"],
    "show": ["show", "trained"],
    "select": ["select", "trained", "--max-regret"],
    "compare": ["compare", "feed.py:problem", "--methods", "auto,linear,pareto-mtl,single-task", "--seeds", "2",
                "--preferences", "4", "--epochs", "2", "--device", "cpu", "--progress", "quiet"],
    "diagnose": ["diagnose", "feed.py:problem", "--epochs", "3", "--device", "cpu", "--progress", "quiet"],
    "doctor": ["doctor", "trained"],
    "list": ["list"],
}  # fmt: skip
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def on_terminal(arguments: list[str], columns: int, typed: str = "") -> str:
    """What a command prints on a terminal, without colours."""
    env = {"COLUMNS": str(columns), "FORCE_COLOR": "1"}
    found = CliRunner().invoke(app, arguments, env=env, input=typed)
    assert found.exit_code == 0, found.output
    return ANSI.sub("", found.output)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("narrow")
    page_front(6, TASKS).save(folder / "five")
    return folder / "five"


@pytest.fixture(scope="module")
def feed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("feed")
    (folder / "feed.py").write_text(PROBLEM)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        on_terminal([*RUN, "--progress", "quiet"], 80)
    return folder


def is_command(line: str) -> bool:
    """Whether a line is a command to copy, or its comment: these are never wrapped."""
    return line.startswith(("  paretomtl ", "  # "))


@pytest.mark.filterwarnings("ignore:models .* all lie outside")
@pytest.mark.filterwarnings("ignore:losses differ")
@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("name", COMMANDS)
def test_lines_fit_and_no_word_is_broken(feed: Path, monkeypatch: pytest.MonkeyPatch, name: str, columns: int) -> None:
    monkeypatch.chdir(feed)
    arguments = COMMANDS[name]
    narrow = on_terminal([*arguments, "--resume"] if name == "run" else arguments, columns)
    wide = on_terminal([*arguments, "--resume"] if name == "run" else arguments, 1000)
    for line in narrow.splitlines():
        assert len(line.rstrip()) <= columns or is_command(line), line
    whole = set(wide.split())
    words = [word for word in narrow.split() if not re.search(r"\d", word)]
    broken = [word for word in words if word not in whole and not word.endswith("…")]
    assert not broken, "each word stands in the wide table, or is shortened"
    assert words


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_ends_with_what_to_do_next(feed: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Commands that can be copied: each one is known, and its options are."""
    monkeypatch.chdir(feed)
    arguments = COMMANDS[name]
    text = on_terminal([*arguments, "--resume"] if name == "run" else arguments, 80)
    if name == "diagnose" and "\nNext:\n" not in text:
        assert "Verdict: unclear" in text, "nothing to train or to measure again"
        return
    after = text.partition("\nNext:\n")[2].splitlines()
    commands = [line for line in after if line.startswith("  paretomtl ")]
    assert commands
    assert after[-1].startswith("  paretomtl "), "the last thing that a reader sees"


@pytest.mark.parametrize("columns", [80, 120])
def test_show_has_a_line_for_each_row(stored: Path, columns: int) -> None:
    found = CliRunner().invoke(app, ["show", str(stored)], env={"COLUMNS": str(columns), "NO_COLOR": "1"})
    assert found.exit_code == 0
    lines = found.output.splitlines()
    rows = [line for line in lines if re.match(r"^\d  ", line)]
    tables = sum(line.startswith("k ") for line in lines)
    assert len(rows) == 6 * tables
    heads = [line for line in lines if line.startswith(("k ", "   "))]
    words = {word for task in TASKS[:4] for word in task.split()} | {
        "accuracy",
        "val",
        "test",
        "k",
        "favours",
        "status",
    }
    words |= {"satisfactio…", TASKS[4]}
    assert {word for line in heads for word in line.split()} <= words
    assert not any(len(line) > columns for line in heads + rows)
    numbers = [line.split()[-1] for line in rows]
    assert all(re.fullmatch(r"[\d.]+|feasible|dominated", number) for number in numbers)


@pytest.mark.parametrize("columns", [80, 120])
def test_select_has_a_line_for_each_value(stored: Path, columns: int) -> None:
    arguments = ["select", str(stored), "--max-regret"]
    found = CliRunner().invoke(app, arguments, env={"COLUMNS": str(columns), "NO_COLOR": "1"})
    assert found.exit_code == 0
    rows = [line for line in found.output.splitlines() if re.search(r" [\d.]+ +[\d.]+$", line)]
    assert len(rows) == 10
    assert len({len(line) for line in rows}) == 1


@pytest.mark.parametrize("columns", [80, 120])
def test_questions_are_small_tables(stored: Path, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """A line for each metric: both models, and the difference in words."""
    monkeypatch.setattr("paretomtl.cli._interview.at_terminal", lambda: True)
    text = on_terminal(["select", str(stored)], columns, typed="1\n" * 20)
    lines = [line for line in text.splitlines() if re.search(r"points (better|worse) *$|equal *$", line)]
    assert len(lines) % len(TASKS) == 0
    assert len(lines) >= len(TASKS)
    assert all(len(line.rstrip()) <= columns for line in lines)
