"""Methods that multiply losses by factors before they weigh them."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

import torch
from torch import Tensor

from paretomtl.methods.base import Method
from paretomtl.methods.inputs import SafeStep, State
from paretomtl.methods.loss_scaling import (
    Scale,
    above_ideal,
    as_scale,
    auto_factors,
    auto_factors_by_row,
    first_factors,
    given_factors,
    is_range,
    update_first_losses,
)

FACTORS = "scale.factors"
"""The name of the factors in a state."""
_IDEAL = "scale.ideal"
FIRST = "scale.first"
"""The name of the first losses in a state with ``scale="auto"``, if the method itself must measure them."""


class TakesScale(Method):
    """A method that has the option ``scale``."""

    scale: Scale | None
    scale_kinds: ClassVar[tuple[str, ...]] = ("auto", "first")
    """The strings that ``scale`` may be; every method also takes factors and a pair of points."""

    @property
    def minds_units(self) -> bool:
        usual = getattr(type(self), "scale", None)  # the default of the field
        return self.scale is None and usual is None  # where scaling is usual, None was asked for

    @property
    def ideal(self) -> tuple[float, ...] | None:
        return self.scale[0] if is_range(self.scale) else None

    def with_first_losses(self, rows: Sequence[Sequence[float]]) -> Self:
        if self.scale != "auto":
            return self
        return dataclasses.replace(self, scale=auto_factors(rows))  # type: ignore[type-var]

    def for_refining(
        self,
        reading: str,
        measured: Mapping[str, Tensor],
        scale: Tensor | None,
        row: int,
        importances: Tensor | None = None,
    ) -> Method:
        if not isinstance(self.scale, str) or scale is None:
            return self
        # Measured again, the factors would be those of models that are trained already.
        return dataclasses.replace(self, scale=tuple(scale[row].tolist()))  # type: ignore[type-var]

    def _check_scale(self) -> None:
        """Normalise the option; raise an error if it is invalid."""
        object.__setattr__(self, "scale", as_scale(self.scale, self.scale_kinds, self.name))


class ScaledMethod(TakesScale):
    r"""A method that weighs :math:`c \circ L` instead of L; the weights of L are then c times those.

    Subclasses implement ``_init`` and ``_weigh`` as if there were no scale. A scale only adds names to their states.
    """

    @abstractmethod
    def _init(self, preferences: Tensor) -> State:
        """The state before the first step, without that of scaling."""

    def init(self, preferences: Tensor) -> State:
        state = self._init(preferences)
        return state if self.scale is None else {**state, **self._init_scale(preferences)}

    def _init_scale(self, preferences: Tensor) -> State:
        scale = self.scale
        unknown = torch.zeros(preferences.shape, dtype=torch.float64)
        if isinstance(scale, str):
            return {FACTORS: unknown, **({FIRST: unknown.clone()} if scale == "auto" else {})}
        known = {FACTORS: unknown + given_factors(scale, preferences.shape[-1])}
        if self.ideal is not None:
            known[_IDEAL] = unknown + torch.tensor(self.ideal, dtype=torch.float64)
        return known

    def _weigh_in_units(self, step: SafeStep, state: State) -> tuple[Tensor, State]:
        if FACTORS not in state:
            return self._weigh(step, state)
        scaling = {name: state[name] for name in (FACTORS, FIRST, _IDEAL) if name in state}
        losses = torch.where(step.present, above_ideal(step.losses, scaling.get(_IDEAL)), 0.0)
        if FIRST in scaling:
            scaling[FIRST] = update_first_losses(scaling[FIRST], losses, step.present)
            scaling[FACTORS] = auto_factors_by_row(scaling[FIRST])
        else:
            scaling[FACTORS] = first_factors(scaling[FACTORS], losses, step.present)
        c = torch.where(scaling[FACTORS] > 0, scaling[FACTORS], 1.0)
        scaled = dataclasses.replace(step, losses=c * losses, gramian=c[..., :, None] * step.gramian * c[..., None, :])
        weights, after = self._weigh(scaled, {name: tensor for name, tensor in state.items() if name not in scaling})
        return c * weights, {**after, **scaling}

    def scale_of(self, state: State) -> Tensor | None:
        factors = state.get(FACTORS)
        return None if factors is None else torch.where(factors > 0, factors, 1.0)

    def _above_ideal(self, losses: Tensor, state: State) -> Tensor:
        """Losses relative to the ideal point, if the scale has one."""
        return above_ideal(losses, state.get(_IDEAL))

    def __repr__(self) -> str:
        """Like a dataclass, but without ``scale`` if it is None: this matches earlier stored rows."""
        fields = [field.name for field in dataclasses.fields(self)]  # type: ignore[arg-type]
        shown = [name for name in fields if name != "scale" or self.scale is not None]
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"
