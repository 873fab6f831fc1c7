"""Commands load what they need, and no more. Each test is one process, which records what is loaded after each call."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import paretomtl as pm
from paretomtl.problems import synthetic

HEAVY = ("torch", "numpy", "matplotlib", "plotly", "pandas", "moocore", "safetensors", "ray")
COMMANDS = [
    "diagnose",
    "run",
    "compare",
    "show",
    "select",
    "report",
    "watch",
    "refine",
    "doctor",
    "reproduce",
    "list",
    "data",
]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "COLUMNS": "80"}
_RECORD = """
import contextlib, io, json, os, sys
calls = json.loads(sys.argv[1])
records = []
for environment, arguments in calls:
    before, sys.argv = dict(os.environ), ["paretomtl", *arguments]
    os.environ.update(environment)
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            from paretomtl.cli import main
            main()
        except SystemExit as ended:
            code = ended.code or 0
    for name in environment:
        del os.environ[name]
    records.append({"code": code, "out": out.getvalue(), "err": err.getvalue(), "modules": sorted(sys.modules)})
print(json.dumps(records))
"""


def _record(*calls: tuple[dict[str, str], list[str]]) -> list[dict[str, Any]]:
    """Exit code, output and loaded modules after each of some commands, given as environment and arguments."""
    done = subprocess.run(
        [sys.executable, "-c", _RECORD, json.dumps(calls)],
        capture_output=True,
        text=True,
        check=True,
        env=ENVIRONMENT,
    )
    records: list[dict[str, Any]] = json.loads(done.stdout)
    assert len(records) == len(calls)
    return records


def _heavy(record: dict[str, Any]) -> list[str]:
    return [name for name in HEAVY if name in record["modules"]]


def _packages(record: dict[str, Any]) -> set[str]:
    """The packages of the library that are loaded, without those and the declared options that every command has."""
    declared = ("paretomtl.training", "paretomtl.training.options")
    modules = [name for name in record["modules"] if name.startswith("paretomtl.") and name not in declared]
    names = {name.split(".")[1] for name in modules}
    return names - {"_support", "cli"}


def test_help_version_list_and_wrong_arguments_load_no_torch() -> None:
    calls = [["--version"], ["--help"], *([name, "--help"] for name in COMMANDS), ["data", "--help"]]
    calls += [["data", "prepare", "--help"], ["list"]]
    wrong = [["nonesuch"], ["run"], ["run", "synthetic", "--nonesuch"], ["run", "synthetic", "--epochs", "many"]]
    records = _record(*(({}, call) for call in calls + wrong))
    assert [record["code"] for record in records] == [0] * len(calls) + [2] * len(wrong)
    for call, record in zip(calls + wrong, records, strict=True):
        assert not _heavy(record), call
    assert records[0]["out"] == f"paretomtl {pm.__version__}\n"
    for record, text in zip(records[len(calls) :], ("nonesuch", "PROBLEM", "--nonesuch", "--epochs"), strict=True):
        assert text in record["err"]


def test_completion_loads_no_torch() -> None:
    lines = {
        "paretomtl re": {"report", "refine", "reproduce"},
        "paretomtl run --opt": {"--optimizer"},
        "paretomtl run multi-m": {"multi-mnist", "multi-mnist-3"},
        "paretomtl run synthetic --method pa": {"pareto-mtl"},
        "paretomtl reproduce images-": {"images-lenet", "images-resnet"},
        "paretomtl data prepare multi-f": {"multi-fashion", "multi-fashion-mnist", "multi-fashion-3"},
    }
    calls = []
    for line in lines:
        words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
        calls.append(({"_PARETOMTL_COMPLETE": "complete_bash", **words}, []))
    for (line, names), record in zip(lines.items(), _record(*calls), strict=True):
        assert names <= set(record["out"].split()), (line, record["out"], record["err"])
        assert not _heavy(record), line


@pytest.mark.system
def test_commands_load_the_packages_that_they_need(tmp_path: Path) -> None:
    pm.fit(synthetic(), preferences=3, epochs=2, out=tmp_path / "run", progress="quiet")
    run, page = str(tmp_path / "run"), str(tmp_path / "page.html")
    calls = {
        "doctor": ["doctor", run],
        "show": ["show", run],
        "select": ["select", run, "--k", "1"],
        "report": ["report", run, "--out", page],
    }
    records = dict(zip(calls, _record(*(({}, call) for call in calls.values())), strict=True))
    assert all(record["code"] == 0 for record in records.values()), records
    front = {"core", "front", "methods", "problems", "runs"}
    assert _packages(records["doctor"]) <= front
    assert _packages(records["show"]) <= front
    assert _packages(records["select"]) <= front
    assert _packages(records["report"]) <= front | {"report", "compare"}  # which has the verdict, and trains nothing
    assert "paretomtl.report.figures" not in records["report"]["modules"]
    for name in ("doctor", "show", "select"):
        assert not {"matplotlib", "plotly", "ray"} & set(records[name]["modules"]), name
    assert not {"matplotlib", "ray"} & set(records["report"]["modules"])


@pytest.mark.system
def test_imports_load_what_is_used() -> None:
    code = """
import json, sys
def loaded(): return sorted({name.split(".")[1] for name in sys.modules if name.startswith("paretomtl.")})
import paretomtl
found = {"import": [loaded(), "torch" in sys.modules]}
paretomtl.Front
found["Front"] = [loaded(), "paretomtl.training" in sys.modules]
found["methods"] = sorted(name for name in sys.modules if name.startswith("paretomtl.methods"))
from paretomtl import fit
found["fit"] = [loaded(), any(name in sys.modules for name in ("matplotlib", "plotly", "ray", "rich", "typer"))]
print(json.dumps(found))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=ENVIRONMENT)
    found = json.loads(done.stdout)
    assert found["import"] == [["_support"], False]
    assert found["Front"] == [["_support", "core", "front", "methods"], False]  # of methods, the table of names alone
    assert found["methods"] == ["paretomtl.methods", "paretomtl.methods.registry"]
    names, extras = found["fit"]
    assert not {"cli", "paper", "report", "compare", "diagnosis"} & set(names)
    assert not extras
