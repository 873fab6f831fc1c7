from __future__ import annotations

import dataclasses
import math
import operator
from typing import Any

import pytest
import torch

from paretomtl.compare import Comparison, Summary, common_reference, summaries, tight_references, verdict


def row(method: str, losses: Any, seed: int = 0, **fields: Any) -> dict[str, Any]:
    return {
        "method": method,
        "seed": seed,
        "preferences": len(losses),
        "losses": losses,
        "reference": [2.0, 2.0],
        "spread": 1.0,
        "nondominated": len(losses),
        "seconds": 1.0,
        **fields,
    }


def of(method: str, mean: float, deviation: float, seeds: int = 5, *, ideal: bool = False) -> Summary:
    """A summary whose hypervolumes have this mean and this deviation."""
    steps = [i - (seeds - 1) / 2 for i in range(seeds)]
    unit = math.sqrt(sum(step**2 for step in steps) / (seeds - 1)) if seeds > 1 else 1.0
    volumes = tuple(mean + deviation * step / unit for step in steps)
    return Summary(method, 5, volumes, ideal, 1.0, [0.1, 0.1], 5.0, 1.0)


def test_hypervolumes_share_one_reference() -> None:
    rows = [row("linear", [[1.0, 1.0]]), row("mgda", [[1.0, 1.0]], reference=[3.0, 1.5])]
    assert common_reference(rows) == [3.0, 2.0]
    assert [s.hypervolume[0] for s in summaries(rows)] == [2.0, 2.0]


def test_single_task_is_the_ideal_point_of_its_networks() -> None:
    rows = [row("single-task", [[0.5, 9.0], [9.0, 0.5]]), row("linear", [[0.5, 1.0], [1.0, 0.5]])]
    found = {s.method: s for s in summaries(rows)}
    assert found["single-task"].ideal
    assert found["single-task"].hypervolume[0] == pytest.approx(2.25)
    assert found["linear"].hypervolume[0] == pytest.approx(2.0)
    assert found["single-task"].best == [0.5, 0.5]


def test_solutions_that_are_not_finite_do_not_count() -> None:
    (found,) = summaries([row("linear", [[None, 1.0], [1.0, 1.0]])])
    assert found.hypervolume[0] == pytest.approx(1.0)
    (none,) = summaries([row("linear", [[None, 1.0]])])
    assert none.hypervolume[0] == 0.0


def test_deviation_over_seeds() -> None:
    rows = [row("linear", [[1.0, 1.0]], 0), row("linear", [[1.0, 0.0]], 1)]
    (found,) = summaries(rows)
    assert found.hypervolume == pytest.approx((1.5, math.sqrt(0.5)))


def test_summaries_have_indicators_beside_the_hypervolume() -> None:
    linear = [[0.5, 1.0], [1.0, 0.5], [3.0, 0.4]]
    rows = [
        row("single-task", [[0.5, 9.0], [9.0, 0.4]], vectors=[[1.0, 0.0], [0.0, 1.0]]),
        row("linear", linear),
        row("pareto-mtl", [[0.6, 0.6], [0.7, 0.7]], in_region=1, angles=[4.0, None]),
        row("pareto-mtl", [[0.8, 0.8], [0.7, 0.7]], 1, in_region=2, angles=[10.0, 30.0]),
    ]
    assert tight_references(rows) == {"train": pytest.approx([1.1, 1.1])}
    found = {s.method: s for s in summaries(rows)}
    one, alone, front = found["linear"], found["single-task"], found["pareto-mtl"]
    assert one.tight_hypervolume is not None
    assert one.tight_hypervolume[0] == pytest.approx(0.06 + 0.06 - 0.01)
    assert alone.tight_hypervolumes == pytest.approx((0.6 * 0.7,)), "the point of separate networks"
    assert front.tight_hypervolumes == pytest.approx((0.25, 0.16))
    assert one.box_share == pytest.approx(2.0 / (1.5 * 1.6)), "3.0 is beyond the reference, 0.4 is the best loss"
    assert (front.box_share, alone.box_share) == (pytest.approx(1.0), None)
    assert (front.in_region, front.median_angle, front.largest_angle) == pytest.approx((0.75, 12.0, 30.0))
    assert (one.in_region, one.median_angle, one.largest_angle) == (None, None, None)
    assert one.delta_m == pytest.approx(50 * (1.0 + 0.25))
    assert front.delta_m == pytest.approx(50 * (0.2 + 0.5) / 2 + 50 * (0.4 + 0.75) / 2)
    assert alone.delta_m is None
    less = {s.method: s for s in summaries(rows[1:])}
    assert less["linear"].delta_m is None, "there is nothing to compare with"
    (first,) = summaries(rows[2:3])
    assert first.tight_hypervolumes == pytest.approx((0.06 * 0.06,)), "fewer rows have another tight reference"


def test_methods_that_ended_alike_are_named_once_and_lead_nothing() -> None:
    """As auto does with the method that it chose."""
    first = of("auto", 2.0, 0.1)
    first = dataclasses.replace(first, tight_hypervolumes=first.hypervolumes)
    same, near = dataclasses.replace(first, method="linear"), dataclasses.replace(first, method="mgda", spread=2.0)
    assert verdict([first, same]) == "auto and linear ended with the same losses in all seeds."
    text = verdict([first, same, near])
    assert text.startswith("auto and linear ended with the same losses in all seeds. auto has the largest mean")
    assert "and so has mgda. mgda cannot be told apart from it" in text
    assert text.endswith("No method can be told apart from auto at the tight reference.")
    once = [dataclasses.replace(each, hypervolumes=(2.0,), tight_hypervolumes=()) for each in (first, same, near)]
    assert verdict(once).startswith("auto and linear ended with the same losses in all seeds. auto has the largest")
    lost = [dataclasses.replace(each, best=[math.nan, math.nan]) for each in (first, same)]
    assert "ended with the same losses" not in verdict(lost)
    assert "than separate networks" in verdict([dataclasses.replace(each, delta_m=-3.0) for each in (first, same)])
    assert "leads" not in text


def test_the_verdict_says_who_leads_at_the_tight_reference() -> None:
    loose, tight = of("linear", 2.0, 0.1), of("mgda", 1.9, 0.1)
    ahead = dataclasses.replace(tight, tight_hypervolumes=(0.5, 0.51, 0.49, 0.5, 0.5))
    behind = dataclasses.replace(loose, tight_hypervolumes=(0.2, 0.21, 0.19, 0.2, 0.2))
    near = dataclasses.replace(loose, tight_hypervolumes=(0.4, 0.6, 0.4, 0.6, 0.4))
    assert verdict([behind, ahead]).endswith(
        " At the tight reference, mgda is ahead of linear, by more than seeds explain."
    )
    assert verdict([near, ahead]).endswith("mgda is ahead of linear, but they cannot be told apart there.")
    assert "tight" not in verdict([behind, tight])
    swapped = dataclasses.replace(behind, hypervolumes=ahead.hypervolumes)
    best = dataclasses.replace(ahead, hypervolumes=behind.hypervolumes)
    assert verdict([best, swapped]).endswith(" mgda leads at the tight reference, too.")
    level = dataclasses.replace(behind, hypervolumes=ahead.hypervolumes)
    assert verdict([level, ahead]).endswith("but they cannot be told apart there."), "hypervolumes do not differ"
    nobody = [dataclasses.replace(each, tight_hypervolumes=(0.0,) * 5) for each in (loose, tight)]
    assert "tight" not in verdict(nobody), "all are beyond it"
    once = [
        dataclasses.replace(each, hypervolumes=(volume,), tight_hypervolumes=(0.1 * volume,))
        for each, volume in ((loose, 2.0), (tight, 1.9))
    ]
    assert verdict(once).endswith("several seeds. No method can be told apart from linear at the tight reference.")
    alone = [once[0], ahead]  # the other seeds of one method failed
    assert verdict(alone).endswith("mgda is ahead of linear, but they cannot be told apart there.")


@pytest.mark.parametrize(("change", "words"), [(3.14, "3.1 % worse"), (-3.14, "3.1 % better")])
def test_the_verdict_compares_with_separate_networks(change: float, words: str) -> None:
    best = dataclasses.replace(of("linear", 2.0, 0.1), delta_m=change)
    text = verdict([of("single-task", 3.0, 0.1, ideal=True), best, of("mgda", 1.0, 0.1)])
    assert text.endswith(f" The best model of linear is {words} than separate networks (Δm on training).")


def test_the_verdict_is_plain() -> None:
    alike = dataclasses.replace(of("linear", 0.0, 0.1), hypervolumes=(2.1, 1.8, 2.2, 1.8, 2.0))
    close = verdict([of("pareto-mtl", 2.0, 0.1), alike])
    wanted = "pareto-mtl has the largest mean hypervolume on training, 1 % above linear. linear cannot be told apart "
    assert close == wanted + "from it with 5 seeds."
    far = verdict([of("pareto-mtl", 2.0, 0.1), alike, of("mgda", 1.0, 0.1), of("gradnorm", 0.9, 0.1)])
    assert "linear cannot be told apart from it with 5 seeds." in far
    assert far.endswith("mgda and gradnorm are behind by more than seeds explain (once in twenty).")


@pytest.mark.parametrize(("seeds", "behind"), [(2, False), (3, False), (4, False), (5, True)])
def test_the_fewer_the_seeds_the_less_a_difference_says(seeds: int, behind: bool) -> None:
    """A gap of three standard errors of the paired differences at any number of seeds."""
    gains = of("linear", 3.0 * 0.1 / math.sqrt(seeds), 0.1, seeds).hypervolumes
    other = of("mgda", 2.0, 1.0, seeds)
    best = dataclasses.replace(other, method="linear", hypervolumes=tuple(map(operator.add, gains, other.hypervolumes)))
    text = verdict([best, other])
    assert ("mgda is behind" in text) == behind
    assert (f"mgda cannot be told apart from it with {seeds} seeds" in text) == (not behind)


@pytest.mark.parametrize(("methods", "seeds", "heavy"), [(2, 5, 0), (8, 5, 0), (8, 10, 1), (12, 5, 1), (12, 3, 0)])
def test_verdicts_name_nobody_where_nobody_is_behind(methods: int, seeds: int, heavy: int) -> None:
    """Whichever leads by chance, with a part that the methods of a seed share, and with heavy tails."""
    generator, named, count = torch.Generator().manual_seed(methods + seeds), 0, 400
    for _ in range(count):
        values = torch.randn(methods, seeds, generator=generator)
        values /= torch.randn(3, methods, seeds, generator=generator).norm(dim=0) if heavy else 1.0
        volumes = 100 + values + torch.randn(seeds, generator=generator)
        order = volumes.mean(1).argsort(descending=True).tolist()
        drawn = [dataclasses.replace(of(f"m{i}", 0.0, 0.0), hypervolumes=tuple(volumes[i].tolist())) for i in order]
        named += "behind" in verdict(drawn)
    assert named / count <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / count)


def test_methods_are_compared_by_the_seeds_that_both_have() -> None:
    """A failed run shifts no pair; the shared part of a seed is far larger than the difference."""
    shared = [0.1, 0.9, 0.5, 0.2, 0.7, 0.4]
    rows = [
        row(method, [[loss + worse + 1e-3 * (seed % 2), 1.0]], seed)
        for method, worse in (("linear", 0.0), ("mgda", 0.05))
        for seed, loss in enumerate(shared)
        if (method, seed) != ("mgda", 0)
    ]
    best, other = summaries([*rows, *rows])
    assert best.seed_numbers == (0, 1, 2, 3, 4, 5)
    assert other.seed_numbers == (1, 2, 3, 4, 5)
    assert "mgda is behind by more than seeds explain" in Comparison(rows, {}).verdict()


def test_separate_networks_win_nothing() -> None:
    assert verdict([of("single-task", 3.0, 0.1, ideal=True), of("linear", 2.0, 0.1), of("mgda", 1.0, 0.1)]).startswith(
        "linear"
    )
    assert verdict([of("linear", 2.0, 0.1)]) == "There is nothing to compare."


def test_one_seed_proves_nothing() -> None:
    text = verdict([of("linear", 1.6, 0.0, 1), of("mgda", 1.0, 0.0, 1)])
    assert text.startswith("linear has the largest hypervolume on training, 60 % above mgda. One run each cannot tell")
    assert "above" not in verdict([of("linear", 2.0, 0.0, 1), of("mgda", 0.0, 0.0, 1)])
