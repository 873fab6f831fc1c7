"""How kernels are found and refused, with a compiler that only pretends."""

from __future__ import annotations

import contextlib
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

import paretomtl
from paretomtl._support import cuda as _cuda


class Compiled:
    def __init__(self) -> None:
        self.granted = 0
        self.calls: list[dict[str, Any]] = []

    def set_shared_memory_config(self, shared: int) -> None:
        self.granted = shared

    def __call__(self, **call: Any) -> None:
        self.calls.append(call)


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file, on a machine that seems to have a device."""
    monkeypatch.delenv("PARETOMTL_KERNELS", raising=False)
    monkeypatch.setattr(_cuda, "_launches", {})
    monkeypatch.setattr(_cuda, "_reasons", {})
    monkeypatch.setattr(_cuda, "_warned", set())
    monkeypatch.setattr(_cuda, "_bind", lambda index: None)
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(torch.cuda, "device", lambda index: contextlib.nullcontext())
    path = tmp_path / "some.cu"
    path.write_text("text")
    return path


def test_a_kernel_is_compiled_once_for_each_device_and_constants(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    monkeypatch.setattr(torch.cuda, "_compile_kernel", lambda text, name: texts.append(text) or Compiled())
    first = _cuda.kernel(source, "name", {"TASKS": 3, "WIDTH": 2})
    assert first is not None
    assert _cuda.kernel(source, "name", {"WIDTH": 2, "TASKS": 3}) is first
    assert _cuda.kernel(source, "name", {"TASKS": 4, "WIDTH": 2}) is not first
    assert _cuda.kernel(source, "name", {"TASKS": 3, "WIDTH": 2}, torch.device("cuda", 1)) is not first
    three = "#define TASKS 3\n#define WIDTH 2\ntext"
    assert texts == [three, three.replace("3", "4"), three]
    assert _cuda.kernel((source, source), "name", {}) is not first
    assert texts[-1] == "text\ntext"
    assert _cuda.why_not() == {}


def test_much_shared_memory_is_asked_for_once(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = Compiled()
    monkeypatch.setattr(torch.cuda, "_compile_kernel", lambda text, name: compiled)
    launch = _cuda.kernel(source, "name", {})
    assert launch is not None
    for shared, granted in ((0, 0), (40 << 10, 0), (48 << 10, 48 << 10), (60 << 10, 60 << 10), (50 << 10, 60 << 10)):
        launch((1, 2, 3), 64, [1, 2.0], shared)
        assert compiled.granted == granted
        assert compiled.calls[-1] == {"grid": (1, 2, 3), "block": (64, 1, 1), "args": [1, 2.0], "shared_mem": shared}


def test_refusals_say_why(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(because: str) -> None:
        assert _cuda.kernel(source, "name", {}) is None
        assert because in _cuda.why_not()["name"]

    def broken(text: str, name: str) -> None:
        raise RuntimeError("Kernel compilation failed: line 1")

    with monkeypatch.context() as patch:
        patch.setenv("PARETOMTL_KERNELS", "0")
        refused("PARETOMTL_KERNELS is 0")
    with monkeypatch.context() as patch:
        patch.setattr(torch.cuda, "is_available", lambda: False)
        refused("no CUDA device")
    with monkeypatch.context() as patch:
        patch.setattr(torch.version, "hip", "6.4")
        refused("HIP")
    with monkeypatch.context() as patch:
        patch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
        refused("captured")
    monkeypatch.setattr(torch.cuda, "_compile_kernel", lambda text, name: Compiled())
    assert _cuda.kernel(source, "name", {}) is not None, "none of these is kept"
    assert _cuda.why_not() == {}
    _cuda._launches.clear()
    monkeypatch.setattr(torch.cuda, "_compile_kernel", broken)
    with pytest.warns(UserWarning, match="the kernel 'name' could not be compiled"):
        refused("RuntimeError: Kernel compilation failed: line 1")
    monkeypatch.delattr(torch.cuda, "_compile_kernel")
    refused("compilation failed")  # tried once only
    _cuda._launches.clear()
    refused("has no torch.cuda._compile_kernel")


def test_kernels_include_no_headers() -> None:
    files = list(Path(paretomtl.__file__).parent.rglob("*.cu"))
    assert files
    for path in files:
        assert "#include" not in path.read_text(encoding="utf-8")


def test_kernels_are_compiled_side_by_side_and_warnings_stay(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    barrier = threading.Barrier(3, timeout=10)

    def compile_together(text: str, name: str) -> Compiled:
        barrier.wait()
        warnings.warn("from the compiler", stacklevel=1)
        return Compiled()

    monkeypatch.setattr(torch.cuda, "_compile_kernel", compile_together)
    filters = list(warnings.filters)
    _cuda.prefetch([(source, "name", {"TASKS": tasks}) for tasks in (2, 3, 4)])
    assert warnings.filters == filters
    monkeypatch.setattr(torch.cuda, "_compile_kernel", None)
    assert all(_cuda.kernel(source, "name", {"TASKS": tasks}) is not None for tasks in (2, 3, 4))
    monkeypatch.setenv("PARETOMTL_KERNELS", "0")
    _cuda.prefetch([(source, "name", {"TASKS": 5})])
    assert len(_cuda._launches) == 3


def test_a_compiler_that_fails_is_warned_of_once_for_each_kernel(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(text: str, name: str) -> None:
        raise RuntimeError("no context\nand more")

    monkeypatch.setattr(torch.cuda, "_compile_kernel", broken)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert _cuda.kernel(source, "one", {}) is None
    with pytest.warns(UserWarning, match=r"'one' could not be compiled.* is slower: RuntimeError: no context$"):
        assert _cuda.kernel(source, "one", {}) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _cuda.kernel(source, "one", {"TASKS": 2}) is None
        monkeypatch.setenv("PARETOMTL_KERNELS", "0")
        assert _cuda.kernel(source, "two", {}) is None
        monkeypatch.delenv("PARETOMTL_KERNELS")
        monkeypatch.setattr(torch.cuda, "_compile_kernel", None)
        assert _cuda.kernel(source, "two", {}) is None
    monkeypatch.setattr(torch.cuda, "_compile_kernel", broken)
    with pytest.warns(UserWarning, match="'two' could not be compiled"):
        assert _cuda.kernel(source, "two", {"TASKS": 2}) is None


def test_threads_that_compile_are_bound_to_the_device(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread has no context of its own; compiling in one failed, and nobody noticed."""
    bound: set[int] = set()

    def compile_bound(text: str, name: str) -> Compiled:
        if threading.get_ident() not in bound:
            raise RuntimeError("invalid device context")
        return Compiled()

    monkeypatch.setattr(_cuda, "_bind", lambda index: bound.add(threading.get_ident()))
    monkeypatch.setattr(torch.cuda, "_compile_kernel", compile_bound)
    _cuda.prefetch([(source, "name", {"TASKS": tasks}) for tasks in (2, 3)])
    assert _cuda.kernel(source, "name", {"TASKS": 2}) is not None
    assert _cuda.kernel(source, "name", {"TASKS": 3}) is not None
