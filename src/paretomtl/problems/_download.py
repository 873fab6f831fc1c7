"""Published files from the network: verified, whole or absent, from whichever mirror has them."""

from __future__ import annotations

import hashlib
import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from paretomtl._extras import version_of
from paretomtl._files import sweep, whole_file
from paretomtl.problems._idx import Source, md5_of

_TRIES = 3  # at each mirror
_PAUSE = 1.0  # seconds before the second try, twice that before the third
_TIMEOUT = 30.0  # seconds without a byte
_BLOCK = 1 << 18
_ABANDONED = 3600.0


class _UselessError(Exception):
    """This address will not get better by asking again."""


def download(source: Source, folder: Path, *, tell: Callable[[str], None] = lambda text: None) -> None:
    """Bring the files of a set into a folder; those that are there, and are the published ones, stay."""
    folder.mkdir(parents=True, exist_ok=True)
    sweep(folder, seconds=_ABANDONED)
    for file, md5 in source.md5.items():
        path = folder / file
        if not path.is_file() or md5_of(path) != md5:
            _from_any_mirror(source, path, md5, tell)


def _from_any_mirror(source: Source, path: Path, md5: str, tell: Callable[[str], None]) -> None:
    reasons = []
    for mirror in source.mirrors:
        address = mirror + path.name
        tell(f"Downloading {address}")
        reason = _from_mirror(address, path, md5)
        if reason is None:
            return
        tell(f"That failed: {reason}")
        reasons.append(f"{address}: {reason}")
    listed = "\n".join(f"  {reason}" for reason in reasons)
    raise OSError(
        f"'{path.name}' of {source.name} could not be downloaded from any address:\n{listed}\nIf you have the files "
        f"({', '.join(source.md5)}), pass their folder: --from FOLDER"
    )


def _from_mirror(address: str, path: Path, md5: str) -> str | None:
    """Download from one address, starting over where it breaks off; the reason where it cannot be done."""
    reason = ""
    for attempt in range(_TRIES):
        time.sleep(_PAUSE * attempt)
        try:
            with whole_file(path) as file:
                _copy(address, file.write, md5)
        except _UselessError as error:
            return str(error)
        except urllib.error.URLError as error:
            reason = f"{error.reason}"
        except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
            reason = f"{error}" or type(error).__name__
        else:
            return None
    return f"{reason} ({_TRIES} tries)"


def _copy(address: str, write: Callable[[bytes], object], md5: str) -> None:
    """Hand the bytes of an address on, and raise unless they were all that was published."""
    request = urllib.request.Request(address, headers={"User-Agent": f"paretomtl/{version_of('paretomtl')}"})
    digest, received = hashlib.md5(usedforsecurity=False), 0
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:
            length = response.headers.get("Content-Length")
            while block := response.read(_BLOCK):
                write(block)
                digest.update(block)
                received += len(block)
    except urllib.error.HTTPError as error:
        if error.code < 500:
            raise _UselessError(f"HTTP {error.code} {error.reason}") from None
        raise
    if length is not None and received < int(length):
        raise ConnectionError(f"it broke off after {received:,} of {int(length):,} bytes")
    if digest.hexdigest() != md5:
        raise _UselessError(f"altered: md5 {md5} expected, {digest.hexdigest()} found in {received:,} bytes")
