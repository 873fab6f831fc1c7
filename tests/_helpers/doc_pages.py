"""Pages of the documentation: their blocks of code, and what these print."""

from __future__ import annotations

import contextlib
import io
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from _helpers.places import DOCS

PAGES = sorted(path for path in DOCS.rglob("*.md") if "_generated" not in path.parts)
WIDE = 88
REST = "..."  # a line of it stands for lines that are left out
SETUP = re.compile(r"<!-- setup\n(.*?)-->", re.DOTALL)  # code that readers do not see
_PARSER = MarkdownIt("commonmark").enable("table")


def name(path: Path) -> str:
    return str(path.relative_to(DOCS))


def keywords(path: Path) -> list[str]:
    """The words by which the site's search finds a page first."""
    line = re.search(r"^    +keywords: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return [] if line is None else [word.strip().lower() for word in line.group(1).strip('"').split(",")]


def tokens(path: Path) -> list[Token]:
    return _PARSER.parse(path.read_text(encoding="utf-8"))


@dataclass
class Block:
    """A block of Python, and the block of text below it.

    Attributes:
        code: the Python.
        shown: the text; None if there is none.
        place: the first line of the text in the file, and the line after the last.
        printed: what the code printed.
    """

    code: str
    shown: str | None = None
    place: tuple[int, int] | None = None
    printed: str = ""


def blocks(path: Path) -> list[Block]:
    """All Python of a page from top to bottom."""
    found: list[Block] = []
    follows = False  # a text belongs to the code right above it
    for token in tokens(path):
        language = token.info.strip() if token.type == "fence" else None
        if language == "python":
            found.append(Block(token.content))
        elif token.type == "html_block":
            found += [Block(code) for code in SETUP.findall(token.content)]
        elif language == "text" and follows and token.map is not None:
            found[-1].shown, found[-1].place = token.content, (token.map[0] + 1, token.map[1] - 1)
        follows = language == "python"
    return found


def run_blocks(path: Path) -> Iterator[Block]:
    """Run the Python of a page block by block, as in one file."""
    space: dict[str, Any] = {"__name__": "__main__"}
    for number, block in enumerate(blocks(path)):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(block.code, f"{path.name}, block {number}", "exec"), space)
        block.printed = printed.getvalue()
        yield block


def fit_lines(printed: str, shown: str, wide: int) -> str:
    """What was printed, as a page shows it: wrapped, and cut where the page cuts it."""
    lines: list[str] = []
    for line in printed.rstrip().splitlines():
        margin = " " * (len(line) - len(line.lstrip()))
        lines += [line] if len(line) <= wide else textwrap.wrap(line, wide, subsequent_indent=margin)
    old = shown.splitlines()
    if REST in old:
        first = old.index(REST)
        lines = [*lines[:first], REST, *lines[len(lines) - (len(old) - first - 1) :]]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def words(text: str) -> list[str]:
    """The words of an output that are the same on every machine: no numbers, no hyphens at ends of lines."""
    text = re.sub(r"(?m)^\s*infeasible: .*$", "", text)  # printed where some model is
    text = re.sub(r"(?<=\w)-\n\s*", "-", text)
    known = (word.strip(".,:;()[]") for word in re.sub(r"\binfeasible\b", "feasible", text).split())
    return [word for word in known if word and word != "dominated" and not re.search(r"\d", word)]


def is_shown(printed: str, shown: str) -> bool:
    """Whether a page shows what is printed, but for numbers and lines that it leaves out."""
    first, _, last = (words(part) for part in shown.partition(f"{REST}\n"))
    found = words(printed)
    if REST not in shown.splitlines():
        return found == first
    return found[: len(first)] == first and found[len(found) - len(last) :] == last
