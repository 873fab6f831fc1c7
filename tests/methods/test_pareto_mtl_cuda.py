"""The CUDA kernel of a step of Pareto MTL, run on a CPU: the same as the torch operations that it stands for."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from _helpers.emulate import Launches, Operations, needs_compiler
from _helpers.hulls import KINDS, gradients, hulls
from paretomtl import core, preferences
from paretomtl.methods import ParetoMTL, State, Status, Step
from paretomtl.methods import _pareto_mtl_cuda as _pareto_mtl_kernel
from paretomtl.methods import base as _method

pytestmark = needs_compiler

DTYPES = {2: (torch.float32, torch.float32), 3: (torch.float64, torch.float64), 8: (torch.float32, torch.float64)}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"initial_steps": 0, "epsilon": 0.0, "rescale": True},
    {"initial_steps": 2, "unit_rows": True, "epsilon": 0.7},
    {"scale": "first", "rescale": True},
    {"scale": "own", "release_steps": 2},
    {"scale": "range", "rescale": True},
    {"scale": "first", "unit_rows": True, "rescale": True, "initial_steps": 1, "release_steps": 1},
    {"return_share": None},
    {"return_share": 0.2, "rescale": True, "initial_steps": 1, "release_steps": 1},
    {"return_share": 1.0, "scale": "first", "unit_rows": True},
]


def by_kernel(method: ParetoMTL, step: Step, state: State, launches: int = 1) -> tuple[Tensor, State]:
    counter = Launches()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_method, "may_launch", lambda tensor: True)
        patch.setattr(_pareto_mtl_kernel, "kernel", counter)
        found = method.weigh(step, state)
    assert counter.count == launches
    return found


def make_method(tasks: int, options: dict[str, Any]) -> ParetoMTL:
    factors = tuple(0.5 + i for i in range(tasks))
    own = {"own": {"scale": factors}, "range": {"scale": ((0.1,) * tasks, factors)}}.get(options.get("scale", ""), {})
    return ParetoMTL(**{**options, **own})


lattice_or_energy = functools.cache(preferences.lattice_or_energy)


def make_state(method: ParetoMTL, count: int, tasks: int, seed: int) -> State:
    g = torch.Generator().manual_seed(seed)
    return method.init(lattice_or_energy(count, tasks) + 0.01 * torch.rand(count, tasks, generator=g))


def make_step(kind: str, state: State, seed: int, *, broken: bool, **more: Any) -> Step:
    """Losses near the regions and far from them, gradients of a kind; some tasks absent, some numbers not finite."""
    g = torch.Generator().manual_seed(seed)
    count, tasks = state["losses"].shape
    gramian, _, _ = hulls(kind, "none", count, tasks, tasks + 1, seed=seed)
    losses = torch.rand(count, tasks, generator=g, dtype=torch.float64)
    losses = losses * 10.0 ** torch.randint(-2, 3, (count, 1), generator=g)
    present = None
    if broken:
        # A zero, a negative, and what is not finite: one of each in this many entries.
        one_in = lambda number, *shape: torch.randint(number, shape, generator=g) == 0  # noqa: E731
        present = ~one_in(5, count, tasks)
        losses = torch.where(one_in(9, count, tasks), 0.0, losses)
        losses = torch.where(one_in(20, count, tasks), -losses, losses)
        losses = torch.where(~present & one_in(2, count, tasks), torch.nan, losses)  # hidden by the mask
        losses = torch.where(one_in(9 * tasks, count, tasks), torch.nan, losses)
        losses = torch.where(one_in(15 * tasks, count, tasks), torch.inf, losses)
        gramian = torch.where(one_in(15 * tasks**2, count, tasks, tasks), torch.nan, gramian)
        gramian = torch.where(one_in(15 * tasks**2, count, tasks, tasks), -torch.inf, gramian)
    dtypes = DTYPES.get(tasks, (torch.float64, torch.float64))
    return Step(losses.to(dtypes[0]), gramian.to(dtypes[1]), present, **more)


def check(method: ParetoMTL, step: Step, state: State, *, unique: bool, launches: int = 1) -> State:
    """One step in both ways; returns the state after it."""
    kept = {name: tensor.clone() for name, tensor in state.items()}
    found, after = by_kernel(method, step, state, launches)
    expected, after_torch = method.weigh(step, state)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    for name, tensor in state.items():
        assert torch.equal(tensor, kept[name]), f"{name} is written in place"
        if name != "rows":
            assert torch.equal(after[name], after_torch[name]), name
    assert list(after) == list(after_torch)
    assert after["rows"] is state["rows"]
    a, b = found.double(), expected.double()
    close = {"rtol": 1e-5, "atol": 1e-6} if found.dtype == torch.float32 else {"rtol": 1e-8, "atol": 1e-9}
    if unique:
        torch.testing.assert_close(a, b, **close)
        return after
    # Of dependent gradients many weights are the best; the direction Jᵀα is one, and with it C α.
    assert step.gramian is not None
    c = step.gramian.double().nan_to_num(0.0, 0.0, 0.0)  # what is left out is so for tasks without weight
    lengths = c.diagonal(dim1=-2, dim2=-1).clamp_min(0.0).sqrt()
    if method.rescale:  # the direction up to a factor, where it is not all rounding
        norms = [(w[:, None] @ c @ w[..., None]).squeeze(-1) for w in (a, b)]
        clear = norms[1] > 1e-2 * (lengths * b.abs()).sum(-1, keepdim=True).square() + 1e-12
        a, b = (torch.where(clear, w / norm.sqrt(), 0.0) for w, norm in zip((a, b), norms, strict=True))
    size = (lengths * b.abs()).sum(-1, keepdim=True) * lengths.amax(-1, keepdim=True)
    rounding = 8 * torch.finfo(step.gramian.dtype).eps ** 0.5  # a Gramian rounded to eps knows lengths to its root
    error = ((c @ a[..., None]) - (c @ b[..., None])).squeeze(-1).abs()
    assert (error <= rounding * size + 1e-12).all()
    return after


@pytest.mark.study
# Nearly parallel gradients are left out: a zero to one solver is rounding to the other.
@settings(max_examples=120, deadline=None)
@given(
    tasks=st.sampled_from([2, 3, 8]),
    count=st.sampled_from([1, 2, 3, 5, 10, 27]),
    options=st.sampled_from(OPTIONS),
    kind=st.sampled_from([kind for kind in KINDS if kind != "parallel"]),
    broken=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_steps_in_a_row_are_those_of_torch(
    tasks: int, count: int, options: dict[str, Any], kind: str, broken: bool, seed: int
) -> None:
    method = make_method(tasks, options)
    state = make_state(method, count, tasks, seed)
    for number in range(5):
        at = torch.tensor(number) if number % 2 else number
        step = make_step(kind, state, seed + number, broken=broken, number=at, total=5 if number else 6)
        # An absent task has no gradient, and what is not unique about its weight is in the sum that rescaling takes.
        state = check(method, step, state, unique=kind == "plain" and not (broken and method.rescale))


def test_options_and_phases_of_many_subproblems_at_once() -> None:
    """Boundaries of the plan, one by one: the cap, the release, and numbers on the device."""
    for options in OPTIONS:
        method = make_method(3, options)
        for number in (0, 1, 2, 18, 19, 20, 96, 97, 98, 99):
            for phase in core.Phase:
                state = make_state(method, 5, 3, seed=number)
                state["phase"] = torch.full((5,), phase.value)
                step = make_step("plain", state, number, broken=False, number=torch.tensor(number), total=100)
                after = check(method, step, state, unique=True)
                whole = dataclasses.replace(step, number=number)
                for name, tensor in by_kernel(method, whole, state)[1].items():
                    assert torch.equal(tensor, after[name])


@pytest.mark.parametrize("digits", [8, 16])
@pytest.mark.parametrize("options", [{}, {"release_steps": 9}, {"rescale": True}, {"unit_rows": True}])
def test_gradients_of_any_lengths(options: dict[str, Any], digits: int) -> None:
    """Lengths over so many orders: what each task adds to the step is the same in both forms, and no task rises."""
    method = ParetoMTL(initial_steps=0, **options)
    for tasks in (3, 8):
        state = make_state(method, 6, tasks, seed=0)
        step = make_step("plain", state, 1, broken=False, number=1, total=10)
        jacobian = gradients(6, tasks, digits, seed=tasks)
        step = dataclasses.replace(step, gramian=jacobian @ jacobian.mT)
        found, after = by_kernel(method, step, state)
        expected, after_torch = method.weigh(step, state)
        assert torch.equal(after["status"], after_torch["status"])
        parts = [weights.double()[..., None] * jacobian for weights in (found, expected)]
        size = parts[1].norm(dim=-1).sum(-1)
        # A constraint's point is a difference of terms that are longer by up to so many digits: what float64 leaves of
        # it differs by 8e-4 between the forms without vector instructions, and by 2e-8 with them.
        assert ((parts[0] - parts[1]).norm(dim=-1).amax(-1) <= 1e-2 * size).all()
        descent = parts[0].sum(1)
        cosines = torch.nn.functional.cosine_similarity(jacobian, descent[:, None], dim=-1)
        assert (cosines >= -1e-6 * (size / descent.norm(dim=-1))[:, None]).all()


def test_without_a_plan_the_initial_phase_has_no_cap() -> None:
    state = make_state(ParetoMTL(), 5, 3, seed=0)
    step = make_step("plain", state, 1, broken=False, number=10**9, total=0)
    after = check(ParetoMTL(), step, state, unique=True)
    assert (after["phase"] == core.Phase.INITIAL).any()
    assert (after["since"][after["status"] != Status.INFEASIBLE] == 10**9).all()


def test_a_release_longer_than_the_plan_is_refused() -> None:
    method = ParetoMTL(release_steps=5)
    state = make_state(method, 2, 3, seed=0)
    with pytest.raises(ValueError, match="'release_steps' must be fewer"):
        by_kernel(method, make_step("plain", state, 0, broken=False, total=5), state)


@pytest.mark.parametrize("tasks", [2, 3, 8])
def test_broken_subproblems_keep_their_state_and_touch_no_other(tasks: int) -> None:
    method = ParetoMTL(scale="first")
    state = make_state(method, 6, tasks, seed=0)
    _, state = method.weigh(make_step("plain", state, 0, broken=False, number=0), state)
    step = make_step("plain", state, 1, broken=False, number=7)
    clean, after_clean = by_kernel(method, step, state)
    assert step.gramian is not None
    losses, gramian, present = step.losses.clone(), step.gramian.clone(), torch.ones(6, tasks, dtype=torch.bool)
    losses[0, 1] = torch.nan
    losses[1, 0] = -torch.inf
    gramian[2, 0, 1] = torch.nan
    present[3] = False
    found, after = by_kernel(method, Step(losses, gramian, present, 7), state)
    assert (found[:4] == 0).all()
    assert torch.equal(found[4:], clean[4:])
    for name, tensor in after.items():
        assert torch.equal(tensor[:4], state[name][:4]), name
        assert torch.equal(tensor[4:], after_clean[name][4:]), name


@pytest.mark.parametrize("tasks", [2, 3, 8])
def test_losses_at_the_ends_of_what_is_known(tasks: int) -> None:
    """All zero, tiny, and so large that the factors make them infinite."""
    for scale in (None, "first", tuple([1e300] * tasks)):
        for size in (0.0, 1e-42, 1e30):
            method = ParetoMTL(scale=scale)  # type: ignore[arg-type]
            state = make_state(method, 3, tasks, seed=1)
            step = make_step("plain", state, 1, broken=False, number=3)
            step = dataclasses.replace(step, losses=step.losses * size)
            check(method, step, check(method, step, state, unique=True), unique=True)


def test_masks_may_be_shared_and_tensors_strided() -> None:
    method = ParetoMTL()
    state = make_state(method, 4, 3, seed=0)
    step = make_step("plain", state, 3, broken=False, number=1)
    assert step.gramian is not None
    mask = torch.tensor([True, False, True])
    for present in (mask, mask[None], mask.expand(4, 3), torch.ones(3, 4, dtype=torch.bool).mT):
        check(method, dataclasses.replace(step, present=present), state, unique=True)
    strided = dataclasses.replace(step, losses=step.losses.mT.contiguous().mT, gramian=step.gramian[0].expand(4, 3, 3))
    check(method, strided, state, unique=True)
    one = {name: tensor[2:3] for name, tensor in state.items()}
    check(method, Step(step.losses[:1], step.gramian[:1]), one, unique=True)


def test_rounding_is_not_blown_up() -> None:
    """Losses on both boundaries of a region at once, with opposite rows: α is what is left of their sum."""
    method = ParetoMTL(rescale=True)
    state = make_state(method, 3, 2, seed=0)
    lengths = torch.tensor([[0.3, -0.111], [0.9, -0.37], [0.77, -0.013]], dtype=torch.float64)
    state["rows"] = lengths[..., None] * torch.tensor([1.0, -1.0], dtype=torch.float64)
    state["phase"] = torch.full((3,), core.Phase.MAIN.value)
    gramian = torch.tensor([[2.0, -0.7], [-0.7, 1.0]]).expand(3, 2, 2)
    after = check(method, Step(torch.ones(3, 2), gramian), state, unique=True)
    assert (after["status"] == Status.CRITICAL).all()
    assert (by_kernel(method, Step(torch.ones(3, 2), gramian), state)[0] == 0).all()


@pytest.mark.parametrize("options", [options for options in OPTIONS if options.get("scale") != "range"])
def test_nothing_else_is_launched(options: dict[str, Any]) -> None:
    method = make_method(3, options)
    state = make_state(method, 5, 3, seed=0)
    for present in (None, torch.ones(5, 3, dtype=torch.bool)):
        for number in (1, torch.tensor(1)):
            step = make_step("plain", state, 0, broken=False, number=number, total=10)
            with Operations() as seen:
                by_kernel(method, dataclasses.replace(step, present=present), state)
            assert seen.launched() == []


class Halved(ParetoMTL):
    def _weigh(self, *args: Any) -> tuple[Tensor, State]:
        weights, state = super()._weigh(*args)
        return weights / 2, state


def test_what_does_not_fit_is_left_to_torch() -> None:
    for tasks, count, method in ((17, 2, ParetoMTL()), (8, 300, ParetoMTL()), (3, 4, Halved())):
        state = make_state(method, count, tasks, seed=0)
        step = make_step("plain", state, 0, broken=True, number=1)
        weights, after = by_kernel(method, step, state, launches=0)
        expected, after_torch = method.weigh(step, state)
        assert torch.equal(weights, expected)
        assert all(torch.equal(after[name], after_torch[name]) for name in after)
    method = ParetoMTL()
    state = make_state(method, 3, 2, seed=0)
    step = make_step("plain", state, 0, broken=False)
    for number in (torch.tensor(1, dtype=torch.int32), -1):
        by_kernel(method, dataclasses.replace(step, number=number), state, launches=0)
    by_kernel(method, step, {**state, "losses": state["losses"].float()}, launches=0)


def test_half_precision_is_read_as_double() -> None:
    state = make_state(ParetoMTL(), 3, 3, seed=0)
    step = make_step("plain", state, 0, broken=False)
    assert step.gramian is not None
    half = Step(step.losses.bfloat16(), step.gramian.bfloat16())
    found, after = by_kernel(ParetoMTL(), half, state)
    expected, after_torch = ParetoMTL().weigh(half, state)
    torch.testing.assert_close(found, expected)
    assert torch.equal(after["status"], after_torch["status"])
