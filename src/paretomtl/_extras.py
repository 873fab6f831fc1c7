"""Optional dependencies: imported where they are used, and named with their remedy where they are missing."""

from __future__ import annotations

import importlib
from importlib import metadata
from types import ModuleType

from paretomtl._version import __version__


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module, or say which install brings it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and not module.startswith(error.name):
            raise
        raise ModuleNotFoundError(
            f"'{module.split('.')[0]}' is needed for this and is not installed: pip install 'paretomtl[{extra}]'",
            name=error.name,
        ) from None


def version_of(package: str) -> str:
    """The installed version of a package, or that of this one, installed or not; "absent" where there is none."""
    if package == "paretomtl":
        return __version__
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "absent"
