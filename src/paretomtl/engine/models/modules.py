"""Modules of the user's factory: made, checked, copied."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from paretomtl._support.random_state import isolated_randomness, seed_everything
from paretomtl.engine.batches.structure import map_tensors
from paretomtl.engine.models.module_checks import check_hooks, check_shapes, set_train_modes, why_untrained
from paretomtl.engine.processes import check_unwrapped
from paretomtl.problems import Problem


def make_modules(problem: Problem, seeds: Sequence[int], device: torch.device, dtype: torch.dtype) -> list[nn.Module]:
    """One model per random state, checked to be models of one architecture with something to train."""
    modules: list[nn.Module] = []
    with isolated_randomness():
        for seed in seeds:
            seed_everything(seed)
            module = problem.model()
            if not isinstance(module, nn.Module):
                raise TypeError(f"'model' must make an nn.Module. Got {type(module).__name__} instead.")
            check_unwrapped(module)
            if any(module is other for other in modules):
                raise ValueError(
                    "'model' must make a new module at each call. Got the same one twice: return copy.deepcopy(model)."
                )
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
            modules.append(module.to(device=device, dtype=dtype))
    if not any(p.requires_grad for p in modules[0].parameters()):
        raise ValueError(f"'model' must have parameters to train. Got none{why_untrained(modules[0])}.")
    check_shapes([{name: list(tensor.shape) for name, tensor in named_tensors(module).items()} for module in modules])
    return modules


def copy_module(module: nn.Module) -> nn.Module:
    """A copy for trials; a ValueError for a module that cannot be copied."""
    try:
        return copy.deepcopy(module)
    except Exception as error:
        raise ValueError(
            f"'model' must make modules that can be copied (copy.deepcopy), for trials. Got one that cannot: {error} "
            "In place of torch.nn.utils.weight_norm, take torch.nn.utils.parametrizations.weight_norm."
        ) from error


def named_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name."""
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def copy_modules(modules: Sequence[nn.Module]) -> list[nn.Module]:
    """Copies of models, for trials."""
    return [copy.deepcopy(module) for module in modules]


def copy_template(module: nn.Module) -> nn.Module:
    """A copy of the template module of a stack, for the values of one model.

    Tensors that its passes kept, such as attention maps, belong to vmap or to a graph and cannot be copied. The next
    pass of the copy writes its own.
    """
    memo: dict[int, Tensor] = {}

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
