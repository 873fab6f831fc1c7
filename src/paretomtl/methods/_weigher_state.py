"""The stored state of one subproblem: whose it is, and whether it is that of the weigher at hand."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping

import torch
from torch import Tensor

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_BOUND = ("method", "preferences", "index")


def to_letters(text: str) -> Tensor:
    """A text as a tensor of bytes, so that a state is tensors alone."""
    return torch.tensor(list(_ADDRESS.sub("", text).encode()), dtype=torch.uint8)


def check_saved(saved: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Refuse a state of another configuration, with the first difference.

    Args:
        saved: what is to be loaded.
        expected: what the weigher at hand would save.
    """
    if not isinstance(saved, Mapping) or not all(isinstance(each, Tensor) for each in saved.values()):
        raise TypeError(f"'saved' must be what state_dict() returned: tensors by name. Got {type(saved).__name__}.")
    if "method" in saved:
        mine, theirs = (_text(each["method"]) for each in (expected, saved))
        if mine != theirs:
            raise ValueError(f"'saved' must be of the same method: {mine}. Got {theirs} instead.")
    for name in ("preferences", "index"):
        _check_same(name, saved, expected)
    for name in expected:
        if name not in saved and name != "method":
            raise ValueError(f"'saved' must have {name!r}, as this weigher's state has. Got {sorted(saved)} instead.")
    for name in saved:
        if name not in expected:
            raise ValueError(f"'saved' must have {sorted(expected)} alone. Got {name!r} besides.")
    for name, tensor in expected.items():
        if name in _BOUND:
            continue
        mine, theirs = (f"{list(each.shape)} of {each.dtype}" for each in (tensor, saved[name]))
        if mine != theirs:
            raise ValueError(f"'saved' must have {name!r} of shape {mine}. Got {theirs} instead.")
    if "method" not in saved:
        warnings.warn(
            "this state does not say whose it is, as an earlier version saved it. Its tensors fit, so that it is taken "
            f"for one of {_text(expected['method'])}.",
            stacklevel=3,
        )


def _check_same(name: str, saved: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    if name not in saved:
        raise ValueError(f"'saved' must have {name!r}, as state_dict() returns it. Got {sorted(saved)} instead.")
    mine, theirs = expected[name], saved[name].cpu()
    if mine.shape != theirs.shape:
        shapes = f"{list(mine.shape)}. Got {list(theirs.shape)}"
        raise ValueError(f"'saved' must have {name!r} of shape {shapes} instead.")
    if not torch.equal(mine, theirs):
        if mine.ndim:
            row = int((mine != theirs).any(-1).nonzero()[0])
            raise ValueError(
                f"'saved' must be of the same {name}: {mine[row].tolist()} in row {row}. Got {theirs[row].tolist()}."
            )
        raise ValueError(f"'saved' must be of the same {name}: {mine.tolist()}. Got {theirs.tolist()} instead.")


def _text(letters: Tensor) -> str:
    return bytes(letters.flatten().to(torch.uint8).tolist()).decode(errors="replace")
