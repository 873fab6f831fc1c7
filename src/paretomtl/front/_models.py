"""The models of a front: their weights by name, and modules that have them."""

from __future__ import annotations

import copy
import warnings

import torch
from torch import Tensor, nn

from paretomtl._support.module_tensors import load_tensors
from paretomtl._support.random_state import isolated_randomness, model_seed, seed_everything
from paretomtl.front._data import FrontData


def weights_of(front: FrontData, row: int) -> dict[str, Tensor]:
    """Parameters and buffers of the solution in a row, by name."""
    if front.parameters:
        return {name: tensor[row] for name, tensor in front.parameters.items()}
    if front.modules:
        module = front.modules[row]
        named = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        return {name: tensor.detach().clone() for name, tensor in named.items()}
    which = f"solution {front.subproblems[row]}" + (f" ({front.names[row]})" if front.names else "")
    raise ValueError(
        f"'k' must be of a front that has weights. Got {which} of a front that has losses alone: take the model from "
        "where it was trained, or make the front by Front.from_models, which keeps the models."
    )


def model_of(front: FrontData, row: int) -> nn.Module:
    """The model of the solution in a row, in eval mode, on the CPU."""
    weights = weights_of(front, row)
    if not front.parameters:
        return copy.deepcopy(front.modules[row]).cpu().eval()
    if front.model_factory is None:
        raise ValueError(
            "'problem' must be given to Front.load for models to be made. Got None; state_dict(k) has the weights."
        )
    with isolated_randomness(), torch.inference_mode(False):
        seed_everything(model_seed(front.seed or 0, front.subproblems[row]))
        model = front.model_factory()
    dtype = next((tensor.dtype for tensor in weights.values() if tensor.is_floating_point()), None)
    wrong = load_tensors(model if dtype is None else model.to(dtype), weights)
    if wrong:
        raise ValueError(f"'problem' must make the model that was trained. Got one that differs in {wrong[:5]}.")
    return model.eval()


def warn_of_modules(front: FrontData) -> None:
    """Say before a front is stored that its models are not, where it only holds them in memory."""
    if front.modules:
        reason = "the models are not stored, as 'problem.model' does not make them; their losses and metrics are."
        warnings.warn(f"{reason} Keep your own checkpoints.", stacklevel=3)
