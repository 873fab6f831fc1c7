from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
import torch

import paretomtl as pm
from _helpers.networks import fit
from paretomtl._support.signals import Stopping, sigterm_interrupts
from paretomtl.training.fit_to_end import fit_seeds_to_end


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


def test_several_seeds_that_are_stopped_leave_their_fronts() -> None:
    """As one run does; what needs whole runs gets an interrupt instead."""

    def stop(report: pm.training.Report) -> None:
        signal.raise_signal(signal.SIGINT)

    options: dict[str, Any] = {"seeds": [0, 1], "epochs": 3, "device": "cpu", "callbacks": [stop], "progress": "quiet"}
    x = torch.zeros(4, 1)
    small = pm.Problem(lambda: torch.nn.Linear(1, 2), lambda y, _: (y - 1).square().mean(0), ["a", "b"], train=(x, x))
    with pytest.warns(UserWarning, match="after 1 of 3 epochs: front.complete is False for each seed. Nothing is st"):
        fronts = pm.fit_seeds(small, "linear", 2, **options)
    assert [(front.seed, front.complete, len(front)) for front in fronts] == [(0, False, 2), (1, False, 2)]
    with pytest.raises(KeyboardInterrupt):
        fit_seeds_to_end(small, "linear", 2, **options)


def test_an_error_says_what_is_left_of_a_run(tmp_path: Path) -> None:
    def fail(report: pm.training.Report) -> None:
        if report.epoch == 2:
            raise RuntimeError("enough")

    for out, note in (
        (tmp_path / "r", f"The last checkpoint, after 2 of 4 epochs, is in '{tmp_path / 'r'}': the same call with"),
        (None, "Nothing that was trained is lost: this error has it as its attribute 'front'."),
    ):
        with pytest.raises(RuntimeError, match="enough") as error:
            fit(out=out, callbacks=[fail])
        assert error.value.__notes__[-1].startswith(note)
