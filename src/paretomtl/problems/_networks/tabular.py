"""Networks for tabular records: features in, one number per task out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from paretomtl._support.argument_checks import check_count, quote


class MLP(nn.Module):
    r"""The paper's network for records (supplement, census income): a shared trunk, and one linear head per task.

    This is hard parameter sharing. With hidden layers :math:`h_1, h_2, \ldots` of ReLU units, task i has

    .. math:: y_i(x) = w_i^\top h_l(\cdots h_1(x)) + b_i.

    Features may have any numeric dtype: they are cast to the precision of the parameters.

    Args:
        inputs: the number of features.
        tasks: the number of heads.
        hidden: the widths of the hidden layers; the paper's are 1024 and 128.

    Shapes:
        features ``[n, inputs]`` to ``tasks`` tensors ``[n]``: logits of binary tasks, or values.

    Example:
        >>> [y.shape for y in MLP(482, 3)(torch.zeros(4, 482))]
        [torch.Size([4]), torch.Size([4]), torch.Size([4])]
        >>> sum(p.numel() for p in MLP(482, 3).parameters())
        626179
    """

    def __init__(self, inputs: int, tasks: int, hidden: Sequence[int] = (1024, 128)) -> None:
        super().__init__()
        inputs = check_count("inputs", inputs)
        tasks = check_count("tasks", tasks)
        _check_widths("hidden", hidden, least=1)
        self.trunk = _layers(inputs, hidden)
        self.heads = nn.ModuleList([nn.Linear(hidden[-1], 1) for _ in range(tasks)])

    def forward(self, features: Tensor) -> tuple[Tensor, ...]:
        shared: Tensor = self.trunk(features.to(self.heads[0].weight.dtype))  # type: ignore[arg-type]
        return tuple(head(shared).squeeze(-1) for head in self.heads)


class MixtureOfExperts(nn.Module):
    r"""The multi-gate mixture of experts (Ma et al., KDD 2018, equations 6 to 8): tasks share experts softly.

    Experts :math:`f_1, \ldots, f_e` are networks of the same form. Each task i weights them for each record by its own
    gate, and has a tower :math:`t_i` on the mixture:

    .. math::
        y_i(x) = t_i \Bigl( \sum_{j=1}^{e} g_{ij}(x) \, f_j(x) \Bigr), \qquad g_i(x) = \mathrm{softmax}(W_i x).

    Related tasks learn similar gates; others use different experts, which a shared trunk does not allow. One expert is
    a shared trunk. By default the first layers of all experts together are as wide as the first layer of :class:`MLP`.

    Args:
        inputs: the number of features.
        tasks: the number of gates and of towers.
        experts: the number of experts.
        hidden: the widths of the layers of each expert.
        tower: the widths of the hidden layers of each tower; none makes it linear.

    Shapes:
        features ``[n, inputs]`` to ``tasks`` tensors ``[n]``: logits of binary tasks, or values.

    Example:
        >>> [y.shape for y in MixtureOfExperts(482, 2)(torch.zeros(4, 482))]
        [torch.Size([4]), torch.Size([4])]
    """

    def __init__(
        self,
        inputs: int,
        tasks: int,
        experts: int = 8,
        hidden: Sequence[int] = (128,),
        tower: Sequence[int] = (32,),
    ) -> None:
        super().__init__()
        inputs = check_count("inputs", inputs)
        tasks = check_count("tasks", tasks)
        experts = check_count("experts", experts)
        _check_widths("hidden", hidden, least=1)
        _check_widths("tower", tower, least=0)
        self.experts = nn.ModuleList([_layers(inputs, hidden) for _ in range(experts)])
        self.gates = nn.ModuleList([nn.Linear(inputs, experts, bias=False) for _ in range(tasks)])
        self.towers = nn.ModuleList(
            [nn.Sequential(*_layers(hidden[-1], tower), nn.Linear([*hidden, *tower][-1], 1)) for _ in range(tasks)]
        )

    def forward(self, features: Tensor) -> tuple[Tensor, ...]:
        inputs = features.to(self.gates[0].weight.dtype)  # type: ignore[arg-type]
        known = torch.stack([expert(inputs) for expert in self.experts], -2)  # [n, experts, width]
        mixed = [(self.shares(gate, inputs)[:, None] @ known)[:, 0] for gate in self.gates]
        return tuple(tower(mixture).squeeze(-1) for tower, mixture in zip(self.towers, mixed, strict=True))

    def shares(self, gate: nn.Module, inputs: Tensor) -> Tensor:
        """The weights of the experts by a gate, ``[n, experts]``: positive, summing to 1."""
        return torch.softmax(gate(inputs), -1)


def _layers(inputs: int, widths: Sequence[int]) -> nn.Sequential:
    """Linear layers of these widths, each followed by ReLU."""
    pairs = pairwise([inputs, *widths])
    return nn.Sequential(*[layer for a, b in pairs for layer in (nn.Linear(a, b), nn.ReLU())])


def _check_widths(name: str, widths: Sequence[int], least: int) -> None:
    if isinstance(widths, (str, int)) or len(widths) < least:
        at_least = f"at least {least} width" if least else "widths"
        raise ValueError(f"'{name}' must be a list of {at_least} of layers. Got {quote(widths)} instead.")
    for i, width in enumerate(widths):
        check_count(f"{name}[{i}]", width)
