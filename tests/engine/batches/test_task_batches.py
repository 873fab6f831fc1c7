"""A data set for each task: batches side by side, trained and evaluated as a hand-written join would be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import paretomtl as pm
from paretomtl.engine.batches.base import Batches
from paretomtl.engine.batches.make import make_batches
from paretomtl.problems import PerTask
from paretomtl.training.run.training_run import TrainingRun
from paretomtl.training.settings.fingerprint import fingerprint, identify_problem

TASKS = ["age", "sex"]
mse, entropy = nn.functional.mse_loss, nn.functional.cross_entropy


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Linear(3, 5)
        self.heads = nn.ModuleDict({"age": nn.Linear(5, 1), "sex": nn.Linear(5, 2)})

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        hidden = self.trunk(x).tanh()
        return {"age": self.heads["age"](hidden)[:, 0], "sex": self.heads["sex"](hidden)}


def made(count: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    x = torch.randn(count, 3, generator=torch.Generator().manual_seed(seed))
    return x, x.sum(1), (x[:, 0] > 0).long()


X1, AGE, _ = made(11, 0)
X2, _, SEX = made(5, 1)
DATA = {"age": (X1, AGE), "sex": (X2, SEX)}
LOSSES = {"age": mse, "sex": entropy}


def joined(model: Any, batch: Any) -> list[Tensor]:
    """The join by hand."""
    (x1, age), (x2, sex) = batch["age"], batch["sex"]
    return [mse(model(x1)["age"], age), entropy(model(x2)["sex"], sex)]


def problem(train: Any = DATA, losses: Any = LOSSES, **options: Any) -> pm.Problem:
    return pm.Problem(Net, losses, TASKS, train=train, **options)


def fit(of: pm.Problem, **options: Any) -> pm.Front:
    sgd = lambda p: torch.optim.SGD(p, lr=0.1)  # noqa: E731
    usual: dict[str, Any] = {"epochs": 2, "batch_size": 2, "device": "cpu", "progress": "quiet"}
    return pm.fit(of, "linear", 2, **{**usual, "strategy": "sequential", "optimizer": sgd, **options})


def batches(data: Any = DATA, mode: Any = "max_size_cycle", size: int = 2) -> Batches:
    split = pm.Problem(Net, LOSSES, TASKS, train=PerTask(data, mode)).train
    return make_batches("train", split, batch_size=size, device=torch.device("cpu"), dtype=torch.float32)


def same(one: pm.Front, other: pm.Front) -> bool:
    pairs = [(one.models.stacked()[name], other.models.stacked()[name]) for name in one.models.stacked()]
    return all(torch.equal(a, b) for a, b in [*pairs, (one.losses["train"], other.losses["train"])])


def test_a_dictionary_of_losses_is_the_join_by_hand() -> None:
    """The same steps, bit by bit, for every form of data; and those of one data set where all samples are the same."""
    expected = fit(problem())
    assert same(fit(problem(losses=joined)), expected)
    assert same(fit(problem({task: TensorDataset(*pair) for task, pair in DATA.items()})), expected)
    assert same(fit(problem({task: tuple(part.numpy() for part in pair) for task, pair in DATA.items()})), expected)
    ordered = {task: DataLoader(TensorDataset(*pair), batch_size=2) for task, pair in DATA.items()}
    by_hand: Any = [
        {task: (x[i % n : i % n + 2], y[i % n : i % n + 2]) for task, (x, y, n) in parts.items()}
        for parts in [{"age": (X1, AGE, 12), "sex": (X2, SEX, 6)}]
        for i in range(0, 12, 2)
    ]
    loader = DataLoader(by_hand, batch_size=None)
    assert torch.equal(fit(problem(ordered)).history["losses"], fit(problem(loader, losses=joined)).history["losses"])


def test_shared_samples_train_as_one_data_set() -> None:
    x, age, sex = made(8, 2)
    one, each = problem((x, age, sex)), problem({"age": (x, age), "sex": (x, sex)})
    torch.testing.assert_close(fit(each).losses["train"], fit(one).losses["train"])
    named = problem((x, age, sex), losses=lambda o, t: [mse(o["age"], t[0]), entropy(o["sex"], t[1])])
    assert same(fit(one), fit(named))


@pytest.mark.parametrize(("mode", "steps", "sizes"), [("max_size_cycle", 5, [2, 2, 2, 2, 2]), ("min_size", 2, [2, 2])])
def test_an_epoch_ends_with_the_longest_or_the_shortest(mode: str, steps: int, sizes: list[int]) -> None:
    found = list(batches(mode=mode).epoch(0, 0))
    assert len(found) == steps == batches(mode=mode).steps
    assert [batch.samples["age"] for batch in found] == sizes
    ages = torch.cat([batch["age"][1] for batch in found])
    assert len(ages.unique()) == len(ages)


def test_a_short_data_set_starts_again_in_another_order() -> None:
    x = torch.arange(64.0)[:, None]
    data = {"age": (torch.zeros(192, 1), torch.zeros(192)), "sex": (x, x[:, 0])}
    epochs = [torch.cat([batch["sex"][1] for batch in batches(data, size=16).epoch(0, e)]) for e in (0, 0, 1)]
    assert torch.equal(epochs[0], epochs[1])
    passes = [*epochs[0].split(64), *epochs[2].split(64)]
    assert len(passes) == 6
    assert all(torch.equal(each.sort().values, x[:, 0]) for each in passes)
    assert len({tuple(each.tolist()) for each in passes}) == 6


@pytest.mark.parametrize("start", range(6))
def test_an_epoch_can_be_taken_up_anywhere(start: int) -> None:
    whole = [batch["sex"][0].tolist() for batch in batches().epoch(3, 1)]
    assert [batch["sex"][0].tolist() for batch in batches().epoch(3, 1, start)] == whole[start:]


def test_streams_without_a_length_end_with_the_longest() -> None:
    class Stream(IterableDataset[Any]):
        def __init__(self, count: int) -> None:
            self.count = count

        def __iter__(self) -> Iterator[Any]:
            return iter(zip(X1[: self.count], AGE[: self.count], strict=True))

    found = batches({"age": Stream(7), "sex": Stream(3)})
    assert found.steps is None
    assert [batch.samples for batch in found.epoch(0, 0)] == [
        {"age": 2, "sex": 2}, {"age": 2, "sex": 1}, {"age": 2, "sex": 2}, {"age": 1, "sex": 1}
    ]  # fmt: skip


@pytest.mark.parametrize("form", ["functions", "by hand"])
def test_evaluation_is_the_mean_over_each_tasks_own_samples(form: str) -> None:
    val = {"age": made(7, 3)[:2], "sex": made(3, 4)[::2]}
    seen: list[Any] = []

    def right(outputs: Tensor, targets: Tensor) -> Tensor:
        seen.append(len(targets))
        return (outputs.argmax(-1) == targets).double().mean()

    of = problem(
        losses=LOSSES if form == "functions" else joined,
        val=val,
        test=(X1, AGE, (X1[:, 0] > 0).long()) if form == "functions" else None,
        metrics={"accuracy": pm.Metric(right, task="sex")},
    )
    for strategy in ("sequential", "batched"):
        front = fit(of, strategy=strategy)
        for k in range(2):
            model = front.model(k)
            for split, data in (("train", DATA), ("val", val)):
                (x1, age), (x2, sex) = data["age"], data["sex"]
                expected = torch.stack(joined(model, {"age": (x1, age), "sex": (x2, sex)})).detach()
                torch.testing.assert_close(front.losses[split][k], expected)
                assert float(front.metrics[split]["accuracy"][k]) == float(right(model(x2)["sex"], sex))
            if form == "functions":
                expected = mse(model(X1)["age"], AGE).detach()
                torch.testing.assert_close(front.losses["test"][k, 0], expected)
    assert set(seen) <= {5, 3, 11, 2}, "and 2 in a first batch, on which metrics are tried"


def test_the_metric_of_a_task_may_take_the_model_and_the_batches_of_its_own_data() -> None:
    """As for losses, the first parameter's name says it: batches of dictionaries have no inputs and targets."""

    class Rows(TensorDataset):
        def __getitem__(self, i: int) -> dict[str, Tensor]:
            return dict(zip(("x", "y"), super().__getitem__(i), strict=True))

    def loss(task: str) -> Any:
        return lambda model, batch: LOSSES[task](model(batch["x"])[task], batch["y"])

    def right(model: Any, batches: Any) -> float:
        found = [model(batch["x"])["sex"].argmax(-1) == batch["y"] for batch in batches]
        return float(torch.cat(found).double().mean())

    of = problem(
        {task: Rows(*DATA[task]) for task in TASKS},
        {task: loss(task) for task in TASKS},
        metrics={"right": pm.Metric(right, task="sex"), "wrong": pm.Metric(lambda outputs, y: 0.0, task="sex")},
    )
    with pytest.warns(
        UserWarning, match=r"'sex' must be .* a metric \(outputs, targets\); for others write function\(model, b"
    ):
        front = fit(of, epochs=1)
    expected = right(front.model(0), [{"x": X2, "y": SEX}])
    assert float(front.metrics["train"]["right"][0]) == expected


@pytest.mark.parametrize("sexes", [DATA["sex"], DataLoader(TensorDataset(X2, SEX), 2)], ids=["tensors", "loader"])
def test_a_run_is_resumed_to_the_same_end(sexes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From inside an epoch of five steps, or from the last whole one for a loader."""
    of, taken, step = problem({**DATA, "sex": sexes}), [0], TrainingRun.take_step

    def stop(run: TrainingRun, batch: Any) -> None:
        step(run, batch)
        taken[0] += 1
        if taken[0] == 8:
            raise RuntimeError("power cut")

    expected = fit(of)
    monkeypatch.setattr(TrainingRun, "take_step", stop)  # the ninth step is not stopped any more
    with pytest.raises(RuntimeError, match="power cut"):
        fit(of, out=tmp_path, checkpoint_seconds=0)
    assert same(fit(of, out=tmp_path, resume=True), expected)


def test_micro_batches_of_each_task_are_averaged_exactly() -> None:
    whole, cut = (fit(problem(), accumulate=parts, batch_size=4, precision="float64") for parts in (1, 2))
    torch.testing.assert_close(whole.losses["train"], cut.losses["train"])
    uneven = {**DATA, "sex": (X2[:4], SEX[:4])}
    whole, cut = (fit(problem(uneven), accumulate=parts, batch_size=6, precision="float64") for parts in (1, 3))
    torch.testing.assert_close(whole.losses["train"], cut.losses["train"])


def test_a_batch_without_labels_leaves_its_task_out() -> None:
    def masked(outputs: Tensor, targets: Tensor) -> Tensor:
        known = ~targets.isnan()
        return ((outputs - targets).nan_to_num() * known).square().sum() / known.sum()

    ages = AGE.clone()
    ages[:8] = torch.nan
    front = fit(problem({**DATA, "age": (X1, ages)}, losses={**LOSSES, "age": masked}))
    assert front.status == ["trained"] * 2
    model = front.model(0)
    torch.testing.assert_close(front.losses["train"][0, 0], mse(model(X1)["age"][8:], AGE[8:]).detach())


def test_the_data_of_a_task_are_part_of_the_identity() -> None:
    one, again = fingerprint(batches()), fingerprint(batches())
    assert one == again is not None
    others = [batches(mode="min_size"), batches({**DATA, "sex": (X2, 1 - SEX)})]
    assert len({one, *(fingerprint(other) for other in others)}) == 3
    assert identify_problem(problem(), device="cpu")["data"]["train"] == one


def test_stacks_train_alike() -> None:
    one, both = (fit(problem(), strategy=name, precision="float64") for name in ("sequential", "batched"))
    torch.testing.assert_close(one.losses["train"], both.losses["train"])
