from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from _helpers.runs import training, wait_for
from paretomtl.cli._app import app


@contextmanager
def watching(*arguments: str, cwd: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process that watches, and its port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "paretomtl", "watch", *arguments],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1"},
    )
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert said.startswith("Serving http://127.0.0.1:"), said
        yield process, int(said.split("/")[2].split(":")[1])
    finally:
        process.kill()
        process.communicate()


def data(port: int) -> dict[str, object]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/data.json")
    found: dict[str, object] = json.loads(connection.getresponse().read())
    connection.close()
    return found


def states(port: int) -> list[str]:
    return [news["state"] for news in data(port)["live"]["news"]]  # type: ignore[index]


@pytest.mark.system
def test_a_live_run_is_followed_through_its_crash(tmp_path: Path) -> None:
    """The watch begins before the run does, outlives it, and writes nothing."""
    with watching("run", "other", cwd=tmp_path) as (_, port):
        assert states(port) == ["waiting", "waiting"]
        with training(tmp_path / "run") as process:
            wait_for(lambda: states(port) == ["training", "waiting"])
            process.kill()
            process.wait()
            wait_for(lambda: states(port) == ["broken", "waiting"])
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_it_ends_when_told(tmp_path: Path, number: signal.Signals, code: int) -> None:
    """Also while somebody hangs on."""
    with watching("run", cwd=tmp_path) as (watch, port), socket.create_connection(("127.0.0.1", port)):
        watch.send_signal(number)
        _, errors = watch.communicate(timeout=60)
    assert watch.returncode == code
    assert errors.strip() == "Stopped.\nTo keep the page: paretomtl report run"


def test_bad_input_is_named(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("")

    def call(*arguments: str) -> str:
        found = CliRunner().invoke(app, ["watch", *arguments], env={"COLUMNS": "200", "NO_COLOR": "1"})
        assert found.exit_code == 2, found.output
        return found.output

    assert "'RUN' must be the folder of a run" in call(str(tmp_path))
    assert "'RUN' must be a folder" in call(str(tmp_path / "letter.txt"))
    assert "'port' must be between 0 and 65535" in call(str(tmp_path / "run"), "--port", "70000")
    assert "Missing argument" in call()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"'port' must be one that is free. Got {port}" in call(str(tmp_path / "run"), "--port", port)
