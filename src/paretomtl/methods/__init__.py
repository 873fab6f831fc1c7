"""The methods: each turns losses and Gramian into task weights, and nothing else. One paper, one file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paretomtl._support.imports.lazy_imports import lazy_names

if TYPE_CHECKING:
    from paretomtl.methods._gradnorm import GradNorm
    from paretomtl.methods._linear import Linear, RandomSearch, SingleTask
    from paretomtl.methods._mgda import MGDA
    from paretomtl.methods._p_norm import PNorm
    from paretomtl.methods._pareto_mtl import ParetoMTL, Status
    from paretomtl.methods._reachable import Auto, Reachable
    from paretomtl.methods._torchjd import TorchJD
    from paretomtl.methods._uncertainty import Uncertainty
    from paretomtl.methods.base import Method, Reading
    from paretomtl.methods.description import describe
    from paretomtl.methods.inputs import State, Step, slice_state
    from paretomtl.methods.lookup import resolve_method
    from paretomtl.methods.registry import METHODS
    from paretomtl.methods.weigher import Weigher
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "paretomtl.methods._gradnorm": ("GradNorm",),
            "paretomtl.methods._linear": ("Linear", "RandomSearch", "SingleTask"),
            "paretomtl.methods._mgda": ("MGDA",),
            "paretomtl.methods._p_norm": ("PNorm",),
            "paretomtl.methods._pareto_mtl": ("ParetoMTL", "Status"),
            "paretomtl.methods._reachable": ("Auto", "Reachable"),
            "paretomtl.methods._torchjd": ("TorchJD",),
            "paretomtl.methods._uncertainty": ("Uncertainty",),
            "paretomtl.methods.base": ("Method", "Reading"),
            "paretomtl.methods.description": ("describe",),
            "paretomtl.methods.lookup": ("resolve_method",),
            "paretomtl.methods.registry": ("METHODS",),
            "paretomtl.methods.inputs": ("State", "Step", "slice_state"),
            "paretomtl.methods.weigher": ("Weigher",),
        },
    )


__all__ = [
    "METHODS",
    "MGDA",
    "Auto",
    "GradNorm",
    "Linear",
    "Method",
    "PNorm",
    "ParetoMTL",
    "RandomSearch",
    "Reachable",
    "Reading",
    "SingleTask",
    "State",
    "Status",
    "Step",
    "TorchJD",
    "Uncertainty",
    "Weigher",
    "describe",
    "resolve_method",
    "slice_state",
]
