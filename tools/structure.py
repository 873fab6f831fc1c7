"""Metrics of the source tree: files per folder, modules that commands load, import cycles, private imports, names.

    python tools/structure.py                        # this checkout
    python tools/structure.py --tree ../other --tree .   # side by side
    python tools/structure.py --names                # public names, commands and flags; with two trees, old -> new
    python tools/structure.py --check                # exit 1 if there is a cycle or a private import

A cycle is a strongly connected set of modules; imports under TYPE_CHECKING and inside functions count. A leading
underscore makes a file or a folder private to the folder that it lies in; an import from elsewhere is a private import.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

PACKAGE = "paretomtl"
HEAVY = ("torch", "numpy", "matplotlib", "plotly", "typer")
FRONT = f"""
import tempfile, pathlib, {PACKAGE} as pm
front = pm.fit(pm.problems.quadratic(), preferences=3, epochs=2, progress="quiet", device="cpu")
folder = pathlib.Path(tempfile.mkdtemp())
front.save(folder / "front")
"""
COMMAND = f"""
import sys
from {PACKAGE}.cli import main
sys.argv = ["{PACKAGE}", {{arguments}}]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""
ACTIONS = {
    "import paretomtl": f"import {PACKAGE}",
    "paretomtl --help": COMMAND.format(arguments='"--help"'),
    "paretomtl show": FRONT + "{fresh}" + COMMAND.format(arguments='"show", str(folder / "front")'),
    "paretomtl report": FRONT
    + "{fresh}"
    + COMMAND.format(arguments='"report", str(folder / "front"), "--out", str(folder / "page.html")'),
    "Front.plot": FRONT + "{fresh}" + f'import {PACKAGE} as pm; pm.Front.load(folder / "front").plot(folder / "a.png")',
}
NAMED = {"the method GradNorm": "gradnorm", "the census data and study": "census"}


def modules_of(source: Path) -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    modules = {}
    for path in sorted((source / PACKAGE).rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules


def imports_of(modules: Mapping[str, Path]) -> dict[str, set[str]]:
    """The modules that each module imports, anywhere in its file."""
    graph: dict[str, set[str]] = {}
    for name, path in modules.items():
        targets = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                targets |= {alias.name for alias in node.names if alias.name in modules}
            elif isinstance(node, ast.ImportFrom) and node.module in modules:
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                targets |= (inner & modules.keys()) | ({node.module} if inner - modules.keys() else set())
        graph[name] = targets - {name}
    return graph


def cycles_of(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Strongly connected sets of more than one module, the largest first (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    cycles: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for target in sorted(graph[name]):
            if target not in index:
                visit(target)
                low[name] = min(low[name], low[target])
            elif target in stack:
                low[name] = min(low[name], index[target])
        if low[name] == index[name]:
            cut = stack.index(name)
            members = stack[cut:]
            del stack[cut:]
            if len(members) > 1:
                cycles.append(sorted(members))

    for name in sorted(graph):
        if name not in index:
            visit(name)
    return sorted(cycles, key=len, reverse=True)


def private_imports_of(graph: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    """Pairs of a module and a private one that it imports from outside of the folder of the latter."""
    return sorted((name, target) for name in graph for target in graph[name] if not _may_import(name, target))


def _may_import(name: str, target: str) -> bool:
    parts = target.split(".")
    folders = [".".join(parts[:i]) for i, part in enumerate(parts) if part.startswith("_") and part != "__main__"]
    return all(name == folder or name.startswith(f"{folder}.") for folder in folders)


def files_by_folder(modules: Mapping[str, Path], source: Path) -> Counter[str]:
    """The number of modules in each folder, except ``__init__``."""
    files = [path.relative_to(source).parent.as_posix() for path in modules.values() if path.name != "__init__.py"]
    return Counter(files)


def loaded_by(tree: Path, code: str) -> dict[str, Any]:
    """The modules of the package that some code loads in a fresh process, and which heavy libraries."""
    fresh = (
        f"import sys\nfor name in [n for n in sys.modules if n.split('.')[0] == '{PACKAGE}']: del sys.modules[name]\n"
    )
    tail = (
        "\nimport json, sys\n"
        f"own = [n for n in sys.modules if n.split('.')[0] == '{PACKAGE}']\n"
        f"heavy = [n for n in {HEAVY} if n in sys.modules]\n"
        "sys.stderr.write('\\n@' + json.dumps({'modules': len(own), 'heavy': heavy}))"
    )
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "MPLBACKEND": "agg"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code.replace("{fresh}", fresh) + tail],
        capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    if "@" not in done.stderr:
        return {"modules": 0, "heavy": [], "error": done.stderr.strip()[-200:]}
    loaded: dict[str, Any] = json.loads(done.stderr.rpartition("@")[2])
    return loaded


def naming_files(tree: Path, word: str) -> list[str]:
    """Source files that mention a word, as a search would find them."""
    paths = [path for path in sorted((tree / "src").rglob("*")) if path.suffix in (".py", ".js", ".cu")]
    matches = [path for path in paths if word in path.read_text(encoding="utf-8").lower()]
    return [path.relative_to(tree / "src").as_posix() for path in matches]


def public_names(tree: Path) -> list[str]:
    """Names in ``__all__`` of the package and of its public packages, and every command with its flags."""
    code = (
        f"import importlib, pkgutil, {PACKAGE}\n"
        f"names = ['{PACKAGE}'] + ['{PACKAGE}.' + m.name for m in pkgutil.iter_modules({PACKAGE}.__path__)"
        " if not m.name.startswith('_')]\n"
        "for name in names:\n"
        "    for each in getattr(importlib.import_module(name), '__all__', []): print(f'{name}.{each}')\n"
        f"from {PACKAGE}.cli._app import app\n"
        "import typer.main\n"
        "def walk(command, path):\n"
        "    for option in command.params:\n"
        "        for flag in option.opts + option.secondary_opts:\n"
        "            if flag.startswith('-'): print(path, flag)\n"
        "    for name, each in getattr(command, 'commands', {}).items():\n"
        "        print(path, name); walk(each, f'{path} {name}')\n"
        f"walk(typer.main.get_command(app), '{PACKAGE}')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    return sorted(set(done.stdout.splitlines()))


def measure(tree: Path) -> dict[str, Any]:
    """All metrics of one tree."""
    source = tree / "src"
    modules = modules_of(source)
    graph = imports_of(modules)
    return {
        "files": files_by_folder(modules, source),
        "cycles": cycles_of(graph),
        "private": private_imports_of(graph),
        "loaded": {name: loaded_by(tree, code) for name, code in ACTIONS.items()},
        "naming": {name: naming_files(tree, word) for name, word in NAMED.items()},
    }


def lines_of(metrics: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Rows of the table: name and value."""
    files = metrics["files"]
    yield "modules", str(sum(files.values()))
    yield "most files in a folder", f"{max(files.values())} ({max(files, key=files.__getitem__)})"
    for folder in sorted(files):
        yield f"  {folder}", str(files[folder])
    sizes = ", ".join(str(len(cycle)) for cycle in metrics["cycles"])
    yield "import cycles", f"{len(metrics['cycles'])}" + (f" of {sizes} modules" if sizes else "")
    yield "private imports across folders", str(len(metrics["private"]))
    for name, loaded in metrics["loaded"].items():
        yield f"modules loaded by {name}", f"{loaded['modules']}, with {', '.join(loaded['heavy']) or 'nothing heavy'}"
    for name, files in metrics["naming"].items():
        yield f"source files that name {name}", str(len(files))


def print_tables(trees: list[Path]) -> None:
    """Print the numbers of each tree side by side."""
    columns = [dict(lines_of(measure(tree))) for tree in trees]
    rows = dict.fromkeys(row for column in columns for row in column)
    for row in sorted(rows, key=lambda row: not row.startswith("  ")):
        print(f"{row:<58}" + "".join(f"{column.get(row, '-'):<48}" for column in columns).rstrip())


def check(tree: Path) -> int:
    """Print every cycle and every private import, and return how many there are."""
    graph = imports_of(modules_of(tree / "src"))
    cycles, private = cycles_of(graph), private_imports_of(graph)
    for cycle in cycles:
        print("Import cycle:", ", ".join(cycle))
    for name, target in private:
        print(f"{name} imports {target}, which is private to its folder.")
    return len(cycles) + len(private)


def print_names(trees: list[Path]) -> None:
    """Print public names, commands and flags; for two trees, those that were removed and added."""
    names = [set(public_names(tree)) for tree in trees]
    if len(names) == 1:
        print("\n".join(sorted(names[0])))
        return
    print("\n".join(f"- {name}" for name in sorted(names[0] - names[-1])))
    print("\n".join(f"+ {name}" for name in sorted(names[-1] - names[0])))


def main() -> None:
    """The command line of this script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, action="append", help="A checkout; default: this one.")
    parser.add_argument("--names", action="store_true", help="Public names, commands and flags.")
    parser.add_argument("--check", action="store_true", help="Print cycles and private imports; exit 1 for any.")
    arguments = parser.parse_args()
    trees = [tree.resolve() for tree in arguments.tree or [Path(__file__).parents[1]]]
    if arguments.names:
        print_names(trees)
    elif arguments.check:
        sys.exit(1 if sum(check(tree) for tree in trees) else 0)
    else:
        print_tables(trees)


if __name__ == "__main__":
    main()
