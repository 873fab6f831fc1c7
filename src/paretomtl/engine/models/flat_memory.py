"""Flat memory: the values of models by name in a few blocks, so that an operation on all of them is cheap.

In a captured step all values of a single model (parameters, buffers, their values one and two steps ago) lie in one
block per dtype, so that restoring them is one operation. A buffer that is replaced would be lost to a replay, so
models that replace buffers are not captured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

_ALIGNED = 64  # numbers; tensors begin at multiples of it, as libraries prefer


@dataclass(frozen=True)
class FlatBlock:
    """Tensors of one dtype in one piece of memory, each with its own shape and strides.

    Attributes:
        values: all numbers, tensor after tensor.
        rows: the model that each number belongs to; None where there is one model.
        places: shape, strides and offset of each tensor, by name.
    """

    values: Tensor
    rows: Tensor | None
    places: dict[str, tuple[torch.Size, tuple[int, ...], int]]

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor]) -> FlatBlock:
        """Copies of tensors ``[K, ...]`` that leave no gaps."""
        first = next(iter(tensors.values()))
        places, size = {}, 0
        for name, tensor in tensors.items():
            places[name] = tensor.shape, tensor.stride(), size
            size += -(-tensor.numel() // _ALIGNED) * _ALIGNED
        rows = None if len(first) == 1 else torch.zeros(size, dtype=torch.long, device=first.device)
        block = cls(torch.zeros(size, dtype=first.dtype, device=first.device), rows, places)
        models = torch.arange(len(first), device=first.device)
        for name, view in block.views().items():
            view.copy_(tensors[name].detach())
            if rows is not None:
                rows.as_strided(*places[name]).copy_(models.reshape(-1, *[1] * (view.ndim - 1)))
        return block

    def views(self) -> dict[str, Tensor]:
        """The tensors, as views of the block."""
        return {name: self.values.as_strided(*place) for name, place in self.places.items()}

    def copy(self) -> FlatBlock:
        """A copy of the values in new memory."""
        return FlatBlock(self.values.clone(), self.rows, self.places)

    def has_layout_of(self, other: FlatBlock) -> bool:
        """Whether both have the same tensors at the same offsets."""
        same = self.places is other.places or self.places == other.places
        return same and self.values.dtype == other.values.dtype

    def write(self, other: FlatBlock, rows: Tensor | None) -> None:
        """Copy the values of a block with this layout, for the models in ``rows [K]`` bool or for all."""
        if rows is None:
            self.values.copy_(other.values)
            return
        mask = rows if self.rows is None else rows.index_select(0, self.rows)
        torch.where(mask, other.values, self.values, out=self.values)


class ModelState(dict[str, Tensor]):
    """Tensors ``[K, ...]`` by name, some of which may lie in blocks."""

    def __init__(self, blocks: Sequence[FlatBlock], tensors: Mapping[str, Tensor]) -> None:
        super().__init__(tensors)
        self.blocks = blocks

    def copy(self) -> ModelState:
        """A copy of the values in new memory, in blocks of the same layout."""
        blocks = [block.copy() for block in self.blocks]
        views = {name: view for block in blocks for name, view in block.views().items()}
        return ModelState(
            blocks, {name: views[name] if name in views else tensor.clone() for name, tensor in self.items()}
        )

    def follow(self, current: ModelState) -> None:
        """Copy the current values of the models that these are a copy of."""
        self._grow(current)
        self.write(current)

    @torch.no_grad()
    def move_towards(self, values: ModelState, weight: Tensor) -> None:
        """Move floating-point values by a share of the way to others, in place; copy integers.

        Args:
            values: those of the same models.
            weight: the share, a tensor without dimensions on their device.
        """
        self._grow(values)
        blocks = self._common_blocks(values)
        inside = {name for block, _ in blocks for name in block.places}
        pairs = [(block.values, other.values) for block, other in blocks]
        for own, other in pairs + [(self[name], tensor) for name, tensor in values.items() if name not in inside]:
            if own.is_floating_point():
                own.lerp_(other, weight.to(own.dtype))
            else:
                own.copy_(other)

    def _grow(self, current: Mapping[str, Tensor]) -> None:
        """Make room for buffers that were made, or grew, in a forward pass."""
        for name, tensor in current.items():
            if name not in self or self[name].shape != tensor.shape:
                self[name] = tensor.clone()

    def _common_blocks(self, values: Mapping[str, Tensor]) -> list[tuple[FlatBlock, FlatBlock]]:
        """The blocks that have the same layout here and there."""
        if not isinstance(values, ModelState) or len(self.blocks) != len(values.blocks):
            return []
        pairs = zip(self.blocks, values.blocks, strict=True)
        return [(block, other) for block, other in pairs if block.has_layout_of(other)]

    @torch.no_grad()
    def write(self, values: Mapping[str, Tensor], rows: Tensor | None = None) -> None:
        """Copy values of these names in place, for the models in ``rows [K]`` bool or for all."""
        inside: set[str] = set()
        for block, other in self._common_blocks(values):
            block.write(other, rows)
            inside |= block.places.keys()
        names = [name for name in self if name in values and name not in inside]
        if rows is None and names:
            torch._foreach_copy_([self[name] for name in names], [values[name] for name in names])
        elif rows is not None:
            for name in names:
                tensor = self[name]
                torch.where(rows.reshape(-1, *[1] * (tensor.ndim - 1)), values[name], tensor, out=tensor)


def make_blocks(tensors: Mapping[str, Tensor]) -> list[FlatBlock]:
    """A block for each dtype; none where tensors share memory or have gaps, which blocks would lose."""
    storages = {tensor.untyped_storage().data_ptr() for tensor in tensors.values()}
    if len(storages) < len(tensors) or not all(_dense(tensor) for tensor in tensors.values()):
        return []
    kinds = dict.fromkeys(tensor.dtype for tensor in tensors.values())
    return [FlatBlock.of({name: t for name, t in tensors.items() if t.dtype == kind}) for kind in kinds]


def _dense(tensor: Tensor) -> bool:
    """Whether a tensor fills its memory without gaps, in some order of its dimensions."""
    expected = 1
    for size, stride in sorted(zip(tensor.shape, tensor.stride(), strict=True), key=lambda pair: pair[1]):
        if size > 1 and stride != expected:
            return False
        expected *= size
    return tensor.numel() > 0
