from __future__ import annotations

import os
import signal

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the tests run in as many processes as there are cores, and start more

import pytest
import torch
from hypothesis import settings

from _helpers.skips import not_run

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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that share a set-up of their module, such as a browser or a trained study, run in one process.

    Those that look at all rows of a study, which the fixture ``smoke`` trains, are marked as such, and those on Ray.
    """
    for item in items:
        if "smoke" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.study)
        if "cluster" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.system)
    if not config.pluginmanager.hasplugin("xdist"):
        return
    for item in items:
        found = getattr(item, "_fixtureinfo", None)
        made = [] if found is None else [each for defs in found.name2fixturedefs.values() for each in defs]
        if any(each.scope == "module" and each.baseid for each in made):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    said = not_run(report.longrepr[2] for report in terminalreporter.getreports("skipped"))
    if said:
        terminalreporter.write_line(said)
