"""Every page of the documentation: its code runs, its commands parse, and it can be read on a phone."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from markdown_it.token import Token

from _helpers.doc_pages import PAGES, WIDE, blocks, is_shown, name, run_blocks, tokens
from _helpers.places import ROOT
from paretomtl.cli._app import app
from paretomtl.cli._ray import with_place

LONG = 620  # letters in a paragraph: six lines of a page
COMMANDS: Any = typer.main.get_command(app)


def fences(path: Path, *kinds: str) -> list[Token]:
    return [token for token in tokens(path) if token.type == "fence" and token.info.strip() in kinds]


def commands(path: Path) -> list[list[str]]:
    """The commands of a page: lines of console blocks that begin with paretomtl, with their continuations."""
    text = "\n".join(token.content for token in fences(path, "console", ""))
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    found = [line.strip().removeprefix("$ ") for line in lines]
    return [shlex.split(line, comments=True) for line in found if line.startswith("paretomtl ")]


WITH_CODE = [path for path in PAGES if blocks(path)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", WITH_CODE, ids=name)
def test_the_code_of_a_page_prints_what_it_shows(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Word by word; numbers depend on the processor. `python tools/page_outputs.py` renews what is shown."""
    monkeypatch.chdir(tmp_path)
    for block in run_blocks(path):
        if block.shown is not None:
            said = f"{block.shown}\nis shown, but this is printed:\n{block.printed}"
            assert is_shown(block.printed, block.shown), said


@pytest.mark.parametrize("path", [path for path in PAGES if commands(path)], ids=name)
def test_the_commands_of_a_page_parse(path: Path) -> None:
    """Each command exists, and takes these options; placeholders in capitals are values, too."""
    for _, first, *words in commands(path):
        if first.startswith("-"):
            continue
        group = COMMANDS.commands[first]
        if first == "data":
            group, words = group.commands[words[0]], words[1:]
        if "--help" not in words:
            group.make_context(first, with_place(words))


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_a_page_can_be_read(path: Path) -> None:
    """One title, code that fits, no wall of text."""
    found = tokens(path)
    assert [token.tag for token in found if token.type == "heading_open"].count("h1") == 1
    for token in found:
        if token.type == "fence" and not token.info.startswith("{") and path.name != "terminal.md":
            long = [line for line in token.content.splitlines() if len(line) > WIDE]
            assert not long, long
    inside = 0
    for before, token in zip([None, *found], found, strict=False):
        inside += token.type in ("list_item_open", "blockquote_open")
        inside -= token.type in ("list_item_close", "blockquote_close")
        if token.type == "inline" and before is not None and before.type == "paragraph_open":
            words = re.sub(r"\]\([^)]*\)", "]", token.content)
            assert len(words) <= LONG, f"{len(words)} letters: {words[:80]}"


def test_links_lead_somewhere() -> None:
    """Files exist, and so do headings."""
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]:
        for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", path.read_text(encoding="utf-8")):
            if "://" in target or target.startswith("mailto:"):
                continue
            other = path if not target else path.parent / target
            assert other.exists(), f"{name(path) if path in PAGES else path.name} points to {target}"
            if anchor and other.suffix == ".md":
                assert anchor in anchors(other), f"{path.name} points to {target}#{anchor}"


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as MyST makes them."""
    found = tokens(path)
    titles = [found[i + 1].content for i, token in enumerate(found) if token.type == "heading_open"]
    explicit = set(re.findall(r"^\(([\w-]+)\)=$", path.read_text(encoding="utf-8"), re.MULTILINE))
    return explicit | {slug(title) for title in titles}


def slug(title: str) -> str:
    plain = re.sub(r"[`*$]|\[([^\]]*)\]\([^)]*\)", r"\1", title).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_a_page_has_a_summary_for_search_engines(path: Path) -> None:
    if path.name == "terminal.md" or "decisions" in path.parts:
        return
    text = path.read_text(encoding="utf-8")
    summary = re.search(r'^    +description: "?(.*?)"?$', text, re.MULTILINE)
    assert summary is not None
    assert 40 <= len(summary.group(1)) <= 160, len(summary.group(1))
