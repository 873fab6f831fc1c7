"""Checks of modules: modes, hooks, shapes."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence

from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd


def set_train_modes(module: nn.Module) -> None:
    """Put a module in its modes for training, as ``train()`` would.

    An override of ``train``, such as one that keeps normalisation in eval mode, is called. Parts that the factory put
    in eval mode stay in it; a module that is in eval mode as a whole is refused.
    """
    for part in module.modules():
        if type(part).train is not nn.Module.train:
            part.train(part.training)
    if not module.training:
        raise ValueError(
            "'model' must make a module in train mode. Got one in eval mode, as functions that load pretrained "
            "networks return them: dropout would be off, and normalisation would keep its statistics. Let 'model' call "
            "train() on it, and eval() on the parts that stay in eval mode."
        )


def warn_if_dropout_off(module: nn.Module) -> None:
    """Warn if dropout is off in a part that is trained."""
    outer = ""
    for name, part in module.named_modules():
        if part.training or (outer and name.startswith(outer)):
            continue
        outer = f"{name}."
        off = any(isinstance(inner, _DropoutNd) and inner.p > 0 and not inner.training for inner in part.modules())
        if off and any(p.requires_grad for p in part.parameters()):
            warnings.warn(
                f"dropout of {name!r} is off: 'model' makes it in eval mode, as functions that load pretrained "
                "networks do. Let 'model' call train() on it; a part without gradients may stay in eval mode.",
                stacklevel=7,
            )


def has_hooks(module: nn.Module) -> bool:
    """Whether gradients go through hooks of parameters or modules, which stacks do not run, and some copies lack."""
    return any(p._backward_hooks for p in module.parameters()) or any(
        part._backward_hooks or part._backward_pre_hooks for part in module.modules()
    )


def check_hooks(name: str, parameters: Iterable[tuple[str, Tensor]]) -> None:
    """Refuse hooks that wait for gradients to be accumulated."""
    hooked = [each for each, parameter in parameters if getattr(parameter, "_post_accumulate_grad_hooks", None)]
    if hooked:
        raise ValueError(
            f"'{name}' must have no register_post_accumulate_grad_hook: gradients are taken task by task, and hooks "
            f"that wait for the sum never run. Got {', '.join(map(repr, hooked[:3]))}: let the optimizer do it."
        )


def why_untrained(module: nn.Module) -> str:
    """Why a module has no parameters to train, to be appended to an error."""
    frozen = sum(1 for _ in module.parameters())
    if frozen:
        return f": all {frozen} are frozen. Call requires_grad_(True) on the part that is to be trained"
    return f" in {type(module).__name__}. Layers in a plain list are not found: use nn.ModuleList"


def check_shapes(shapes: Sequence[Mapping[str, list[int]]]) -> None:
    """Refuse modules whose parameters and buffers differ, each given by its names and shapes."""
    first = shapes[0]
    for k, other in enumerate(shapes):
        if other == first:
            continue
        name = next(name for name in (*first, *other) if first.get(name) != other.get(name))
        raise ValueError(
            "'model' must make the same architecture at each call. Got parameters of different shapes: "
            f"{name!r} is {first.get(name)} in the first and {other.get(name)} in number {k}."
        )
