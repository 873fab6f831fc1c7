"""Help texts: panels, examples that can be typed, and no types."""

from __future__ import annotations

import re
import shlex

import pytest
import typer
from typer.testing import CliRunner

from paretomtl.cli._app import app
from paretomtl.cli._help import HELP, OUTPUT

GROUP = typer.main.get_command(app)
COMMANDS = {**GROUP.commands, "prepare": GROUP.commands["data"].commands["prepare"]}  # type: ignore[attr-defined]
del COMMANDS["data"]


def help_of(*words: str, columns: int = 80) -> str:
    env = {"COLUMNS": str(columns), "NO_COLOR": "1", "TERM": "dumb"}
    return CliRunner().invoke(app, [*words, "--help"], env=env).stdout


def words_of(name: str) -> list[str]:
    return ["data", "prepare"] if name == "prepare" else [name]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_examples_that_parse(name: str) -> None:
    """Each is a real command line: its options exist, and take their values."""
    assert len(HELP[name].examples) >= 2
    for example, what in HELP[name].examples:
        first, *arguments = shlex.split(example)
        if first == "data":
            first, *arguments = arguments
        assert first == name
        assert what == what.strip()
        context = COMMANDS[name].make_context(name, arguments)
        assert not context.args, "nothing is left over"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_the_examples_last_and_no_types(name: str) -> None:
    text = help_of(*words_of(name))
    assert not re.search(r"<(bool|str|int|float|path)>|INTEGER|TEXT|FLOAT|PATH", text)
    after = text.rpartition("Examples")[2]
    for example, what in HELP[name].examples:
        assert f"paretomtl {example}" in after
        assert f"# {what}" in after


@pytest.mark.parametrize("name", [name for name in COMMANDS if HELP[name].panels])
def test_every_option_has_a_panel_and_every_panel_has_options(name: str) -> None:
    placed = [option for options in HELP[name].panels.values() for option in options]
    own = {param.name for param in COMMANDS[name].params if param.param_type_name == "option"}
    rest = own - set(placed)
    assert rest <= {"as_json", "progress", "title", "help"}, "what is printed, and nothing else, is in the last panel"
    text = help_of(*words_of(name))
    titles = re.findall(r"─ ([A-Z][\w ,]+) ─", text)
    assert titles == ["Arguments", *HELP[name].panels, OUTPUT, "Examples"]


def test_the_list_of_commands_has_a_line_for_each() -> None:
    text = help_of()
    for name in (*GROUP.commands, ""):  # type: ignore[attr-defined]
        assert HELP[name].summary in text, name


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_examples_are_never_wrapped(columns: int) -> None:
    for name in COMMANDS:
        text = help_of(*words_of(name), columns=columns)
        assert max(map(len, text.splitlines())) <= max(columns, 80)
