"""Files packed as .xz, read within limits: ``lzma.open`` gives a file all the memory that its headers ask for."""

from __future__ import annotations

import io
import lzma
from pathlib import Path
from typing import Any

_MEMORY = 1 << 27  # bytes that unpacking may take; files of "xz -9" want 65 MiB
_BLOCK = 1 << 16


def open_xz(path: Path) -> io.BufferedReader:
    """What an .xz file unpacks to; an EOFError or LZMAError while reading one that is damaged or wants too much."""
    return io.BufferedReader(_Unpacked(path), _BLOCK)


class _Unpacked(io.RawIOBase):
    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._stream = _new_stream()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        while True:
            if self._stream.eof:  # others may follow, with zeros between them
                packed = self._stream.unused_data.lstrip(b"\0") or self._file.read(_BLOCK).lstrip(b"\0")
                if not packed:
                    return 0
                self._stream = _new_stream()
            else:
                packed = self._file.read(_BLOCK) if self._stream.needs_input else b""
                if not packed and self._stream.needs_input:
                    raise EOFError("it ends before its end")
            if found := self._stream.decompress(packed, len(view)):
                view[: len(found)] = found
                return len(found)

    def close(self) -> None:
        self._file.close()
        super().close()


def _new_stream() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY)
