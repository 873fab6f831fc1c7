"""Methods by name: the same names in Python, on the command line and in stored results."""

from __future__ import annotations

from paretomtl.methods._gradnorm import GradNorm
from paretomtl.methods._linear import Linear, RandomSearch, SingleTask
from paretomtl.methods._method import Method
from paretomtl.methods._mgda import MGDA
from paretomtl.methods._pareto_mtl import ParetoMTL
from paretomtl.methods._torchjd import TorchJD
from paretomtl.methods._uncertainty import Uncertainty

METHODS: dict[str, type[Method]] = {
    "pareto-mtl": ParetoMTL,
    "mgda": MGDA,
    "linear": Linear,
    "random-search": RandomSearch,
    "single-task": SingleTask,
    "gradnorm": GradNorm,
    "uncertainty": Uncertainty,
}
"""The built-in methods, with the paper's settings as defaults."""


def resolve_method(method: str | Method) -> Method:
    """A configured method as it is, or the one with that name; "torchjd:UPGrad" asks TorchJD for one of its own.

    Example:
        >>> resolve_method("mgda")
        MGDA(rescale=False)
    """
    if isinstance(method, Method):
        return method
    if not isinstance(method, str):
        raise TypeError(f"'method' must be a name or a configured method, such as ParetoMTL(). Got {method!r} instead.")
    if method.startswith("torchjd:"):
        return TorchJD(method.removeprefix("torchjd:"))
    if method not in METHODS:
        raise ValueError(f"'method' must be one of {', '.join(METHODS)}, or torchjd:NAME. Got {method!r} instead.")
    return METHODS[method]()
