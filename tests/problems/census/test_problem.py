from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import paretomtl as pm
from _helpers.census_files import FILES, real_folder, some_records, text_of, use_small_files, write_small_files
from _helpers.servers import serving
from paretomtl.paper.real_data.census import KNOWING_NOTHING
from paretomtl.problems import MLP, PROBLEMS, Census, MixtureOfExperts, census, load_census, prepare_census
from paretomtl.problems._census import files as prepared
from paretomtl.problems._census.layout import CATEGORIES, CENSUS, NUMBERS, UNKNOWN


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return use_small_files(tmp_path / "sources", monkeypatch)


@pytest.fixture
def cache(tmp_path: Path, sources: Path) -> Path:
    prepare_census(sources, tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def real() -> Census:
    return prepared.read_census(real_folder())


def features_of(data: Census, split: str = "train") -> np.ndarray:
    arrays = data.arrays
    return data.features(arrays[f"{split}_codes"], arrays[f"{split}_numbers"], like=data.train_numbers)


def test_what_is_stored_is_loaded(cache: Path, sources: Path) -> None:
    found, made = load_census(cache), prepared.read_census(sources)
    assert found.checksum() == made.checksum() == prepared.PUBLISHED_CENSUS
    for name, array in found.arrays.items():
        assert np.array_equal(array, made.arrays[name])
    assert [path.name for path in cache.iterdir()] == ["census.npz"]


def test_every_one_hot_vector_has_one_place_and_inverts(sources: Path) -> None:
    data = prepared.read_census(sources)
    places = features_of(data)[:, len(NUMBERS) :]
    assert set(np.unique(places)) == {0.0, 1.0}
    assert (places.sum(1) == len(CATEGORIES)).all()
    parts = np.split(places, np.cumsum(data.sizes)[:-1], axis=1)
    assert np.array_equal(np.stack([part.argmax(1) for part in parts], 1), data.train_codes)


def test_features_are_what_their_names_say(sources: Path) -> None:
    data, records = prepared.read_census(sources), some_records(60, 0)
    names, found = data.feature_names, features_of(data)
    assert len(names) == len(set(names)) == found.shape[1]
    for record, row in zip(records, found, strict=True):
        assert all(row[names.index(f"{column}={record[column]}")] == 1.0 for column in CATEGORIES)
    ages = np.array([float(record["age"]) for record in records])
    np.testing.assert_allclose(found[:, names.index("age")], (ages - ages.mean()) / ages.std(), rtol=1e-5, atol=1e-6)


def test_numbers_are_standardized_by_the_records_trained_on(sources: Path) -> None:
    data = prepared.read_census(sources)
    numbers = features_of(data)[:, : len(NUMBERS)]
    np.testing.assert_allclose(numbers.mean(0), 0.0, atol=1e-6)
    np.testing.assert_allclose(numbers.std(0), 1.0, rtol=1e-5)
    constant = np.full_like(data.train_numbers, 7.0)
    assert (data.features(data.train_codes, constant, like=constant)[:, : len(NUMBERS)] == 0.0).all()


def test_unknown_categories_of_own_files_are_zeros(tmp_path: Path) -> None:
    folder = write_small_files(tmp_path / "mine")
    (folder / FILES[1]).write_bytes(text_of([{**some_records(3, 0)[2], "race": "Martian"}]))
    with pytest.raises(ValueError, match=r"for 'race'. Line 1 has 'Martian'; unknown="):
        prepare_census(folder, tmp_path, verify=False)
    data = prepare_census(folder, tmp_path, verify=False, unknown="ignore")
    assert (data.test_codes == UNKNOWN).sum() == 1
    assert features_of(data, "test")[:, len(NUMBERS) :].sum() == len(CATEGORIES) - 1


def test_own_files_are_read_anew_and_kept_apart(tmp_path: Path, cache: Path) -> None:
    folder = write_small_files(tmp_path / "mine", train=30)
    with pytest.raises(ValueError, match=r"must be the published text .*verify=False"):
        prepare_census(folder, tmp_path / "other")
    for size in (30, 40):
        write_small_files(folder, train=size)
        prepare_census(folder, cache, verify=False)
        assert len(load_census(cache, verify=False).train_codes) == size
        assert len(census(folder=cache, verify=False).train[0]) == size  # type: ignore[arg-type, index]
    assert len(load_census(cache).train_codes) == 60
    with pytest.raises(ValueError, match=r"'source' must be a folder with your own files if 'verify' is False"):
        prepare_census(cache=cache, verify=False)


def test_what_is_there_is_only_read_and_what_is_damaged_made_again(cache: Path, sources: Path) -> None:
    told: list[str] = []
    prepare_census("nowhere", cache, told.append)
    assert told == [f"There already: {cache / 'census.npz'}"]
    (cache / "census.npz").write_bytes((cache / "census.npz").read_bytes()[:-100])
    with pytest.raises(ValueError, match="must be a whole file of prepared data") as error:
        load_census(cache)
    assert f"Make it again with: paretomtl data prepare census --cache {cache}" in str(error.value)
    prepare_census(sources, cache, told.append)
    assert told[1].startswith(f"Making it again: '{cache / 'census.npz'}' must be a whole file")
    load_census(cache)


def test_records_are_the_published_ones_or_none(
    tmp_path: Path, sources: Path, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    monkeypatch.setattr(prepared, "PUBLISHED_CENSUS", "0123")
    with pytest.raises(ValueError, match=r"The records must have the published SHA-256 0123 of census. Got "):
        prepare_census(sources, tmp_path / "new")
    assert list((tmp_path / "new").iterdir()) == []
    with pytest.raises(ValueError, match=r"census.npz' must have the published SHA-256 0123 of census. Got "):
        load_census(cache)


def test_a_folder_without_the_files_is_named(tmp_path: Path, sources: Path) -> None:
    (sources / FILES[1]).unlink()
    with pytest.raises(FileNotFoundError, match=r"There is no 'census-income.test' in"):
        prepare_census(sources, tmp_path / "cache")
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="'cache' must be a folder that can be written"):
        prepare_census(sources, tmp_path / "file")


@pytest.mark.parametrize("bad", [None, "altered", "cut"])
def test_gzipped_files_are_downloaded_and_told_by_their_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: str | None
) -> None:
    with serving(tmp_path / "remote", monkeypatch) as server:
        mirrors = tuple(server.address(mirror) for mirror in ([bad] if bad else []) + ["good"])
        folder = use_small_files(tmp_path / "remote", monkeypatch, mirrors)
        for file in FILES:
            (folder / f"{file}.gz").write_bytes(gzip.compress((folder / file).read_bytes(), compresslevel=3))
        told: list[str] = []
        prepare_census(cache=tmp_path / "cache", log=told.append)
        (tmp_path / "cache" / "census.npz").unlink()
        prepare_census(cache=tmp_path / "cache", log=told.append)
    assert server.asked["good"] == 2, "what is there is not asked for again"
    assert sorted(path.name for path in (tmp_path / "cache" / CENSUS.folder).iterdir()) == [f"{f}.gz" for f in FILES]
    if bad == "altered":
        assert any(said.startswith("That failed: altered: md5 ") for said in told)
    load_census(tmp_path / "cache")


def test_the_checksum_of_a_gzip_file_is_that_of_what_it_holds(tmp_path: Path) -> None:
    import hashlib

    path, expected = tmp_path / "x.gz", hashlib.md5(b"first, second").hexdigest()
    whole = gzip.compress(b"first, ") + gzip.compress(b"second")
    for content, found in (
        (whole, expected),
        (gzip.compress(b"first, second", 1), expected),
        (whole[:-1], "no whole gzip"),
        (whole + b"x", "no whole gzip"),
        (b"", "no whole gzip"),
    ):
        path.write_bytes(content)
        assert CENSUS.md5_of(path) == found
        digest = CENSUS.digest()
        for i in range(len(content)):
            digest.update(content[i : i + 1])
        assert digest.hexdigest() == found


def test_the_problem_is_made_of_the_records(cache: Path) -> None:
    problem: Any = PROBLEMS["census"](folder=cache)
    data = load_census(cache)
    x, y = problem.train
    assert x.dtype == y.dtype == torch.float32
    assert np.array_equal(x.numpy(), features_of(data))
    assert np.array_equal(y.numpy(), data.train_labels)
    assert np.array_equal(problem.test[0].numpy(), features_of(data, "test"))
    assert problem.val is None
    assert problem.tasks == ("income", "education", "marital")
    assert list(problem.metrics) == [f"{task} {what}" for what in ("accuracy", "auc") for task in problem.tasks]
    assert problem.reference == (0.7,) * 3
    model = problem.model()
    assert isinstance(model, MLP)
    losses, _ = problem.run(model, (x, y))
    assert (losses < 0.8).all()
    assert [layer.out_features for layer in model.trunk if isinstance(layer, torch.nn.Linear)] == [1024, 128]


def test_validation_is_a_tenth_of_the_training_records(cache: Path) -> None:
    data = load_census(cache)
    one: Any = census(True, cache)
    again: Any = census(True, cache)
    assert [len(split[1]) for split in (one.train, one.val, one.test)] == [54, 6, 20]
    assert torch.equal(one.val[0], again.val[0])
    places = np.concatenate([split[0][:, len(NUMBERS) :].numpy() for split in (one.train, one.val)])
    both = np.concatenate([split[1].numpy() for split in (one.train, one.val)])
    expected = np.concatenate([features_of(data)[:, len(NUMBERS) :], data.train_labels], 1)
    assert sorted(np.concatenate([places, both], 1).tolist()) == sorted(expected.tolist()), "each record once"
    torch.testing.assert_close(one.train[0][:, : len(NUMBERS)].mean(0), torch.zeros(9), atol=1e-5, rtol=0.0)
    assert (one.val[0][:, : len(NUMBERS)].mean(0).abs() > 1e-3).any()


@pytest.mark.parametrize("strategy", ["sequential", "batched"])
def test_it_trains_in_both_strategies(cache: Path, strategy: Any) -> None:
    inputs = len(load_census(cache).feature_names)
    problem = census(True, cache, model=lambda: MixtureOfExperts(inputs, 3, experts=2, hidden=(8,), tower=()))
    front = pm.fit(problem, preferences=3, epochs=5, strategy=strategy, device="cpu", progress="quiet", keep="best")
    assert front.losses["test"].isfinite().all()
    assert (front.losses["test"] < 0.8).all()
    assert set(front.metrics["test"]) == set(problem.metrics)


def test_records_that_are_not_prepared_say_how_to(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"census.npz' does not exist yet. Make it with: paretomtl data prepare"
    ):
        census(folder=tmp_path)
    with pytest.raises(
        FileNotFoundError, match=r"census-own.npz' does not exist yet. Make it with: .*prepare_census\("
    ):
        census(folder=tmp_path, verify=False)


@pytest.mark.study
def test_the_published_files_make_the_published_records(real: Census) -> None:
    assert real.checksum() == prepared.PUBLISHED_CENSUS
    assert (len(real.train_codes), len(real.test_codes)) == (199_523, 99_762)
    assert real.train_labels.sum(0).tolist() == [12_382, 39_183, 86_485]
    assert real.test_labels.sum(0).tolist() == [6_186, 19_456, 43_143]
    assert not (real.test_codes == UNKNOWN).any()
    assert json.loads(json.dumps(real.feature_names)) == list(real.feature_names), "plain strings"


@pytest.mark.study
def test_what_a_constant_answer_costs(real: Census) -> None:
    """The points that losses of the study are scaled by: the entropy of each label."""
    share = real.train_labels.mean(0, dtype=np.float64)
    entropy = -(share * np.log(share) + (1 - share) * np.log(1 - share))
    assert pytest.approx(tuple(entropy), abs=0.01) == KNOWING_NOTHING


@pytest.mark.study
def test_482_features_and_the_counts_of_other_choices(real: Census) -> None:
    """What docs/reference/data-sets.md says: which columns are numbers decides."""
    assert len(real.feature_names) == 482
    nominal = {name: int(size) for name, size in zip(CATEGORIES, real.sizes, strict=True)}
    for name in ("own_or_self", "vet_benefits"):
        nominal[name] = len(np.unique(real.train_numbers[:, NUMBERS.index(name)]))

    def width(*numbers: str, weight: bool = False) -> int:
        counts = len(NUMBERS) - 2  # the columns that its description calls continuous
        return sum(1 if name in numbers else size for name, size in nominal.items()) + counts + weight

    assert width("own_or_self", "vet_benefits") == 482
    assert width("own_or_self", "vet_benefits", "year", weight=True) == 482
    assert width("own_or_self", "vet_benefits", "year") == 481
    assert width() == 486
    assert width("det_ind_code", "det_occ_code", "own_or_self", "vet_benefits", "year") == 384
    assert sum(name.endswith("=?") for name in real.feature_names) == 8
