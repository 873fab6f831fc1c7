"""Reachable preferences: the first part of a run measures which loss ratios models reach, the rest asks for them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from paretomtl._support.argument_checks import is_number, may_ask, quote
from paretomtl.core import preferences as vectors
from paretomtl.core.reachable import CLUMPED, find_reachable, lift_zeros
from paretomtl.methods._linear import Linear
from paretomtl.methods._p_norm import PNorm
from paretomtl.methods._scaled_method import FACTORS, ScaledMethod
from paretomtl.methods.base import Method, Reading
from paretomtl.methods.description import describe
from paretomtl.methods.fixed_weights import importances
from paretomtl.methods.inputs import SafeStep, State, Step
from paretomtl.methods.loss_scaling import Scale, is_range

_INNER = "inner."
_RECENT = 12.0  # emphasis of the running mean on recent steps: half of its weight is on the last twentieth
_UNKNOWN = -1.0  # crowding that could not be measured
_PROBING, _SPREAD, _CLUMPED, _SAME, _AT_BEST = range(5)  # codes of the state "found"
_SCATTERED = 2.0  # crowding above this: models lie further apart than the ends of the front
_FELL = 0.95  # of its first value: a loss that is above in every model has not fallen


@dataclass(frozen=True, repr=False)
class Reachable(ScaledMethod):
    r"""A method of directions that first measures which directions models can reach.

    The first part of the run, the probe, is linear scalarization with interior weights. Its losses show which ratios
    exist (``paretomtl.core.reachable.find_reachable``): those that the models reached if they spread well, and
    directions spread between the ends of the front if they clump, as they do on concave fronts. From there the same
    models go on with ``method``. Nothing is trained twice: the probe counts as training, and a resumed run is the same.

    The losses that decide are a running mean over the probe with weights that grow with the step (Shamir and Zhang
    2013), so that one batch decides nothing.

    Args:
        method: the method of directions that follows the probe, without a scale of its own.
        probe: the share of the run's steps that the probe takes, over 0 and under 1.
        least: the least weight of each task in the probe, see :func:`paretomtl.preferences.interior`.
        scale: factors of the losses in both parts, as for :class:`~paretomtl.Linear`. If models clump, the
            factors change after the probe, so that the range between the ends is the same in every task.

    Example:
        >>> import paretomtl as pm
        >>> sgd = lambda parameters: torch.optim.SGD(parameters, lr=0.3)
        >>> options = {"epochs": 400, "optimizer": sgd, "device": "cpu", "progress": "quiet"}
        >>> front = pm.fit(pm.problems.synthetic(), Reachable(), preferences=4, **options)
        >>> front.reading, front.region_hits()
        ('direction', 4)
    """

    method: Method = field(default_factory=PNorm)
    probe: float = 0.25
    least: float | None = None
    scale: Scale | None = "auto"

    reading: ClassVar[Reading] = "importance"

    def __post_init__(self) -> None:
        if not isinstance(self.method, Method) or self.method.reading != "direction" or self.method.needs_whole_front:
            raise ValueError(
                "'method' must be one that reads rows as directions and weighs each on its own, such as ParetoMTL() or "
                f"PNorm(). Got {quote(self.method)} instead."
            )
        if getattr(self.method, "scale", None) is not None:
            raise ValueError(
                f"'scale' must be given to 'Reachable', for both parts of the run. Got {quote(self.method)} instead."
            )
        if not is_number(self.probe) or not 0.0 < self.probe < 1.0:
            raise ValueError(
                f"'probe' must be over 0 and under 1, a share of the steps. Got {quote(self.probe)} instead."
            )
        if self.least is not None and (not is_number(self.least) or not 0.0 <= self.least < 0.5):
            raise ValueError(f"'least' must be at least 0 and under 1 / m. Got {quote(self.least)} instead.")
        self._check_scale()

    @property
    def name(self) -> str:
        return self.method.name

    @property
    def needs_gramian(self) -> bool:
        return self.method.needs_gramian

    @property
    def probe_share(self) -> float:
        return self.probe

    @property
    def stays_linear(self) -> bool:
        """Whether models that spread well go on with their weights."""
        return False

    def spread(self, count: int, tasks: int, *, seed: int = 0) -> Tensor:
        return vectors.interior(count, tasks, least=self.least)

    def for_refining(
        self,
        reading: str,
        measured: Mapping[str, Tensor],
        scale: Tensor | None,
        row: int,
        importances: Tensor | None = None,
    ) -> Method:
        known: dict[str, Any] = {} if scale is None else {"scale": tuple(scale[row].tolist())}
        if reading != "direction":  # a range keeps its ideal point, which factors do not have
            return self._linear() if is_range(self.scale) else replace(self._linear(), **known)
        weights = measured["importances"][row] if importances is None else importances
        crowding = float(measured["crowding"].nan_to_num(nan=_UNKNOWN).max())  # one for all models of the probe
        convex = crowding >= CLUMPED and bool((weights > 0).all())
        if isinstance(self.method, PNorm) and convex:
            known["importances"] = weights.tolist()  # on a convex front, those of the point
        method = self.method.for_refining(reading, measured, None, row, importances)
        return replace(method, **known)  # type: ignore[type-var]

    def _linear(self) -> Linear:
        """The method of the probe."""
        return Linear(least=self.least, scale=self.scale)

    def _init(self, preferences: Tensor) -> State:
        weights = importances(preferences)
        count, tasks = weights.shape
        inner = self.method.init(self.method.spread(count, tasks))  # of the right shapes; not used before settle
        return {
            "weights": weights,
            "found": torch.full((count,), _PROBING),
            "directions": torch.ones(count, tasks, dtype=torch.float64),
            "crowding": torch.full((count,), _UNKNOWN, dtype=torch.float64),
            "mean": torch.zeros(count, tasks, dtype=torch.float64),
            "steps": torch.zeros(count, tasks, dtype=torch.float64),
            **{_INNER + name: tensor for name, tensor in inner.items()},
        }

    def _init_scale(self, preferences: Tensor) -> State:
        # The factors may change after the probe, so that the state always has some.
        ones = torch.ones(preferences.shape, dtype=torch.float64)
        return {FACTORS: ones} if self.scale is None else super()._init_scale(preferences)

    def init(self, preferences: Tensor) -> State:
        return {**self._init(preferences), **self._init_scale(preferences)}

    def _weigh(self, step: SafeStep, state: State) -> tuple[Tensor, State]:
        steps = state["steps"] + step.present.double()
        pull = torch.where(step.present, (_RECENT + 1.0) / (steps + _RECENT).clamp_min(1.0), 0.0)
        probing = (state["found"] == _PROBING)[:, None]
        mean = torch.where(probing, state["mean"] + pull * (step.losses - state["mean"]), state["mean"])
        state = {**state, "mean": mean, "steps": steps}
        fixed = self._has_fixed_weights(state)[:, None]
        if may_ask(fixed) and bool(fixed.all()):  # most steps of most runs: nothing more to compute
            return state["weights"], state
        before = _inner_state(state)
        weights, inner = self.method.weigh(_inner_step(step, self.probe_steps(step.total)), before)
        after = {_INNER + name: _where(fixed, before[name], tensor) for name, tensor in inner.items()}
        return torch.where(fixed, state["weights"], weights.double()), {**state, **after}

    def settle(self, state: State, healthy: Tensor) -> State:
        device = healthy.device
        factors = state[FACTORS]
        if isinstance(self.scale, str) and _begins_at_best(state["mean"], factors, healthy):
            found = torch.full_like(state["found"], _AT_BEST)
            return {**state, "found": found, FACTORS: torch.ones_like(factors)}
        measured = torch.where(state["steps"] > 0, state["mean"], torch.nan)  # a task may never have had a label
        reach = find_reachable(measured, state["weights"], healthy)
        count = len(healthy)
        code = _SAME if reach.directions is None else _CLUMPED if reach.clumped else _SPREAD
        known = _UNKNOWN if math.isnan(reach.crowding) else reach.crowding
        crowding = torch.full((count,), known, dtype=torch.float64, device=device)
        state = {**state, "found": torch.full((count,), code, device=device), "crowding": crowding}
        if reach.directions is None:
            return state
        directions = reach.directions
        if not bool((directions > 0).all()):  # a loss was zero so far, as that of a penalty that nothing violates
            directions = lift_zeros(directions)
        inner = {_INNER + name: t.to(device) for name, t in self.method.init(directions).items()}
        factors = torch.where(factors > 0, factors, 1.0) * reach.factors.to(device)
        return {**state, **inner, "directions": directions.to(device), FACTORS: factors}

    def directions_of(self, state: State) -> Tensor:
        on_ray = _has_ray(state) & ~self._has_fixed_weights(state)
        return torch.where(on_ray[:, None], state["directions"], torch.nan)

    def violation(self, state: State, losses: Tensor) -> Tensor | None:
        values = self.method.violation(_inner_state(state), self._scaled(losses, state))
        return None if values is None else torch.where(self._has_fixed_weights(state), 0.0, values)

    def status(self, state: State, losses: Tensor | None = None) -> list[str]:
        if losses is None:
            return super().status(state)
        words = self.method.status(_inner_state(state), self._scaled(losses, state))
        fixed = self._has_fixed_weights(state).tolist()  # fixed weights hold no model in a region
        return ["trained" if free else word for word, free in zip(words, fixed, strict=True)]

    def _scaled(self, losses: Tensor, state: State) -> Tensor:
        """Losses as the method sees them."""
        return torch.where(state[FACTORS] > 0, state[FACTORS], 1.0) * self._above_ideal(losses.double(), state)

    def _has_fixed_weights(self, state: State) -> Tensor:
        """Whether each model is trained with its interior weights now, ``[K]`` bool."""
        fixed = (state["found"] == _PROBING) | (state["found"] == _SAME) | (state["found"] == _AT_BEST)
        return fixed | (state["found"] == _SPREAD) if self.stays_linear else fixed

    def measured(self, state: State) -> dict[str, Tensor]:
        own = {"importances": state["weights"], "probe": state["mean"], "crowding": state["crowding"]}
        if isinstance(self.method, PNorm):
            own["p"] = torch.where(self._has_fixed_weights(state), 1.0, _inner_state(state)["p"])
        return {**self.method.measured(_inner_state(state)), **own}

    def decisions(self, state: State) -> tuple[str, ...]:
        found, crowding = int(state["found"][0]), float(state["crowding"][0])
        if found == _PROBING:
            return ("The run ended in its probe, which trains with fixed interior weights.",)
        if found == _AT_BEST:
            return (
                "A loss was divided by its small first value, and no model of the probe brought it below that: it "
                "begins near its best, as fairness gaps and penalties do, and its first value is no unit. The interior "
                "weights went on with the losses as they are.",
            )
        if found == _SAME and bool((state["steps"] == 0).all(0).any()):
            return ("A task had no losses in the probe, so the interior weights stayed.",)
        if found == _SAME:
            return (
                "The probe found no ratios of losses to tell apart, so the interior weights stayed: the tasks hardly "
                "conflict, or there are fewer models than tasks. One model may be enough.",
            )
        after = f"after the first {100 * self.probe:.3g} % of the run"
        gap = f"{after}, the typical gap was {crowding:.2g} times an even one"
        if found == _CLUMPED:
            return (
                f"Rays, with {self._then()}, because fixed weights left most of the front empty: {gap}, and under "
                f"{CLUMPED} the front looks concave. Each model went on along its own ray between the ends of the "
                "front.",
            )
        if crowding == _UNKNOWN:
            chosen = self._after_spread().partition(", because")[0]
            return (f"{chosen}: {after}, the spread of the models could not be compared with an even one.",)
        if crowding > _SCATTERED:
            gap += ", so they lie apart by chance or the probe was too short to tell"
        return (f"{self._after_spread()}: {gap}.",)

    def _after_spread(self) -> str:
        return f"The rays that models reached with fixed weights, with {self._then()}, because these keep models apart"

    def _then(self) -> str:
        """The method after the probe, with its options where these are not its defaults."""
        try:
            plain = self.method == type(self.method)()
        except TypeError:  # some options have no default
            plain = False
        return self.method.name if plain else describe(self.method)


@dataclass(frozen=True, repr=False)
class Auto(Reachable):
    """A probe chooses the method: interior weights where they spread, the p-norm where they clump.

    The default of :func:`paretomtl.fit`, as docs/concepts/choose-a-method.md explains. The first quarter of the run is
    linear scalarization with interior weights, on losses divided by their first values if these differ by more than a
    factor of 10. A loss that begins at its best, such as a fairness gap, shows in the probe, and the factors are
    dropped. If the models spread well by then, the front is convex as far as it can be seen, and they go on
    with their weights. If they clump at the ends of the front, the front is concave, and each goes on along a ray
    between the ends by :class:`~paretomtl.PNorm`. A step takes one backward pass. ``front.decisions`` says what
    was chosen and why.

    Args:
        method: what follows the probe if models clump.
        probe: the share of the run's steps before the choice.
        least: the least weight of each task, see :func:`paretomtl.preferences.interior`.
        scale: factors of the losses, as for :class:`~paretomtl.Linear`.

    Example:
        >>> import paretomtl as pm
        >>> front = pm.fit(pm.problems.quadratic(), preferences=5, epochs=300, device="cpu", progress="quiet")
        >>> front.method, front.reading, front.decisions[0][:45]
        ('auto', 'importance', 'Fixed weights, because they keep models apart')
    """

    name: ClassVar[str] = "auto"

    def for_part(self) -> Method:
        return self._linear()

    @property
    def stays_linear(self) -> bool:
        return True

    def _after_spread(self) -> str:
        return "Fixed weights, because they keep models apart"


def _where(fixed: Tensor, before: Tensor, after: Tensor) -> Tensor:
    """The state before a step for models with fixed weights, ``[K, 1]`` bool, and after it for others."""
    return torch.where(fixed.reshape(-1, *[1] * (after.ndim - 1)), before, after)


def _begins_at_best(mean: Tensor, factors: Tensor, healthy: Tensor) -> bool:
    """Whether the loss with the largest factor has not fallen in any model, in units of first values ``[K, m]``."""
    rows = healthy & (mean > 0).all(-1)
    if not bool(rows.any()) or bool((factors[rows] == 1.0).all()):
        return False
    smallest = factors[rows].mean(0).argmax()
    return bool((mean[rows][:, smallest] > _FELL).all())


def _has_ray(state: State) -> Tensor:
    """Whether each model has a direction that the probe found, ``[K]`` bool."""
    return (state["found"] == _SPREAD) | (state["found"] == _CLUMPED)


def _inner_state(state: State) -> State:
    return {name.removeprefix(_INNER): tensor for name, tensor in state.items() if name.startswith(_INNER)}


def _inner_step(step: SafeStep, before: int) -> Step:
    """The step as the method after ``before`` steps of a probe sees it, in the Gramian's own precision."""
    dtype = torch.float32 if step.precision > torch.finfo(torch.float64).eps else torch.float64
    gramian = step.gramian.to(dtype)
    number = (step.number - before).clamp_min(0) if isinstance(step.number, Tensor) else max(0, step.number - before)
    return Step(step.losses, gramian, step.present, number, max(0, step.total - before))
