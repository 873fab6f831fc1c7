"""A file server for tests of downloads."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from paretomtl.problems._data import download as _download


class Server(ThreadingHTTPServer):
    """Files of a folder under addresses of good and of bad mirrors."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder = folder
        self.asked: Counter[str] = Counter()
        self.agents: set[str | None] = set()

    def address(self, mirror: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{mirror}/"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        _, mirror, file = self.path.split("/")
        self.server.asked[mirror] += 1
        self.server.agents.add(self.headers.get("User-Agent"))
        content = (self.server.folder / file).read_bytes()
        if mirror in ("missing", "busy"):
            self.send_error(404 if mirror == "missing" else 503)
            return
        if mirror == "altered":
            content = content[:-1] + bytes([content[-1] ^ 1])
        self.send_response(200)
        if mirror != "silent":  # about its length
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        broken = mirror in ("cut", "silent") or (mirror == "cut-once" and self.server.asked[mirror] == 1)
        self.wfile.write(content[: len(content) // 2] if broken else content)

    def log_message(self, *arguments: object) -> None:
        pass


@contextmanager
def serving(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server of a folder within the block; downloads do not wait and use no proxy."""
    monkeypatch.setattr(_download, "_PAUSE", 0.0)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    found = Server(folder)
    thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield found
    found.shutdown()
    found.server_close()
    thread.join()
