"""The mathematics: pure, batched functions on tensors shaped ``[..., m]``. Imports only torch.

A method of this library sees a model only through its losses ``L [..., m]`` and the Gramian ``C [..., m, m]`` of its
task gradients. Preference vectors (``paretomtl.preferences``) cut the loss space into regions
(:func:`region_rows`, :func:`constraint_values`); :func:`direction` turns losses, Gramian and region into task weights
through the :func:`min_norm` point of a convex hull; :func:`nondominated` tells which results are worth keeping.
"""

from paretomtl.core._dominance import dominates, nondominated
from paretomtl.core._min_norm import MinNorm, Solve, min_norm
from paretomtl.core._regions import (
    FEASIBLE_TOLERANCE,
    active_initial,
    active_main,
    constraint_values,
    in_region,
    region_rows,
    slack,
)
from paretomtl.core.directions import (
    Direction,
    Phase,
    direction,
    initial_direction,
    main_direction,
    released_direction,
)

__all__ = [
    "FEASIBLE_TOLERANCE",
    "Direction",
    "MinNorm",
    "Phase",
    "Solve",
    "active_initial",
    "active_main",
    "constraint_values",
    "direction",
    "dominates",
    "in_region",
    "initial_direction",
    "main_direction",
    "min_norm",
    "nondominated",
    "region_rows",
    "released_direction",
    "slack",
]
