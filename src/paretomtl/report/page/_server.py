"""The server of the live page: two addresses, read-only, for this machine alone.

It listens on loopback, answers GET for two addresses that are not files, and checks the Host header, because any web
site may point its own name at 127.0.0.1. There is no password: a page shows no more than the log, and users of one
machine can mostly read each other's files anyway.
"""

from __future__ import annotations

import hashlib
import io
import json
import socket
import sys
import threading
import time
from collections.abc import Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from paretomtl.report.page._live import LiveRun, check_folder
from paretomtl.report.page._page import Payload, common_reference, names_of, page_text, payload_of, room_for
from paretomtl.report.page.verdict import verdict_of

LOOPBACK = "127.0.0.1"
"""Where the server listens, and nowhere else."""

EVERY = 1000
"""Milliseconds between two polls of a page."""

SECONDS = 10.0
"""The timeout of a request, from its first byte to its last, and of reading the answer."""

CONNECTIONS = 64
"""The maximum number of simultaneous connections; a browser has up to six."""

LONGEST_HEAD = 32 << 10
"""The maximum size of a request in bytes."""


class Watched:
    """Several runs, read lazily when a client asks.

    Args:
        folders: of runs, or where runs will be.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        distinct = list({folder.resolve(): folder for folder in folders}.values())
        for folder in distinct:
            check_folder(folder)
        self._runs = [LiveRun(folder, name) for folder, name in zip(distinct, names_of(distinct), strict=True)]
        self._lock = threading.Lock()
        self._data, self._tag = b"", ""
        self._payload: Payload = {}

    def data(self) -> tuple[bytes, str]:
        """Return all runs as JSON, and their ETag, which changes only with news."""
        with self._lock:
            news = [run.poll() for run in self._runs]
            if any(news) or not self._data:
                self._payload = live_payload(self._runs)
                self._data = json.dumps(self._payload, ensure_ascii=False, allow_nan=False).encode(
                    errors="backslashreplace"
                )
                self._tag = f'"{hashlib.sha256(self._data).hexdigest()[:32]}"'
            return self._data, self._tag

    def html(self) -> bytes:
        """The page as it is now."""
        self.data()
        with self._lock:
            return live_page(self._payload).encode(errors="backslashreplace")


def live_payload(runs: Sequence[LiveRun]) -> Payload:
    """The content of a live page: views of the runs that have a front, and the news of all.

    Runs whose tasks differ from those of the first run appear only in the news.
    """
    known = [run.front for run in runs if run.front is not None]
    tasks = known[0].tasks if known else ()
    same = [front for front in known if front.tasks == tasks]
    reference, points = (common_reference(same), room_for(same)) if same else (None, 0)
    views, news = [], []
    for run in runs:
        entry = {"name": run.name, **vars(run.news)}
        if run.front is not None and run.front.tasks == tasks:
            views.append(run.view(reference=reference, points=points))
        elif run.front is not None:
            entry["text"] = f"left out here: its tasks are {', '.join(run.front.tasks)}"
        news.append(entry)
    same_names = [run.name for run in runs if run.front is not None and run.front.tasks == tasks]
    verdict = verdict_of(same, same_names, [view["hypervolume"] for view in views])
    return payload_of(views, verdict=verdict, live={"every": EVERY, "news": news})


def live_page(payload: Payload) -> str:
    """Return the HTML of a page that polls for news."""
    return page_text(payload, more=["live"])


class _Head(io.RawIOBase):
    """The request of a client, limited in time and size; a socket timeout would restart with each byte."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._connection = connection
        self._end = time.monotonic() + seconds
        self._left = LONGEST_HEAD

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._end - time.monotonic()
        if left <= 0 or self._left <= 0:
            raise ConnectionAbortedError("a request must be short, and come at once")
        self._connection.settimeout(left)
        try:
            count = self._connection.recv_into(memoryview(buffer)[: self._left])
        except TimeoutError:
            raise ConnectionAbortedError("a request must come at once") from None
        self._left -= count
        return count


class _Handler(BaseHTTPRequestHandler):
    """The handler of GET and HEAD for ``/`` and ``/data.json``, if the Host header names this server."""

    server: PageServer

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self.rfile = io.BufferedReader(_Head(self.connection, self.server.seconds))

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        refused = self._refusal()
        if refused is None:
            return True
        self.close_connection = True
        self._answer(refused, f"{refused.phrase}\n".encode(), "text/plain; charset=utf-8")
        return False

    def _refusal(self) -> HTTPStatus | None:
        if self.headers.get_all("Host") not in [[name] for name in self.server.names]:
            return HTTPStatus.MISDIRECTED_REQUEST  # DNS rebinding: a foreign name points here
        if self.command not in ("GET", "HEAD"):
            return HTTPStatus.METHOD_NOT_ALLOWED
        return None if self.path in ("/", "/data.json") else HTTPStatus.NOT_FOUND

    def do_GET(self) -> None:
        if self.path == "/":
            self._answer(HTTPStatus.OK, self.server.watched.html(), "text/html; charset=utf-8")
            return
        data, tag = self.server.watched.data()
        if self.headers.get("If-None-Match") == tag:
            self._answer(HTTPStatus.NOT_MODIFIED, b"", None, tag)
        else:
            self._answer(HTTPStatus.OK, data, "application/json", tag)

    def do_HEAD(self) -> None:
        self.do_GET()

    def _answer(self, status: HTTPStatus, body: bytes, kind: str | None, tag: str | None = None) -> None:
        self.connection.settimeout(self.server.seconds)  # for all of the answer, not for each part of it
        self.send_response(status)
        headers = {
            "Content-Type": kind,
            "Content-Length": None if status == HTTPStatus.NOT_MODIFIED else str(len(body)),
            "ETag": tag,
            "Allow": "GET, HEAD" if status == HTTPStatus.METHOD_NOT_ALLOWED else None,
            "Cache-Control": "no-store",
            "Content-Security-Policy": "frame-ancestors 'none'",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }
        for name, value in headers.items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def version_string(self) -> str:
        return "paretomtl"

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: polls would fill the terminal."""


class PageServer(ThreadingHTTPServer):
    """The server of a page of runs on the loopback interface.

    Args:
        watched: the runs.
        port: 0 for any that is free.
        seconds: the timeout of a request, and of reading the answer.
        connections: how many clients are served at a time; more are turned away.
    """

    daemon_threads = True
    allow_reuse_port = False

    def __init__(
        self, watched: Watched, port: int = 0, *, seconds: float = SECONDS, connections: int = CONNECTIONS
    ) -> None:
        self.watched = watched
        self.seconds = seconds
        self._places = threading.BoundedSemaphore(connections)
        if not 0 <= port <= 65535:
            raise ValueError(f"'port' must be between 0 and 65535, 0 for any that is free. Got {port} instead.")
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except OSError as error:
            raise ValueError(
                f"'port' must be one that is free. Got {port}: {error.strerror}. 0 takes any that is free."
            ) from None
        self.names = [f"{name}:{self.server_port}" for name in (LOOPBACK, "localhost")]
        if self.server_port == 80:  # browsers leave it out
            self.names += [LOOPBACK, "localhost"]

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{LOOPBACK}:{self.server_port}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a client on its own thread, if a place is left."""
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except Exception:  # no thread started; an interrupt may come after one did, which frees its place itself
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Free the place afterwards."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that went away, and connections that were closed here, as when the server ends."""
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)) and request.fileno() != -1:
            super().handle_error(request, client_address)
