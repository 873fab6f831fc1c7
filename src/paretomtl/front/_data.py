"""The data of a front: the numbers of K models, below everything that reads, prints, stores or chooses them.

:class:`paretomtl.Front` adds the methods. Helpers take a :class:`FrontData`, so that none of them imports the class
that calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torch import Tensor, nn

from paretomtl._support.argument_checks import quote
from paretomtl._support.random_state import model_seed
from paretomtl._support.splits import ranking_split, shown_splits
from paretomtl.front.models import LOSSES_ALONE, ModelStore

if TYPE_CHECKING:
    from paretomtl.problems import Problem


@dataclass(frozen=True, repr=False, eq=False)
class FrontData:
    """The fields of a front. :class:`paretomtl.Front` describes each of them."""

    problem: str
    method: str
    tasks: tuple[str, ...]
    reading: str
    preferences: Tensor
    subproblems: tuple[int, ...]
    losses: Mapping[str, Tensor]
    scale: Tensor | None
    status: Sequence[str]
    since: Sequence[int] | None
    history: Mapping[str, Tensor]
    seed: int | None
    seconds: float
    models: ModelStore = LOSSES_ALONE
    model_factory: Callable[[], nn.Module] | None = None
    snapshot: FrontData | None = None
    metrics: Mapping[str, Mapping[str, Tensor]] = field(default_factory=dict)
    better: Mapping[str, str] = field(default_factory=dict)
    epochs: Sequence[int] = ()
    complete: bool = True
    strategy: str = ""
    reference: tuple[float, ...] | None = None
    ideal: tuple[float, ...] | None = None
    measured: Mapping[str, Tensor] = field(default_factory=dict)
    made_by: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    names: Sequence[str] = ()
    ended: str = ""
    decisions: tuple[str, ...] = ()
    data: Mapping[str, str] = field(default_factory=dict)
    probes: Mapping[str, Tensor] = field(default_factory=dict)
    checked_by: Problem | None = None
    model_seeds: Sequence[int] = ()

    def __post_init__(self) -> None:
        if not self.model_seeds:
            object.__setattr__(self, "model_seeds", [model_seed(self.seed or 0, k) for k in self.subproblems])

    def __len__(self) -> int:
        return len(self.subproblems)

    @property
    def ranking_split(self) -> str:
        """The split that chooses and ranks models, validation or else training, and test only if it is alone."""
        return ranking_split(self.losses)

    @property
    def shown_splits(self) -> tuple[str, ...]:
        """The splits in tables and figures, which are the ranking split, and test if there is one."""
        return shown_splits(self.losses)


def losses_on(front: FrontData, split: str | None) -> Tensor:
    """Losses ``[K, m]`` on a split, the ranking split by default."""
    split = front.ranking_split if split is None else split
    if not isinstance(split, str) or split not in front.losses:
        raise ValueError(f"'split' must be one of {list(front.losses)}. Got {quote(split)} instead.")
    return front.losses[split]


def finite_losses(front: FrontData, split: str | None) -> Tensor:
    """Losses in float64 of the models whose losses are all finite."""
    losses = losses_on(front, split).double()
    return losses[losses.isfinite().all(-1)]


def scaled_losses(front: FrontData, split: str | None) -> Tensor:
    """Losses ``[K, m]`` in float64, relative to the ideal point and multiplied by the factors of training."""
    losses = losses_on(front, split).double()
    if front.ideal is not None:
        losses = (losses - losses.new_tensor(front.ideal)).clamp_min(0.0)
    return losses * (1.0 if front.scale is None else front.scale)


def check_same_data(front: FrontData, other: FrontData, splits: Sequence[str]) -> None:
    """Refuse another front whose losses on a split are those of other data, as far as checksums are known."""
    for split in splits:
        known = {each.data[split] for each in (front, other) if isinstance(split, str) and split in each.data}
        if len(known) > 1:
            raise ValueError(
                f"'others' must be fronts whose losses were measured on the same data. Got one with another '{split}' "
                "split: measure all of its models on one problem, with Front.from_models."
            )
