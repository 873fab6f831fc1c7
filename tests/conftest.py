from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the tests run in as many processes as there are cores, and start more

import numpy as np
import pytest
import torch
from hypothesis import settings

from _helpers.skips import not_run

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell has it for what it starts in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

torch.set_num_threads(1)
settings.register_profile("paretomtl", deadline=None, max_examples=50, derandomize=True, print_blob=True)
settings.load_profile("paretomtl")
ORDER = os.environ.get("ORDER", "")


def pytest_report_header() -> str:
    return f"order of the tests: ORDER={ORDER}" if ORDER else "order of the tests: that of the files"


@pytest.fixture(autouse=True)
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Each test draws from the same random state, and leaves the process as it found it, so that any order will do."""
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    torch.manual_seed(0)
    before, path = process_state(), list(sys.path)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in handlers.items():  # Ray and Jupyter leave their own
        if signal.getsignal(number) != handler:
            signal.signal(number, handler)
    own = [each for each in sys.path if each not in path and Path(each).is_relative_to(tmp_path_factory.getbasetemp())]
    for folder in own:  # the command line imports what lies in the current folder
        sys.path.remove(folder)
        for name in [name for name, each in sys.modules.items() if _lies_in(each, folder)]:
            del sys.modules[name]
    now = process_state()
    changed = [name for name in before if before[name] != now.get(name)]
    assert not changed, f"a test must undo what it changes in the process. This one changed {changed}"


def _lies_in(module: Any, folder: str) -> bool:
    return str(getattr(module, "__file__", "")).startswith(f"{folder}{os.sep}")


def process_state() -> dict[str, Any]:
    """What one test of a process could change for the next ones."""
    state: dict[str, Any] = {
        **{f"${name}": value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"},
        "working directory": os.getcwd(),  # noqa: PTH109
        "default dtype": torch.get_default_dtype(),
        "default device": torch.get_default_device(),
        "threads": torch.get_num_threads(),
        "autograd": (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_anomaly_enabled()),
        "autocast": (torch.is_autocast_enabled("cpu"), torch.is_autocast_enabled("cuda")),
        "determinism": (torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.deterministic),
        "float32 precision": (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32),
        "fast path of attention": torch.backends.mha.get_fastpath_enabled(),
    }
    if matplotlib := sys.modules.get("matplotlib"):
        state["matplotlib.rcParams"] = {k: v for k, v in dict.items(matplotlib.rcParams) if not k.startswith("backend")}
    return state


@pytest.fixture(params=["cpu", "cuda"])
def device(request: pytest.FixtureRequest) -> str:
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return str(request.param)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that share a set-up of their module, such as a browser or a trained study, run in one process.

    A seed in the environment variable ORDER shuffles modules, and the tests in each.
    Those that look at all rows of a study, which the fixture ``smoke`` trains, are marked as such, and those on Ray.
    """
    if ORDER:
        draw = random.Random(ORDER).random
        modules = {item.path: draw() for item in items}
        items.sort(key=lambda item: (modules[item.path], draw()))
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
