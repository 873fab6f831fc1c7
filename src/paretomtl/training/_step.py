"""One step of K models: losses, gradients, Gramian, weights, update."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from paretomtl.methods import Method, State, Step
from paretomtl.problems import Problem
from paretomtl.training._gradients import Stack, combine, gramian, task_gradients


@dataclass
class Training:
    """K models on their way.

    Attributes:
        stack: the models.
        optimizer: over the stacked parameters.
        state: what the method remembers.
        alive: ``[K]`` bool; a model whose losses were once not finite is out.
        previous: parameters and buffers one step ago, which still had finite losses.
    """

    problem: Problem
    method: Method
    stack: Stack
    optimizer: torch.optim.Optimizer
    state: State
    alive: Tensor
    previous: dict[str, Tensor]


def train_step(training: Training, *, number: int, total: int) -> tuple[Tensor, Tensor]:
    """Advance every living model by one step; return its losses and weights, ``[K, m]`` each, before the update.

    A model with a loss or a Gramian that is not finite goes back to the parameters one step ago and stays there.
    Nothing waits for the device.
    """
    stack, method = training.stack, training.method
    losses = stack.losses(training.problem.losses)
    parameters = list(stack.trained.values())
    finite = losses.detach().isfinite().all(-1)
    if method.needs_gramian:
        gradients = task_gradients(losses, parameters)
        c = gramian(gradients, len(losses))
        finite = finite & c.isfinite().flatten(1).all(-1)
        step = Step(losses.detach(), c, number=number, total=total)
        weights, training.state = method.weigh(step, training.state)
        updates = combine(weights, gradients)
    else:
        weights, training.state = method.weigh(Step(losses.detach(), number=number, total=total), training.state)
        updates = list(torch.autograd.grad((weights * losses).sum(), parameters, allow_unused=True))
    training.alive = training.alive & finite
    stack.restore(~training.alive, training.previous)
    training.previous = stack.copy()
    for parameter, update in zip(parameters, updates, strict=True):
        parameter.grad = update
    training.optimizer.step()
    stack.restore(~training.alive, training.previous)
    return losses.detach(), torch.where(training.alive[:, None], weights, 0.0)
