"""Colours as readers with other eyes see them.

The matrices are those of Machado, Oliveira and Fernandes (2009), "A physiologically-based model for simulation of color
vision deficiency", for complete deficiencies; they apply to linear light.
"""

from __future__ import annotations

import numpy as np

KINDS = {
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
"""For each kind of colour blindness, the matrix from linear RGB to linear RGB."""

_GREY = (0.2126, 0.7152, 0.0722)


def simulate(kind: str, pixels: np.ndarray) -> np.ndarray:
    """Pixels ``[..., 3]`` between 0 and 1 as somebody of a kind sees them; "grey" prints without colours."""
    linear = np.where(pixels <= 0.04045, pixels / 12.92, ((pixels + 0.055) / 1.055) ** 2.4)
    matrix = np.array([_GREY] * 3 if kind == "grey" else KINDS[kind])
    seen = np.clip(linear @ matrix.T, 0, 1)
    return np.where(seen <= 0.0031308, 12.92 * seen, 1.055 * seen ** (1 / 2.4) - 0.055)


def seen_by(kind: str, colour: str) -> str:
    """A colour such as #c1272d as somebody of a kind sees it.

    Example:
        >>> seen_by("grey", "#ffffff")
        '#ffffff'
    """
    parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return "#" + "".join(f"{round(255 * float(part)):02x}" for part in simulate(kind, parts))
