from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.style import Style

from paretomtl.cli._method_names import DOT, method_name
from paretomtl.cli._tables import Column, print_tables
from paretomtl.methods.registry import METHODS, colour_of


def printed(console: Console, *methods: str) -> str:
    names = [method_name(console, method) for method in methods]
    key = Column("method", [name.plain for name in names], text=True, styled=names)
    print_tables(console, key, [Column("K", ["5"] * len(methods))], [])
    return str(console.file.getvalue())  # type: ignore[attr-defined]


@pytest.mark.parametrize("method", METHODS)
def test_a_terminal_has_the_colours_of_figures_and_pages(method: str) -> None:
    Style.parse.cache_clear()  # rich keeps the codes of the first terminal that a style is printed on
    Style._add.cache_clear()
    console = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", width=80)
    red, green, blue = (int(colour_of(method)[i : i + 2], 16) for i in (1, 3, 5))
    said = printed(console, method)
    assert f"\x1b[38;2;{red};{green};{blue}m{DOT}\x1b[0m{method}" in said


def test_a_pipe_has_names_alone() -> None:
    console = Console(file=io.StringIO(), force_terminal=False, width=80)
    assert printed(console, "auto", "mine") == "method  K\nauto    5\nmine    5\n"


def test_a_method_of_a_user_has_no_colour() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", width=80)
    assert method_name(console, "mine").spans == []
