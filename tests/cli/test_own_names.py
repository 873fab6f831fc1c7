"""Problems and methods of the user's own, by the name of a file or module."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import paretomtl as pm
from paretomtl._support.files.atomic_files import read_record, write_record
from paretomtl.cli._app import app
from paretomtl.compare import compare
from paretomtl.methods import METHODS, describe, resolve_method
from paretomtl.methods.description import describe_definition
from paretomtl.methods.lookup import option_names, set_options
from paretomtl.problems import NamedProblem

PROBLEM = """
import paretomtl as pm
from neighbour import DIMENSION

def make(dimension=DIMENSION):
    return pm.Problem(pm.problems.quadratic(dimension).model, pm.problems.quadratic(dimension).losses, ["a", "b"])

problem = make()
named = pm.problems.quadratic(DIMENSION)
"""
METHODS_FILE = """
from dataclasses import dataclass
import paretomtl as pm
from paretomtl.methods import Linear, Method

@dataclass(frozen=True)
class Mine(Linear):
    '''A weighted sum with a factor.'''
    factor: float = 1.0

    def _weigh(self, step, state):
        weights, state = super()._weigh(step, state)
        return self.factor * weights, state

@dataclass(frozen=True)
class Called(Mine):
    name = "called"

class Bare(Linear):
    name = "bare"

def make(factor=2.0):
    return Mine(factor=factor)

tuned = pm.ParetoMTL(epsilon=0.3)
needs = lambda size: tuned
number = 3
"""
SHORT = ("--epochs", "1", "--device", "cpu", "--strategy", "sequential")
RUN = (*SHORT, "--preferences", "2", "--progress", "quiet", "--json")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, with methods in it; problems are in a folder whose name has a space."""
    folder = tmp_path / "my files"
    folder.mkdir()
    (folder / "toy-1.py").write_text(PROBLEM)
    (folder / "toy2.py").write_text(PROBLEM)
    (folder / "neighbour.py").write_text("DIMENSION = 2\n")
    (tmp_path / "own.py").write_text(METHODS_FILE)
    monkeypatch.chdir(tmp_path)
    before, path = set(sys.modules), list(sys.path)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def call(*arguments: str, code: int = 0) -> str:
    found = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "100", "NO_COLOR": "1"})
    assert found.exit_code == code, found.output + repr(found.exception)
    return " ".join(found.output.split())


def test_a_problem_in_a_file_trains_from_any_folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a relative and an absolute path, with a name that no module can have; neighbours are imported."""
    facts = json.loads(call("run", "my files/toy-1.py:problem", *RUN))
    assert facts["folder"] == "runs/toy-1-auto-0", "a problem without a name has that of its file"
    assert read_record(here / facts["folder"] / "asked.json", [1])["problem"] == f"{here}/my files/toy-1.py:problem"
    facts = json.loads(call("run", f"{here}/my files/toy-1.py:make", "--with", "dimension=3", *RUN, "--out", "b"))
    assert pm.Front.load(here / "b").state_dict(0)["x"].shape == (3,)
    monkeypatch.chdir(here / "my files")
    assert json.loads(call("run", "toy2.py:named", *RUN))["folder"] == "runs/quadratic-auto-0"
    text = call("refine", "../b", "--around", "0", *RUN[:2], "--trust", "--progress", "quiet", "--out", "c")
    assert "Stored in c" in text, "asked.json has the whole path"
    call("select", "../b", "--k", "0", "--trust", "--export", "d")
    load = json.loads(Path("d/model.json").read_text())["load"]
    assert "NamedProblem('toy-1.py:make', {'dimension': 3}).make().model()" in load


def test_every_command_takes_a_file(here: Path) -> None:
    name = "./my files/toy2.py:problem"
    assert "linear" in call("compare", name, "--methods", "linear", "--seeds", "1", *SHORT)
    assert "problem: 1 seed" in call("diagnose", name, "--epochs", "1", "--seeds", "1", "--device", "cpu")
    call("run", name, *RUN, "--out", "a")
    text = call("select", "a", "--k", "0", "--problem", name, "--torchscript", "a.pt", code=2)
    assert "Its model takes none" in text, "it was made"
    call("refine", "a", "--around", "0", "--problem", name, "--epochs", "1", "--progress", "quiet")


def test_files_of_one_name_are_told_apart(here: Path) -> None:
    (here / "other").mkdir()
    for folder, word in ((here, "first"), (here / "other", "second")):
        (folder / "twin.py").write_text(f"import paretomtl as pm\nword = {word!r}\nproblem = pm.problems.synthetic()")
    assert NamedProblem("twin.py:word").resolve() == "first"
    assert NamedProblem("other/twin.py:word").resolve() == "second"
    assert NamedProblem("other/twin.py:problem").resolve() is NamedProblem("./other/../other/twin.py:problem").resolve()
    (here / "json.py").write_text("word = 'mine'")
    assert NamedProblem("json.py:word").resolve() == "mine"
    assert json.loads("[]") == []


def test_a_file_of_a_package_may_import_relatively(here: Path) -> None:
    (here / "package").mkdir()
    for name, text in (("__init__", ""), ("part", "word = 'part'"), ("main", "from .part import word")):
        (here / "package" / f"{name}.py").write_text(text)
    assert NamedProblem("package/main.py:word").resolve() == "part"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere.py:problem", "'PROBLEM' must name a file that exists. Got '{here}/nowhere.py', which is not there."),
        (
            "my files/toy2.py:probelm",
            "Got 'probelm', which does not exist. It has the Problems named, problem, and the",
        ),
        (
            "own:magic",
            "'PROBLEM' must name an attribute of 'own'. Got 'magic', which does not exist. It has no Problem",
        ),
        ("own.py", "A problem in a file needs its name in that file, such as own.py:problem."),
        ("own", "A problem in a file needs its name in that file, such as own.py:problem."),
        ("nowhere:x", "A file is named by its path, such as ./nowhere.py:attribute."),
        ("multi-digit", "Got 'multi-digit' instead. Did you mean 'multi-digits'?"),
        (
            "wrong.py:problem",
            "This came from importing '{here}/wrong.py'. See {here}/wrong.py, line 2.",
        ),
    ],
)
def test_bad_names_say_what_to_type(here: Path, name: str, message: str) -> None:
    (here / "wrong.py").write_text("import paretomtl as pm\nproblem = pm.Problem(int, min, [1, 2])")
    assert message.replace("{here}", str(here)) in call("run", name, *RUN, code=2)


@pytest.mark.parametrize("code", ["import nothing_of_the_sort", "open('nothing')", "1 / 0", "int('a')", "def"])
def test_errors_of_the_users_file_keep_their_traceback(here: Path, code: str) -> None:
    (here / "wrong.py").write_text(f"# a comment\n{code}\n")
    for name in ("wrong.py:problem", "wrong:problem"):
        found = CliRunner().invoke(app, ["run", name, *RUN])
        assert found.exit_code == 1
        assert "wrong.py" in str(getattr(found.exception, "filename", "")) + _traceback(found.exception)


def _traceback(error: BaseException | None) -> str:
    import traceback

    return "".join(traceback.format_exception(error))


def test_own_methods_train_by_name(here: Path) -> None:
    """An instance, a class and a function; with --set, and with folders that do not collide with built-in ones."""
    run = ("run", "quadratic", *RUN)
    assert json.loads(call(*run, "--method", "own:Mine"))["folder"] == "runs/quadratic-Mine-0"
    assert json.loads(call(*run, "--method", "./own.py:Called"))["folder"] == "runs/quadratic-called-0"
    call(*run, "--method", "own.py:tuned", "--set", "epsilon=0.4", "--out", "a")
    assert json.loads(Path("a/config.json").read_text())["method"] == describe(pm.ParetoMTL(epsilon=0.4))
    call(*run, "--method", "own.py:make", "--set", "factor=3.0", "--out", "b")
    assert "factor=3.0" in json.loads(Path("b/config.json").read_text())["method"]
    call(*run, "--method", "own:Bare", "--out", "c")
    call(*run, "--method", "own:Bare", "--out", "c", "--resume")
    assert resolve_method("own:tuned") == resolve_method("./own.py:tuned") == pm.ParetoMTL(epsilon=0.3)
    assert option_names("own:Mine") == ["scale", "layout", "least", "factor"]


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (
            "own:Mien",
            "Got 'Mien', which does not exist. It has the Methods Bare, Called, Mine, tuned, and the functions",
        ),
        ("own:number", "'method' must be a Method or make one. 'own:number' is a int."),
        ("own:needs", "'method' must be a Method, or make one from what --set sets. Got"),
        ("os:system", "'method' must be a Method or a function that makes one. 'os:system' is a part of Python"),
        ("pareto-mlt", "Did you mean 'pareto-mtl'?"),
        ("torchjd:UPgrad", "Did you mean 'UPGrad'?"),
    ],
)
def test_bad_methods_are_named(here: Path, method: str, message: str) -> None:
    assert message in call("run", "quadratic", *RUN, "--method", method, code=2)
    assert message in call("compare", "quadratic", *SHORT, "--methods", f"linear,{method}", code=2)


@pytest.mark.parametrize("words", [("run", "--method", "./my-own.py:Mine"), ("compare", "--methods", "my-own.py:Mine")])
def test_a_method_that_workers_cannot_import_is_refused(here: Path, words: tuple[str, ...]) -> None:
    text = call(words[0], "quadratic", *SHORT, *words[1:], "--ray", code=2)
    assert "my-own.py': rename it." in text


def test_a_comparison_tells_definitions_apart(here: Path) -> None:
    options = {"folder": here / "c", "epochs": 1, "device": "cpu", "progress": "quiet"}
    methods = ["linear", "own:Mine", "./own.py:Called"]
    rows, _ = compare(pm.problems.quadratic(), methods, 1, **options)
    assert [row["method"] for row in rows] == ["linear", "Mine", "called"]
    assert rows[0]["method_in_words"] == "Linear(layout='interior')"
    before = Path("c/compare.json").read_text()
    path = here / "own.py"
    path.write_text(path.read_text().replace("with a factor", "with one").replace("factor: float", "factor:  float"))
    del sys.modules["own"]
    compare(pm.problems.quadratic(), methods, 1, **options)
    path.write_text(path.read_text().replace("* weights", "* 2 * weights"))
    del sys.modules["own"]
    with pytest.raises(ValueError, match="holds others: method_in_words"):
        compare(pm.problems.quadratic(), methods, 1, **options)
    assert Path("c/compare.json").read_text() == before
    (here / "again.py").write_text(METHODS_FILE)
    with pytest.raises(ValueError, match="'methods' must have distinct names"):
        compare(pm.problems.quadratic(), ["own:Mine", "again:Mine"], 1, **options)


def test_a_run_makes_no_later_command_import_its_method(here: Path) -> None:
    call("run", "quadratic", *RUN, "--out", "run")
    path = here / "run" / "asked.json"
    for name in ("trap:method", f"{here}/run/trap.py:method"):
        write_record(path, {**read_record(path, [1]), "method": name}, format=1)
        for folder in (here, here / "run"):
            (folder / "trap.py").write_text("from pathlib import Path\nPath('imported').touch()")
        refine = ("refine", "run", "--around", "0", "--epochs", "1")
        for words in (refine, (*refine, "--problem", "quadratic")):
            text = call(*words, code=2)
            assert "'--trust' must be given for a method that 'run/asked.json' names: it runs as code" in text
        for words in (("show", "run"), ("select", "run", "--k", "0", "--export", "a")):
            call(*words)
        call("doctor", "run", code=1)  # asked.json is not the one that was written
        assert not (here / "imported").exists()
    call(*refine, "--trust", code=2)
    assert (here / "imported").exists()


def test_options_of_torchjd_are_set_one_by_one() -> None:
    assert set(option_names("torchjd:UPGrad")) == {
        "pref_vector",
        "norm_eps",
        "reg_eps",
        "learning_rate",
        "scale",
        "options",
    }
    method = set_options("torchjd:UPGrad", {"norm_eps": 1e-3})
    assert method.options["projector"].norm_eps == 1e-3  # type: ignore[attr-defined]
    again = set_options(method, {"reg_eps": 1e-2, "pref_vector": (1, 2)}).options  # type: ignore[attr-defined]
    assert (again["projector"].norm_eps, again["projector"].reg_eps) == (1e-3, 1e-2)
    assert again["pref_vector"].tolist() == [1.0, 2.0]
    assert set_options("torchjd:STCH", {"mu": 0.1}).options == {"mu": 0.1}  # type: ignore[attr-defined]


def test_options_of_torchjd_on_the_command_line(here: Path) -> None:
    run = ("run", "quadratic", *RUN, "--method")
    call(*run, "torchjd:STCH", "--set", "mu=0.5")
    config = json.loads(Path("runs/quadratic-torchjd-STCH-0/config.json").read_text())
    assert "'mu': 0.5" in config["method"]
    text = call(*run, "torchjd:STCH", "--set", "theta=1", code=2)
    assert (
        "with NAME one of ['mu', 'weights', 'reference', 'learning_rate', 'scale', 'options'] for 'torchjd:STCH'"
        in text
    )
    assert "or --set theta=VALUE on the command line" in call(*run, "torchjd:PBI", code=2)


def test_a_description_is_the_same_in_every_process() -> None:
    class Own(METHODS["linear"]):  # type: ignore[name-defined,misc]
        def __repr__(self) -> str:
            return object.__repr__(self)

    assert " at 0x" not in describe_definition(Own())
    assert describe_definition(Own()) != describe_definition(resolve_method("linear"))
