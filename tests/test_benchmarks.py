"""The index of benchmarks names every script, and `make bench` runs every one that fits a CPU."""

from __future__ import annotations

import re

from _helpers.places import ROOT

FOLDER = ROOT / "benchmarks"
INDEX = (FOLDER / "README.md").read_text(encoding="utf-8")
NAMES = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.py")}


def _listed(heading: str) -> set[str]:
    """The files in the table below a heading of the index."""
    section = INDEX.split(f"## {heading}\n")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `(\w+\.py)` \|", section, re.MULTILINE))


def test_every_file_is_in_one_table_of_the_index() -> None:
    tables = [_listed(heading) for heading in ("On a CPU", "On a GPU", "Not benchmarks")]
    assert sum(map(len, tables)) == len(set().union(*tables))
    assert set().union(*tables) == NAMES.keys()


def test_files_without_a_main_function_are_marked() -> None:
    helpers = {name for name, text in NAMES.items() if '__name__ == "__main__"' not in text}
    assert helpers <= _listed("Not benchmarks")


def test_make_bench_runs_all_that_fit_a_cpu() -> None:
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").split("\nbench:")[1].split("\n\n")[0]
    assert re.findall(r"benchmarks/(\w+\.py)", recipe) == re.findall(
        r"^\| `(\w+\.py)` \|", INDEX.split("## On a CPU\n")[1].split("\n## ")[0], re.MULTILINE
    )


def test_stored_results_are_in_the_index() -> None:
    stored = {path.name for path in (FOLDER / "results").glob("*.json")}
    assert stored <= set(re.findall(r"`([\w-]+\.json)`", INDEX))
