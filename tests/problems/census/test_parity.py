"""Income against parity: the problem of the records, batches of one sex, and the trade-off that it promises."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import paretomtl as pm
from _helpers.census_files import FILES, real_folder, some_records, text_of, write_small_files
from paretomtl.problems import MLP, PROBLEMS, census, census_parity, load_census, parity_losses, prepare_census
from paretomtl.problems._census.parity import from_splits
from paretomtl.problems.data_set import PrepareOptions
from paretomtl.problems.registry import DATA_SETS, find_data_set, prepare_command

pytestmark = pytest.mark.filterwarnings("ignore:first losses differ")  # they do, and scaling by them is the trap
QUIET: dict[str, Any] = {"device": "cpu", "progress": "quiet"}


def records_of_two_sexes(count: int, seed: int) -> list[dict[str, str]]:
    """Records in which every other person is a woman."""
    return [{**record, "sex": ("Female", "Male")[n % 2]} for n, record in enumerate(some_records(count, seed))]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    folder = write_small_files(tmp_path / "mine")
    for file, count, seed in zip(FILES, (60, 20), (0, 1), strict=True):
        (folder / file).write_bytes(text_of(records_of_two_sexes(count, seed)))
    prepare_census(folder, tmp_path / "cache", verify=False)
    return tmp_path / "cache"


def made_up(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """People whose income depends on their sex, the first feature, and on two more of twelve."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(count, 12, generator=generator)
    man = (torch.rand(count, generator=generator) < 0.5).float()
    features[:, 0] = man
    rate = torch.sigmoid(2.5 * man - 2.0 + features[:, 1] - features[:, 2])
    return features, torch.stack([(torch.rand(count, generator=generator) < rate).float(), man], -1)


def test_the_problem_is_made_of_the_records(cache: Path) -> None:
    problem: Any = PROBLEMS["census-parity"](folder=cache, verify=False)
    others: Any = census(folder=cache, verify=False)
    names = load_census(cache, verify=False).feature_names
    for split in ("train", "test"):
        features, targets = getattr(problem, split)
        assert torch.equal(features, getattr(others, split)[0]), "the features of census, sex included"
        assert torch.equal(targets[:, 0], getattr(others, split)[1][:, 0])
        assert torch.equal(targets[:, 1], features[:, names.index("sex=Male")])
        assert torch.equal(targets[:, 1], torch.arange(len(targets)) % 2)
    assert problem.val is None
    assert problem.tasks == ("income", "parity")
    assert problem.reference == (0.7, 0.2)
    assert list(problem.metrics) == ["income accuracy", "income auc", "parity gap", "soft parity gap"]
    assert [metric.better for metric in problem.metrics.values()] == ["higher", "higher", "lower", "lower"]
    model = problem.model()
    assert isinstance(model, MLP)
    assert [layer.out_features for layer in model.trunk if isinstance(layer, nn.Linear)] == [128, 32]
    assert len(model.heads) == 1
    losses, _ = problem.run(model, problem.train)
    assert losses.shape == (2,)
    assert losses.isfinite().all()


def test_the_recipe_is_the_one_that_was_written_down(cache: Path) -> None:
    recipe = census_parity(folder=cache, verify=False).recipe
    assert (recipe.epochs, recipe.batch_size, recipe.schedule) == (5, 2048, "step")
    optimizer = recipe.optimizer(nn.Linear(1, 1).named_parameters())  # type: ignore[misc]
    assert isinstance(optimizer, torch.optim.AdamW)
    assert optimizer.defaults["lr"] == 1.4e-3
    assert recipe.methods["pareto-mtl"].initial_steps == 2  # type: ignore[attr-defined]


def test_validation_is_that_of_census(cache: Path) -> None:
    one: Any = census_parity(True, cache, verify=False)
    other: Any = census(True, cache, verify=False)
    for split in ("train", "val", "test"):
        assert torch.equal(getattr(one, split)[0], getattr(other, split)[0])
        assert torch.equal(getattr(one, split)[1][:, 0], getattr(other, split)[1][:, 0])


def test_it_shares_the_prepared_file_of_census(tmp_path: Path) -> None:
    assert "census-parity" not in DATA_SETS
    found = find_data_set("census-parity")
    assert found.file(PrepareOptions(cache=tmp_path)) == find_data_set("census").file(PrepareOptions(cache=tmp_path))
    assert found.from_splits is from_splits
    with pytest.raises(FileNotFoundError, match=r"census.npz' does not exist yet") as error:
        census_parity(folder=tmp_path)
    assert str(error.value).endswith(f"Make it with: {prepare_command('census', tmp_path)}")
    assert prepare_command("census-parity", tmp_path) == prepare_command("census", tmp_path)


def test_records_without_both_sexes_are_refused(tmp_path: Path) -> None:
    prepare_census(write_small_files(tmp_path / "mine"), tmp_path, verify=False)
    message = (
        r"'sex' must have the categories Female and Male in the records. Got \['sex 0', 'sex 1', 'sex 2'\] instead"
    )
    with pytest.raises(ValueError, match=message):
        census_parity(folder=tmp_path, verify=False)


def test_a_sex_that_training_lacks_counts_for_income_alone(tmp_path: Path) -> None:
    folder = write_small_files(tmp_path / "mine")
    records = records_of_two_sexes(6, 0)
    (folder / FILES[0]).write_bytes(text_of(records))
    (folder / FILES[1]).write_bytes(text_of([*records[:5], {**records[5], "sex": "?"}]))
    prepare_census(folder, tmp_path, verify=False, unknown="ignore")
    problem: Any = census_parity(folder=tmp_path, verify=False)
    assert problem.test[1][:, 1].isnan().tolist() == [False] * 5 + [True]
    logits = torch.arange(6.0)
    torch.testing.assert_close(
        parity_losses(logits, problem.test[1])[1], parity_losses(logits[:5], problem.test[1][:5])[1]
    )


def test_more_weight_on_parity_makes_the_gap_smaller() -> None:
    """The label depends on sex, so that a smaller gap costs income loss, whatever the network."""
    problem = from_splits({"train": made_up(2048, 0), "test": made_up(2048, 1)})
    weights = torch.tensor([[0.95, 0.05], [0.7, 0.3], [0.2, 0.8]])
    front = pm.fit(problem, pm.Linear(scale=None), weights, epochs=20, batch_size=256, **QUIET)
    for gap in ("parity gap", "soft parity gap"):
        values = front.metrics["test"][gap]
        assert (values[:-1] > values[1:] + 0.05).all(), gap
    income, parity = front.losses["test"].unbind(-1)
    assert (income[1:] > income[:-1] + 0.02).all()
    assert (parity[:-1] > parity[1:] + 0.05).all()
    assert front.nondominated("test").all()
    assert front.metrics["test"]["income auc"][0] > 0.8


def test_scales_from_first_values_lead_to_parity_alone() -> None:
    problem = from_splits({"train": made_up(2048, 0), "test": made_up(2048, 1)})
    options: dict[str, Any] = {"preferences": 3, "epochs": 20, "batch_size": 256, **QUIET}
    plain = pm.fit(problem, pm.Linear(), **options)
    with pytest.warns(UserWarning, match="no task is predicted better than chance by models 1, 2.*set scale=None"):
        scaled = pm.fit(problem, pm.Linear(scale="first"), **options)
    assert plain.metrics["test"]["soft parity gap"].max() > 0.3
    assert scaled.metrics["test"]["soft parity gap"].max() < 0.05


def test_the_first_parity_loss_is_near_its_best() -> None:
    """Why scales from first values overweigh it: they differ by more than the factor of 10 at which "auto" scales."""
    problem: Any = from_splits({"train": made_up(2048, 0), "test": made_up(64, 1)})
    for seed in range(5):
        torch.manual_seed(seed)
        income, parity = problem.run(problem.model(), problem.train)[0].tolist()
        assert income == pytest.approx(np.log(2.0), abs=0.05)
        assert 0.01 <= parity < 0.06
        assert income > 10 * parity


def one_sex_in_some_batches() -> pm.Problem:
    """Four batches of 32: one of women, one of men, two of both."""
    features, targets = made_up(400, 0)
    women, men = (targets[:, 1] == sex for sex in (0, 1))
    order = torch.cat([women.nonzero()[:32, 0], men.nonzero()[:32, 0], torch.arange(336, 400)])
    train = torch.utils.data.TensorDataset(features[order], targets[order])
    problem = from_splits({"train": (features, targets), "test": (features, targets)}, lambda: MLP(12, 1, hidden=(8,)))
    return replace(problem, train=torch.utils.data.DataLoader(train, batch_size=32), test=None)


@pytest.mark.parametrize("strategy", ["sequential", "batched"])
@pytest.mark.parametrize("method", ["linear", "pareto-mtl"])
def test_batches_of_one_sex_train_income_alone(strategy: Any, method: str) -> None:
    problem = one_sex_in_some_batches()
    front = pm.fit(problem, method, 3, epochs=3, strategy=strategy, **QUIET)
    assert front.complete
    assert "non-finite" not in front.status
    assert front.losses["train"].isfinite().all()
    batches: Any = list(problem.train)  # type: ignore[call-overload]
    for k, (income, parity) in enumerate(front.losses["train"].tolist()):
        with torch.no_grad():
            losses = torch.stack([problem.run(front.model(k), batch)[0] for batch in batches])
        assert losses[:, 1].isnan().tolist() == [True, True, False, False]
        assert income == pytest.approx(float(losses[:, 0].mean()), rel=1e-5)
        assert parity == pytest.approx(float(losses[2:, 1].mean()), rel=1e-5), "the mean over batches that have one"


def test_labels_are_counted_by_batch() -> None:
    problem = one_sex_in_some_batches()
    counts = [problem.labels_in(batch) for batch in problem.train]  # type: ignore[union-attr]
    assert [count.tolist() for count in counts if count is not None] == [[32, 0], [32, 0], [32, 32], [32, 32]]


def test_micro_batches_of_one_sex_train_too() -> None:
    features, targets = made_up(64, 0)
    problem = from_splits({"train": (features, targets), "test": (features, targets)}, lambda: MLP(12, 1, hidden=(8,)))
    front = pm.fit(problem, "pareto-mtl", 2, epochs=2, batch_size=8, accumulate=4, **QUIET)
    assert "non-finite" not in front.status
    assert front.losses["train"].isfinite().all()


class Plain(nn.Module):
    """A model that returns a tensor, not a tuple of heads."""

    def __init__(self, width: int | None = None) -> None:
        super().__init__()
        self.layer, self.width = nn.Linear(12, 1), width

    def forward(self, features: Tensor) -> Tensor:
        logits: Tensor = self.layer(features)
        return logits.squeeze(-1) if self.width is None else logits


def test_a_model_may_return_a_tensor() -> None:
    splits = {"train": made_up(64, 0), "test": made_up(32, 1)}
    front = pm.fit(from_splits(splits, Plain), "linear", 2, epochs=1, **QUIET)
    assert all(values.isfinite().all() for values in front.metrics["test"].values())
    with pytest.raises(ValueError, match=r"'outputs' must be one tensor of logits of shape \[64\]. Got \[64, 1\]"):
        pm.fit(from_splits(splits, lambda: Plain(1)), "linear", 2, epochs=1, **QUIET)


@pytest.mark.study
def test_the_published_records_have_a_gap(tmp_path: Path) -> None:
    """Truth of the data: the share of high incomes among men is four times that among women."""
    prepare_census(real_folder(), tmp_path)
    problem: Any = census_parity(folder=tmp_path)
    for split, (women, men) in {"train": (103_984, 95_539), "test": (51_791, 47_971)}.items():
        income, man = getattr(problem, split)[1].unbind(-1)
        assert (int((man == 0).sum()), int((man == 1).sum())) == (women, men)
        rates = [float(income[man == sex].mean()) for sex in (0, 1)]
        assert rates == pytest.approx([0.0254, 0.1017], abs=0.0003)
        perfect = problem.metrics["parity gap"].function(20.0 * income - 10.0, getattr(problem, split)[1])
        assert float(perfect) == pytest.approx(rates[1] - rates[0], abs=1e-6)
        share = float(income.double().mean())
        constant = parity_losses(torch.logit(torch.full_like(income, share)), getattr(problem, split)[1])
        assert constant.tolist() == pytest.approx([0.23, 0.01], abs=0.005), "what the docstring says"
        assert np.hypot(rates[1] - rates[0], 0.01) == pytest.approx(0.077, abs=0.0005)
    torch.manual_seed(0)
    with torch.no_grad():
        losses, _ = problem.run(problem.model(), tuple(part[:2048] for part in problem.train))
    assert losses[0] > 10 * losses[1], "the trap of scales from first values"
