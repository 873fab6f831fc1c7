"""The script that measures the tree: cycles, private imports, files per folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from structure import check, cycles_of, files_by_folder, imports_of, modules_of, private_imports_of


def write(tree: Path, **files: str) -> Path:
    for name, text in {"__init__": "", **files}.items():
        path = tree / "src" / "paretomtl" / f"{name.replace('__in__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tree


def test_imports_under_type_checking_and_in_functions_make_cycles(tmp_path: Path) -> None:
    one = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from paretomtl.two import f\n"
    write(tmp_path, one=one, two="def f():\n    from paretomtl import three\n", three="import paretomtl.one\n", four="")
    graph = imports_of(modules_of(tmp_path / "src"))
    assert cycles_of(graph) == [["paretomtl.one", "paretomtl.three", "paretomtl.two"]]
    assert cycles_of({**graph, "paretomtl.three": set()}) == []


@pytest.mark.parametrize(
    ("target", "allowed"),
    [
        ("paretomtl._root", True),
        ("paretomtl.b._x", False),
        ("paretomtl.b.x", True),
        ("paretomtl._b.x", True),
        ("paretomtl.a._x", True),
        ("paretomtl.a.c._x", False),
    ],
)
def test_an_underscore_is_private_to_its_folder(tmp_path: Path, target: str, allowed: bool) -> None:
    path = target.removeprefix("paretomtl.").replace(".", "__in__")
    write(tmp_path, **{path: "", "a__in__m": f"import {target}\n"})
    graph = imports_of(modules_of(tmp_path / "src"))
    assert private_imports_of(graph) == ([] if allowed else [("paretomtl.a.m", target)])


def test_a_folder_counts_its_own_files(tmp_path: Path) -> None:
    source = write(tmp_path, one="", a__in__b="", a__in__c="", a__in__d__in__e="") / "src"
    assert files_by_folder(modules_of(source), source) == {"paretomtl": 1, "paretomtl/a": 2, "paretomtl/a/d": 1}


def test_the_check_names_what_it_finds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, one="import paretomtl.two", two="import paretomtl.one\nimport paretomtl.a._x", a__in___x="")
    assert check(tmp_path) == 2
    said = capsys.readouterr().out
    assert "Import cycle: paretomtl.one, paretomtl.two" in said
    assert "paretomtl.two imports paretomtl.a._x" in said
