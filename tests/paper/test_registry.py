"""The registry of studies: names and titles without imports; a study is one module and one line."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import paretomtl.paper
from paretomtl.paper import STUDIES, STUDY_TITLES
from paretomtl.paper.registry import REGISTRY, Entry
from paretomtl.paper.study import Study, check_figures

FOLDER = Path(paretomtl.paper.__file__).parent
HEAVY = ("torch", "numpy", "matplotlib", "plotly", "moocore")


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_the_package_loads_no_study_and_nothing_heavy() -> None:
    """With a stub for the package above, which may load more than this one needs."""
    root = FOLDER.parent
    code = f"""
import sys, types
stub = types.ModuleType("paretomtl")
stub.__path__ = [{str(root)!r}]
sys.modules["paretomtl"] = stub
from paretomtl.paper import STUDIES, STUDY_TITLES
assert list(STUDIES) == list(STUDY_TITLES) and "census" in STUDIES and len(STUDIES) == len(STUDY_TITLES)
print(*sorted(name for name in sys.modules if name.split(".")[0] in {("paretomtl", *HEAVY)!r}))
"""
    assert run_python(code).split() == ["paretomtl", "paretomtl.paper", "paretomtl.paper.registry"]


@pytest.mark.study
def test_a_study_loads_its_own_module_alone() -> None:
    code = """
import sys
from paretomtl.paper import STUDIES
from paretomtl.paper.registry import REGISTRY
STUDIES["census"]
modules = [f"paretomtl.paper.{entry.module}" for entry in REGISTRY.values()]
print(*(name for name in modules if name in sys.modules), *(name for name in ("matplotlib",) if name in sys.modules))
"""
    assert run_python(code).split() == ["paretomtl.paper.real_data.census"]


def test_all_studies_are_imported_where_only_torch_and_numpy_are_installed() -> None:
    """As experiments/run.py needs it, which trains and draws nothing."""
    code = """
import sys
for name in ("matplotlib", "plotly", "moocore", "typer", "rich", "safetensors", "pandas", "sklearn", "PIL", "ray"):
    sys.modules[name] = None
from paretomtl.paper import STUDIES
from paretomtl.paper.runner import run_study
print(*(name for name in STUDIES if STUDIES[name].figures))
"""
    assert run_python(code).split() == list(STUDIES)


@pytest.mark.study
def test_fronts_and_pages_are_drawn_without_the_paper(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed: pip install 'paretomtl[figures]'")
    pytest.importorskip("plotly", reason="plotly is not installed: pip install 'paretomtl[report]'")
    code = f"""
import sys
import matplotlib
matplotlib.use("Agg")
import paretomtl as pm
from paretomtl.problems import synthetic
from paretomtl.report import write_page
front = pm.fit(synthetic(), preferences=3, epochs=2, progress="quiet", out={str(tmp_path / "run")!r})
front.plot()
write_page([{str(tmp_path / "run")!r}], {str(tmp_path / "page.html")!r})
print(*(name for name in sys.modules if name.startswith("paretomtl.paper")))
"""
    assert run_python(code).split() == []


@pytest.mark.parametrize("words", [["--help"], ["report", "--help"], ["reproduce", "--help"], ["list"]])
def test_commands_load_no_study_to_list_them(words: list[str]) -> None:
    code = f"""
import sys
from paretomtl.cli._app import app
try:
    app({words!r})
except SystemExit:
    pass
print("LOADED", *(name for name in sys.modules if name.startswith("paretomtl.paper") or name == "matplotlib"))
"""
    loaded = run_python(code).partition("LOADED")[2].split()
    assert set(loaded) <= {"paretomtl.paper", "paretomtl.paper.registry"}


def test_every_module_with_a_study_is_in_the_registry_once() -> None:
    modules = {
        ".".join(path.relative_to(FOLDER).with_suffix("").parts)
        for path in FOLDER.rglob("*.py")
        if re.search(r"^STUDY = ", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert sorted(entry.module for entry in REGISTRY.values()) == sorted(modules)


@pytest.mark.parametrize("name", STUDIES)
def test_name_title_and_module_agree(name: str) -> None:
    study = STUDIES[name]
    module = importlib.import_module(f"paretomtl.paper.{REGISTRY[name].module}")
    assert isinstance(study, Study)
    assert study is module.STUDY
    assert module.__doc__
    title = STUDY_TITLES[name]
    assert title.endswith(".")
    assert len(title.splitlines()) == 1
    words = REGISTRY[name].module.replace(".", "-").replace("_", "-")
    assert words.endswith(name.removeprefix("images-")), "the file is named by the study"
    assert set(study.shares) <= set(STUDIES)


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_has_figures_of_its_name(name: str) -> None:
    check_figures(name, STUDIES[name])
    assert all(figure == name or figure.startswith(f"{name}-") for figure in STUDIES[name].figures)


def test_no_two_studies_have_the_same_figure() -> None:
    figures = [figure for study in STUDIES.values() for figure in study.figures]
    assert len(figures) == len(set(figures))


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("no_such_study", "raised ModuleNotFoundError: No module named"),
        ("rows", "raised AttributeError: .*'STUDY'"),
    ],
)
def test_a_broken_module_is_named_with_its_study(module: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REGISTRY, "broken", Entry(module, "brief", "Broken."))
    with pytest.raises(
        ImportError, match=f"The study 'broken' must be a module .* 'paretomtl.paper.{module}' {reason}"
    ):
        STUDIES["broken"]
