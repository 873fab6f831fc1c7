"""The registry: names and titles are known before torch is, and fit what they stand for."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from paretomtl.problems import PROBLEMS, registry
from paretomtl.problems.data_set import DataSet, PrepareOptions


@pytest.mark.parametrize("name", registry.ENTRIES)
def test_a_title_is_the_first_sentence_of_the_docstring(name: str) -> None:
    summary = " ".join((inspect.getdoc(PROBLEMS[name]) or "").split("\n\n")[0].split())
    assert registry.ENTRIES[name].title == summary


@pytest.mark.parametrize("name", registry.DATA_SETS)
def test_a_data_set_says_where_its_file_is(name: str, tmp_path: Path) -> None:
    found = registry.find_data_set(name)
    assert isinstance(found, DataSet)
    assert found.file(PrepareOptions(cache=tmp_path)).parent == tmp_path
    with pytest.raises(FileNotFoundError) as error:
        PROBLEMS[name](folder=tmp_path)
    assert str(found.file(PrepareOptions(cache=tmp_path))) in str(error.value)
    assert registry.prepare_command(name, tmp_path) in str(error.value)


@pytest.mark.parametrize("name", registry.DATA_SETS)
def test_every_data_set_can_hold_out_a_validation_split(name: str) -> None:
    """It is off by default, so that studies train on everything that the paper trained on."""
    assert inspect.signature(PROBLEMS[name]).parameters["validation"].default is False


def test_problems_are_a_mapping_of_names() -> None:
    assert list(PROBLEMS) == list(registry.ENTRIES)
    assert len(PROBLEMS) == len(list(PROBLEMS.items()))
    assert "census" in PROBLEMS
    assert "nothing" not in PROBLEMS
    with pytest.raises(KeyError):
        PROBLEMS["nothing"]
    with pytest.raises(KeyError):
        registry.find_data_set("synthetic")


def test_names_need_no_torch() -> None:
    code = "import sys, paretomtl.problems.registry, paretomtl.problems.data_set\n"
    code += "print({'torch', 'numpy'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
