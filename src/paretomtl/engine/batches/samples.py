"""Samples of a Dataset, collated to a batch: errors name the sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch.utils.data import default_collate


def read_batch(name: str, dataset: Any, numbers: Sequence[int]) -> Any:
    """Read samples by number, and collate them; a note on an error names the sample.

    Args:
        name: of the split.
        dataset: what has the samples.
        numbers: which of them.
    """
    samples = []
    for number in numbers:
        try:
            samples.append(dataset[number])
        except Exception as error:
            error.add_note(f"This came from sample {number} of '{name}' ({type(dataset).__name__}).")
            raise
    try:
        return default_collate(samples)
    except Exception as error:
        shapes = [_shapes(sample) for sample in samples]
        other = next((at for at, shape in enumerate(shapes) if shape != shapes[0]), None)
        if other is not None:
            error.add_note(
                f"Samples of '{name}' must have the same shapes to make a batch: sample {numbers[0]} has {shapes[0]}, "
                f"and sample {numbers[other]} has {shapes[other]}."
            )
        raise


def _shapes(sample: Any) -> list[list[int]]:
    """The shapes of the tensors and arrays of a sample."""
    if hasattr(sample, "shape"):
        return [list(sample.shape)]
    parts = sample.values() if isinstance(sample, Mapping) else sample if isinstance(sample, (tuple, list)) else ()
    return [shape for part in parts for shape in _shapes(part)]
