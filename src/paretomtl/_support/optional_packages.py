"""Optional dependencies: imported where they are used, and named with their remedy where they are missing."""

from __future__ import annotations

import importlib
from importlib import metadata
from types import ModuleType

from paretomtl._support.version import __version__

PACKAGES = {
    "cli": "typer rich",
    "indicators": "moocore",
    "figures": "matplotlib",
    "report": "plotly",
    "torchjd": "torchjd",
    "digits": "scikit-learn",
    "frames": "pandas",
    "images": "pillow",
    "tensorboard": "tensorboard",
    "onnx": "onnx onnxscript",
    "ray": "ray",
    "all": "safetensors",  # which every install brings; a copy of the sources does not
}
"""The packages of each extra of pyproject.toml, as pip calls them."""


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module, or say which install brings it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and not module.startswith(error.name):
            raise
        raise ModuleNotFoundError(
            f"'{module.split('.')[0]}' is needed for this and is not installed: {install_hint(extra)}",
            name=error.name,
        ) from None


def install_hint(extra: str) -> str:
    """The command that installs an extra, from wherever paretomtl itself was installed.

    Example:
        >>> print(install_hint("cli"))
        pip install typer rich (or pip install '.[cli]' in the folder of paretomtl)
    """
    return f"pip install {PACKAGES[extra]} (or pip install '.[{extra}]' in the folder of paretomtl)"


def version_of(package: str) -> str:
    """The installed version of a package, or that of this one, installed or not; "absent" where there is none."""
    if package == "paretomtl":
        return __version__
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "absent"
