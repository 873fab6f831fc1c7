"""CUDA kernels run on a CPU, thread by thread: slow and deterministic. Needs g++."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

_HEADER = Path(__file__).with_name("emulator.h")
_FLAGS = ("-std=c++20", "-O1", "-U_FORTIFY_SOURCE", "-w", "-fPIC", "-fno-strict-aliasing")
_KEPT = Path(__file__).parents[2] / "out" / "emulated"  # compiled kernels, by what they were compiled from
_DYNAMIC = re.compile(r"extern\s+__shared__\s+(?:__align__\(\d+\)\s+)?([\w\s]+?)\s+(\w+)\[\];")

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="g++, which compiles the kernels, is missing")


class Launches:
    """A fake of the function that compiles kernels, which counts the launches."""

    count = 0

    def __call__(self, path: Path | tuple[Path, ...], name: str, constants: dict[str, int], device: Any = None) -> Any:
        def launch(
            grid: tuple[int, int, int], block: int, args: Sequence[torch.Tensor | int | float], shared: int = 0
        ) -> None:
            self.count += 1
            emulate(path, name, constants, grid, block, shared, list(args))

        return launch


class Operations(TorchDispatchMode):
    """The names of the torch operations inside."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))

    def launched(self) -> list[str]:
        """Those that run something on a device; the others make a view, or a tensor that is not filled."""
        return [name for name in self.names if name not in ("detach", "empty", "empty_like", "new_empty", "expand")]


def emulate(
    path: Path | tuple[Path, ...],
    name: str,
    constants: dict[str, int],
    grid: tuple[int, int, int],
    block: int,
    shared: int,
    args: list[torch.Tensor | int | float],
) -> None:
    """Run the kernel ``name`` of a file, or of several that are concatenated.

    A tensor is passed as a pointer, an int as int, a float as double.

    Blocks run one after another, their threads in alternating ascending and descending order, and shared memory starts
    as NaN. A barrier that some threads never reach, a write past shared memory and arguments of the wrong type raise.
    """
    values: list[ctypes.c_void_p | ctypes.c_int | ctypes.c_double] = []
    for arg in args:
        if isinstance(arg, torch.Tensor):
            assert arg.device.type == "cpu"
            assert arg.is_contiguous()
            values.append(ctypes.c_void_p(arg.data_ptr()))
        else:
            values.append(ctypes.c_int(arg) if isinstance(arg, int) else ctypes.c_double(arg))
    kinds = "".join({ctypes.c_void_p: "p", ctypes.c_int: "i", ctypes.c_double: "d"}[type(value)] for value in values)
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    launch = _compiled(path if isinstance(path, tuple) else (path,), name, tuple(sorted(constants.items())))
    problem = launch((ctypes.c_uint * 3)(*grid), block, shared, kinds.encode(), pointers)
    if problem is not None:
        raise RuntimeError(f"{name}: {problem.decode()}")


@functools.cache
def _compiled(paths: tuple[Path, ...], name: str, constants: tuple[tuple[str, int], ...]) -> ctypes._NamedFuncPointer:
    source = "\n".join(path.read_text() for path in paths)
    assert "#include" not in source, "there are no headers where a kernel is compiled when it is used"
    source = _DYNAMIC.sub(r"\1* \2 = reinterpret_cast<\1*>(emulator::shared);", source)
    defines = "".join(f"#define {key} {value}\n" for key, value in constants)
    program = f"""#include "emulator.h"
{defines}
{source}
extern "C" const char* emulator_launch(const unsigned* grid, unsigned block, unsigned bytes, const char* kinds,
                                       void** args) {{
    return emulator::launch({name}, grid, block, bytes, kinds, args);
}}
"""
    key = hashlib.sha256("\n".join((_compiler(), *_FLAGS, _HEADER.read_text(), program)).encode()).hexdigest()
    kept = _KEPT / f"{key[:32]}.so"
    if not kept.exists():
        _KEPT.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_KEPT) as folder:
            (Path(folder) / "kernel.cpp").write_text(program)
            _compile("-shared", "-I", _headers().name, "kernel.cpp", "-o", "kernel.so", cwd=folder)
            (Path(folder) / "kernel.so").replace(kept)
    launch = ctypes.CDLL(str(kept)).emulator_launch
    launch.restype = ctypes.c_char_p
    return launch


@functools.cache
def _compiler() -> str:
    return subprocess.run(["g++", "--version"], capture_output=True, text=True, check=True).stdout


@functools.cache
def _headers() -> tempfile.TemporaryDirectory[str]:
    """A folder with the emulator, compiled once for all kernels, which takes longer than any of them."""
    folder = tempfile.TemporaryDirectory()
    shutil.copy(_HEADER, folder.name)
    _compile("-x", "c++-header", _HEADER.name, cwd=folder.name)
    return folder


def _compile(*words: str, cwd: str) -> None:
    done = subprocess.run(["g++", *_FLAGS, *words], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
