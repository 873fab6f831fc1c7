"""Preference vectors ``[K, m]``: unit, non-negative, float64. A preference is the direction of the loss vector."""

from paretomtl.core._preferences import biased, even, extreme, lattice, random, validate

__all__ = ["biased", "even", "extreme", "lattice", "random", "validate"]
