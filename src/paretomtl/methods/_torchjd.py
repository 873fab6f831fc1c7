"""Weightings and scalarizers of TorchJD as methods."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from paretomtl._support.argument_checks import check_positive, quote
from paretomtl._support.imports.optional_packages import require
from paretomtl._support.text import suggest_name
from paretomtl.core import preferences as vectors
from paretomtl.methods._scaled_method import ScaledMethod
from paretomtl.methods.base import Reading, uniform
from paretomtl.methods.fixed_weights import importances
from paretomtl.methods.inputs import SafeStep, State
from paretomtl.methods.loss_scaling import Scale

_ROWS: dict[str, tuple[str, Reading, str | None]] = {
    "AlignedMTL": ("pref_vector", "importance", None),
    "COSMOS": ("weights", "direction", "lambda_"),
    "Constant": ("weights", "importance", None),
    "DualProj": ("pref_vector", "importance", None),
    "PBI": ("weights", "direction", "theta"),
    "STCH": ("weights", "importance", None),
    "UPGrad": ("pref_vector", "importance", None),
}
"""The argument for the row of a model, its reading, and the coefficient; if that is 0, rows are importances.

PBI and COSMOS are weighted sums with a penalty for leaving the ray: with a coefficient of 0, plain weighted sums.
"""
_STARTS = {
    "CAGrad",
    "FairGrad",
    "GeometricMean",
    "GradVac",
    "IMTLG",
    "IMTLL",
    "Krum",
    "MGDA",
    "Mean",
    "PCD",
    "PCGrad",
    "Random",
    "Sum",
    "UW",
}
"""Those that take no row: their K models differ only in their starts."""
_NEEDS_MORE = {
    "ExcessMTL": "the gradients themselves",
    "NashMTL": "the gradients themselves",
    "MoDo": "gradients of independent batches",
    "SDMGrad": "gradients of independent batches",
    "CRMOGM": "another weighting to wrap",
    "DWA": "to be told where epochs end",
    "FAMO": "the losses after each update",
}


@dataclass(frozen=True, eq=False, repr=False)
class TorchJD(ScaledMethod):
    r"""A weighting or scalarizer of TorchJD (extra ``torchjd``) as a method of this library.

    A weighting maps the Gramian to weights. A scalarizer maps the losses to one number, whose slope in each loss is
    that task's weight; its learned parameters, such as log-variances, take a gradient step here. Both are unbatched in
    TorchJD, so this loops over the K models on the host. Weights have the scale of TorchJD.

    If the constructor takes a row (``pref_vector`` or ``weights``) and ``options`` omit it, each model has its own
    row of ``preferences``: a front of UPGrad or of smooth Tchebycheff is one call of ``fit``. Rows are importances,
    except for PBI and COSMOS: there, a row is a direction of the loss vector, to which ``theta`` and ``lambda_`` pull.
    If these coefficients are small compared with the losses, the weighted sum prevails, and the losses run against
    their directions; ``fit`` warns about that. With coefficients of 0 the rows are importances.

    Args:
        source: the name of a weighting without its suffix, "UPGrad" for ``UPGradWeighting``, or of a scalarizer.
        options: arguments of its constructor; those without a default must be given.
        learning_rate: the step length for the parameters of a scalarizer.
        scale: factors of the losses: "auto", "first", one per task, or an ideal and a worst point, as for
            :class:`~paretomtl.ParetoMTL`. TorchJD sees the scaled losses and their Gramian.

    Example:
        >>> from paretomtl.methods import Step
        >>> method = TorchJD("UPGrad")
        >>> step = Step(losses=torch.ones(1, 2), gramian=torch.tensor([[[1.0, -0.5], [-0.5, 1.0]]]))
        >>> method.weigh(step, method.init(method.spread(1, tasks=2)))[0]
        tensor([[0.7499, 0.7499]])
    """

    source: str
    options: Mapping[str, Any] = field(default_factory=dict)
    learning_rate: float = 0.025
    scale: Scale | None = None

    def __post_init__(self) -> None:
        self._check_scale()
        check_positive("learning_rate", self.learning_rate)
        if not isinstance(self.options, Mapping):
            kind = type(self.options).__name__
            raise TypeError(f"'options' must be a dictionary of arguments of {self.source}. Got {kind} instead.")
        if self.source in _NEEDS_MORE:
            raise ValueError(
                f"'source' must work from losses and Gramian alone; {self.source} needs "
                f"{_NEEDS_MORE[self.source]}. Got {quote(self.source)} instead."
            )
        arguments = inspect.signature(self._type()).parameters.items()
        known = {name: each for name, each in arguments if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)}
        unknown = [name for name in self.options if name not in known]
        if unknown:
            raise ValueError(
                f"'options' must be arguments of {self.source}: {', '.join(known) or 'it takes none'}. "
                f"Got {unknown[0]!r} instead."
            )
        self._check_known(known)
        given = {*self.options, self._row_argument(), "shape"}
        missing = [name for name, argument in known.items() if argument.default is argument.empty and name not in given]
        if missing:
            raise ValueError(
                f"'options' must set {', '.join(missing)}: {self.source} has no default for it, so write "
                f'TorchJD("{self.source}", {{"{missing[0]}": ...}}), or --set {missing[0]}=VALUE on the command line. '
                f"Got {quote(dict(self.options))} instead."
            )
        try:
            self._make(torch.full((2,), 0.5, dtype=torch.float64))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"'options' must be what {self.source} takes. Got {quote(dict(self.options))} instead: {error}"
            ) from None
        except ImportError as error:
            raise ModuleNotFoundError(f"'{self.name}' needs more than TorchJD itself. {error}") from None

    def _check_known(self, arguments: Mapping[str, inspect.Parameter]) -> None:
        """Refuse vectors of unknown meaning, which a newer TorchJD may introduce."""
        if self.source in _ROWS or self.source in _STARTS:
            return
        tensors = [name for name, each in arguments.items() if "Tensor" in str(each.annotation)]
        unset = [name for name in tensors if name not in self.options]
        if unset:
            raise ValueError(
                f"'options' must set {', '.join(unset)} for {self.source}: whether it would take rows of 'preferences' "
                f"as directions or as importances is known for {', '.join(_ROWS)} only. "
                f"Got {quote(dict(self.options))} instead."
            )

    @property
    def name(self) -> str:
        return f"torchjd:{self.source}"

    @property
    def needs_gramian(self) -> bool:
        return not issubclass(self._type(), require("torchjd.scalarization", "torchjd").Scalarizer)

    @property
    def reading(self) -> Reading:
        if self._row_argument() is None:
            return "start"
        _, reading, coefficient = _ROWS[self.source]
        return "importance" if coefficient is not None and not self.options[coefficient] else reading

    def spread(self, count: int, tasks: int, *, seed: int = 0) -> Tensor:
        if self.reading == "direction":
            return vectors.even(count, tasks)
        return uniform(count, tasks) if self.reading == "start" else vectors.interior(count, tasks)

    def _init(self, preferences: Tensor) -> State:
        rows = importances(preferences) / preferences.shape[-1]
        memory = _memory(self._awake(rows[0]))
        kept = {name: torch.zeros(len(rows), *tensor.shape, dtype=torch.float64) for name, tensor in memory.items()}
        return {"rows": rows, "fresh": torch.ones(len(rows), dtype=torch.bool), **kept}

    def _weigh(self, step: SafeStep, state: State) -> tuple[Tensor, State]:
        device = step.losses.device
        source = step.gramian if self.needs_gramian else step.losses
        weights, memories = [], []
        for k, seen in enumerate(source.cpu()):
            memory = {name: tensor[k].cpu() for name, tensor in state.items()}
            fresh = bool(memory.pop("fresh"))
            module = self._build(memory.pop("rows"), fresh, memory)
            weights.append(module(seen) if self.needs_gramian else self._slopes(module, seen))
            memories.append(_memory(module))
        after = {name: torch.stack([m[name] for m in memories]).double().to(device) for name in memories[0]}
        return torch.stack(weights).double().to(device), {**state, "fresh": torch.zeros_like(state["fresh"]), **after}

    def _slopes(self, scalarizer: nn.Module, losses: Tensor) -> Tensor:
        """The slope of the scalarizer in each loss, after a step of its learned parameters."""
        learned = list(scalarizer.parameters())
        with torch.enable_grad():
            if learned:
                for parameter, slope in zip(learned, torch.autograd.grad(scalarizer(losses), learned), strict=True):
                    parameter.data -= self.learning_rate * slope
            at = losses.clone().requires_grad_()
            return torch.autograd.grad(scalarizer(at), at)[0]

    def _build(self, row: Tensor, fresh: bool, memory: Mapping[str, Tensor]) -> nn.Module:
        """Restore the module of one model after its last step."""
        if fresh or not memory:
            return self._make(row)
        module = self._awake(row)
        for name, tensor in _memory(module).items():
            tensor.copy_(memory[name])
        return module

    def _awake(self, row: Tensor) -> nn.Module:
        """Make a module and call it once, since some create their buffers only then."""
        module = self._make(row)
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            module(
                torch.eye(len(row), dtype=torch.float64)
                if self.needs_gramian
                else torch.ones(len(row), dtype=torch.float64)
            )
        return module

    def _make(self, row: Tensor) -> nn.Module:
        arguments = dict(self.options)
        name = self._row_argument()
        if name is not None:
            arguments[name] = row
        if "shape" in inspect.signature(self._type()).parameters:
            arguments.setdefault("shape", len(row))
        module: nn.Module = self._type()(**arguments).double()
        return module

    def _type(self) -> type[nn.Module]:
        return torchjd_type(self.source)

    def _row_argument(self) -> str | None:
        """The constructor's argument for the row of a model; None if it takes none, or ``options`` set it."""
        name = _ROWS[self.source][0] if self.source in _ROWS else None
        return None if name in self.options else name


def torchjd_type(source: str) -> type[nn.Module]:
    """The class of a weighting or scalarizer of TorchJD."""
    for package, name in (("scalarization", source), ("aggregation", f"{source}Weighting")):
        kind = getattr(require(f"torchjd.{package}", "torchjd"), name, None)
        if isinstance(kind, type) and issubclass(kind, nn.Module) and not inspect.isabstract(kind):
            return kind
    near = suggest_name(source, [*_ROWS, *sorted(_STARTS), *_NEEDS_MORE])
    raise ValueError(f"'source' must name a weighting or scalarizer of TorchJD. Got {quote(source)} instead.{near}")


def _memory(module: nn.Module) -> dict[str, Tensor]:
    """The parameters and buffers of a module, detached."""
    return {name: tensor.detach() for name, tensor in [*module.named_parameters(), *module.named_buffers()]}
