"""Dark figures: a figure is drawn once, in light colours, and recoloured."""

from __future__ import annotations

import colorsys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from paretomtl._support.imports.optional_packages import require
from paretomtl.methods.registry import dark_colours

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER = "#15171a"
"""The background of dark pages, which that of dark figures comes close to."""

_GREY = 0.06  # the most that the channels of a grey differ
_BLACK, _WHITE = 0.93, 0.085  # what the lightness of black and of white become
_PROPERTIES = ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor")

Colour = tuple[float, float, float, float]


def darken(figure: Figure) -> None:
    """Recolour all parts of a figure for a dark background.

    Colours of methods become those of dark pages. Greys change places, so that white becomes the background and black
    becomes the text. All other colours get lighter.
    """
    colours = require("matplotlib.colors", "figures")
    known = {colours.to_hex(light): colours.to_rgb(dark) for light, dark in dark_colours().items()}

    def dark(colour: Colour) -> Colour:
        exact = known.get(colours.to_hex(colour))
        return (*exact, colour[3]) if exact is not None else dark_colour(colour)

    for artist in {id(each): each for each in _artists(figure)}.values():
        before = {name: _read(artist, name, colours) for name in _PROPERTIES}
        for name, values in before.items():
            if values is not None:
                changed = [dark(value) for value in values]
                getattr(artist, f"set_{name}")(changed[0] if len(changed) == 1 else changed)


def dark_colour(colour: Colour) -> Colour:
    """The counterpart of a colour on a dark background.

    Example:
        >>> [round(part, 2) for part in dark_colour((0.0, 0.0, 0.0, 1.0))]
        [0.93, 0.93, 0.93, 1.0]
        >>> max(dark_colour((1.0, 1.0, 1.0, 0.5))) < 0.51
        True
    """
    red, green, blue, alpha = colour
    hue, light, saturation = colorsys.rgb_to_hls(red, green, blue)
    if max(red, green, blue) - min(red, green, blue) <= _GREY:
        grey = _BLACK + (_WHITE - _BLACK) * light
        return (grey, grey, min(1.0, grey + 0.012), alpha) if light > 0.9 else (grey, grey, grey, alpha)
    if light > 0.8:  # a pale area stays in the background
        return (*colorsys.hls_to_rgb(hue, 1.0 - light + 0.08, saturation * 0.6), alpha)
    return (*colorsys.hls_to_rgb(hue, max(light, 0.62), saturation), alpha)


def _artists(figure: Figure) -> Iterable[Any]:
    """All parts with colours of their own; a figure or a panel has those of its patch."""
    for each in figure.findobj():
        if not hasattr(each, "patch"):
            yield each
        box = each.get_bbox_patch() if hasattr(each, "get_bbox_patch") else None
        for part in (box, getattr(each, "arrow_patch", None)):
            if part is not None:
                yield part
    for axis in figure.axes:
        for way in ("xaxis", "yaxis", "zaxis"):
            ticks = getattr(axis, way, None)
            if ticks is not None:
                for tick in (*ticks.get_major_ticks(), *ticks.get_minor_ticks()):
                    yield from (tick.tick1line, tick.tick2line, tick.gridline, tick.label1, tick.label2)


def _read(artist: Any, name: str, colours: Any) -> Sequence[Colour] | None:
    """The colours of a property as a list; None if the artist does not have it, or has it from another one."""
    if name == "color" and hasattr(artist, "get_facecolor"):
        return None  # a patch or a collection, whose colour is that of face and edge
    read = getattr(artist, f"get_{name}", None)
    if read is None or not hasattr(artist, f"set_{name}"):
        return None
    value = read()
    if value is None or (isinstance(value, str) and value in ("none", "face", "auto", "inherit")):
        return None
    found: Sequence[Colour] = [tuple(each) for each in colours.to_rgba_array(value).tolist()]
    return found or None
