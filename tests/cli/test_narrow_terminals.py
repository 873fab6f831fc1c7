"""Tables in terminals of 80 and 120 columns, five tasks with long names: a row is a line, and no word is broken."""

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


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("narrow")
    page_front(6, TASKS).save(folder / "five")
    return folder / "five"


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
