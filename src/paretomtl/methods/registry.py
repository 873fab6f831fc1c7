"""The built-in methods by name: their classes, and how tables and figures show them.

The names are the same in Python, on the command line and in stored results. This is the only list of methods: a new one
is a file and an entry here. The module imports neither torch nor NumPy; classes are imported lazily.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paretomtl._support.imports.lazy_imports import LazyTable

if TYPE_CHECKING:
    from paretomtl.methods.base import Method

TORCHJD = "torchjd:"
"""The prefix of the names of TorchJD's methods."""


@dataclass(frozen=True)
class RegisteredMethod:
    """A built-in method.

    Attributes:
        place: the import path of its class, ``module:attribute``; defaults are the paper's settings.
        label: its name in legends.
        brief: what it does, in at most 56 letters, for lists.
        colour: the colour of its points and lines in figures and on pages; together with the markers, all differ
            without colour vision too.
        dark: the same colour on a dark page.
        marker: the marker of its points, by its name in matplotlib.
        title: the first sentence of its docstring.
        paper_label: its name in the paper's sentences, if that is not the label.
    """

    place: str
    label: str
    brief: str
    colour: str
    dark: str
    marker: str
    title: str
    paper_label: str = ""


REGISTRY: Mapping[str, RegisteredMethod] = {
    "auto": RegisteredMethod(
        "paretomtl.methods._reachable:Auto",
        "Auto (probe)",
        "a probe chooses: fixed weights, or rays by the p-norm",
        "#d4570a",
        "#ff9d5c",
        "p",
        "A probe chooses the method: interior weights where they spread, the p-norm where they clump.",
    ),
    "pareto-mtl": RegisteredMethod(
        "paretomtl.methods._pareto_mtl:ParetoMTL",
        "Pareto MTL",
        "Lin et al. 2019: a region of the losses for each model",
        "#c1272d",
        "#f57f7f",
        "o",
        "Pareto MTL (Lin et al., NeurIPS 2019, algorithm 1): a model per preference vector, kept in its region.",
    ),
    "p-norm": RegisteredMethod(
        "paretomtl.methods._p_norm:PNorm",
        "p-norm",
        "compromise programming: a ray of the losses per model",
        "#a8327d",
        "#f08cc8",
        "h",
        "The weighted p-norm of compromise programming (Zeleny 1973, Yu 1973), along a ray of the loss space.",
    ),
    "mgda": RegisteredMethod(
        "paretomtl.methods._mgda:MGDA",
        "MOO-MTL",
        "MOO-MTL, Sener and Koltun 2018: the common descent step",
        "#0b5fa5",
        "#5fb0e6",
        "s",
        "MGDA (Désidéri 2012), as MOO-MTL uses it (Sener and Koltun 2018; paper, equation 16).",
    ),
    "linear": RegisteredMethod(
        "paretomtl.methods._linear:Linear",
        "Linear scalarization",
        "fixed weights, spread inside the simplex",
        "#1b8a8f",
        "#4fd0cf",
        "v",
        "Linear scalarization with fixed weights, by default inside the simplex (section 3.2, equation 2).",
        "grid search",
    ),
    "random-search": RegisteredMethod(
        "paretomtl.methods._linear:RandomSearch",
        "Random search",
        "fixed weights, drawn at random",
        "#3a7d44",
        "#7fc97f",
        "^",
        "Linear scalarization with weights drawn uniformly from the simplex, the paper's random search (section 2).",
        "random search",
    ),
    "single-task": RegisteredMethod(
        "paretomtl.methods._linear:SingleTask",
        "Single task",
        "a separate network for each task",
        "#333333",
        "#dddddd",
        "*",
        "One model per task, trained on its own loss alone: the paper's single-task baseline (section 6). K equals m.",
        "single task",
    ),
    "gradnorm": RegisteredMethod(
        "paretomtl.methods._gradnorm:GradNorm",
        "GradNorm",
        "Chen et al. 2018: gradients of equal length",
        "#8e5ea2",
        "#cda2e0",
        "D",
        "GradNorm (Chen et al. 2018, equations 1 and 2): weights that pull the tasks' gradient norms together.",
    ),
    "uncertainty": RegisteredMethod(
        "paretomtl.methods._uncertainty:Uncertainty",
        "Uncertainty",
        "Kendall et al. 2018: weights from learned variances",
        "#c98a00",
        "#f0b93a",
        "P",
        "Uncertainty weighting (Kendall, Gal and Cipolla 2018, equations 7 and 10): weights from learned "
        "log-variances.",
    ),
}
"""The built-in methods, in the order of tables."""

_OTHER_COLOUR, _OTHER_DARK, _OTHER_MARKER = "#666666", "#a6a6a6", "X"

_PLOTLY = {
    "o": "circle",
    "s": "square",
    "v": "triangle-down",
    "^": "triangle-up",
    "D": "diamond",
    "P": "cross",
    "*": "star",
    "p": "pentagon",
    "h": "hexagon",
    "X": "x",
}

METHODS: Mapping[str, type[Method]] = LazyTable({name: entry.place for name, entry in REGISTRY.items()})
"""The classes of the built-in methods, with the paper's settings as defaults."""


def is_known(name: str) -> bool:
    """Whether a name belongs to this library, so that it runs no code of others."""
    return name in REGISTRY or name.startswith(TORCHJD)


def is_separate(name: str) -> bool:
    """Whether the method of a stored row trains separate networks; see :class:`~paretomtl.methods.Method`."""
    return name in METHODS and METHODS[name].separate


def label_of(method: str) -> str:
    """The label of a method in legends; the name itself for a user's own."""
    return REGISTRY[method].label if method in REGISTRY else method


def paper_label_of(method: str) -> str:
    """The name of a method in the paper's sentences: linear scalarization, for example, is a grid search there."""
    return (REGISTRY[method].paper_label if method in REGISTRY else "") or label_of(method)


def colour_of(method: str, *, dark: bool = False) -> str:
    """The colour of a method in figures and on light or dark pages; grey for a user's own."""
    if method not in REGISTRY:
        return _OTHER_DARK if dark else _OTHER_COLOUR
    return REGISTRY[method].dark if dark else REGISTRY[method].colour


def dark_colours() -> dict[str, str]:
    """The colour of each method on a light page, and its counterpart on a dark one."""
    return {
        **{entry.colour: entry.dark for entry in REGISTRY.values()},
        _OTHER_COLOUR: _OTHER_DARK,
    }


def marker_of(method: str) -> str:
    """The marker of a method in figures, by its name in matplotlib; a cross for a user's own."""
    return REGISTRY[method].marker if method in REGISTRY else _OTHER_MARKER


def symbol_of(method: str) -> str:
    """The same marker by its name in plotly."""
    return _PLOTLY[marker_of(method)]
