"""Optional dependencies: imported on use; if one is missing, the error says how to install it."""

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
    "torchjd": "'torchjd[quadprog-projector]'",
    "digits": "scikit-learn",
    "frames": "pandas",
    "images": "pillow",
    "tensorboard": "tensorboard",
    "onnx": "onnx onnxscript",
    "ray": "ray",
    "all": "safetensors",  # part of every install, but not of a copy of the sources
}
"""The packages of each extra of pyproject.toml, as pip calls them."""


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module; if it is missing, the error says how to install it."""
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
    """The version of a package, "absent" if it is not installed; that of this one without an install too."""
    if package == "paretomtl":
        return __version__
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "absent"
