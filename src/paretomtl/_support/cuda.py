"""CUDA C of this package, compiled on first use; if that fails, callers fall back to torch operations."""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

_Key = tuple[int, tuple[Path, ...], str, tuple[tuple[str, int], ...]]

_launches: dict[_Key, Launch | str] = {}  # or the reason why it was not compiled
_reasons: dict[str, str] = {}
_warned: set[str] = set()  # kernels whose failure raised a warning
_lock = threading.Lock()


class Launch:
    """A compiled kernel on one device. A call launches it asynchronously on the current stream of that device."""

    def __init__(self, compiled: Any, device: int) -> None:
        self._compiled = compiled
        self._device = device
        self._shared = 48 << 10

    def __call__(
        self, grid: tuple[int, int, int], block: int, args: Sequence[Tensor | int | float], shared: int = 0
    ) -> None:
        """Start ``grid`` blocks of ``block`` threads with ``shared`` bytes of dynamic shared memory.

        Args:
            grid: blocks along x, y and z.
            block: threads in a block, all along x.
            args: a tensor is passed as a pointer to its first entry, an int as int, a float as double.
            shared: in bytes.
        """
        with torch.cuda.device(self._device):
            if shared >= self._shared:
                self._compiled.set_shared_memory_config(shared)
                self._shared = shared + 1
            self._compiled(grid=grid, block=(block, 1, 1), args=list(args), shared_mem=shared)


def may_launch(tensor: Tensor) -> bool:
    """Whether a kernel can read the tensor: it is on a CUDA device, and no fake tensor without data."""
    return not torch.compiler.is_compiling() and tensor.device.type == "cuda" and type(tensor.detach()) is Tensor


def kernel(
    path: Path | tuple[Path, ...], name: str, constants: Mapping[str, int], device: torch.device | None = None
) -> Launch | None:
    """The kernel ``name`` of the file at ``path``, compiled once per device and constants; None if unavailable.

    It is unavailable without an NVIDIA device or its run-time compiler, and if the environment variable
    ``PARETOMTL_KERNELS`` is 0. :func:`why_not` then has the reason. A failed compilation also raises a warning, once
    for each name. Nothing is compiled during the capture of a CUDA graph, which loading a program would break: a kernel
    not used before is None there.

    Must not be called while ``torch.compile`` traces.

    Args:
        path: a ``.cu`` file, or several that make one text. They include no headers, which may be missing where they
            are compiled.
        name: the kernel, declared ``extern "C"``.
        constants: defined as macros before the text.
        device: the current one when left out.
    """
    if os.environ.get("PARETOMTL_KERNELS") == "0":
        return _refused(name, "PARETOMTL_KERNELS is 0")
    if not torch.cuda.is_available():
        return _refused(name, "there is no CUDA device")
    if torch.version.hip is not None:
        return _refused(name, "this is a build of torch for HIP")
    key = _key(path, name, constants, device)
    if key not in _launches:
        if torch.cuda.is_current_stream_capturing():
            return _refused(name, "it was first asked for while a CUDA graph was captured")
        with _lock:
            if key not in _launches:
                with _compiling():
                    _launches[key] = _compile(key)
    launch = _launches[key]
    if isinstance(launch, str):
        if isinstance(launch, _Failure):
            _warn_once(name, launch)
        return _refused(name, launch)
    _reasons.pop(name, None)
    return launch


def prefetch(kernels: Sequence[tuple[Path, str, Mapping[str, int]]], device: torch.device | None = None) -> None:
    """Compile several kernels in parallel, which takes no longer than the slowest of them."""
    if os.environ.get("PARETOMTL_KERNELS") == "0" or not torch.cuda.is_available() or torch.version.hip is not None:
        return
    with _lock:
        wanted = [key for key in (_key(*each, device) for each in kernels) if key not in _launches]
        if not wanted or torch.cuda.is_current_stream_capturing():
            return
        with _compiling(), ThreadPoolExecutor(len(wanted)) as pool:
            _launches.update(zip(wanted, pool.map(_compile, wanted), strict=True))


def why_not() -> dict[str, str]:
    """For each kernel by name, why it was unavailable when last requested; available ones are left out."""
    return dict(_reasons)


class _Failure(str):
    """Why an available compiler failed, which is unexpected."""


def _refused(name: str, reason: str) -> Launch | None:
    _reasons[name] = reason
    return None


def _warn_once(name: str, reason: str) -> None:
    """Warn that the fallback is slower. While all warnings are ignored, as in a trial, the warning is postponed."""
    first = warnings.filters[0] if warnings.filters else ("default", None, UserWarning)
    if name in _warned or (first[0] == "ignore" and first[2] is Warning):
        return
    _warned.add(name)
    line = (reason.splitlines() or [""])[0]
    warnings.warn(
        f"the kernel '{name}' could not be compiled. The fallback to torch operations is slower: {line}",
        stacklevel=3,
    )


def _key(path: Path | tuple[Path, ...], name: str, constants: Mapping[str, int], device: torch.device | None) -> _Key:
    index = torch.cuda.current_device() if device is None or device.index is None else device.index
    return index, path if isinstance(path, tuple) else (path,), name, tuple(sorted(constants.items()))


def _compile(key: _Key) -> Launch | str:
    index, paths, name, constants = key
    compiler = getattr(torch.cuda, "_compile_kernel", None)
    if compiler is None:
        return f"torch {torch.__version__} has no torch.cuda._compile_kernel"
    try:
        source = "".join(f"#define {key} {value}\n" for key, value in constants)
        source += "\n".join(path.read_text(encoding="utf-8") for path in paths)
        with torch.cuda.device(index):
            _bind(index)
            return Launch(compiler(source, name), index)
    except Exception as error:  # whatever it is, the fallback gives the same results
        return _Failure(f"{type(error).__name__}: {error}")


def _bind(index: int) -> None:
    """Create the context of a device for this thread, which has none before its first work there."""
    torch.zeros((), device=torch.device("cuda", index))


@contextlib.contextmanager
def _compiling() -> Iterator[None]:
    """Change process-wide settings for a compilation; only the thread that holds the lock does so."""
    with warnings.catch_warnings(), _without_toolkit():
        warnings.simplefilter("ignore")  # a warning made an error by the user must not cost the kernel
        yield


@contextlib.contextmanager
def _without_toolkit() -> Iterator[None]:
    """Let torch compile without a CUDA toolkit: it insists on a folder of headers, which nothing includes."""
    from torch.utils import cpp_extension

    if cpp_extension.CUDA_HOME is not None:
        yield
        return
    try:
        cpp_extension.CUDA_HOME = str(Path(torch.__file__).parent)
        yield
    finally:
        cpp_extension.CUDA_HOME = None
