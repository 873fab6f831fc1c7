"""Data sets as commands and studies see them: the prepared file, how it is made, and problems on other data.

This module imports neither torch nor numpy, so that commands can list options and defaults without delay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paretomtl.problems._multi_mnist.canvases import Canvases
    from paretomtl.problems._problem import Problem


def _ignore(text: str) -> None:
    """A log that drops its lines."""


@dataclass(frozen=True)
class PrepareOptions:
    """Options of ``paretomtl data prepare``; each data set uses those that concern it.

    Attributes:
        source: the folder with the published files; None downloads them, if that is possible.
        cache: the folder of the prepared file; None is ``$PARETOMTL_DATA`` or the user's cache folder.
        seed: the seed of canvases.
        side: the side of face images, in pixels.
        size: height and width of frames, in pixels.
        skip_broken: leave out pictures that cannot be read.
        log: called with a line about each step.
    """

    source: Path | None = None
    cache: Path | None = None
    seed: int = 0
    side: int = 48
    size: tuple[int, int] = (48, 64)
    skip_broken: bool = False
    log: Callable[[str], None] = _ignore


@dataclass(frozen=True)
class Prepared:
    """A prepared data set in numbers.

    Attributes:
        checksum: the SHA-256 of its arrays.
        published: the checksum that its arrays must have, or None.
        status: how the two compare, in a few words.
        summary: a line on its content.
        facts: counts and options, as they are printed in JSON.
        arguments: arguments of ``paretomtl run`` with which it finds the file.
        canvases: the canvases of a contact sheet, if the data set has one.
    """

    checksum: str
    published: str | None
    status: str
    summary: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    arguments: str = ""
    canvases: Canvases | None = None


@dataclass(frozen=True)
class DataSet:
    """A data set that ``paretomtl data prepare`` can make.

    Attributes:
        file: returns the path of the prepared file for some options.
        prepare: reads or makes the file, and describes it.
        from_splits: the problem of this data set on other tensors, ``from_splits(splits, model, ...)``.
        published: the checksum of the arrays for the default options, if there is one.
    """

    file: Callable[[PrepareOptions], Path]
    prepare: Callable[[PrepareOptions], Prepared]
    from_splits: Callable[..., Problem]
    published: str | None = None
