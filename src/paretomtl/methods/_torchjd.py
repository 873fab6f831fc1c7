from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from paretomtl._extras import require
from paretomtl.methods._linear import Linear, importances
from paretomtl.methods._method import Method, Reading, Seen, State, uniform

_IMPORTANCE_ARGUMENTS = ("pref_vector", "weights", "lambda_")  # what TorchJD's constructors call a row of importances
_NEEDS_MORE = {
    "ExcessMTL": "the gradients themselves",
    "NashMTL": "the gradients themselves",
    "MoDo": "gradients of independent batches",
    "SDMGrad": "gradients of independent batches",
    "CRMOGM": "another weighting to wrap",
    "DWA": "to be told where epochs end",
    "FAMO": "the losses after each update",
}


@dataclass(frozen=True, eq=False)
class TorchJD(Method):
    r"""A weighting or scalarizer of TorchJD (extra ``torchjd``) as a method of this library.

    A weighting maps the Gramian to weights. A scalarizer maps the losses to one number, whose slope in each loss is
    that task's weight; what it would learn (log-variances, say) takes a gradient step here. Both are unbatched in
    TorchJD, so this loops over the K subproblems on the host. Weights are returned as TorchJD scales them.

    Where the constructor takes importances (``pref_vector`` or ``weights``) and ``options`` leave them out, each
    subproblem gets its own row of ``preferences``: a front of UPGrad or of smooth Tchebycheff is one call of ``fit``.

    Args:
        source: the name of a weighting without that word, "UPGrad" for ``UPGradWeighting``, or of a scalarizer.
        options: arguments of its constructor.
        learning_rate: the step length of what a scalarizer learns.

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

    def __post_init__(self) -> None:
        if self.source in _NEEDS_MORE:
            raise ValueError(
                f"'source' must work from losses and Gramian alone; {self.source} needs "
                f"{_NEEDS_MORE[self.source]}. Got {self.source!r} instead."
            )
        missing = self._missing_arguments()
        if missing:
            raise ValueError(
                f"'options' must set {', '.join(missing)}: {self.source} has no default for it, so write "
                f'TorchJD("{self.source}", {{"{missing[0]}": ...}}). Got {dict(self.options)} instead.'
            )

    @property
    def name(self) -> str:
        return f"torchjd:{self.source}"

    @property
    def needs_gramian(self) -> bool:
        return not issubclass(self._type(), require("torchjd.scalarization", "torchjd").Scalarizer)

    @property
    def reading(self) -> Reading:
        return "start" if self._importance_argument() is None else "importance"

    def spread(self, count: int, tasks: int, *, seed: int = 0) -> Tensor:
        return uniform(count, tasks) if self.reading == "start" else Linear().spread(count, tasks)

    def init(self, preferences: Tensor) -> State:
        rows = importances(preferences) / preferences.shape[-1]
        memory = _memory(self._awake(rows[0]))
        kept = {name: torch.zeros(len(rows), *tensor.shape, dtype=torch.float64) for name, tensor in memory.items()}
        return {"rows": rows, "fresh": torch.ones(len(rows), dtype=torch.bool), **kept}

    def _weigh(self, step: Seen, state: State) -> tuple[Tensor, State]:
        device = step.losses.device
        source = step.gramian if self.needs_gramian else step.losses
        weights, memories = [], []
        for k, seen in enumerate(source.cpu()):
            mine = {name: tensor[k].cpu() for name, tensor in state.items()}
            fresh = bool(mine.pop("fresh"))
            module = self._build(mine.pop("rows"), fresh, mine)
            weights.append(module(seen) if self.needs_gramian else self._slopes(module, seen))
            memories.append(_memory(module))
        after = {name: torch.stack([m[name] for m in memories]).double().to(device) for name in memories[0]}
        return torch.stack(weights).double().to(device), {**state, "fresh": torch.zeros_like(state["fresh"]), **after}

    def _slopes(self, scalarizer: nn.Module, losses: Tensor) -> Tensor:
        """The slope of the scalarizer in each loss, after a step of what it learns."""
        learned = list(scalarizer.parameters())
        with torch.enable_grad():
            if learned:
                for parameter, slope in zip(learned, torch.autograd.grad(scalarizer(losses), learned), strict=True):
                    parameter.data -= self.learning_rate * slope
            at = losses.clone().requires_grad_()
            return torch.autograd.grad(scalarizer(at), at)[0]

    def _build(self, row: Tensor, fresh: bool, memory: Mapping[str, Tensor]) -> nn.Module:
        """The module of one subproblem as it was after its last step."""
        if fresh or not memory:
            return self._make(row)
        module = self._awake(row)
        for name, tensor in _memory(module).items():
            tensor.copy_(memory[name])
        return module

    def _awake(self, row: Tensor) -> nn.Module:
        """A module that has been called once, since some make their memory only then."""
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
        name = self._importance_argument()
        if name is not None:
            arguments[name] = row
        if "shape" in inspect.signature(self._type()).parameters:
            arguments.setdefault("shape", len(row))
        module: nn.Module = self._type()(**arguments).double()
        return module

    def _type(self) -> type[nn.Module]:
        for package, name in (("scalarization", self.source), ("aggregation", f"{self.source}Weighting")):
            found = getattr(require(f"torchjd.{package}", "torchjd"), name, None)
            if isinstance(found, type) and not inspect.isabstract(found):
                return found
        raise ValueError(f"'source' must name a weighting or scalarizer of TorchJD. Got {self.source!r} instead.")

    def _importance_argument(self) -> str | None:
        parameters = inspect.signature(self._type()).parameters
        return next((name for name in _IMPORTANCE_ARGUMENTS if name in parameters and name not in self.options), None)

    def _missing_arguments(self) -> list[str]:
        filled = {*self.options, *_IMPORTANCE_ARGUMENTS, "shape"}
        parameters = inspect.signature(self._type()).parameters.values()
        return [
            p.name for p in parameters if p.default is p.empty and p.name not in filled and p.kind is not p.VAR_KEYWORD
        ]


def _memory(module: nn.Module) -> dict[str, Tensor]:
    """What a module learned or remembers, detached."""
    return {name: tensor.detach() for name, tensor in [*module.named_parameters(), *module.named_buffers()]}
