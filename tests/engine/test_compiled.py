"""Compiled models train like those that are not, or are not used, and the front says so."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import paretomtl as pm


def regression(model: Callable[[], nn.Module] = lambda: nn.Linear(3, 2)) -> pm.Problem:
    x = torch.linspace(-1, 1, 48).reshape(16, 3)
    y = torch.stack([x.sum(1), x[:, 0] - x[:, 1]], 1)
    losses = {name: lambda out, t, i=i: (out[:, i] - t[:, i]).square().mean() for i, name in enumerate("ab")}
    return pm.Problem(model, losses, ["a", "b"], (x, y))


def fit(problem: pm.Problem, method: str, **options: Any) -> pm.Front:
    sgd = lambda p: torch.optim.SGD(p, lr=0.05)  # noqa: E731
    return pm.fit(problem, method, 2, **{"epochs": 2, "optimizer": sgd, "progress": "quiet", **options})


def compiler(change: Callable[[Tensor], Tensor]) -> Callable[..., Any]:
    """A backend that runs the graph, and then changes the losses while gradients are taken."""

    def changed(out: Any) -> Any:
        floating = isinstance(out, Tensor) and out.requires_grad
        return change(out) if floating else out

    return lambda graph, inputs: lambda *args: tuple(map(changed, graph(*args)))


def broken(_: Tensor) -> Tensor:
    raise RuntimeError("no such kernel")


FAULTS = {"not finite": lambda x: x * torch.nan, "differ": lambda x: 1.5 * x, "no such kernel": broken}


@pytest.mark.parametrize("why", FAULTS)
@pytest.mark.parametrize("strategy", ["sequential", "batched", "auto"])
def test_models_whose_compiled_steps_are_wrong_train_without_a_compiler(strategy: Any, why: str) -> None:
    torch.compiler.reset()
    expected = fit(regression(), "pareto-mtl", strategy="sequential")
    with pytest.warns(UserWarning, match=f"'compile' has no effect.*{why}"):
        front = fit(regression(), "pareto-mtl", strategy=strategy, compile={"backend": compiler(FAULTS[why])})
    torch.testing.assert_close(front.losses["train"], expected.losses["train"])
    assert "not compiled" in front.strategy
    assert why in front.strategy


def test_a_resumed_run_stays_without_a_compiler(tmp_path: Path) -> None:
    torch.compiler.reset()
    options: dict[str, Any] = {"compile": {"backend": compiler(FAULTS["not finite"])}, "out": tmp_path}
    with pytest.warns(UserWarning, match="'compile' has no effect"):
        fit(regression(), "linear", **options, epochs=1)
    front = fit(regression(), "linear", **options, epochs=2, resume=True)
    torch.testing.assert_close(front.losses["train"], fit(regression(), "linear").losses["train"])


def test_an_unknown_compiler_is_refused() -> None:
    with pytest.raises(Exception, match="Invalid backend"):
        fit(regression(), "linear", compile={"backend": "unheard of"})


class Encoder(nn.Module):
    """A transformer with dropout, around and inside of attention, and two heads."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.inside = rate
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=rate, batch_first=True)
        self.lift, self.heads = nn.Linear(1, 8), nn.ModuleList(nn.Linear(8, 1) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        z = self.layer(self.lift(x[..., None]))
        rate = self.inside if self.training else 0.0
        z = nn.functional.scaled_dot_product_attention(z, z, z, dropout_p=rate).mean(1)
        return torch.cat([head(z) for head in self.heads], 1)


class Skipping(nn.Module):
    """Residual blocks of which each sample skips some while it trains."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate, self.blocks, self.last = rate, nn.ModuleList(nn.Linear(3, 3) for _ in range(2)), nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            kept = nn.functional.dropout(torch.ones_like(x[:, :1]), self.rate, self.training)
            x = nn.functional.layer_norm(x + kept * block(x).tanh(), (3,))
        return self.last(x)


def train_compiled(model: str, rate: float, out: str) -> None:
    """Store the losses of every way to train a model, compiled and not."""
    problem = regression(lambda: {"encoder": Encoder, "skipping": Skipping}[model](rate))
    ways = [("pareto-mtl", "sequential"), ("linear", "batched"), ("pareto-mtl", "auto"), ("auto", "auto")]
    rows = []
    for method, strategy in ways:
        fronts = [fit(problem, method, strategy=strategy, compile=c, epochs=4) for c in (True, False)]
        rows.append([fronts[0].strategy, *(front.losses["train"].tolist() for front in fronts)])
    Path(out).write_text(json.dumps(rows))


@pytest.mark.system
@pytest.mark.parametrize(("model", "rate"), [("encoder", 0.0), ("encoder", 0.2), ("skipping", 0.2)])
def test_models_with_dropout_train_compiled_in_one_process_and_in_the_next(
    tmp_path: Path, model: str, rate: float
) -> None:
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    rows = tmp_path / "rows.json"
    for _ in range(2):
        arguments = [sys.executable, "-W", "ignore", __file__, model, str(rate), str(rows)]
        subprocess.run(arguments, env=environment, check=True)
        for strategy, compiled, plain in json.loads(rows.read_text()):
            assert torch.tensor(compiled).isfinite().all(), strategy
            if rate == 0:
                assert "ompiled" not in strategy
                torch.testing.assert_close(torch.tensor(compiled), torch.tensor(plain), rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    train_compiled(sys.argv[1], float(sys.argv[2]), sys.argv[3])
