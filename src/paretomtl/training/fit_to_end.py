"""``fit`` and ``fit_seeds`` for studies and diagnoses, which cannot use a partial run."""

from __future__ import annotations

import warnings
from typing import Any

from paretomtl.front import Front
from paretomtl.training._fit import fit, fit_seeds


def fit_to_end(*arguments: Any, **options: Any) -> Front:
    """Call :func:`fit`, and raise KeyboardInterrupt if the run was stopped before its end."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "training was stopped")  # the interrupt says it
        front = fit(*arguments, **options)
    if not front.complete:
        raise KeyboardInterrupt
    return front


def fit_seeds_to_end(*arguments: Any, **options: Any) -> list[Front]:
    """Call :func:`fit_seeds`, and raise KeyboardInterrupt if the run was stopped before its end."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "training was stopped")  # the interrupt says it
        fronts = fit_seeds(*arguments, **options)
    if not all(front.complete for front in fronts):
        raise KeyboardInterrupt
    return fronts
