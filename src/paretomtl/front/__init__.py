"""The result of training: losses of K models by split, their models, indicators, and ways to choose."""

from paretomtl.front._front import Front
from paretomtl.front.choosing.candidates import Choice
from paretomtl.front.gaps import Gaps
from paretomtl.front.models import ModelStore

__all__ = ["Choice", "Front", "Gaps", "ModelStore"]
