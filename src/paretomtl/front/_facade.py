"""The facade upward: the only calls from fronts to layers above them.

Users expect ``front.plot()`` and ``Front.from_models(...)`` on the front itself, but drawing belongs to ``report`` and
measuring to ``training``, which both import fronts. These modules are therefore imported by name when a user calls, and
nowhere else: imports at the top of files point downward without exception.
"""

from __future__ import annotations

import importlib
from typing import Any


def draw_front(*args: Any, **kwargs: Any) -> Any:
    """Draw a front; see :func:`paretomtl.report.draw_front`."""
    return importlib.import_module("paretomtl.report.figures.front").draw_front(*args, **kwargs)


def draw_interactive(*args: Any, **kwargs: Any) -> Any:
    """Draw a front with plotly, for :meth:`paretomtl.Front.figure`."""
    return importlib.import_module("paretomtl.report.figures.interactive").draw_interactive(*args, **kwargs)


def explore(*args: Any, **kwargs: Any) -> Any:
    """Make the page of a front, for :meth:`paretomtl.Front.explore`."""
    return importlib.import_module("paretomtl.report.page.inline").explore(*args, **kwargs)


def evaluate_models(*args: Any, **kwargs: Any) -> dict[str, Any]:
    """Measure models that were trained elsewhere, for :meth:`paretomtl.Front.from_models`."""
    fields: dict[str, Any] = importlib.import_module("paretomtl.training.evaluate_models").evaluate_models(
        *args, **kwargs
    )
    return fields
