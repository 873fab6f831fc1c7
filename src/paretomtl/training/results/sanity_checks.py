"""Sanity checks of a result: a line for each problem, with the models, the tasks, the split, and what to try."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from paretomtl._support.splits import ranking_split
from paretomtl.core import dominates
from paretomtl.core.reachable import find_reachable
from paretomtl.methods import Reachable
from paretomtl.methods.fixed_weights import FixedWeights
from paretomtl.training.results.snapshot import Snapshot
from paretomtl.training.settings.settings import Settings

FEWEST_STEPS = 50
"""Shorter runs are not checked: little can be expected of them."""

_WORSE = 0.05  # relative to the untrained model: a loss is worse from here on
_SMALL = 0.1  # the share of a gain that may be given up
_MOVED = 0.05  # below, nothing was trained
_STUCK = 1e-3  # below, no step was taken
_LEARNT = 0.01  # below in every model, a task was not learnt
_CHANCE = 0.02  # below, inputs of other samples predict as well
_SAME = 1e-6  # below, a difference is rounding
_CLEARLY = 0.01  # above, a model is better than another by more than chance
_BEATEN = 0.05  # relative to its own weighted sum: a model is beaten by another from here on
_RAISED = 1.5  # times the loss of the untrained model: a loss was raised
_CLUMPED = 0.2  # below this share of an even gap: half of what a probe asks for, as luck moves single models, too
_FEWEST_MODELS = 4  # fewer have no spread to speak of
_NAMED = 3  # models and tasks that a line names

CLUMPED_WARNING = "most models lie close together"
"""How the remark on gaps in a front begins."""
BEATEN_WARNING = "are beaten at their own importances by others"
"""What the remark on models that did not minimise their own weighted sums says, after their numbers."""


@dataclass(frozen=True)
class Result:
    """The models of one seed at the end.

    Attributes:
        numbers: the models.
        tasks: their names.
        split: the one that ranks: validation, or training without it.
        losses: on that split, ``[K, m]``.
        untrained: the same before training; None if that was not measured.
        preferences: the rows of these models, ``[K, m]``.
        reading: what the rows mean.
        status: one word for each model.
        has_data: whether there are samples to learn from. Without data, a start is as good as any point: to stay there,
            or to give up some of a task, is not a problem.
        keep: which epoch of each model was kept, "last" or "best".
        shuffled: the losses ``[K, m]`` if each sample has the inputs of another; None if that was not measured.
        weights: what each model's losses were multiplied by and summed, ``[K, m]``; None for methods that do not
            minimise such a sum over one front.
        ideal: what was subtracted from the losses before, ``[m]``; None for zero.
        train: the losses ``[K, m]`` on train; None if they are not known.
        can_share: whether the models could have shared the start of training, and did not.
    """

    numbers: Sequence[int]
    tasks: Sequence[str]
    split: str
    losses: Tensor
    untrained: Tensor | None
    preferences: Tensor
    reading: str
    status: Sequence[str]
    has_data: bool = True
    keep: str = "last"
    shuffled: Tensor | None = None
    weights: Tensor | None = None
    ideal: Tensor | None = None
    train: Tensor | None = None
    can_share: bool = True


def build_results(
    snapshot: Snapshot, settings: Settings, untrained: Tensor | None, shuffled: Tensor | None
) -> list[Result]:
    """The result of each seed, from further losses of all models on the split that ranks.

    Args:
        snapshot: the models at the end.
        settings: of the run.
        untrained: losses before training.
        shuffled: losses on samples with the inputs of others.
    """
    split = ranking_split(snapshot.losses)
    count, method = len(settings.subproblems), settings.method
    # Methods outside of the library may read importances in another way than as weights of a sum.
    sums = isinstance(method, (FixedWeights, Reachable)) and not method.separate
    results = []
    for i, rows in enumerate(settings.vectors):
        part = slice(i * count, (i + 1) * count)
        own = rows[settings.subproblems].double()
        results.append(
            Result(
                settings.subproblems,
                settings.problem.tasks,
                split,
                snapshot.losses[split][part].double(),
                None if untrained is None else untrained[part].double(),
                own,
                method.reading,
                snapshot.status[part],
                settings.problem.train is not None,
                settings.keep,
                None if shuffled is None else shuffled[part].double(),
                (own if snapshot.scale is None else own * snapshot.scale[part].double()) if sums else None,
                None if snapshot.ideal is None else own.new_tensor(snapshot.ideal),
                snapshot.losses["train"][part].double(),
                settings.branch is None and settings.start is None,
            )
        )
    return results


def find_problems(result: Result) -> list[str]:
    """The problems of a result, a line each; the most telling first."""
    stuck = _unmoved(result)
    unlearnt = _unlearnt(result)
    worse = [] if stuck else _worse_than_untrained(result)
    beaten = [] if stuck or worse else _beaten(result)  # training that failed has another cause and remedy
    return [
        *stuck,
        *unlearnt,
        *([] if stuck or unlearnt else _at_chance(result)),
        *worse,
        *([] if stuck else _raised(result)),
        *_one_task(result),
        *(_same(result) or _clumped(result)),
        *(_one_for_all(result) or beaten),
        *_outside(result),
    ]


def merge_lines(lines: Sequence[str]) -> list[str]:
    """All lines as one warning; empty without any."""
    if len(lines) < 2:
        return list(lines)
    return ["something is off in this front:" + "".join(f"\n- {line}" for line in lines)]


def _unmoved(result: Result) -> list[str]:
    """All models, or some, whose losses are still those of the untrained models."""
    if result.untrained is None or not result.has_data or "non-finite" in result.status:  # a frozen model cannot move
        return []
    moved = (result.losses - result.untrained).abs() / result.untrained.abs().clamp_min(1e-12)
    known = moved.isfinite()
    if not bool(known.any(-1).all()):  # a model without any loss says nothing
        return []
    most = torch.where(known, moved, 0.0).amax(-1)
    if bool((most < _MOVED).all()):
        return [
            f"losses moved by less than {_MOVED:.0%} since before training, in all tasks on {result.split} "
            f"({_models(result.numbers)}): the learning rate may be too small, or the epochs too few."
        ]
    stuck = [k for k, far in zip(result.numbers, most.tolist(), strict=True) if far < _STUCK]
    if not stuck or not bool((most > _MOVED).any()):
        return []
    return [
        f"{_models(stuck)} stayed at the start: losses on {result.split} are those of the untrained model, while "
        "others moved. Try another seed, another preference, or a larger learning rate."
    ]


def _unlearnt(result: Result) -> list[str]:
    """Tasks that moved in no model, while others did."""
    if result.untrained is None or not result.has_data:
        return []
    moved = (result.losses - result.untrained).abs() / result.untrained.abs().clamp_min(1e-12)
    most = torch.where(moved.isfinite(), moved, torch.inf).amax(0)
    asked = (
        (result.preferences > 0).any(0) if result.reading == "importance" else torch.ones_like(most, dtype=torch.bool)
    )
    if not bool(((most > _MOVED) & most.isfinite()).any()):
        return []
    still = ((most < _LEARNT) & asked).nonzero().flatten().tolist()
    if not still:
        return []
    tasks = [
        f"{result.tasks[i]} (at best {result.losses[:, i].min():.4g}, was {result.untrained[:, i].mean():.4g})"
        for i in still
    ]
    return [
        f"no model learnt {', '.join(tasks)}: losses on {result.split} moved by less than {_LEARNT:.0%}. Targets that "
        "are far from 0 in the units of the outputs, such as thousands, must be standardised: subtract their mean, "
        "divide by their standard deviation ('scale' of a method changes only weights). Otherwise check labels "
        "and learning rate."
    ]


def _at_chance(result: Result) -> list[str]:
    """Tasks that no model predicts from its inputs, and models that predict no task."""
    if result.shuffled is None:
        return []
    change = (result.losses - result.shuffled).abs() / result.shuffled.abs().clamp_min(1e-12)
    known = change.isfinite().all(0) & (change > _SAME).any(0)  # a penalty does not look at targets at all
    by_chance = (change < _CHANCE)[:, known]
    tasks = [result.tasks[i] for i in known.nonzero().flatten().tolist()]
    lost = [task for task, none in zip(tasks, by_chance.all(0).tolist(), strict=True) if none]
    same = f"stay within {_CHANCE:.0%} if each sample gets the inputs of another"
    if lost:
        return [
            f"no model predicts {', '.join(lost)} better than chance: losses on {result.split} {same}. Check labels, "
            "inputs and learning rate, and compare with the losses on train: models may overfit."
        ]
    none = by_chance.all(-1) if tasks else torch.zeros(len(result.losses), dtype=torch.bool)
    beaten = dominates(result.losses[:, None], result.losses).any(0)  # the end of a fair front predicts nothing
    idle, constant = ([result.numbers[k] for k in rows.nonzero().flatten().tolist()] for rows in (none & beaten, none))
    if len(constant) > 1 and len(constant) > len(idle):
        return [
            f"no task is predicted better than chance by {_models(constant)}: losses on {result.split} {same}. One "
            "such model is the end of a front. If a loss begins at its best, as a fairness gap does, it weighs too "
            "much: set scale=None, or factors of your own."
        ]
    if not idle:
        return []
    return [
        f"no task is predicted better than chance by {_models(idle)}: losses on {result.split} {same}. Try another "
        "seed, or a smaller learning rate."
    ]


def _worse_than_untrained(result: Result) -> list[str]:
    """Losses that training made worse without a gain elsewhere, in tasks that were asked for."""
    places = _worse_for_nothing(result)
    if result.untrained is None or not places:
        return []
    remedy = (
        "a smaller learning rate" if result.keep == "best" else "a smaller learning rate, fewer epochs or keep='best'"
    )
    remedy += ", or preferences away from the axes" if result.reading == "direction" else ""
    return [f"worse than untrained on {result.split}, for nothing: {_places(result, places)}. Try {remedy}."]


def _worse_for_nothing(result: Result) -> list[tuple[int, int]]:
    """The models and tasks, by their rows and columns, of losses that training made worse without a gain elsewhere."""
    if result.untrained is None or not result.has_data:
        return []
    worse = result.losses > result.untrained + _WORSE * result.untrained.abs() + _SAME
    if result.reading == "importance":
        worse = worse & (result.preferences > 0)
    return [(k, i) for k, i in worse.nonzero().tolist() if not _pays(result, result.untrained, k, i)]


def _places(result: Result, places: Sequence[tuple[int, int]]) -> str:
    """The first models and tasks of a list in words, with their losses and those before training."""
    assert result.untrained is not None
    models = [f"model {result.numbers[k]} in {_task(result, k, i)}" for k, i in places[:_NAMED]]
    more = f" and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
    return f"{', '.join(models)}{more}"


def _task(result: Result, k: int, i: int) -> str:
    assert result.untrained is not None
    return f"{result.tasks[i]} ({result.losses[k, i]:.4g}, was {result.untrained[k, i]:.4g})"


def _pays(result: Result, untrained: Tensor, k: int, i: int) -> bool:
    """Whether model k gains something for a loss in task i that is worse than untrained.

    It gains nothing if no task became better, or if another model is better than untrained in task i, and has most of
    the gains of k in the others.
    """
    gained = untrained[k] - result.losses[k]
    if not bool((gained > 0).any()):
        return False
    given_up = result.losses - result.losses[k]
    given_up[:, i] = 0.0
    as_good = (given_up <= _SMALL * gained.clamp_min(0.0)).all(-1) & (result.losses[:, i] < untrained[k, i])
    return not bool(as_good.any())


def _raised(result: Result) -> list[str]:
    """Losses far above the untrained ones, by which models of directions come to the ratio that they were asked for."""
    if result.reading != "direction" or result.untrained is None or not result.has_data:
        return []
    # A loss that begins at its best, as a fairness gap does, rises in every model.
    learnt = (result.losses < (1.0 - _WORSE) * result.untrained).any(0)
    high = (result.losses > _RAISED * result.untrained) & (result.untrained > _SAME) & learnt
    said = _worse_for_nothing(result)
    places = [(k, i) for k, i in high.nonzero().tolist() if (k, i) not in said]
    if not places:
        return []
    k, i = places[0]
    what = (
        f"model {result.numbers[k]} pays for its ratio with a loss far above the untrained one on {result.split}: "
        f"{_task(result, k, i)}"
        if len(places) == 1
        else f"models pay for their ratios with losses far above the untrained ones on {result.split}: "
        f"{_places(result, places)}"
    )
    return [
        f'{what}. Take directions that models reach (preferences="reachable:{len(result.numbers)}"), or the default '
        "method."
    ]


def _one_task(result: Result) -> list[str]:
    """Tasks whose losses are equal in all models, which differ."""
    apart = bool((result.losses != result.losses[0]).any())
    for i, j in itertools.combinations(range(len(result.tasks)), 2):
        if apart and torch.allclose(result.losses[:, i], result.losses[:, j], rtol=_SAME, atol=0.0):
            return [
                f"tasks {result.tasks[i]} and {result.tasks[j]} have the same losses in all models on {result.split}: "
                "they may be one task. Check that each loss takes its own outputs and targets."
            ]
    return []


def _same(result: Result) -> list[str]:
    """Models of different preferences with the same losses."""
    if result.reading == "start":  # the rows do not ask for different ones
        return []
    groups: list[list[int]] = []
    for k in range(len(result.numbers)):
        for group in groups:
            if _alike(result, group[0], k):
                group.append(k)
                break
        else:
            groups.append([k])
    twins = [_models([result.numbers[k] for k in group]) for group in groups if len(group) > 1]
    if not twins:
        return []
    return [
        f"the same losses in all tasks on {result.split}: {'; '.join(twins)}. Their preferences are too close, or the "
        "tasks do not conflict there."
    ]


def _alike(result: Result, one: int, other: int) -> bool:
    a, b = result.losses[one], result.losses[other]
    close = torch.isclose(a, b, rtol=_SAME, atol=0.0).all()
    return bool(close) and not torch.allclose(result.preferences[one], result.preferences[other])


def _clumped(result: Result) -> list[str]:
    """Models of different fixed weights that leave most of the front empty."""
    fixed = result.reading == "importance" and all(word == "trained" for word in result.status)
    if not fixed or len(result.numbers) < _FEWEST_MODELS:
        return []
    crowding = find_reachable(result.losses, result.preferences).crowding
    if not crowding < _CLUMPED:
        return []
    return [
        f"{CLUMPED_WARNING} on {result.split} at the end: the typical gap between them is {crowding:.2g} "
        "times an even one. Train more models in the gaps (paretomtl refine RUN --gaps 3, or Front.gaps), or try "
        'method="p-norm", which holds models apart.'
    ]


def _beaten(result: Result) -> list[str]:
    """Models of fixed weights whose own weighted sums are smaller in models that were asked for other ones."""
    if not _has_fixed_weights(result) or not result.has_data or len(result.numbers) < 3:
        return []
    rows = _ahead(result, result.losses).nonzero().flatten().tolist()
    if len(rows) < max(2, len(result.numbers) / 2):
        return []
    ahead = f"{_models([result.numbers[k] for k in rows])} {BEATEN_WARNING}"
    if result.train is not None and 2 * int(_ahead(result, result.train)[rows].sum()) < len(rows):
        remedy = "importances" if result.keep == "best" else "keep='best', or importances"
        return [
            f"{ahead} on {result.split}, but not on train: they overfit, or the tasks help each other. Try {remedy} "
            "nearer to equal ones."
        ]
    share = "share the start of training (branch=0.25), " if result.can_share else ""
    return [
        f"{ahead} on {result.split}: they were trained too briefly or started badly. Train longer, {share}or try "
        "another seed."
    ]


def _ahead(result: Result, losses: Tensor) -> Tensor:
    """Whether another model has a clearly smaller sum by the weights of each model, ``[K]`` bool."""
    assert result.weights is not None
    above = losses if result.ideal is None else losses - result.ideal
    sums = above @ result.weights.T  # of each model (rows) by the weights of each (columns)
    if bool((sums.diagonal() <= 0).any()):  # a share of it means nothing
        return torch.zeros(len(losses), dtype=torch.bool)
    least = _BEATEN * sums.diagonal()
    if result.untrained is not None:  # of losses near zero, a few percent are noise
        begin = result.untrained if result.ideal is None else result.untrained - result.ideal
        least = torch.maximum(least, _CLEARLY * (result.weights * begin).sum(-1).nan_to_num(nan=0.0))
    shares = torch.nn.functional.normalize(result.preferences, dim=-1)
    other = (shares[:, None] - shares).abs().amax(-1) > _SAME  # models of equal rows differ by their starts alone
    return ((sums < sums.diagonal() - least) & other).any(0)


def _has_fixed_weights(result: Result) -> bool:
    """Whether all models that did not break were trained with the weights of their rows to the end."""
    fixed = result.weights is not None and result.reading == "importance"
    return fixed and set(result.status) <= {"trained", "non-finite"}


def _one_for_all(result: Result) -> list[str]:
    """One model that is clearly better than every other one in every task."""
    if result.reading == "start" or len(result.numbers) < 3:
        return []
    for k, losses in enumerate(result.losses):
        others = torch.cat([result.losses[:k], result.losses[k + 1 :]])
        if bool(dominates(losses + _CLEARLY * losses.abs(), others).all()):
            rest = [number for number in result.numbers if number != result.numbers[k]]
            return [
                f"model {result.numbers[k]} is better than {_models(rest)} in every task on {result.split}: the tasks "
                "may not conflict, so that one model is enough, or the others need more epochs."
            ]
    return []


def _outside(result: Result) -> list[str]:
    if len(result.numbers) < 2 or any(word != "infeasible" for word in result.status):
        return []
    return [
        f"{_models(result.numbers)} all lie outside of the regions of their preferences on train: try more epochs, a "
        "larger learning rate, or 'scale' of the method where losses differ in size."
    ]


def _models(numbers: Sequence[int]) -> str:
    """Models by number."""
    if len(numbers) == 1:
        return f"model {numbers[0]}"
    shown = ", ".join(str(k) for k in numbers[:10])
    return f"models {shown}{', ...' if len(numbers) > 10 else ''}"
