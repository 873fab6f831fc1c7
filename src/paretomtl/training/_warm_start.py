"""A warm start: models that begin with the weights of a front.

It takes only weights. An optimizer's moments belong to other losses and another schedule, and a front stores none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from paretomtl._support.files.tensor_files import checksum_of
from paretomtl._support.module_tensors import load_tensors
from paretomtl.front import Front
from paretomtl.front.indicators import angles
from paretomtl.methods import Method
from paretomtl.problems import Problem

_SAME = 1e-6  # degrees between rows that count as one


@dataclass(frozen=True)
class Start:
    """The weights that models begin with.

    Attributes:
        parameters: those of a front, stacked, by name.
        solutions: the model of that front whose weights each model begins with.
        rows: the row of the parameters for each model.
        reference: that of the front, because the untrained models that it comes from are not available.
        weights: a checksum of the parameters.
        seeds: the random state that each of these models was made from, as weights belong to their attributes.
    """

    parameters: Mapping[str, Tensor]
    solutions: Mapping[int, int]
    rows: Mapping[int, int]
    reference: tuple[float, ...] | None
    weights: str
    seeds: Mapping[int, int]

    def in_words(self, subproblems: Sequence[int]) -> str:
        """The weights that some models begin with, which must be the same for a run to be resumed."""
        return f"solutions {[self.solutions[k] for k in subproblems]} of the front with weights {self.weights}"

    def load(self, module: nn.Module, k: int) -> None:
        """Load the weights of model k into a module; raise an error if names or shapes differ."""
        like = next(p for p in module.parameters() if p.is_floating_point())
        wrong = load_tensors(module, {name: _like(t[self.rows[k]], like) for name, t in self.parameters.items()})
        if wrong:
            raise ValueError(
                "'start' must be a front of this model, with parameters and buffers of the same names and shapes. "
                f"Got one that differs in {wrong[:5]}."
            )


def make_start(
    front: Any, problem: Problem, method: Method, preferences: Tensor, subproblems: Sequence[int]
) -> Start | None:
    """Choose the models of a front that new models begin with; None without a front.

    Args:
        front: the user's argument.
        problem: the problem to train.
        method: the method to train by.
        preferences: all rows ``[K, m]``.
        subproblems: which of them are trained.
    """
    if front is None:
        return None
    if not isinstance(front, Front):
        how = "; pretrained weights are loaded by 'model'" if isinstance(front, Mapping | nn.Module) else ""
        raise TypeError(
            f"'start' must be a Front, such as Front.load(folder) returns{how}. Got {type(front).__name__}."
        )
    if tuple(front.tasks) != tuple(problem.tasks):
        tasks = list(front.tasks)
        raise ValueError(f"'start' must be a front of the tasks {list(problem.tasks)}. Got one of {tasks} instead.")
    known = front.preferences[list(front.subproblems)]
    reading = front.reading
    if method.reading == "importance" and "importances" in front.measured:  # directions were found from these
        known, reading = front.measured["importances"], method.reading
    if reading != method.reading:
        raise ValueError(
            f"'start' must be a front whose preferences are read as '{method.reading}', as those of '{method.name}' "
            f"are: they decide which of its models a new one begins with. Got '{front.reading}', of '{front.method}', "
            f"instead. Begin with a front of {method.name!r}."
        )
    if not front.models:
        raise ValueError(
            "'start' must be a front with weights. Got one without: use one of fit() or Front.from_models()."
        )
    if not front.models.kind:
        raise ValueError(
            "'start' must be a front of models that 'problem.model' makes. Got one of Front.from_models() with modules "
            "of other architectures."
        )
    rows = (
        _by_number(front, subproblems)
        if method.reading == "start"
        else _nearest(front, known, preferences, subproblems)
    )
    parameters = front.models.stacked()
    for name, tensor in parameters.items():
        for k, row in rows.items():
            if tensor.is_floating_point() and not bool(tensor[row].isfinite().all()):
                raise ValueError(
                    f"'start' must be a front with finite weights. Got NaN or infinity in '{name}' of its model "
                    f"{front.subproblems[row]}, with which model {k} would begin."
                )
    solutions = {k: front.subproblems[row] for k, row in rows.items()}
    seeds = {k: front.model_seeds[row] for k, row in rows.items()}
    return Start(parameters, solutions, rows, front.reference, checksum_of(parameters)[:16], seeds)


def _nearest(front: Front, known: Tensor, preferences: Tensor, subproblems: Sequence[int]) -> dict[int, int]:
    """For each model the row of the model with its preference, or otherwise with the nearest one by angle.

    ``known [K, m]`` are the preferences of the models.
    """
    rows = {}
    for k in subproblems:
        apart = angles(known, preferences[k].expand_as(known)).nan_to_num(nan=360.0)
        near = (apart <= apart.min() + _SAME).nonzero().flatten().tolist()
        own = front.subproblems.index(k) if k in front.subproblems else -1  # among equal rows, prefer the same number
        rows[k] = own if own in near else near[0]
    return rows


def _by_number(front: Front, subproblems: Sequence[int]) -> dict[int, int]:
    missing = [k for k in subproblems if k not in front.subproblems]
    if missing:
        raise ValueError(
            f"'start' must have the models {list(subproblems)} for a method without preferences. Got a front "
            f"without {missing}."
        )
    return {k: front.subproblems.index(k) for k in subproblems}


def _like(tensor: Tensor, like: Tensor) -> Tensor:
    return tensor.to(like.device, like.dtype if tensor.is_floating_point() else tensor.dtype)
