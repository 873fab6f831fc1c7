"""Arrays, tables and lists of numbers become the tensors that a user would have written."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

import paretomtl as pm
from paretomtl.problems._conversion import as_tensors

X = np.linspace(-1.0, 1.0, 24, dtype=np.float32).reshape(8, 3)
Y = np.stack([X.sum(1), X[:, 0]], 1)


def losses(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs - targets).square().mean(0)


def trained(train: Any, **options: Any) -> Tensor:
    problem = pm.Problem(lambda: nn.Linear(3, 2), losses, ["a", "b"], train=train)
    front = pm.fit(problem, "linear", 2, epochs=2, device="cpu", progress="quiet", strategy="sequential", **options)
    return front.losses["train"]


def test_every_form_trains_as_tensors_do() -> None:
    expected = trained((torch.from_numpy(X), torch.from_numpy(Y)))
    frozen = X.copy()
    frozen.flags.writeable = False
    forms = [
        (X, Y),
        [X, Y],
        (X, torch.from_numpy(Y)),
        (X.astype(">f4"), Y.astype(np.float64)),
        (frozen, np.asfortranarray(Y)),
        (X[::-1][::-1], np.repeat(Y, 2, axis=0)[::2]),
        (X.tolist(), Y.tolist()),
        (X, np.ma.masked_array(Y)),
    ]
    for form in forms:
        assert torch.equal(trained(form), expected)
    assert trained((X, Y), precision="float64").dtype == torch.float64


@pytest.mark.parametrize("kind", ["i1", "i2", "i4", "i8", "u2", "u4", "u8", ">i4"])
def test_integers_become_class_numbers(kind: str) -> None:
    found = as_tensors("train", np.arange(4).astype(kind))
    assert found.dtype == torch.int64
    assert found.tolist() == [0, 1, 2, 3]


def test_images_masks_and_long_numbers_keep_what_they_hold() -> None:
    assert as_tensors("train", np.ones(3, np.uint8)).dtype == torch.uint8
    assert as_tensors("train", np.ones(3, np.bool_)).dtype == torch.bool
    assert as_tensors("train", np.ones(3, np.longdouble)).dtype == torch.float64
    missing = as_tensors("train", np.ma.masked_array([1, 2, 3], [False, True, False]))
    assert missing.isnan().tolist() == [False, True, False]
    with pytest.raises(ValueError, match=r"'train' must hold integers under 2\*\*63"):
        as_tensors("train", np.array([2**63], np.uint64))


def test_tensors_and_loaders_stay_as_they_are() -> None:
    pair = (torch.ones(2), torch.ones(2))
    assert as_tensors("train", pair) is pair
    loader: Any = DataLoader([1, 2])  # type: ignore[arg-type]
    assert as_tensors("train", loader) is loader


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ((X, np.array(["a", "b"] * 4)), r"'train\[1\]' must hold numbers. Got an array of dtype <U1: number the cl"),
        ((X, np.array([1, None] * 4)), r"'train\[1\]' must hold numbers. Got an array of dtype object: convert it"),
        ({"x": np.array(["2020-01-01"], "M8[D]")}, r"'train\['x'\]' must hold numbers. .* datetime64\[D\]: count from"),
        (np.zeros(3, [("age", "i4")]), r"with fields \['age'\]: pass one array for each field"),
        (([[1.0], [1.0, 2.0]], [0, 1]), r"'train\[0\]' must have rows of one length. Got lengths \[1, 2\]"),
        ([[1.0, 2.0], [3.0, 4.0]], r"Got a list of lists: write a tuple \(inputs, targets\)"),
        ([(X, Y), (X, Y)], r"Got a list of 2 tuples: write DataLoader\(data, batch_size=32\) if each is a sample"),
        ((x for x in X), "Got a generator, which can be read only once"),
        ((X, {1, 2}), "Got a tuple of ndarray, set instead"),
        (((X, X), Y), r"Got a tuple of tuple, ndarray: for several inputs write a dictionary, and losses\(model"),
    ],
)  # fmt: skip
def test_what_cannot_be_converted_says_what_to_write(data: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        as_tensors("train", data)


def test_lengths_that_differ_and_empty_splits_are_shown() -> None:
    with pytest.raises(ValueError, match=r"same first dimension, not empty. Got \[\[8, 3\], \[5, 2\]\]"):
        trained((X, Y[:5]))
    with pytest.raises(ValueError, match=r"same first dimension, not empty. Got \[\[0, 3\], \[0, 2\]\]"):
        trained((X[:0], Y[:0]))
    with pytest.raises(TypeError, match=r"'train' must be dense tensors, .* call to_dense\(\)"):
        trained((torch.from_numpy(X).to_sparse(), torch.from_numpy(Y)))


# Tables of pandas.


def test_tables_train_as_tensors_do() -> None:
    pandas = pytest.importorskip("pandas")
    expected = trained((torch.from_numpy(X), torch.from_numpy(Y)))
    table = pandas.DataFrame(X, columns=["u", "v", "w"])
    assert torch.equal(trained((table, pandas.DataFrame(Y))), expected)
    assert torch.equal(trained((table.convert_dtypes(), Y)), expected)
    shuffled = table.sample(frac=1.0, random_state=0)
    with pytest.raises(ValueError, match=r"the same index in another order: write targets.loc\[inputs.index\]"):
        trained((shuffled, pandas.DataFrame(Y)))


def test_columns_become_numbers_by_their_kind() -> None:
    pandas = pytest.importorskip("pandas")
    flags, whole = pandas.Series([True, False]), pandas.Series([3, 4], dtype="int8")
    assert as_tensors("train", flags).dtype == torch.bool
    assert as_tensors("train", whole).dtype == torch.int64
    assert as_tensors("train", pandas.DataFrame({"a": flags, "b": whole})).tolist() == [[1, 3], [0, 4]]
    gaps = pandas.DataFrame({"a": pandas.array([1, None], dtype="Int64"), "b": pandas.array([True, None], "boolean")})
    found = as_tensors("train", gaps)
    assert found.isnan().tolist() == [[False, False], [True, True]]
    assert found[0].tolist() == [1.0, 1.0]
    assert as_tensors("train", pandas.Series([1, 2], dtype="Int64")).dtype == torch.int64


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda pd: pd.Series(["x", "y"]), r"take table\['c'\].astype\(.category.\).cat.codes for labels, or pd.get"),
        (lambda pd: pd.Series(["x", "y"], dtype="category"), r"dtype category: take table\['c'\].cat.codes for labels"),
        (lambda pd: pd.Series([1, 2.5], dtype=object), r"dtype object: .* take pd.to_numeric\(table\['c'\]\)"),
        (lambda pd: pd.to_datetime(pd.Series(["2020-01-01", "2021-01-01"])), r"datetime64.*: count from a fixed date"),
        (lambda pd: pd.to_timedelta(pd.Series([1, 2]), unit="h"), r"timedelta64.*: take column.dt.total_seconds"),
    ],
)  # fmt: skip
def test_columns_that_are_no_numbers_are_named(make: Any, message: str) -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [1.0, 2.0], "c": make(pandas)})
    with pytest.raises(TypeError, match=message) as caught:
        as_tensors("train", (table, torch.ones(2)))
    assert str(caught.value).startswith("'train[0]' must hold numbers. Got column 'c' of dtype ")


@pytest.mark.parametrize("dtype", ["object", "category"])
def test_missing_categories_do_not_become_a_class(dtype: str) -> None:
    """Codes are -1 for them, which is a label to most losses: the remedy leaves NaN, as everywhere else."""
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"c": pandas.Series(["no", None, "yes"], dtype=dtype)})
    with pytest.raises(
        TypeError, match=r"\.cat\.codes\.where\(table\['c'\]\.notna\(\)\) for 0/1 labels, so that"
    ) as caught:
        as_tensors("train", (torch.ones(3), table))
    remedy = str(caught.value).split("take ")[1].split(" for 0/1 labels")[0]
    found = as_tensors("train", eval(remedy, {"table": table}))
    assert found.nan_to_num(nan=9.0).tolist() == [0.0, 9.0, 1.0]


def test_pandas_is_not_imported_for_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tables become arrays by themselves."""
    monkeypatch.setitem(sys.modules, "pandas", None)

    class Table:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return X

    assert torch.equal(as_tensors("train", Table()), torch.from_numpy(X))
