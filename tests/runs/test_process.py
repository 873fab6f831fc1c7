"""The process that trains a run."""

from __future__ import annotations

import subprocess
import sys

from _helpers.runs import wait_for
from paretomtl.runs import is_running
from paretomtl.runs.process import this_process


def test_a_process_is_known_by_more_than_its_number() -> None:
    me = this_process()
    assert is_running(me) is True
    assert is_running({**me, "host": "elsewhere"}) is None
    assert is_running({}) is None
    if me["began"] is not None:
        assert is_running({**me, "began": "0"}) is False, "another process with the same number"
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    other = {**me, "pid": child.pid, "began": None}
    assert is_running(other) is True
    child.kill()
    if me["began"] is not None:
        wait_for(lambda: is_running(other) is False)  # it is a zombie until somebody asks for it
    child.wait()
    assert is_running(other) is False
    assert is_running({**me, "pid": 2**40}) is False
