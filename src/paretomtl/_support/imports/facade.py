"""The facade upward: the only calls from results to the layers above them.

Users expect ``front.plot()``, ``diagnosis.plot()`` and ``Front.from_models(...)`` on the objects themselves. Drawing
belongs to ``report`` and measuring to ``training``, which both import them. These modules are therefore imported by
name when a user calls, and nowhere else: imports at the top of files point downward without exception.
"""

from __future__ import annotations

import importlib
from typing import Any

_FIGURES = "paretomtl.report.figures"


def draw_front(*args: Any, **kwargs: Any) -> Any:
    """Draw a front; see :func:`paretomtl.report.draw_front`."""
    return importlib.import_module(f"{_FIGURES}.front").draw_front(*args, **kwargs)


def draw_comparison(*args: Any, **kwargs: Any) -> Any:
    """Draw a comparison, for :meth:`paretomtl.compare.Comparison.plot`."""
    return importlib.import_module(f"{_FIGURES}.comparison").plot_comparison(*args, **kwargs)


def draw_diagnosis(*args: Any, **kwargs: Any) -> Any:
    """Draw a diagnosis, for :meth:`paretomtl.Diagnosis.plot`."""
    return importlib.import_module(f"{_FIGURES}.diagnosis").draw_diagnosis(*args, **kwargs)


def interactive_front(*args: Any, **kwargs: Any) -> Any:
    """Draw a front with plotly, for :meth:`paretomtl.Front.figure`."""
    return importlib.import_module(f"{_FIGURES}.interactive").interactive_front(*args, **kwargs)


def interactive_comparison(*args: Any, **kwargs: Any) -> Any:
    """Draw a comparison with plotly, for :meth:`paretomtl.compare.Comparison.figure`."""
    return importlib.import_module(f"{_FIGURES}.interactive").interactive_comparison(*args, **kwargs)


def interactive_diagnosis(*args: Any, **kwargs: Any) -> Any:
    """Draw a diagnosis with plotly, for :meth:`paretomtl.Diagnosis.figure`."""
    return importlib.import_module(f"{_FIGURES}.interactive").interactive_diagnosis(*args, **kwargs)


def explore(*args: Any, **kwargs: Any) -> Any:
    """Make the page of a front, for :meth:`paretomtl.Front.explore`."""
    return importlib.import_module("paretomtl.report.page.inline").explore(*args, **kwargs)


def model_check(*args: Any, **kwargs: Any) -> Any:
    """Compare models of a loaded front with the trained ones, for :meth:`paretomtl.Front.model`."""
    return importlib.import_module("paretomtl.training.evaluate_models").model_check(*args, **kwargs)


def evaluate_models(*args: Any, **kwargs: Any) -> dict[str, Any]:
    """Measure models that were trained elsewhere, for :meth:`paretomtl.Front.from_models`."""
    fields: dict[str, Any] = importlib.import_module("paretomtl.training.evaluate_models").evaluate_models(
        *args, **kwargs
    )
    return fields
