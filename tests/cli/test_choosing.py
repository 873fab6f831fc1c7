from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from _helpers.fronts import front_of
from paretomtl.cli._app import app


def call(*arguments: str, typed: str = "", code: int = 0) -> tuple[str, str]:
    """What a command prints to standard output, and to standard error."""
    found = CliRunner().invoke(app, list(arguments), input=typed, env={"COLUMNS": "100", "NO_COLOR": "1"})
    assert found.exit_code == code, found.output + repr(found.exception)
    return found.stdout, " ".join(found.stderr.split())


@pytest.fixture
def stored(tmp_path: Path) -> str:
    front_of([[0.0, 1.0], [0.2, 0.4], [0.5, 0.2], [1.0, 0.0]]).save(tmp_path / "front")
    return str(tmp_path / "front")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paretomtl.cli._interview.at_terminal", lambda: True)


@pytest.mark.usefixtures("terminal")
def test_questions_lead_to_one_solution(stored: str) -> None:
    """Four solutions of a convex front: two questions."""
    out, err = call("select", stored, "--json", typed="2\nno\n1\n")
    choice = json.loads(out)
    assert choice["k"] == 2
    assert choice["reason"] == "Model 2: your preference on training among 4 models, after 2 questions."
    assert "4 non-dominated models, on training. At most 3 questions." in err
    assert "1: model 1 2: model 2" in err
    assert "a loss 0.2 0.5 0.3 (150 %) worse" in err
    assert "b loss 0.4 0.2 0.2 (50 %) better" in err
    assert "Type 1 or 2" in err


@pytest.mark.usefixtures("terminal")
def test_a_question_can_be_answered_by_equal_and_taken_back(stored: str) -> None:
    """The first answer is taken back; then both models are equal, and the first of them is kept."""
    out, err = call("select", stored, "--json", typed="b\n1\nback\n=\n1\n1\n")
    assert "This is the first question." in err
    assert err.count("Question 1, 4 models left") == 3
    choice = json.loads(out)
    assert choice["k"] in (0, 1)
    assert choice["reason"].endswith("questions.")


@pytest.mark.usefixtures("terminal")
def test_differences_have_colours_on_a_terminal(stored: str) -> None:
    """Green is better and red is worse; the words say the same."""
    found = CliRunner().invoke(app, ["select", stored], input="1\n1\n", env={"COLUMNS": "80", "FORCE_COLOR": "1"})
    assert "\x1b[31m0.3 (150 %) worse\x1b[0m" in found.stderr
    assert "\x1b[32m0.2 (50 %) better\x1b[0m" in found.stderr


@pytest.mark.usefixtures("terminal")
def test_nothing_to_ask(tmp_path: Path) -> None:
    front_of([[1.0, 1.0], [2.0, 2.0]]).save(tmp_path / "one")
    assert "the only non-dominated model" in call("select", str(tmp_path / "one"))[0]
    front_of([[float("nan"), 1.0], [float("inf"), 2.0]]).save(tmp_path / "none")
    assert "No model has finite losses on training" in call("select", str(tmp_path / "none"), code=3)[0]


@pytest.mark.usefixtures("terminal")
def test_whoever_leaves_gets_nothing(stored: str) -> None:
    out, _ = call("select", stored, typed="2\n", code=130)
    assert "Model" not in out


def test_without_a_terminal_nothing_is_asked(stored: str) -> None:
    _, err = call("select", stored, typed="1\n1\n", code=2)
    assert "one of --direction, --importance, --knee, --max-regret, --best and --k must be given" in err


def test_what_only_an_export_needs_is_read_for_one_alone(stored: str) -> None:
    (Path(stored) / "asked.json").write_text("{")
    assert "Model 0" in call("select", stored, "--best", "a")[0]
    assert "asked.json" in call("select", stored, "--best", "a", "--export", "chosen", code=2)[1]


def test_weights_are_saved_into_a_new_folder(stored: str, tmp_path: Path) -> None:
    call("select", stored, "--k", "1", "--save", str(tmp_path / "new" / "model.safetensors"))
    assert (tmp_path / "new" / "model.safetensors").exists()


@pytest.mark.usefixtures("terminal")
def test_one_question_is_no_questions(tmp_path: Path) -> None:
    front_of([[0.0, 1.0], [1.0, 0.0]]).save(tmp_path / "two")
    assert "At most 1 question." in call("select", str(tmp_path / "two"), typed="1\n")[1]


def test_show_prints_what_is_off_in_a_front(tmp_path: Path) -> None:
    """Also what a file says that was not written by a run: nothing of it acts on the terminal."""
    front_of([[0.0, 1.0], [1.0, 0.0]], remarks=("[bold]first\x1b[2J", "second")).save(tmp_path)
    out, _ = call("show", str(tmp_path))
    assert "remark: [bold]first\\x1b[2J\nremark: second\n" in out
    assert json.loads(call("show", str(tmp_path), "--json")[0])["remarks"] == ["[bold]first\x1b[2J", "second"]
