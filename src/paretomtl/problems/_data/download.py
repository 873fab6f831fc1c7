"""Published files from the network: verified, whole or absent, from whichever mirror has them."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from paretomtl._support.files import sweep, whole_file
from paretomtl._support.optional import version_of
from paretomtl.problems._data.published import Published

_TRIES = 3  # at each mirror
_PAUSE = 1.0  # seconds before the second try, twice that before the third
_TIMEOUT = 30.0  # seconds without a byte
_BLOCK = 1 << 18
LARGEST = 1 << 30
"""Bytes of a download: forty times the largest file that is published."""

ABANDONED = 3600.0  # seconds after which a file that nobody finished is taken for one that nobody will


class _BrokenError(Exception):
    """The download broke off; the next try may do better."""


class _UselessError(Exception):
    """The address has not what is wanted, and will not get better by asking again."""


def download(source: Published, folder: Path, *, log: Callable[[str], None] = lambda text: None) -> None:
    """Bring the files of a set into a folder; those that are there, and are the published ones, stay."""
    folder.mkdir(parents=True, exist_ok=True)
    sweep(folder, seconds=ABANDONED)
    for file, md5 in source.md5.items():
        path = folder / file
        if not path.is_file() or source.md5_of(path) != md5:
            _from_any_mirror(source, path, md5, log)


def _from_any_mirror(source: Published, path: Path, md5: str, log: Callable[[str], None]) -> None:
    reasons = []
    for mirror in source.mirrors:
        address = mirror + path.name
        log(f"Downloading {address}")
        reason = _from_mirror(address, path, md5, source)
        if reason is None:
            return
        log(f"That failed: {reason}")
        reasons.append(f"{address}: {reason}")
    raise OSError(
        f"'{path.name}' of {source.name} could not be downloaded from any address. {'; '.join(reasons)}. If you have "
        f"the files ({', '.join(source.md5)}), pass their folder: --from FOLDER"
    )


def _from_mirror(address: str, path: Path, md5: str, source: Published) -> str | None:
    """Download from one address, starting over where it breaks off; the reason where it cannot be done."""
    reason = ""
    for attempt in range(_TRIES):
        time.sleep(_PAUSE * attempt)
        try:
            with whole_file(path) as file:
                digest, received = source.digest(), 0
                for block in _blocks(address):
                    file.write(block)
                    digest.update(block)
                    received += len(block)
                if digest.hexdigest() != md5:
                    found = f"{digest.hexdigest()} found in {received:,} bytes"
                    raise _UselessError(f"altered: md5 {md5} expected, {found}")
        except _UselessError as error:
            return str(error)
        except _BrokenError as error:
            reason = str(error)
        else:
            return None
    return f"{reason} ({_TRIES} tries)"


def _blocks(address: str) -> Iterator[bytes]:
    """The content of an address, as many bytes as it announces."""
    request = urllib.request.Request(address, headers={"User-Agent": f"paretomtl/{version_of('paretomtl')}"})
    received = 0
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:
            length = int(response.headers.get("Content-Length", 0))
            while block := response.read(_BLOCK):
                received += len(block)
                if received > LARGEST:
                    raise _UselessError(f"it has more than {LARGEST:,} bytes, which no published file has")
                yield block
    except urllib.error.HTTPError as error:
        error.close()
        kind = _UselessError if error.code < 500 else _BrokenError
        raise kind(f"HTTP {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise _BrokenError(str(error.reason)) from None
    except (OSError, http.client.HTTPException) as error:
        raise _BrokenError(str(error) or type(error).__name__) from None
    if received < length:
        raise _BrokenError(f"it broke off after {received:,} of {length:,} bytes")
