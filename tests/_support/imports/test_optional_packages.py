"""Hints name what can be installed."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Mapping
from importlib import metadata

import pytest

from _helpers.places import ROOT
from paretomtl._support.imports.optional_packages import PACKAGES, install_hint, require
from paretomtl.cli import main
from paretomtl.methods import resolve_method
from paretomtl.methods.lookup import set_options

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def names(requirements: list[str]) -> list[str]:
    return [re.split(r"[!><=\[; ]", each)[0] for each in requirements]


def test_every_extra_named_in_the_source_exists() -> None:
    named: set[str] = set()
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        called = re.findall(r"(?<!def )\brequire\(([^()]*)\)", text)
        named |= {ast.literal_eval(arguments.rpartition(",")[2].strip()) for arguments in called}
    assert named == set(PACKAGES) <= set(EXTRAS)


@pytest.mark.parametrize("extra", sorted(set(PACKAGES) - {"all"}))
def test_a_hint_names_what_the_extra_brings(extra: str) -> None:
    assert PACKAGES[extra].replace("'", "").split() == [each.split(">")[0] for each in EXTRAS[extra]]


@pytest.mark.parametrize("method", ["UPGrad", "DualProj"])
def test_the_extra_of_torchjd_brings_what_its_methods_need(method: str) -> None:
    linalg = pytest.importorskip("torchjd.linalg", reason="TorchJD is not installed: pip install '.[torchjd]'")
    (chosen,) = re.findall(r"torchjd\[([\w,-]+)\]", " ".join(EXTRAS["torchjd"]))
    brought = [each for each in metadata.requires("torchjd") or [] if each.endswith(f'extra == "{chosen}"')]
    assert set(linalg.QuadprogProjector._REQUIRED_DEPS) == set(names(brought))
    assert isinstance(resolve_method(f"torchjd:{method}").options, Mapping)


def test_no_text_promises_an_index() -> None:
    """Nothing is released: ``pip install paretomtl`` finds nothing."""
    assert PACKAGES["all"] in names(PROJECT["dependencies"])
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "src").rglob("*.py")]
    wrong = [page.name for page in pages if re.search(r"pip install '?paretomtl", page.read_text(encoding="utf-8"))]
    assert wrong == []


def test_a_missing_module_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.delitem(sys.modules, "PIL.Image", raising=False)
    with pytest.raises(ModuleNotFoundError, match=r"'PIL' is needed .* not installed: pip install pillow \(or"):
        require("PIL.Image", "images")


def test_dependencies_of_torchjd_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    linalg = pytest.importorskip("torchjd.linalg", reason="TorchJD is not installed: pip install '.[torchjd]'")
    monkeypatch.setattr(linalg.QuadprogProjector, "_REQUIRED_DEPS", ["no_such_package"])
    for make in (resolve_method, lambda name: set_options(name, {"norm_eps": 1e-3})):
        with pytest.raises(ModuleNotFoundError, match=r"'torchjd:UPGrad' needs more.* pip install .torchjd\["):
            make("torchjd:UPGrad")


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_the_command_without_its_dependencies(
    missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith("paretomtl.cli.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert f"'{missing}' is not installed: {install_hint('cli')}" in capsys.readouterr().err
