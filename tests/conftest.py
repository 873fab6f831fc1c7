from __future__ import annotations

import os
import signal

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the tests run in as many processes as there are cores, and start more

import pytest
import torch
from hypothesis import settings

from skips import not_run

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell has it for what it starts in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

torch.set_num_threads(1)
settings.register_profile("paretomtl", deadline=None, max_examples=50, derandomize=True, print_blob=True)
settings.load_profile("paretomtl")


@pytest.fixture(params=["cpu", "cuda"])
def device(request: pytest.FixtureRequest) -> str:
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return str(request.param)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    said = not_run(report.longrepr[2] for report in terminalreporter.getreports("skipped"))
    if said:
        terminalreporter.write_line(said)
