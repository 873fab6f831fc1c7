"""The built-in problems and data sets by name, with the title of each and the place where it is defined.

Names and titles are plain text here. The module of a problem, and torch with it, is imported lazily. To add a problem,
add an entry; a problem with its own data set also has a ``data_set.py``. Problems may share prepared files.
"""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretomtl._support.imports.lazy_imports import LazyTable

if TYPE_CHECKING:
    from paretomtl.problems._problem import Problem
    from paretomtl.problems.data_set import DataSet

_HERE = "paretomtl.problems"


@dataclass(frozen=True)
class Entry:
    """A built-in problem.

    Attributes:
        brief: what it is, in at most 56 letters, for lists.
        title: the first sentence of its docstring.
        make: the function that makes it, ``"module:attribute"`` below this package.
        data_set: its :class:`~paretomtl.problems.data_set.DataSet`, in the same form; None for a problem that needs no
            prepared data.
        download: whether the data set can be downloaded.
        prepared_as: the problem whose prepared files it uses; None if they are its own.
    """

    brief: str
    title: str
    make: str
    data_set: str | None = None
    download: bool = False
    prepared_as: str | None = None


ENTRIES = {
    "synthetic": Entry(
        "the paper's concave front, for any number of tasks",
        "The paper's synthetic example (section 5; with difficulties, supplement, section 4), for any number of tasks.",
        "_synthetic:synthetic",
    ),
    "quadratic": Entry(
        "parabolas with a convex front",
        "Convex parabolas with a known convex front, which linear scalarization can cover.",
        "_quadratic:quadratic",
    ),
    "multi-digits": Entry(
        "two handwritten digits in one image; no download",
        "Two handwritten digits in one image, after MultiMNIST (paper, section 6.1): classify both.",
        "_multi_digits:multi_digits",
    ),
    "multi-mnist": Entry(
        "two digits of MNIST in one image",
        "Two digits of MNIST in one image, MultiMNIST (paper, section 6.1), regenerated: classify both.",
        "_multi_mnist.problem:multi_mnist",
        "_multi_mnist.data_set:MULTI_MNIST",
        download=True,
    ),
    "multi-fashion": Entry(
        "two pieces of clothing in one image",
        "Two pieces of clothing of Fashion-MNIST in one image (paper, section 6.1), regenerated: classify both.",
        "_multi_mnist.problem:multi_fashion",
        "_multi_mnist.data_set:MULTI_FASHION",
        download=True,
    ),
    "multi-fashion-mnist": Entry(
        "a digit and a piece of clothing in one image",
        "A digit of MNIST with a piece of clothing of Fashion-MNIST (paper, section 6.1), regenerated: classify both.",
        "_multi_mnist.problem:multi_fashion_mnist",
        "_multi_mnist.data_set:MULTI_FASHION_MNIST",
        download=True,
    ),
    "multi-mnist-3": Entry(
        "three digits of MNIST in one image",
        "Three digits of MNIST in one image, made like MultiMNIST, but not in the paper: classify all three.",
        "_multi_mnist.problem:multi_mnist_3",
        "_multi_mnist.data_set:MULTI_MNIST_3",
        download=True,
    ),
    "multi-fashion-3": Entry(
        "three pieces of clothing in one image",
        "Three pieces of clothing of Fashion-MNIST in one image, not in the paper: classify all three.",
        "_multi_mnist.problem:multi_fashion_3",
        "_multi_mnist.data_set:MULTI_FASHION_3",
        download=True,
    ),
    "census": Entry(
        "income, education and marital status of a person",
        "Census-Income (KDD) of UCI (paper, supplement): predict income, education and marital status of a person.",
        "_census.problem:census",
        "_census.data_set:CENSUS_INCOME",
        download=True,
    ),
    "census-parity": Entry(
        "income, predicted alike for women and men",
        "Census-Income (KDD), not in the paper: predict income, and predict it alike for women and men.",
        "_census.parity:census_parity",
        "_census.data_set:CENSUS_PARITY",
        download=True,
        prepared_as="census",
    ),
    "utkface": Entry(
        "gender, race and age of a face",
        "Faces of UTKFace (paper, supplement, section 2): predict gender, race and age from one picture.",
        "_utkface.problem:utkface",
        "_utkface.data_set:UTKFACE",
    ),
    "localization": Entry(
        "where a camera is and where it looks",
        "Where a camera is and where it looks (paper, section 6.2), by PoseNet: translation and rotation from one "
        "image.",
        "_localization.problem:localization",
        "_localization.data_set:LOCALIZATION",
    ),
}
"""The built-in problems, in the order in which they are listed."""

DATA_SETS = tuple(name for name, entry in ENTRIES.items() if entry.data_set and not entry.prepared_as)
"""The names that ``paretomtl data prepare`` takes."""


PROBLEMS: Mapping[str, Callable[..., Problem]] = LazyTable(
    {name: f"{_HERE}.{entry.make}" for name, entry in ENTRIES.items()}
)
"""The functions that make the built-in problems; a module is imported when its problem is looked up."""


def find_data_set(name: str) -> DataSet:
    """The data set of a problem that has one, its own or that of another problem."""
    location = ENTRIES[name].data_set
    if location is None:
        raise KeyError(name)
    data_set: DataSet = _resolve(location)
    return data_set


def prepare_command(name: str, cache: str | Path | None = None, **options: object) -> str:
    """The command that prepares the data set of a problem; options with the value None are left out.

    Example:
        >>> prepare_command("census", "my data")
        "paretomtl data prepare census --cache 'my data'"
        >>> prepare_command("census-parity")
        'paretomtl data prepare census'
        >>> prepare_command("utkface", side=64)
        'paretomtl data prepare utkface --from FOLDER --side 64'
    """
    name = ENTRIES[name].prepared_as or name
    words = ["paretomtl", "data", "prepare", name]
    words += [] if ENTRIES[name].download else ["--from", "FOLDER"]
    for option, value in {"cache": cache, **options}.items():
        words += [] if value is None else [f"--{option}", str(value)]
    return shlex.join(words)


def _resolve(location: str) -> Any:
    module, attribute = location.split(":")
    return getattr(importlib.import_module(f"{_HERE}.{module}"), attribute)
