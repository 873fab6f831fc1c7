"""The models of a front: a store that loads the weights of one model on demand.

A front is numbers and a model store. Tables, pages and choices need only the numbers. The store hides how weights are
kept: stacked in memory, in a file, as modules of any kind, or not at all. A front that is one set of weights for many
trade-offs, such as a mixture of a few models or adapters on a trunk, is another store:
``front/storage/model_files.py`` says how one is stored.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from paretomtl._support.module_tensors import load_tensors


class ModelStore(ABC):
    """Models of a front, by row. A store is truthy if it holds any.

    Attributes:
        kind: the name of this kind of store in a stored front; empty for a store that stays in memory.
    """

    kind: ClassVar[str] = ""

    @abstractmethod
    def __len__(self) -> int:
        """How many models there are: one for each row of the front, or none."""

    @abstractmethod
    def weights(self, row: int) -> dict[str, Tensor]:
        """Parameters and buffers of one model, by name; those of the others are not read."""

    def build(self, row: int, make: Callable[[], nn.Module] | None) -> nn.Module:
        """One model in eval mode, on the CPU.

        Args:
            row: the row of the model.
            make: makes a module, without these weights; None if unknown.
        """
        weights = self.weights(row)
        if make is None:
            raise ValueError(
                "'problem' must be given to Front.load for models to be made. Got None; state_dict(k) has the weights."
            )
        model = copy.deepcopy(make())  # its parts may be those of other models, or of the user
        dtype = next((tensor.dtype for tensor in weights.values() if tensor.is_floating_point()), None)
        wrong = load_tensors(model if dtype is None else model.to(dtype), weights)
        if wrong:
            raise ValueError(f"'problem' must make the model that was trained. Got one that differs in {wrong[:5]}.")
        return model.eval()

    def stacked(self) -> dict[str, Tensor]:
        """The weights of all models, stacked ``[K, ...]``, by name; what all have is a view of one."""
        return stack_rows([self.weights(row) for row in range(len(self))])

    def tensors(self) -> Mapping[str, Tensor]:
        """The tensors in a file of this kind."""
        return self.stacked()

    def verify(self) -> None:
        """Read every model; raise a ValueError for one that is damaged."""
        for row in range(len(self)):
            self.weights(row)


class NoModels(ModelStore):
    """No models at all: a front that has only losses, or of a run that still trains.

    Args:
        reason: the end of the error that a request for a model raises: what the front has, and where its models are.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __len__(self) -> int:
        return 0

    def weights(self, row: int) -> dict[str, Tensor]:
        raise ValueError(f"'row' must be of a front that has weights. Got row {row} of {self.reason}")


LOSSES_ALONE = NoModels(
    "a front that has only losses: take the model from where it was trained, or build the front with "
    "Front.from_models, which keeps the models."
)
"""The store of a front that was given as numbers."""

STILL_TRAINING = NoModels("a run that still trains: its models are in its checkpoints until it ends.")
"""The store of a front that was read from a log."""


class StackedModels(ModelStore):
    """Models of one architecture in memory.

    Args:
        parameters: parameters and buffers of all of them, stacked ``[K, ...]``, by name.

    Example:
        >>> store = StackedModels({"weight": torch.tensor([[1.0, 2.0], [3.0, 4.0]])})
        >>> store.weights(1)
        {'weight': tensor([3., 4.])}
    """

    kind = "stacked"

    def __init__(self, parameters: Mapping[str, Tensor]) -> None:
        self._parameters = dict(parameters)

    def __len__(self) -> int:
        return next((len(tensor) for tensor in self._parameters.values()), 0)

    def weights(self, row: int) -> dict[str, Tensor]:
        return {name: tensor[row] for name, tensor in self._parameters.items()}

    def stacked(self) -> dict[str, Tensor]:
        return dict(self._parameters)


def stack_rows(rows: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Weights of some models, stacked ``[K, ...]``, by name; values that all have are held once, as a view."""
    shapes = [{name: tensor.shape for name, tensor in row.items()} for row in rows]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError("'models' must have one architecture to be stacked. Got parameters of different shapes.")
    stacked: dict[str, Tensor] = {}
    for name, first in rows[0].items() if len(rows) > 1 else ():
        same = all(row[name] is first or torch.equal(row[name], first) for row in rows)
        stacked[name] = first.expand(len(rows), *first.shape) if same else torch.stack([row[name] for row in rows])
    return stacked or {name: tensor[None] for row in rows for name, tensor in row.items()}


def is_common(stacked: Tensor) -> bool:
    """Whether the rows of a tensor ``[K, ...]`` are one and the same memory."""
    return len(stacked) > 1 and stacked.stride(0) == 0


class SeparateModules(ModelStore):
    """Modules of any architectures in memory. They cannot be stored, because nothing could rebuild them.

    Args:
        modules: one for each row, in eval mode, on the CPU.
    """

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        self._modules = tuple(modules)

    def __len__(self) -> int:
        return len(self._modules)

    def weights(self, row: int) -> dict[str, Tensor]:
        module = self._modules[row]
        named = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        return {name: tensor.detach().clone() for name, tensor in named.items()}

    def build(self, row: int, make: Callable[[], nn.Module] | None) -> nn.Module:
        return copy.deepcopy(self._modules[row])
