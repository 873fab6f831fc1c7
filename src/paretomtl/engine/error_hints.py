"""Hints for users whose model or losses raised an error, or ran on values that they were not meant for."""

from __future__ import annotations

import contextlib
import copy
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from paretomtl._support.random_state import isolated_randomness
from paretomtl.engine.batches.structure import map_tensors
from paretomtl.problems import Problem
from paretomtl.problems.task_losses import TaskLosses

_DIFFERENCES = {
    torch.Tensor.sub,
    torch.Tensor.__sub__,
    torch.Tensor.__rsub__,
    torch.sub,
    torch.subtract,
    torch.nn.functional.mse_loss,
    torch.nn.functional.l1_loss,
    torch.nn.functional.smooth_l1_loss,
    torch.nn.functional.huber_loss,
}

_PRODUCT = re.compile(r"shapes cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)")
_HINTS = {
    r"to have \d+ channels, but got": (
        "Images are [samples, channels, height, width]: write images[:, None] for grey images without channels, and "
        "images.permute(0, 3, 1, 2) where channels come last."
    ),
    r"can't be cast to the desired output type long": (
        "binary_cross_entropy takes floating-point targets: write targets.float()."
    ),
    r"target size .* input size": (
        "Outputs and targets need the same shape: write outputs[:, 0] for a column of outputs, or targets[:, None]."
    ),
    r"forward\(\) missing \d+ required positional": (
        "model(inputs) gets one argument. For several inputs, let batches be dictionaries, and write "
        "losses(model, batch), which calls model(batch['a'], batch['b'])."
    ),
    r"'(tuple|list|dict)' (object has no attribute|and '(tensor|float|int)')": (
        "Where the model returns several outputs, 'outputs' holds all of them: take its parts, such as outputs[0]."
    ),
    r"on the same device|not on the expected device": (
        "The batch and the model are on one device: make tensors in losses with device=outputs.device, and keep "
        "constants, such as class weights, in a buffer of the model (register_buffer)."
    ),
    r"must be tensor, not (list|tuple|str)": (
        "Some inputs are not tensors: let the Dataset return tensors, such as torch.tensor(row), and encode text."
    ),
    r"stack expects each tensor to be equal size|each element in list of batch should be of equal size": (
        "Samples differ in size: crop or pad them in the Dataset, or pass a DataLoader with a collate_fn that does."
    ),
    r"more than 1 value per channel": (
        "Batch normalisation needs two samples: take a larger batch_size, or drop_last=True for a DataLoader whose "
        "last batch has one."
    ),
}
"""Likely causes, by patterns in the text of an error in lower case."""


def how_called(problem: Problem, batch: Any, error: Exception) -> str:
    """A sentence on how the model and the losses were called when they raised an error."""
    if problem.train is None and not problem.takes_model:
        return "This came from losses(model()): without 'train', model() takes no argument, and losses(outputs) one."
    form = "losses(model, batch)" if problem.takes_model else "losses(model(inputs), targets)"
    if isinstance(problem.losses, TaskLosses):
        form = (
            "losses[task](outputs, targets), with its part of dictionaries by task name and of tuples with one part "
            "per task,"
        )
    guessed = str(error).startswith("'losses'") or hints(error, batch)
    mistaken = not problem.takes_model and not guessed and isinstance(error, (AttributeError, LookupError, TypeError))
    other = " For losses(model, batch), its first parameter must be called 'model'." if mistaken else ""
    return (
        f"This came from {form} on the first batch of 'train', which is tried out before training. "
        f"{_in_words(batch)}{other}"
    )


@contextlib.contextmanager
def came_from(what: str, batch: Any) -> Iterator[None]:
    """Add a note to errors of a user's code: the caller, the batch, and likely causes.

    Args:
        what: the caller, such as "step 3 of epoch 1".
        batch: what it was called with.
    """
    try:
        yield
    except Exception as error:
        add_notes(error, what, batch)
        raise


def add_notes(error: Exception, what: str, batch: Any) -> None:
    """Add the notes of :func:`came_from` to an error."""
    for note in (f"This came from {what}. {_in_words(batch)}", *hints(error, batch)):
        error.add_note(note)


def hints(error: Exception, batch: Any) -> list[str]:
    """Likely causes of a torch error that does not say what to change."""
    text, kinds = str(error).lower(), " ".join(_kinds(batch))
    whole_numbers = re.search(r"torch\.(u?int|bool)", kinds)
    texts = []
    if "target" in text and "dtype" in text and "long" in text:
        texts.append(
            "Class numbers of cross_entropy are int64: write targets.long(), or pass int64 labels. Missing ones are "
            "-1, not NaN: table['kind'].fillna(-1).astype('int64'), and cross_entropy(..., ignore_index=-1)."
        )
    elif any(words in text for words in ("dtype", "input type", "scalar type")) and whole_numbers:
        texts.append(
            "Integers are not cast, as they may be class numbers or tokens: write inputs.float() where a layer "
            "multiplies them (images.float() / 255 for pixels), or pass floating-point numbers, such as "
            "table.astype('float32')."
        )
    if "out of bounds" in text and isinstance(error, IndexError):
        texts.append(
            "Class numbers must begin at 0 and be below the number of outputs of the model; -1 for a missing label "
            "needs cross_entropy(..., ignore_index=-1)."
        )
    if "index out of range in self" in text:
        texts.append("Tokens must be at least 0 and below the num_embeddings of their nn.Embedding.")
    if sizes := _PRODUCT.search(text):
        flatten = " nn.Flatten() makes one row of each image." if re.search(r"\[\d+, \d+, \d+", kinds) else ""
        texts.append(
            f"A layer has in_features={sizes[2]}, but the last dimension of its input is {sizes[1]}: change one of "
            f"them.{flatten}"
        )
    texts += [hint for pattern, hint in _HINTS.items() if re.search(pattern, text)]
    if _has_arrays(batch):
        texts.append("The batch holds NumPy arrays: let the collate_fn of the DataLoader return tensors.")
    return texts


def find_pairs(problem: Problem, module: nn.Module, batch: Any) -> tuple[list[int], list[int]] | None:
    """The shapes of outputs and targets whose difference broadcasts to a table of all pairs; None if there is none."""
    watch = _Differences()
    with isolated_randomness(), warnings.catch_warnings(), contextlib.suppress(Exception), watch:
        warnings.simplefilter("ignore")  # torch has already warned, if it does
        problem.run(copy.deepcopy(module), batch)
    return watch.shapes


class _Differences(TorchFunctionMode):
    """Records differences of outputs ``[n, 1]`` and targets ``[n]``, which broadcast to tables ``[n, n]`` of all pairs.

    Attributes:
        shapes: the shapes of the first one; None without any.
    """

    def __init__(self) -> None:
        super().__init__()
        self.shapes: tuple[list[int], list[int]] | None = None

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        tensors = [each for each in args[:2] if isinstance(each, Tensor)]
        if func in _DIFFERENCES and len(tensors) == 2 and self.shapes is None:
            outputs, targets = sorted(tensors, key=lambda each: not each.requires_grad)
            shapes = sorted([list(outputs.shape), list(targets.shape)], key=len)
            n = shapes[0][0] if shapes[0] else 0
            # Pairs within the outputs, as in a ranking loss, are intended.
            if outputs.requires_grad and not targets.requires_grad and n > 1 and shapes == [[n], [n, 1]]:
                self.shapes = list(outputs.shape), list(targets.shape)
        return func(*args, **(kwargs or {}))


def _in_words(batch: Any) -> str:
    return f"Its tensors: {', '.join(_kinds(batch)[:6]) or 'none'}."


def _kinds(batch: Any) -> list[str]:
    """The shape and dtype of each tensor, with its key in a dictionary."""
    if isinstance(batch, Mapping):
        return [f"{key}: {kind}" for key, part in batch.items() for kind in _kinds(part)]
    kinds: list[str] = []

    def note(tensor: Tensor) -> Tensor:
        kinds.append(f"{list(tensor.shape)} {tensor.dtype}")
        return tensor

    map_tensors(note, batch)
    return kinds


def _has_arrays(batch: Any) -> bool:
    if isinstance(batch, np.ndarray):
        return True
    parts = batch.values() if isinstance(batch, Mapping) else batch if isinstance(batch, (tuple, list)) else ()
    return any(_has_arrays(part) for part in parts)
