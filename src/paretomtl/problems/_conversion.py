"""Conversion of arrays, tables and lists of numbers to tensors, once, when the problem is made."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from paretomtl._support.argument_checks import quote

_LARGEST = 2**63 - 1  # what int64 holds
_REMEDIES = {
    "M": "count from a fixed date, such as (dates - dates.min()).astype('timedelta64[D]').astype('float32')",
    "m": "say the unit, such as array.astype('timedelta64[s]').astype('float32')",
    "U": "number the classes, such as np.unique(array, return_inverse=True)[1]",
    "S": "number the classes, such as np.unique(array, return_inverse=True)[1]",
    "V": "pass one array for each field",
    "O": "convert it by array.astype('float32'), or pad rows of different lengths",
}


def as_tensors(name: str, data: Any) -> Any:
    """Convert the arrays, tables and lists of a split to tensors; Datasets and DataLoaders stay as they are.

    Integers become int64, so that they can be class numbers. uint8 stays, because images are large, and so does bool.
    Missing values become NaN. Floating-point numbers are cast to the precision of the models later, as tensors are.

    Args:
        name: what error messages call the split.
        data: a tensor, an array, a table, or a tuple, list or dictionary of them.
    """
    if data is None or isinstance(data, (Tensor, Dataset, DataLoader)):
        return data
    if is_array(data):
        return _as_tensor(name, data)
    if isinstance(data, Mapping):
        if not any(is_column(part) for part in data.values()):
            return data
        _check_rows_correspond(name, list(data.values()))
        return {key: _as_tensor(f"{name}[{key!r}]", part) for key, part in data.items()}
    if _is_loader(data):
        return data
    if not isinstance(data, (tuple, list)):
        raise TypeError(_other_kind(name, data))
    if all(isinstance(part, (tuple, list)) and not part for part in data):
        raise ValueError(f"'{name}' must not be empty. Got {quote(data)} instead.")
    if all(isinstance(part, Tensor) for part in data):
        return data
    if not all(is_column(part) for part in data) or (isinstance(data, list) and not any(map(is_array, data))):
        raise TypeError(_other_kind(name, data))
    _check_rows_correspond(name, data)
    parts = [_as_tensor(f"{name}[{i}]", part) for i, part in enumerate(data)]
    return type(data)(*parts) if hasattr(data, "_fields") else type(data)(parts)


def _is_loader(data: Any) -> bool:
    """Whether each pass over it yields batches, as with the loaders of other libraries."""
    return isinstance(data, Iterable) and not isinstance(data, (str, bytes, Set, Sequence, Iterator))


def is_array(part: Any) -> bool:
    """Whether it is a tensor or converts to a NumPy array, as tables of pandas and polars do."""
    return hasattr(part, "__array__") and not isinstance(part, type)


def is_column(part: Any) -> bool:
    """Whether it is one value for each sample: an array, or a list of numbers or rows of numbers."""
    return is_array(part) or hasattr(part, "toarray") or _holds_numbers(part)


def _holds_numbers(part: Any) -> bool:
    if not isinstance(part, (list, tuple)) or not part:
        return False
    first = part[0]
    return isinstance(first, (int, float, complex, str, np.generic, type(None))) or _holds_numbers(first)


def _as_tensor(label: str, part: Any) -> Tensor:
    if isinstance(part, Tensor):
        return part
    pandas = sys.modules.get("pandas")  # a pandas table exists only if pandas is imported
    if pandas is not None and isinstance(part, pandas.DataFrame):
        columns = [_column(label, part.iloc[:, i]) for i in range(part.shape[1])]
        if not columns:
            raise ValueError(f"'{label}' must have columns. Got a table of {len(part)} rows and none.")
        return _from_array(label, np.stack(columns, axis=1))
    if pandas is not None and isinstance(part, pandas.Series):
        return _from_array(label, _column(label, part))
    if not is_array(part) and hasattr(part, "toarray"):
        raise TypeError(f"'{label}' must be dense. Got {type(part).__name__}: call its method toarray().")
    if isinstance(part, np.ma.MaskedArray):
        filled = np.where(np.ma.getmaskarray(part), np.nan, part.data) if np.ma.is_masked(part) else part.data
        return _from_array(label, filled)
    if isinstance(part, (list, tuple)):
        return _from_array(label, _from_list(label, part))
    return _from_array(label, np.asarray(part))


def _from_array(label: str, array: Any) -> Tensor:
    kind = array.dtype.kind
    if kind in _REMEDIES:
        fields = f" with fields {list(array.dtype.names)}" if array.dtype.names else ""
        raise TypeError(f"'{label}' must hold numbers. Got an array of dtype {array.dtype}{fields}: {_REMEDIES[kind]}.")
    if kind == "u" and array.itemsize == 8 and array.size and int(array.max()) > _LARGEST:
        raise ValueError(f"'{label}' must hold integers under 2**63. Got {int(array.max())} instead.")
    if kind in "iu" and array.dtype != np.uint8:
        array = array.astype(np.int64, copy=False)
    elif kind == "f" and array.itemsize > 8:
        array = array.astype(np.float64)
    elif kind == "c" and array.itemsize > 16:
        array = array.astype(np.complex128)
    array = np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _from_list(label: str, rows: Sequence[Any]) -> Any:
    try:
        return np.array(rows)
    except ValueError:
        lengths = sorted({len(row) if isinstance(row, Sequence) else 0 for row in rows})
        raise ValueError(
            f"'{label}' must have rows of one length. Got lengths {lengths}: pad them, or write a Dataset."
        ) from None


def _column(label: str, column: Any) -> Any:
    """One column of pandas as an array of numbers, NaN where a value is missing."""
    kind = getattr(column.dtype, "kind", "O")
    if kind not in "biufc":
        raise TypeError(
            f"'{label}' must hold numbers. Got column {quote(column.name)} of dtype {column.dtype}: "
            f"{_column_remedy(column, kind)}."
        )
    if kind != "c" and bool(column.isna().any()):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    plain = {"b": np.bool_, "i": np.int64, "u": np.uint64, "f": np.float64}
    return column.to_numpy() if isinstance(column.dtype, np.dtype) else column.to_numpy(dtype=plain[kind])


def _column_remedy(column: Any, kind: str) -> str:
    if kind == "M":
        return "count from a fixed date, such as (column - column.min()).dt.total_seconds()"
    if kind == "m":
        return "take column.dt.total_seconds()"
    name = repr(column.name)
    values = column.dropna()
    is_category = hasattr(column, "cat")
    if not is_category and len(values) and all(isinstance(value, (int, float, np.number)) for value in values):
        return f"all its values are numbers, so take pd.to_numeric(table[{name}])"
    codes = f"table[{name}].cat.codes" if is_category else f'table[{name}].astype("category").cat.codes'
    labels = f"{codes} for labels"
    if len(values) < len(column):  # the code of missing values would be a label to binary cross-entropy
        labels = f"{codes}.where(table[{name}].notna()) for 0/1 labels, so that missing ones are NaN, {codes} for "
        labels += "class labels, with cross_entropy(..., ignore_index=-1) for missing ones"
    return f"take {labels}, or pd.get_dummies(table, columns=[{name}]) for inputs"


def _check_rows_correspond(name: str, parts: Sequence[Any]) -> None:
    """Refuse tables of pandas with the same index in another order: rows are taken by position."""
    pandas = sys.modules.get("pandas")
    if pandas is None:
        return
    tables = [part for part in parts if isinstance(part, (pandas.DataFrame, pandas.Series))]
    for other in tables[1:]:
        one, two = tables[0].index, other.index
        if len(one) == len(two) and not one.equals(two) and one.sort_values().equals(two.sort_values()):
            raise ValueError(
                f"'{name}' must be tables whose rows correspond. Got the same index in another order: write "
                "targets.loc[inputs.index], or reset_index(drop=True) where the order is right."
            )


def _other_kind(name: str, data: Any) -> str:
    """The error for data of another kind, with a remedy."""
    rule = f"'{name}' must be tensors, arrays or tables of numbers, a Dataset or a DataLoader"
    kind = type(data).__name__
    if isinstance(data, (tuple, list)) and data:
        if isinstance(data, list) and all(_holds_numbers(part) for part in data):
            return f"{rule}. Got a list of lists: write a tuple (inputs, targets), or numpy.array(...)."
        if all(isinstance(part, (tuple, list, Mapping)) for part in data):
            return (
                f"{rule}. Got a {kind} of {len(data)} {type(data[0]).__name__}s: write DataLoader(data, "
                "batch_size=32) if each is a sample, DataLoader(data, batch_size=None) if each is a batch."
            )
        kinds = ", ".join(dict.fromkeys(type(part).__name__ for part in data))
        nested = any(isinstance(part, (tuple, list, Mapping)) for part in data)
        several = ": for several inputs write a dictionary, and losses(model, batch)" if nested else " instead"
        return f"{rule}. Got a {kind} of {kinds}{several}."
    if isinstance(data, Iterator):
        return (
            f"{rule}. Got a {kind}, which can be read only once: data are read in every epoch and evaluated at the "
            "end. Write an IterableDataset whose __iter__ starts from the beginning."
        )
    read = " Read the file first, such as by pandas.read_csv." if isinstance(data, (str, Path)) else ""
    return f"{rule}. Got {kind} instead.{read}"
