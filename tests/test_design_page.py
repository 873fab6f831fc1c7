"""The design page and CONTRIBUTING.md name folders and files that exist; the picture has the layers of the contract."""

from __future__ import annotations

import importlib
import re
import tomllib
from collections.abc import Iterator

import pytest

from _helpers.places import DOCS, ROOT

PACKAGE = ROOT / "src" / "paretomtl"
PAGE = (DOCS / "project" / "design.md").read_text(encoding="utf-8")


def _tree() -> Iterator[str]:
    """The folders of the tree, from the root of the repository."""
    block = next(part for part in PAGE.split("\n\n") if part.startswith("    src/paretomtl/"))
    above: list[tuple[int, str]] = []
    for line in block.splitlines():
        indent, name = len(line) - len(line.lstrip()), line.split()[0]
        while above and above[-1][0] >= indent:
            above.pop()
        above.append((indent, (above[-1][1] if above else "") + name))
        yield above[-1][1]


def _named() -> list[str]:
    """What the path of a minibatch and the answers name, below the package."""
    text = PAGE.split("## The path of one minibatch")[1]
    paths = re.findall(r"(?<![\w/])[a-z_]+/[\w/.]*", text)
    return sorted({path for path in paths if "NAME" not in path and not path.startswith("tests/")})


@pytest.mark.parametrize("folder", list(_tree()))
def test_folders_of_the_tree_exist(folder: str) -> None:
    assert (ROOT / folder).is_dir()


@pytest.mark.parametrize("path", _named())
def test_files_of_the_page_exist(path: str) -> None:
    assert ((ROOT if path.startswith(("docs/", "tools/")) else PACKAGE) / path).exists()


def test_files_of_the_walks_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = re.findall(r"`((?:src/paretomtl|tests|benchmarks|docs|stress)/[\w/.]*)`", text)
    assert len(paths) > 20
    assert [path for path in paths if "NAME" not in path and not (ROOT / path).exists()] == []


def test_every_package_is_in_the_tree() -> None:
    packages = {f"src/paretomtl/{path.parent.name}/" for path in PACKAGE.glob("*/__init__.py")}
    assert packages <= set(_tree())


def test_the_picture_has_the_layers_of_the_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    names = [name.strip().removeprefix("paretomtl.") for layer in layers for name in re.split(r"[|:]", layer)]
    drawn = re.findall(r'font-weight="600">(\w+)<', (DOCS / "layers.svg").read_text(encoding="utf-8"))
    assert drawn == names


def test_the_picture_of_a_minibatch_is_that_of_its_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    minibatch = importlib.import_module("minibatch")
    assert (DOCS / "minibatch.svg").read_text(encoding="utf-8") == minibatch.draw()
    names = [name for name, _ in [*minibatch.ABOVE, *(row for part in minibatch.PARTS for row in part[2])]]
    names += [name for name, _ in minibatch.BELOW]
    assert [name for name in names if name != "torch.optim" and not (PACKAGE / name).exists()] == []
    assert [title for title, *_ in minibatch.PARTS] == ["measure", "weigh", "update"]
