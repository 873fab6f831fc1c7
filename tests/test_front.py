from __future__ import annotations

import pytest
import torch

import paretomtl as pm


def front(method: str = "pareto-mtl") -> pm.Front:
    return pm.fit(
        pm.problems.synthetic(), method, 3, epochs=30, optimizer=lambda p: torch.optim.SGD(p, lr=1.0), device="cpu"
    )


def test_a_front_shows_itself() -> None:
    text = repr(front())
    assert text.splitlines()[0] == "Front of 3 solutions: synthetic, pareto-mtl, seed 0; losses on train"
    assert "direction" in text
    assert len(text.splitlines()) == 5
    assert max(map(len, text.splitlines())) < 80


def test_models_give_the_losses_that_the_front_reports() -> None:
    found = front()
    problem = pm.problems.synthetic()
    for k in range(3):
        torch.testing.assert_close(problem.losses(found.model(k)()).detach(), found.losses["train"][k])
    with pytest.raises(IndexError, match=r"'k' must be one of the subproblems trained, \[0, 1, 2\]. Got 3"):
        found.model(3)


def test_indicators() -> None:
    found = front()
    assert found.nondominated().shape == (3,)
    assert 0 < found.hypervolume([1, 1]) < 0.342
    with pytest.raises(ValueError, match=r"'reference' must have one finite number per task \(2\). Got \[1, 1, 1\]"):
        found.hypervolume([1, 1, 1])
    with pytest.raises(ValueError, match=r"'split' must be one of \['train'\]. Got 'test'"):
        found.hypervolume([1, 1], split="test")
    with pytest.raises(ValueError, match="regions need preferences that are directions; those of 'mgda' are not"):
        front("mgda").in_region()
