from __future__ import annotations

from pathlib import Path

import pytest
import torch

from paretomtl._support.files.tensor_files import (
    checksum_of,
    read_row,
    read_shapes,
    read_tensors,
    write_named_tensors,
    write_tensors,
)


def test_every_kind_of_tensor_is_stored(tmp_path: Path) -> None:
    base = torch.arange(12.0)
    tensors = {
        "view": base[2:5],
        "same": base,
        "again": base,
        "transposed": base.reshape(3, 4).T,
        "scalar": torch.tensor(3),
        "empty": torch.zeros(0, 4),
        "half": torch.ones(3, dtype=torch.bfloat16),
        "bool": torch.tensor([True, False]),
        "bytes": torch.arange(5, dtype=torch.uint8),
    }
    write_tensors(tmp_path / "x", tensors, {})
    found, _ = read_tensors(tmp_path / "x")
    assert set(found) == set(tensors)
    assert all(
        torch.equal(found[name], tensor) and found[name].dtype == tensor.dtype for name, tensor in tensors.items()
    )


def test_a_row_is_read_alone(tmp_path: Path) -> None:
    tensors = {
        "matrix": torch.randn(4, 3, 2),
        "half": torch.randn(4, 5).bfloat16(),
        "count": torch.arange(4),
        "flag": torch.tensor([True, False, True, True]),
        "empty": torch.zeros(4, 0),
    }
    path, checksum = write_named_tensors(tmp_path, "models", tensors, {"kind": "test"})
    assert path.name == f"models-{checksum[:16]}.safetensors"
    assert read_shapes(path, checksum) == {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    for k in range(4):
        row = {name: tensor[k] for name, tensor in tensors.items()}
        found = read_row(path, k, checksum_of(row))
        assert found.keys() == row.keys()
        assert all(
            torch.equal(found[name], tensor) and found[name].dtype == tensor.dtype for name, tensor in row.items()
        )
        with pytest.raises(ValueError, match=rf"The checksum of row {k} differs"):
            read_row(path, k, checksum_of({**row, "count": row["count"] + 1}))


def test_another_file_under_the_name_is_noticed_by_its_head(tmp_path: Path) -> None:
    path, checksum = write_named_tensors(tmp_path, "models", {"x": torch.zeros(2)}, {})
    write_tensors(path, {"x": torch.ones(2)}, {})
    with pytest.raises(ValueError, match=rf"must hold the tensors with the checksum {checksum[:16]}"):
        read_shapes(path, checksum)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="must be a whole file of tensors"):
        read_shapes(path, checksum)


@pytest.mark.parametrize("change", ["name", "dtype", "shape", "number", "words"])
def test_a_checksum_covers_everything(change: str) -> None:
    tensors, words = {"x": torch.zeros(2, 2)}, {"kind": "a"}
    changed = {
        "name": ({"y": torch.zeros(2, 2)}, words),
        "dtype": ({"x": torch.zeros(2, 2, dtype=torch.int32)}, words),
        "shape": ({"x": torch.zeros(4)}, words),
        "number": ({"x": torch.tensor([[0.0, 0.0], [0.0, 1.0]])}, words),
        "words": (tensors, {"kind": "b"}),
    }[change]
    assert checksum_of(tensors, words) != checksum_of(*changed)
    assert checksum_of(tensors, words) == checksum_of({"x": torch.zeros(2, 4)[:, ::2]}, words)
