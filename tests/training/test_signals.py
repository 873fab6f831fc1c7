from __future__ import annotations

import signal
from typing import Any

import pytest

from paretomtl.training._signals import Stopping, sigterm_interrupts
from training.networks import fit


@pytest.fixture
def owned_by_c(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The handlers of a program in C that embeds Python: Python sees None, and cannot put None back."""
    installed: list[Any] = []

    def install(number: int, handler: Any) -> None:
        if handler is None:
            raise TypeError("signal handler must be signal.SIG_IGN, signal.SIG_DFL, or a callable object")
        installed.append(handler)

    monkeypatch.setattr(signal, "getsignal", lambda number: None)
    monkeypatch.setattr(signal, "signal", install)
    return installed


def test_a_run_keeps_its_front_where_c_code_handles_signals(owned_by_c: list[Any]) -> None:
    assert fit(epochs=1).complete
    assert not owned_by_c, "a handler that cannot be put back is left in place"


def test_handlers_of_c_code_are_left_in_place(owned_by_c: list[Any]) -> None:
    with sigterm_interrupts(), Stopping() as stop:
        assert not stop.asked
    assert not owned_by_c
