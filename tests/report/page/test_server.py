from __future__ import annotations

import http.client
import json
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from _helpers.fronts import front_of
from _helpers.pages import payload_in
from paretomtl._support.files.atomic_files import read_record
from paretomtl.report.page._server import PageServer, Watched
from report.page.test_live import cut, fit


@contextmanager
def serving(*folders: Path, **limits: Any) -> Iterator[PageServer]:
    with PageServer(Watched(folders), **limits) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    fit(folder)
    return folder


def ask(
    server: PageServer, path: str = "/data.json", method: str = "GET", **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    connection.putrequest(method, path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def test_two_addresses_and_no_other(run: Path) -> None:
    with serving(run) as server:
        answer, body = ask(server, "/")
        assert (answer.status, body[:15]) == (200, b"<!doctype html>")
        assert b"connect-src 'self'" in body
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
        answer, body = ask(server)
        assert answer.status == 200
        assert json.loads(body)["runs"][0]["tasks"] == ["a", "b"]
        others = ("/index.html", "/config.json", "/../run/config.json", "/%2e%2e/", "/data.json/", "/?", "*")
        for path in (*others, "/front/front.json", "/log.jsonl", "/data.json?x", "/data.json%00"):
            answer, body = ask(server, path)
            assert (answer.status, body) == (404, b"Not Found\n"), path


def test_nothing_can_be_done_but_reading(run: Path) -> None:
    with serving(run) as server:
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get", "PROPFIND", "X"):
            for path in ("/", "/data.json", "/other"):
                answer, _ = ask(server, path, method)
                assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD"), method
        for path in ("/", "/data.json"):
            answer, body = ask(server, path, "HEAD")
            whole = ask(server, path)[1]
            assert (answer.status, body, answer.headers["Content-Length"]) == (200, b"", str(len(whole)))


def test_only_its_own_name_is_answered(run: Path) -> None:
    """A name of somebody else that points to this machine reads nothing."""
    with serving(run) as server:
        port = server.server_port
        for good in (f"127.0.0.1:{port}", f"localhost:{port}"):
            assert ask(server, Host=good)[0].status == 200
        for bad in ("example.org", f"example.org:{port}", "127.0.0.1", "localhost:1", "", f"127.0.0.1:{port}.a", "0"):
            answer, body = ask(server, Host=bad)
            assert (answer.status, body) == (421, b"Misdirected Request\n"), bad
        for lines in (b"", f"Host: localhost:{port}\r\nHost: example.org\r\n".encode()):
            with socket.create_connection(("127.0.0.1", port)) as raw:
                raw.sendall(b"GET /data.json HTTP/1.1\r\n" + lines + b"\r\n")
                assert b" 421 " in raw.makefile("rb").readline()


def test_it_listens_on_loopback_alone(run: Path) -> None:
    with serving(run) as server:
        assert server.socket.getsockname()[0] == "127.0.0.1"
        other = (ConnectionError, TimeoutError)
        with pytest.raises(other), socket.create_connection(("127.0.0.2", server.server_port), timeout=5):
            pass


def test_no_other_site_may_use_the_answers(run: Path) -> None:
    with serving(run) as server:
        for path in ("/", "/data.json", "/other"):
            headers = ask(server, path)[0].headers
            assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
            assert headers["Access-Control-Allow-Origin"] is None
            assert "Python" not in headers["Server"]


def test_a_page_that_knows_all_gets_nothing(tmp_path: Path) -> None:
    fit(tmp_path)
    lines = cut(tmp_path, 3)
    with serving(tmp_path) as server:
        answer, _ = ask(server)
        tag = answer.headers["ETag"]
        answer, body = ask(server, If_None_Match=tag)
        assert (answer.status, body, answer.headers["ETag"]) == (304, b"", tag)
        assert ask(server, If_None_Match='"another"')[0].status == 200
        with (tmp_path / "log.jsonl").open("a") as file:
            file.write(lines[3][:-9])
        assert ask(server, If_None_Match=tag)[0].status == 304, "half a line is no news"
        with (tmp_path / "log.jsonl").open("a") as file:
            file.write(lines[3][-9:])
        answer, body = ask(server, If_None_Match=tag)
        assert answer.status == 200
        assert answer.headers["ETag"] != tag
        assert json.loads(body)["runs"][0]["epoch"] == 3


def test_several_runs_and_one_that_is_not_there_yet(run: Path, tmp_path: Path) -> None:
    fit(tmp_path / "other" / "run", method="linear")
    later = tmp_path / "later"
    with serving(run, tmp_path / "other" / "run", later, run) as server:
        found = json.loads(ask(server)[1])
        assert [view["method"] for view in found["runs"]] == ["pareto-mtl", "linear"]
        assert [news["state"] for news in found["live"]["news"]] == ["finished", "finished", "waiting"]
        assert len({news["name"] for news in found["live"]["news"]}) == 3, "a run that is named twice is shown once"
        fit(later)
        assert len(json.loads(ask(server)[1])["runs"]) == 3
        shutil.rmtree(later)
        assert len(json.loads(ask(server)[1])["runs"]) == 2


def test_a_run_of_other_tasks_is_left_out_and_said_so(run: Path, tmp_path: Path) -> None:
    fit(tmp_path)
    for path in (tmp_path / "config.json", tmp_path / "front" / "front.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "tasks": ["other", "two"]}))
    with serving(run, tmp_path) as server:
        found = json.loads(ask(server)[1])
    assert len(found["runs"]) == 1
    assert [news["text"] for news in found["live"]["news"]] == ["", "left out here: its tasks are other, two"]


def test_many_ask_at_once(run: Path) -> None:
    answers = []
    with serving(run) as server:
        threads = [threading.Thread(target=lambda: answers.append(ask(server)[1])) for _ in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(answers) == 40
    assert len(set(answers)) == 1


def test_clients_that_send_rubbish_or_go_away_do_no_harm(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(run) as server:
        for rubbish in (b"\0\xff" * 50 + b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9.9\r\n\r\n", b"A" * 70_000, b""):
            with socket.create_connection(("127.0.0.1", server.server_port)) as raw:
                raw.sendall(rubbish)
        idle = socket.create_connection(("127.0.0.1", server.server_port))
        assert ask(server)[0].status == 200
    idle.close()
    assert "Traceback" not in capsys.readouterr().err


def ended(client: socket.socket) -> bool:
    """Whether the server closed a connection without an answer."""
    client.settimeout(30)
    try:
        return client.recv(1) == b""
    except ConnectionError:
        return True


def test_a_client_that_drips_is_sent_away(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each byte comes in time; all together would take for ever."""
    with serving(run, seconds=0.1) as server:
        for head in (b"GET", b"GET / HTTP/1.1\r\nX: "):
            with socket.create_connection(("127.0.0.1", server.server_port)) as slow:
                slow.sendall(head)
                closed = False
                for _ in range(200):
                    try:
                        slow.sendall(b"a")
                    except ConnectionError:
                        closed = True
                        break
                    time.sleep(0.01)
                assert closed or ended(slow)
    assert "Traceback" not in capsys.readouterr().err


def test_a_request_without_end_is_read_no_further(run: Path) -> None:
    with serving(run) as server:
        lines = b"".join(b"X-%d: " % i + b"a" * 1000 + b"\r\n" for i in range(90))
        with socket.create_connection(("127.0.0.1", server.server_port)) as raw:
            try:
                raw.sendall(b"GET /data.json HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % server.server_port + lines + b"\r\n")
            except ConnectionError:
                return
            assert ended(raw)


def test_so_many_clients_and_no_more(run: Path) -> None:
    with serving(run, connections=2) as server:
        address = ("127.0.0.1", server.server_port)
        idle = [socket.create_connection(address) for _ in range(2)]
        with socket.create_connection(address) as third:
            assert ended(third)
        for each in idle:
            each.close()
        for _ in range(500):  # until the server has seen that they are gone
            try:
                assert ask(server)[0].status == 200
                break
            except (ConnectionError, http.client.HTTPException):
                time.sleep(0.01)
        else:
            raise AssertionError("a place must become free")


def test_names_that_are_no_text_are_served(tmp_path: Path) -> None:
    front_of([[1.0, 2.0], [2.0, 1.0]]).save(tmp_path / "front")
    path = tmp_path / "front" / "front.json"
    path.write_text(json.dumps({**read_record(path, [2]), "format": 2, "problem": "\ud800</script>"}))
    with serving(tmp_path) as server:
        assert json.loads(ask(server)[1])["runs"][0]["problem"] == "\ud800</script>"
        assert payload_in(ask(server, "/")[1].decode())["runs"][0]["problem"] == "\ud800</script>"


def test_a_connection_that_is_closed_here_is_no_error(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As when a signal ends the server between the start of a thread and its first word."""
    with PageServer(Watched([run])) as server:
        there, here = socket.socketpair()
        for request in (here, there):
            if request is here:
                here.close()
            try:
                raise ValueError("I/O operation on closed file")
            except ValueError:
                server.handle_error(request, ("127.0.0.1", 1))
            assert ("closed file" in capsys.readouterr().err) == (request is there)
        there.close()


def test_a_signal_after_a_thread_was_started_leaves_the_place_to_it(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with PageServer(Watched([run]), connections=1) as server:
        monkeypatch.setattr(ThreadingHTTPServer, "process_request", interrupted)
        with pytest.raises(KeyboardInterrupt):
            server.process_request(None, None)
        server._places.release()  # as the thread does: a second release would be an error
        with pytest.raises(ValueError, match="too many times"):
            server._places.release()


def test_ports_are_checked(run: Path) -> None:
    with pytest.raises(ValueError, match=r"'port' must be between 0 and 65535, .* Got 70000 instead"):
        PageServer(Watched([run]), 70_000)
    with (
        serving(run) as server,
        pytest.raises(ValueError, match=f"'port' must be one that is free. Got {server.server_port}"),
    ):
        PageServer(Watched([run]), server.server_port)
