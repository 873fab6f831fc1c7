"""Modules of the user's factory: made, checked, copied.

Models own what they train. Tensors that a factory shares between its modules, such as a pretrained trunk, are copied,
so that no model trains those of another, or the user's. Frozen parameters with the same values are held once.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Collection, Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from paretomtl._support.random_state import isolated_randomness, seed_everything
from paretomtl.engine.batches.structure import map_tensors
from paretomtl.engine.models.module_checks import (
    check_hooks,
    check_shapes,
    has_hooks,
    set_train_modes,
    why_untrained,
)
from paretomtl.engine.processes import check_unwrapped
from paretomtl.problems import Problem


class FrozenParameter(nn.Parameter):
    """A parameter without a gradient that all models of a run hold once; copies of a module share it."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def make_modules(
    problem: Problem,
    seeds: Sequence[int],
    device: torch.device,
    dtype: torch.dtype,
    *,
    load: Callable[[nn.Module, int], object] | None = None,
    changing: Collection[str] = (),
    check: Callable[[nn.Module], object] | None = None,
) -> list[nn.Module]:
    """One model per random state, checked to be models of one architecture with something to train.

    Args:
        problem: whose factory makes them.
        seeds: of the random states.
        device: of their tensors.
        dtype: of their floating-point tensors.
        load: loads other values into the module of this number.
        changing: names of frozen parameters that passes change, which each model must have for itself.
        check: called with the first module, before the others are made.
    """
    modules: list[nn.Module] = []
    first = None
    with isolated_randomness():
        for k, seed in enumerate(seeds):
            seed_everything(seed)
            made = problem.model()
            _check_made(made)
            if k == 0 and check is not None:
                check(made)
            if k == 1:
                _check_shared(first, made)
            first = made if k == 0 else None
            # Later models take the frozen parameters of the first one, so theirs are not copied to be compared.
            frozen = [] if k == 0 or load else [p for p in made.parameters() if type(p) is nn.Parameter]
            memo: dict[int, Any] = {id(p): nn.Parameter(p.detach(), False) for p in frozen if not p.requires_grad}
            module = made if has_hooks(made) else copy_module(made, memo)  # copies of parameters have no hooks
            del made
            modules.append(module.to(device=device, dtype=dtype))
            if load is not None:
                load(module, k)
            if k and not has_hooks(module):
                _take_frozen(module, modules[0], changing)
    if not any(p.requires_grad for p in modules[0].parameters()):
        raise ValueError(f"'model' must have parameters to train. Got none{why_untrained(modules[0])}.")
    check_shapes([{name: list(tensor.shape) for name, tensor in named_tensors(module).items()} for module in modules])
    if not any(map(has_hooks, modules)):
        _hold_frozen_once(modules, changing)
    return modules


def _check_made(module: Any) -> None:
    """Refuse what a factory made if it cannot be trained, and put it in its modes for training."""
    if not isinstance(module, nn.Module):
        raise TypeError(f"'model' must make an nn.Module. Got {type(module).__name__} instead.")
    check_unwrapped(module)
    lazy = [name for name, tensor in named_tensors(module).items() if is_lazy(tensor)]
    if lazy:
        raise ValueError(
            f"'model' must make modules whose parameters have their shapes. Got lazy ones, {lazy[:5]}: let the "
            "factory call the module once, on a batch of zeros."
        )
    complex_ones = [name for name, tensor in named_tensors(module).items() if tensor.is_complex()]
    if complex_ones:
        raise TypeError(
            f"'model' must have real parameters and buffers. Got complex ones, {complex_ones[:5]}: keep real "
            "and imaginary parts (torch.view_as_real) instead."
        )
    check_hooks("model", module.named_parameters())
    set_train_modes(module)


def _check_shared(one: nn.Module | None, other: nn.Module) -> None:
    """Warn of trained parameters that two modules of a factory share; refuse them where copies would lose hooks."""
    assert one is not None
    known = {p.untyped_storage().data_ptr() for p in one.parameters() if p.requires_grad and p.numel()}
    names = [name for name, p in other.named_parameters() if p.untyped_storage().data_ptr() in known]
    if names and has_hooks(other):
        raise ValueError(
            f"'model' must make new parameters at each call where gradients go through hooks. Got shared ones, "
            f"{names[:3]}: let 'model' copy what they belong to (copy.deepcopy) before it registers the hooks."
        )
    if names:
        warnings.warn(
            f"the modules that 'model' makes share parameters that are trained, {names[:3]}: each model trains a copy "
            "of them, and the shared ones stay as they are. Let 'model' return a copy (copy.deepcopy) to say so, or "
            "freeze them (requires_grad_(False)) if they should stay the same.",
            stacklevel=6,
        )


def _replace(module: nn.Module, tensors: dict[int, nn.Parameter]) -> None:
    """Replace parameters, by their identity, wherever a module holds them."""
    for name, parameter in list(module.named_parameters(remove_duplicate=False)):
        if id(parameter) in tensors:
            owner, _, leaf = name.rpartition(".")
            setattr(module.get_submodule(owner), leaf, tensors[id(parameter)])


def _take_frozen(module: nn.Module, first: nn.Module, changing: Collection[str]) -> None:
    """Replace frozen parameters by those of the first model where they are equal, and by copies elsewhere."""
    known = dict(first.named_parameters())
    replaced: dict[int, nn.Parameter] = {}
    for name, parameter in module.named_parameters():
        if type(parameter) is nn.Parameter and not parameter.requires_grad:
            other = known.get(name)
            same = name not in changing and other is not None and not other.requires_grad and _equal(parameter, other)
            replaced[id(parameter)] = other if same and other is not None else _own(parameter)
    _replace(module, replaced)


def _hold_frozen_once(modules: Sequence[nn.Module], changing: Collection[str]) -> None:
    """Mark the frozen parameters that all models hold as one; those that only some share become their own."""
    parameters = [dict(module.named_parameters()) for module in modules]
    once: dict[int, nn.Parameter] = {}
    for name, parameter in parameters[0].items():
        if type(parameter) is not nn.Parameter or parameter.requires_grad or name in changing:
            continue
        if all(each[name] is parameter for each in parameters):
            once[id(parameter)] = FrozenParameter(parameter.detach(), False)
        else:
            for module, each in zip(modules[1:], parameters[1:], strict=True):
                if each[name] is parameter:
                    _replace(module, {id(parameter): _own(parameter)})
    for module in modules:
        _replace(module, once)


def separate_frozen(modules: Sequence[nn.Module], names: Collection[str]) -> None:
    """Give each model its own copies of frozen parameters that were held once, because passes change them."""
    for module in modules:
        _replace(module, {id(p): _own(p) for name, p in module.named_parameters() if name in names})


def _own(parameter: Tensor) -> nn.Parameter:
    return nn.Parameter(parameter.detach().clone(), requires_grad=False)


def _equal(one: Tensor, other: Tensor) -> bool:
    alike = one.shape == other.shape and one.dtype == other.dtype
    return alike and (one.data_ptr() == other.data_ptr() or torch.equal(one, other))


def frozen_tensors(module: nn.Module) -> dict[str, Tensor]:
    """The parameters that all models of a run hold once, by name."""
    return {name: p.detach() for name, p in module.named_parameters() if isinstance(p, FrozenParameter)}


def copy_module(module: nn.Module, memo: dict[int, Any] | None = None) -> nn.Module:
    """A copy; a ValueError for a module that cannot be copied. ``memo`` is that of ``copy.deepcopy``."""
    try:
        return copy.deepcopy(module, memo)
    except Exception as error:
        raise ValueError(
            f"'model' must make modules that can be copied (copy.deepcopy). Got one that cannot: {error} "
            "In place of torch.nn.utils.weight_norm, take torch.nn.utils.parametrizations.weight_norm."
        ) from error


def named_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name."""
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def own_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name, without those that all models of a run hold once."""
    return {name: tensor for name, tensor in named_tensors(module).items() if not isinstance(tensor, FrozenParameter)}


def copy_modules(modules: Sequence[nn.Module]) -> list[nn.Module]:
    """Copies of models, for trials."""
    return [copy.deepcopy(module) for module in modules]


def copy_template(module: nn.Module, *, frozen: bool = False) -> nn.Module:
    """A copy of the template module of a stack, for the values of one model.

    Tensors that its passes kept, such as attention maps, belong to vmap or to a graph and cannot be copied. The next
    pass of the copy writes its own. With ``frozen``, what all models hold once is copied as well.
    """
    memo: dict[int, Tensor] = {id(p): _own(p) for p in module.parameters() if frozen and isinstance(p, FrozenParameter)}

    def leave_out(tensor: Tensor) -> Tensor:
        if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            memo[id(tensor)] = torch.empty(0)
        elif not tensor.is_leaf:
            memo[id(tensor)] = tensor.detach()
        return tensor

    for part in module.modules():
        for name, value in vars(part).items():
            if name not in ("_parameters", "_buffers", "_modules"):
                map_tensors(leave_out, value)
    return copy.deepcopy(module, memo)
