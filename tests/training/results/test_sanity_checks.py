"""What a run says about its result: each line where it is due, and none where it is not."""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import paretomtl as pm
from _helpers.networks import classes, fit, problem
from paretomtl.training.results.sanity_checks import Result, find_problems, merge_lines
from paretomtl.training.run import training_run

ROWS = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]], dtype=torch.float64)
GOOD = Result(
    [0, 1, 2],
    ["left", "right"],
    "val",
    torch.tensor([[0.9, 0.3], [0.5, 0.5], [0.3, 0.9]], dtype=torch.float64),
    torch.full((3, 2), 2.3, dtype=torch.float64),
    ROWS,
    "direction",
    ["feasible", "infeasible", "critical"],
)


def with_losses(*rows: list[float], **more: Any) -> Result:
    return replace(GOOD, losses=torch.tensor(rows, dtype=torch.float64), **more)


def test_a_sound_front_gets_no_line() -> None:
    assert find_problems(GOOD) == []
    assert find_problems(replace(GOOD, untrained=None)) == []
    assert merge_lines([]) == []


OFF = {
    "worse than untrained on val, for nothing: model 0 in left (2.9, was 2.3). Try": with_losses(
        [2.9, 0.3], [0.5, 0.4], [0.3, 0.9]
    ),
    "worse than untrained on val, for nothing: model 1 in left (2.9, was 2.3), model 1 in right (2.6,": with_losses(
        [0.9, 0.3], [2.9, 2.6], [0.3, 0.9]
    ),
    "losses moved by less than 5% since before training, in all tasks on val (models 0, 1, 2): the": with_losses(
        [2.3, 2.25], [2.25, 2.3], [2.2, 2.29]
    ),
    "model 1 stayed at the start: losses on val": with_losses([0.9, 0.3], [2.3, 2.3001], [0.3, 0.9]),
    "no model learnt right (at best 2.295, was 2.3): losses on val moved by less than 1%. Targets": with_losses(
        [0.5, 2.3], [0.4, 2.295], [0.3, 2.31]
    ),
    "the same losses in all tasks on val: models 0, 2. Their": with_losses([0.3, 0.9], [0.5, 0.5], [0.3, 0.9]),
    "tasks left and right have the same losses in all models on val: they may be one": with_losses(
        [0.3, 0.3], [0.5, 0.5], [0.4, 0.4], reading="start"
    ),
    "model 1 is better than models 0, 2 in every task on val": with_losses([0.9, 0.6], [0.5, 0.5], [0.6, 0.9]),
    "models 0, 1, 2 all lie outside of the regions of their preferences on train": replace(
        GOOD, status=["infeasible"] * 3
    ),
    "no model predicts right better than chance: losses on val stay within 2% if each sample": replace(
        GOOD, shuffled=torch.tensor([[1.2, 0.303], [1.1, 0.5], [1.5, 0.89]])
    ),
    "no model predicts left, right better than chance": replace(GOOD, shuffled=GOOD.losses * 1.01),
    "no task is predicted better than chance by model 1: losses on val stay within 2% if each": with_losses(
        [0.9, 0.3], [0.95, 0.95], [0.3, 0.9], shuffled=torch.tensor([[1.2, 0.5], [0.951, 0.949], [1.5, 1.0]])
    ),
    "no task is predicted better than chance by models 0, 1: losses on val stay within 2% if each": replace(
        GOOD, shuffled=torch.tensor([[0.9, 0.3], [0.5, 0.5], [1.5, 1.0]])
    ),
}
CLUMP = Result(
    [0, 1, 2, 3],
    ["left", "right"],
    "val",
    torch.tensor([[0.9, 0.1], [0.89, 0.11], [0.12, 0.88], [0.1, 0.9]], dtype=torch.float64),
    torch.full((4, 2), 2.3, dtype=torch.float64),
    torch.tensor([[0.1, 0.9], [0.4, 0.6], [0.6, 0.4], [0.9, 0.1]], dtype=torch.float64),
    "importance",
    ["trained"] * 4,
)


def test_fixed_weights_that_leave_the_middle_empty_are_told() -> None:
    (line,) = find_problems(CLUMP)
    assert line.startswith("most models lie close together on val at the end: the typical gap between them is 0.0")
    assert 'method="p-norm"' in line
    spread = torch.tensor([[0.9, 0.1], [0.55, 0.3], [0.3, 0.55], [0.1, 0.9]], dtype=torch.float64)
    assert find_problems(replace(CLUMP, losses=spread)) == []
    assert find_problems(replace(CLUMP, status=["feasible"] * 4)) == [], "rays are not weights"


@pytest.mark.parametrize("line", OFF)
def test_what_is_off_is_said_in_one_line(line: str) -> None:
    (said,) = find_problems(OFF[line])
    assert said.startswith(line)
    assert "\n" not in said


@pytest.mark.parametrize(
    "result",
    [
        with_losses([2.9, 0.3], [0.3, 2.9], [0.31, 0.31], reading="importance", preferences=torch.eye(3)[:, [1, 0]]),
        with_losses([2.9, 0.3], [0.5, 0.4], [2.3, 0.9], has_data=False),  # a start is a point as good as any
        with_losses([2.9, 0.3], [0.9, 0.9], [0.3, 1.2]),  # what is given up of one task is gained in the other
        with_losses([0.3, 0.9], [0.3, 0.9], [0.3, 0.9], reading="start"),  # nothing asks for different ones
        with_losses([0.9, 0.6], [0.5, 0.5], [0.6, 0.9], reading="start"),
        with_losses([0.501, 0.5011], [0.5, 0.5001], [0.502, 0.5021]),  # better by chance
        with_losses([0.3, 0.9], [0.3, 0.9], [0.5, 0.5], preferences=ROWS[[0, 0, 2]]),  # the same was asked for
        with_losses([0.5, 2.2], [0.4, 2.29], [0.3, 2.3]),  # one model did learn it
        with_losses([0.5, 2.3], [0.4, 2.3], [0.3, 2.3], reading="importance", preferences=torch.eye(3)[[0, 0, 0], :2]),
        with_losses([torch.nan, torch.nan], [0.5, 0.5], [0.3, 0.9]),  # said elsewhere
        replace(GOOD, shuffled=torch.tensor([[2.0, 0.31], [0.9, 0.8], [0.9, 1.4]])),  # an end may give up a task
        replace(GOOD, shuffled=GOOD.losses * torch.tensor([2.0, 1.0])),  # a penalty, which sees no targets
        replace(GOOD, shuffled=torch.tensor([[0.9, 0.3], [1.2, 1.1], [1.5, 1.0]])),  # the fair end of a front
        replace(GOOD, shuffled=GOOD.losses * torch.tensor([2.0, 0.5])),  # a gap between groups, which is best by chance
        replace(GOOD, shuffled=torch.full((3, 2), torch.nan)),
    ],
)
def test_what_a_method_or_the_user_asked_for_is_not_off(result: Result) -> None:
    assert find_problems(result) == []


def test_what_was_done_already_is_not_advised() -> None:
    off = with_losses([2.9, 0.3], [0.5, 0.4], [0.3, 0.9])
    assert "fewer epochs or keep='best'" in find_problems(off)[0]
    assert find_problems(replace(off, keep="best"))[0].endswith(
        "Try a smaller learning rate, or preferences away from the axes."
    )


@settings(max_examples=20, deadline=None)
@given(st.permutations([0, 1, 2]), st.permutations([0, 1]), st.sampled_from(list(OFF.values())))
def test_lines_follow_models_and_tasks_wherever_they_stand(order: list[int], tasks: list[int], result: Result) -> None:
    """Another order of both changes the order in a line, and nothing else."""

    def shuffled(table: Tensor | None) -> Tensor | None:
        return None if table is None else table[order][:, tasks]

    moved = replace(
        result,
        numbers=[result.numbers[k] for k in order],
        tasks=[result.tasks[i] for i in tasks],
        losses=shuffled(result.losses),
        untrained=shuffled(result.untrained),
        shuffled=shuffled(result.shuffled),
        preferences=shuffled(result.preferences),
        status=[result.status[k] for k in order],
    )
    assert [sorted(line) for line in find_problems(moved)] == [sorted(line) for line in find_problems(result)]


WEIGHTS = torch.tensor([[0.95, 0.05], [0.7, 0.3], [0.5, 0.5], [0.3, 0.7], [0.05, 0.95]], dtype=torch.float64)
BEATEN = Result(
    [0, 1, 2, 3, 4],
    ["kind", "topic"],
    "val",
    torch.tensor([[0.96, 1.3], [1.0, 0.8], [0.76, 0.9], [0.9, 0.55], [1.2, 0.6]], dtype=torch.float64),
    torch.full((5, 2), 2.3, dtype=torch.float64),
    WEIGHTS,
    "importance",
    ["trained"] * 5,
    weights=WEIGHTS,
)
BEATEN_LINE = (
    "models 0, 1, 2, 4 are beaten at their own importances by others on val: they were trained too briefly or started "
    "badly. Train longer, share the start of training (branch=0.25), or try another seed."
)


def test_models_that_others_beat_at_their_own_importances_are_told() -> None:
    """Model 2 beats 0 and 1, and model 3 beats 2 and 4; none is better in both tasks than all others."""
    assert find_problems(BEATEN) == [BEATEN_LINE]
    assert find_problems(replace(BEATEN, untrained=None)) == [BEATEN_LINE]
    assert find_problems(replace(BEATEN, train=BEATEN.losses)) == [BEATEN_LINE]
    frozen = replace(BEATEN, status=["non-finite", *["trained"] * 4])
    assert find_problems(frozen) == [BEATEN_LINE]
    broken = replace(BEATEN, losses=torch.cat([torch.full((1, 2), torch.nan), BEATEN.losses[1:]]))
    assert find_problems(broken) == [BEATEN_LINE.replace("0, 1, 2, 4", "1, 2, 4")]


def test_only_what_was_not_done_is_advised_to_models_that_are_beaten() -> None:
    (line,) = find_problems(replace(BEATEN, can_share=False))
    assert line.endswith("started badly. Train longer, or try another seed.")
    fitted = torch.tensor([[0.1, 1.3], [0.2, 0.5], [0.3, 0.3], [0.5, 0.2], [1.2, 0.1]], dtype=torch.float64)
    (line,) = find_problems(replace(BEATEN, train=fitted))
    assert line == (
        "models 0, 1, 2, 4 are beaten at their own importances by others on val, but not on train: they overfit, or "
        "the tasks help each other. Try keep='best', or importances nearer to equal ones."
    )
    (line,) = find_problems(replace(BEATEN, train=fitted, keep="best"))
    assert line.endswith("each other. Try importances nearer to equal ones.")


def test_importances_apply_to_losses_as_scaled_in_training() -> None:
    units = torch.tensor([1.0, 1000.0], dtype=torch.float64)
    ideal = torch.tensor([0.5, -3.0], dtype=torch.float64)
    apart = {"losses": BEATEN.losses * units + ideal, "untrained": 2.3 * units.expand(5, 2) + ideal, "ideal": ideal}
    assert find_problems(replace(BEATEN, weights=WEIGHTS / units, **apart)) == [BEATEN_LINE]
    good = torch.tensor([[0.3, 1.3], [0.4, 0.8], [0.55, 0.6], [0.8, 0.4], [1.2, 0.3]], dtype=torch.float64)
    even = {"losses": good * units, "untrained": 2.3 * units.expand(5, 2)}
    assert find_problems(replace(BEATEN, weights=WEIGHTS / units, **even)) == []
    assert find_problems(replace(BEATEN, **even)), "the same front by weights of losses that were not scaled"


@pytest.mark.parametrize(
    "result",
    [
        replace(BEATEN, weights=None),  # separate networks, and methods that do not minimise sums
        replace(BEATEN, reading="start"),
        replace(BEATEN, reading="direction"),
        replace(BEATEN, status=["feasible"] * 5),  # auto went on along rays
        replace(BEATEN, has_data=False),
        replace(BEATEN, preferences=torch.full((5, 2), 0.5), weights=torch.full((5, 2), 0.5).double()),  # starts alone
        replace(BEATEN, untrained=torch.full((5, 2), 100.0).double()),  # a few percent of nearly nothing
        replace(BEATEN, losses=BEATEN.losses - 5.0, untrained=None),  # a share of a negative sum
        replace(BEATEN, losses=torch.full((5, 2), torch.nan).double(), untrained=None),
        with_losses([0.3, 1.3], [0.6, 0.6], [1.2, 0.6], reading="importance", preferences=WEIGHTS[[0, 2, 4]],
                    weights=WEIGHTS[[0, 2, 4]], status=["trained"] * 3),  # no more than one model in three
        with_losses([0.96, 0.5], [0.5, 0.96], reading="importance", preferences=WEIGHTS[[0, 4]],
                    weights=WEIGHTS[[0, 4]], status=["trained"] * 2, numbers=[0, 1], untrained=None),  # two models
    ],
)  # fmt: skip
def test_models_that_are_not_comparable_by_importances_are_left_alone(result: Result) -> None:
    assert not any("beaten" in line for line in find_problems(result))


def test_another_cause_is_said_in_place_of_beaten_models() -> None:
    one = replace(BEATEN, losses=torch.cat([BEATEN.losses[:4] + 0.7, torch.tensor([[0.4, 0.4]]).double()]))
    (line,) = find_problems(one)
    assert line.startswith("model 4 is better than models 0, 1, 2, 3 in every task on val")
    worse = replace(BEATEN, losses=torch.cat([torch.tensor([[2.6, 2.6]]).double(), BEATEN.losses[1:]]))
    (line,) = find_problems(worse)
    assert line.startswith("worse than untrained on val, for nothing: model 0 in kind")


RAISED_LINE = (
    "model 1 pays for its ratio with a loss far above the untrained one on val: left (3.99, was 2.3). Take directions "
    'that models reach (preferences="reachable:3"), or the default method.'
)


def test_a_ratio_that_is_held_by_raising_a_loss_is_told() -> None:
    """No other model gains as much in the task on the right, so that it is not for nothing."""
    result = with_losses([0.9, 0.8], [3.99, 0.2], [0.7, 0.9])
    assert find_problems(result) == [RAISED_LINE]
    many = with_losses([0.4, 0.8, 0.9], [3.99, 0.2, 4.0], [0.9, 4.5, 0.1], untrained=torch.full((3, 3), 2.0).double(),
                       tasks=["a", "b", "c"], preferences=torch.eye(3).double())  # fmt: skip
    assert find_problems(many) == [
        "models pay for their ratios with losses far above the untrained ones on val: model 1 in a (3.99, was 2), "
        "model 1 in c (4, was 2), model 2 in b (4.5, was 2). Take directions that models reach "
        '(preferences="reachable:3"), or the default method.'
    ]
    more = replace(many, losses=torch.tensor([[0.4, 0.8, 0.9], [3.99, 0.2, 4.0], [4.0, 4.5, 0.1]]).double())
    assert "model 2 in a (4, was 2) and 1 more. Take" in find_problems(more)[0]


@pytest.mark.parametrize(
    "result",
    [
        with_losses([0.9, 0.8], [3.4, 0.2], [0.7, 0.9]),  # less than half of it on top
        with_losses([0.9, 0.8], [3.99, 0.2], [0.7, 0.9], reading="importance"),
        with_losses([0.9, 0.8], [3.99, 0.2], [0.7, 0.9], reading="start"),
        with_losses([0.9, 0.8], [3.99, 0.2], [0.7, 0.9], has_data=False),
        with_losses([0.9, 0.8], [3.99, 0.2], [0.7, 0.9], untrained=None),
        with_losses([0.02, 0.8], [0.05, 0.2], [0.03, 0.5], untrained=torch.tensor([[0.01, 2.3]]).double().expand(3, 2)),
        with_losses([0.9, 0.8], [0.5, 0.5], [torch.nan, 0.9]),
    ],
)  # fmt: skip
def test_a_loss_that_was_not_raised_for_a_ratio_is_no_price(result: Result) -> None:
    assert not any("ratio" in line for line in find_problems(result))


def test_a_loss_that_was_raised_for_nothing_is_said_once() -> None:
    (line,) = find_problems(with_losses([0.9, 0.3], [3.99, 0.4], [0.3, 0.9]))
    assert line.startswith("worse than untrained on val, for nothing: model 1 in left (3.99, was 2.3)")


def test_a_run_knows_by_which_sums_its_models_were_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Separate networks, starts, and directions have none; one that was stopped is not checked at all."""
    seen: list[Result] = []
    monkeypatch.setattr(training_run, "find_problems", lambda result: seen.append(result) or [])
    rows = [[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]]

    def check(method: Any, preferences: Any, **options: Any) -> Result:
        fit(problem(), method, preferences, epochs=17, strategy="sequential", **options)
        return seen.pop()

    plain, units = check("linear", rows), check(pm.Linear(scale=[2.0, 0.5]), rows)
    assert plain.weights is not None
    assert units.weights is not None
    torch.testing.assert_close(plain.weights, torch.tensor(rows, dtype=torch.float64))
    torch.testing.assert_close(units.weights, plain.weights * torch.tensor([2.0, 0.5]).double())
    assert (plain.split, plain.ideal, plain.can_share) == ("train", None, True)
    assert torch.equal(plain.losses, plain.train)  # type: ignore[arg-type]
    assert check("auto", rows).weights is not None
    ranged = check(pm.Linear(scale=([-1.0, 0.0], [3.0, 2.0])), rows)
    assert torch.equal(ranged.ideal, torch.tensor([-1.0, 0.0]).double())  # type: ignore[arg-type]
    assert not check("linear", rows, branch=0.25).can_share
    for method, preferences in (("single-task", None), ("mgda", 3), ("p-norm", rows), ("pareto-mtl", rows)):
        assert check(method, preferences).weights is None

    def stop(report: pm.training.Report) -> None:
        raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit(problem(), "linear", rows, epochs=40, callbacks=[stop])
    assert not seen


def test_a_run_says_it_once_and_its_front_keeps_it(tmp_path: Path) -> None:
    """With a learning rate of nothing; also where the run was interrupted in between."""
    still = lambda parameters: torch.optim.SGD(parameters, lr=1e-9)  # noqa: E731
    of, options = problem(val=classes(40, seed=1)), {"optimizer": still, "epochs": 17, "strategy": "sequential"}

    def stop(report: pm.training.Report) -> None:
        if report.epoch == 4:
            raise KeyError

    with pytest.raises(KeyError):
        fit(of, out=tmp_path, callbacks=[stop], **options)
    with pytest.warns(UserWarning, match="losses moved by less than 5%") as said:
        front = fit(of, out=tmp_path, resume=True, **options)
    assert len(said) == 1
    assert front.remarks == (str(said[0].message),)
    loaded = pm.Front.load(tmp_path)
    assert loaded.remarks == front.remarks
    assert " ".join(repr(loaded).split()).endswith(f" remark: {front.remarks[0]}")


def test_several_lines_are_one_warning() -> None:
    assert merge_lines(["a.", "b."]) == ["something is off in this front:\n- a.\n- b."]


def test_a_stopped_or_short_run_is_left_alone() -> None:
    still = lambda parameters: torch.optim.SGD(parameters, lr=1e-9)  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit(optimizer=still, epochs=16, strategy="sequential").remarks == ()  # 48 steps


def test_warnings_that_are_errors_do_not_cost_the_front() -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "worse than untrained|losses moved|model|the same losses")
        with pytest.raises(UserWarning) as caught:
            fit(problem(), "linear", epochs=25, optimizer=lambda p: torch.optim.SGD(p, lr=1e-9))
    front = caught.value.front  # type: ignore[attr-defined]
    assert front.complete
    assert front.remarks


def noise_problem(**more: Any) -> pm.Problem:
    """The first target is a line of the inputs, the second noise with a mean that an untrained model does not know."""
    g = torch.Generator().manual_seed(0)
    x = torch.randn(256, 4, generator=g)
    y = torch.stack([x.sum(-1), 3.0 + torch.randn(256, generator=g)], -1)

    def losses(outputs: Tensor, targets: Tensor) -> Tensor:
        return (outputs - targets).square().mean(0)

    return pm.Problem(lambda: torch.nn.Linear(4, 2), losses, ["line", "noise"], train=(x, y), **more)


@pytest.mark.parametrize("strategy", ["batched", "sequential"])
def test_a_task_at_chance_is_told_though_its_loss_fell(strategy: Any) -> None:
    """From 10 to 1, which is the variance of its noise."""
    options: dict[str, Any] = {"epochs": 60, "batch_size": 64, "device": "cpu", "progress": "quiet"}
    with pytest.warns(UserWarning, match="no model predicts noise better than chance: losses on train"):
        front = pm.fit(noise_problem(), "linear", 3, optimizer=adam, strategy=strategy, **options)
    assert bool((front.losses["train"][:, 1] < 2.0).all())
    assert any("no model predicts noise" in remark for remark in front.remarks)


def test_losses_of_a_model_and_a_batch_are_not_shuffled() -> None:
    """It is not known which part of a batch is the input."""
    plain = noise_problem()
    x, y = plain.train  # type: ignore[misc]

    def losses(model: Any, batch: dict[str, Tensor]) -> Tensor:
        return (model(batch["x"]) - batch["y"]).square().mean(0)

    general = replace(plain, losses=losses, train={"x": x, "y": y})
    front = pm.fit(general, "linear", 3, epochs=60, batch_size=64, optimizer=adam, device="cpu", progress="quiet")
    assert front.remarks == ()


def adam(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=0.05)
