"""Names of methods on a terminal: a dot in the colour that figures and pages give the method, then the name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paretomtl.methods.registry import REGISTRY, colour_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

DOT = "● "


def method_name(console: Console, method: str, style: str = "") -> Text:
    """The name of a method, with its dot if the console shows colours; pipes and files get the name alone.

    Only the dot is coloured: nobody knows whether the terminal is light or dark, and the name must be legible.
    """
    from rich.text import Text

    if console.color_system is None or method not in REGISTRY:
        return Text(method, style)
    return Text.assemble((DOT, colour_of(method)), (method, style))
