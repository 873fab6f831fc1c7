"""Names from files are shown on a terminal, and never obeyed by it."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text
from typer.testing import CliRunner

from _helpers.fronts import front_of
from paretomtl._support.files.atomic_files import write_record
from paretomtl._support.terminal import escaped, json_text, shown_warnings, text_console
from paretomtl.cli._app import app
from paretomtl.runs.checkpoint_file import FORMAT

HOSTILE = ["\x1b]0;owned\x07", "\x9b31m", "\u202eevil", "a\rb", "\x1b]8;;http://x\x1b\\y", "\ud800", "\u2066z\u200b"]
NAME = "".join(HOSTILE)


def prints(text: str) -> bool:
    return text.replace("\n", "").isprintable()


@given(st.text(st.characters(codec=None)))
def test_what_is_shown_prints_and_says_what_was_there(text: str) -> None:
    shown = escaped(text)
    assert prints(shown)
    assert shown.count("\n") == text.count("\n")
    assert escaped(shown) == shown
    if "\\" not in text:
        assert shown.encode("latin-1", "backslashreplace").decode("unicode_escape") == text
    assert escaped(text, lines=False).isprintable()


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
        lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(st.characters(codec=None)), part, max_size=3),
        max_leaves=8,
    )
)
def test_json_is_json_and_prints(content: Any) -> None:
    text = json_text(content)
    assert prints(text)

    def known(part: Any) -> Any:
        if isinstance(part, float):
            return part if math.isfinite(part) else None
        if isinstance(part, dict):
            return {key: known(value) for key, value in part.items()}
        return [known(each) for each in part] if isinstance(part, list) else part

    def refuse(word: str) -> None:
        raise AssertionError(word)

    assert json.loads(text, parse_constant=refuse) == json.loads(json.dumps(known(content)))


def test_all_ways_of_text_to_a_console() -> None:
    console = text_console()
    console.file = io.StringIO()
    table = Table(NAME, title=NAME)
    table.add_row(NAME)
    table.add_row(Text(NAME))
    for each in (NAME, Text.assemble((NAME, "bold"), NAME), table, [NAME]):
        console.print(each)
    console.rule(NAME)
    assert prints(console.file.getvalue())
    assert "\\x9b31m" in console.file.getvalue()


def test_warnings_are_shown() -> None:
    """As Python formats them for standard error."""
    with shown_warnings():
        said = warnings.formatwarning(UserWarning(NAME), UserWarning, "here.py", 1)
        own = warnings.formatwarning(UserWarning(NAME), UserWarning, escaped.__code__.co_filename, 1)
    assert "\\x9b31m" in said
    assert prints(said)
    assert own == f"Warning: {escaped(NAME)}\n", "where in this library it came from tells nobody anything"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A front in which every word is hostile, in the folder of a run that has such a name, too."""
    front = front_of([[0.2, 0.9], [0.9, 0.2], [0.4, 0.5]], reference=(1.0, math.nan))
    words = {"problem": NAME, "method": NAME, "tasks": (NAME, "b"), "status": [NAME] * 3, "strategy": NAME}
    metrics = {"train": {NAME + "m": front.losses["train"][:, 0]}}
    front = dataclasses.replace(front, **words, metrics=metrics, better={NAME + "m": "lower"})  # type: ignore[arg-type]
    folder = tmp_path / ("run" + NAME[:14])
    front.save(folder / "front")
    write_record(folder / "config.json", {"problem": NAME + "\nSomething is lost."}, format=FORMAT)
    (folder / (NAME[:14] + ".txt")).write_text("")
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ["show"],
        ["show", "--json"],
        ["select", "--importance", "1,1"],
        ["select", "--k", "1", "--json"],
        ["select", "--best", "nothing"],
        ["select", "--at-most", f"{NAME[:14]}=0.1", "--best", "b"],
        ["select", "--knee", "--export", "chosen"],
        ["doctor"],
        ["doctor", "--json"],
        ["refine", "--around", "1"],
        ["report", "--out", "x.html"],
    ],
)
def test_every_command_shows_names_of_files(words: list[str], run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run.parent)
    found = CliRunner().invoke(app, [words[0], str(run), *words[1:]], env={"COLUMNS": "120", "NO_COLOR": "1"})
    assert found.exception is None or isinstance(found.exception, SystemExit), repr(found.exception)
    assert prints(found.output), ascii(found.output)
    if "--json" in words:
        assert json.loads(found.stdout)
    if words == ["doctor"]:
        assert "\nSomething is lost" not in found.output, "a name is no line of its own"


def test_a_front_is_printed_in_python(run: Path) -> None:
    import paretomtl as pm

    assert prints(repr(pm.Front.load(run)))
