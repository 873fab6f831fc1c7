"""Preference vectors ``[K, m]``: unit, non-negative, float64. A preference is the direction of the loss vector.

Rows of :func:`interior` and :func:`lattice` are importances instead: they sum to one.
"""

from paretomtl.core.preferences import (
    around,
    biased,
    even,
    extreme,
    interior,
    lattice,
    lattice_or_energy,
    random,
    usual_count,
    validate,
)

__all__ = [
    "around",
    "biased",
    "even",
    "extreme",
    "interior",
    "lattice",
    "lattice_or_energy",
    "random",
    "usual_count",
    "validate",
]
