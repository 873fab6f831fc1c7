"""The preferences of a run: the rows of each seed, and the models that are trained."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from torch import Tensor

from paretomtl._support.argument_checks import as_rows, as_whole, check_count, quote
from paretomtl.core import preferences as vector_sets
from paretomtl.front.limits import MAX_SOLUTIONS
from paretomtl.methods import Method
from paretomtl.methods.lookup import reach_first

REACHABLE = "reachable"
"""In place of preferences: directions that models reach, measured in the first part of the run."""


def leaves_count_open(preferences: Any) -> bool:
    """Whether preferences do not say how many models there are."""
    return preferences is None or (isinstance(preferences, str) and preferences == REACHABLE)


def with_reachable(method: Method, preferences: Any) -> tuple[Method, Any]:
    """A method, and the preferences of its first part: interior weights if they are to be those that models reach.

    "reachable" stands for the default number of directions, and "reachable:10" for ten.
    """
    if not isinstance(preferences, str):
        number = preferences is None or isinstance(as_whole(preferences), int)
        return reach_first(method) if number and method.needs_reachable else method, preferences
    word, _, count = preferences.partition(":")
    if word != REACHABLE or not ((count.isascii() and count.isdecimal()) or (count == "" and ":" not in preferences)):
        raise ValueError(
            "'preferences' must be a number, rows of numbers, 'reachable' or 'reachable:COUNT'. "
            f"Got {quote(preferences)} instead."
        )
    if method.reading == "direction" and not method.needs_whole_front:
        method = reach_first(method)
    elif method.probe_share is None:
        raise ValueError(
            f"'preferences' must be a number or rows for '{method.name}', which asks for no direction. Got "
            f"{preferences!r} instead: it is for 'pareto-mtl' and 'p-norm'; 'auto' always measures."
        )
    return method, int(count) if count else None


def preference_rows(
    method: Method, preferences: int | Tensor | Sequence[Sequence[float]] | None, tasks: int, seeds: Sequence[int]
) -> list[Tensor]:
    """For each seed the rows ``[K, m]`` that the user gave or asked for."""
    if preferences is None:
        preferences = method.usual_count(tasks)
    preferences = as_whole(preferences)
    if isinstance(preferences, (int, float)):
        preferences = check_count("preferences", preferences)
        _check_most(preferences)
        return [method.spread(preferences, tasks, seed=seed) for seed in seeds]
    rows = as_rows("preferences", preferences)
    count = len(seeds)
    if rows.shape[-1:] != (tasks,) or rows.ndim not in (2, 3) or (rows.ndim == 3 and len(rows) != count):
        own = f", or [{count}, K, {tasks}], other ones for each seed" if count > 1 else ""
        shape = list(rows.shape)
        raise ValueError(f"'preferences' must be a number or have shape [K, {tasks}]{own}. Got {shape} instead.")
    _check_most(rows.shape[-2])
    each = rows if rows.ndim == 3 else rows.expand(count, -1, -1)
    return [vector_sets.validate(part) if method.reading == "direction" else part for part in each]


def chosen_subproblems(only: Sequence[int] | None, count: int) -> list[int]:
    """The models that are trained; all ``count`` of them by default."""
    if only is None:
        return list(range(count))
    given = only.tolist() if hasattr(only, "tolist") else only
    chosen = [as_whole(k) for k in given] if isinstance(given, Iterable) else []
    whole = all(isinstance(k, int) and not isinstance(k, bool) for k in chosen)
    if not chosen or not whole or len(set(chosen)) < len(chosen) or not all(0 <= k < count for k in chosen):
        got = list(only) if isinstance(only, Iterable) else only
        raise ValueError(f"'only' must be distinct models from 0 to {count - 1}. Got {quote(got)} instead.")
    return chosen


def _check_most(count: int) -> None:
    if count > MAX_SOLUTIONS:
        raise ValueError(
            f"'preferences' must be at most {MAX_SOLUTIONS:,}, as a front holds no more. Got {count:,} instead."
        )
