"""Named parameters, as optimizer factories get them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor


class NamedParameter(tuple[str, Tensor]):
    """A pair of a name and a tensor with the attributes of the tensor.

    Optimizers of torch accept such pairs. Code that was written for ``model.parameters()``, such as
    ``[q for q in p if q.requires_grad]``, works as well.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copy and pickle probe for methods that a pair does not have
            raise AttributeError(f"a pair of a name and a parameter has no {name!r}")
        return getattr(self[1], name)


def name_parameters(parameters: Mapping[str, Tensor]) -> list[tuple[str, Tensor]]:
    """Turn a mapping of parameters into pairs."""
    return [NamedParameter(pair) for pair in parameters.items()]
