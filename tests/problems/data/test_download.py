from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from _helpers.servers import Server, serving
from _helpers.sources import small_source
from paretomtl.problems._data.download import download
from paretomtl.problems._multi_mnist.idx import Source, read_source

IMAGES = "train-images-idx3-ubyte.gz"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with serving(tmp_path / "remote", monkeypatch) as found:
        yield found


def source(server: Server, *mirrors: str) -> Source:
    made = small_source("mnist", server.folder)
    return replace(made, mirrors=tuple(server.address(mirror) for mirror in mirrors))


def test_files_come_whole_and_are_not_asked_for_again(server: Server, tmp_path: Path) -> None:
    known = source(server, "good")
    told: list[str] = []
    for _ in range(2):
        download(known, tmp_path / "here", log=told.append)
        assert read_source(known, tmp_path / "here")["train"].images.shape == (60, 28, 28)
    assert server.asked["good"] == 4
    assert told[0] == f"Downloading {server.address('good')}{IMAGES}"
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == sorted(known.md5)
    (agent,) = server.agents
    assert agent is not None
    assert agent.startswith("paretomtl/")


def test_a_file_that_is_not_the_published_one_is_downloaded_again(server: Server, tmp_path: Path) -> None:
    known = source(server, "good")
    download(known, tmp_path / "here")
    (tmp_path / "here" / IMAGES).write_bytes(b"half")
    download(known, tmp_path / "here")
    assert server.asked["good"] == 5
    read_source(known, tmp_path / "here")


def test_a_download_that_breaks_off_is_started_over(server: Server, tmp_path: Path) -> None:
    known = source(server, "cut-once")
    download(known, tmp_path / "here")
    assert server.asked["cut-once"] == 5
    read_source(known, tmp_path / "here")


@pytest.mark.parametrize(
    ("bad", "tries"), [("missing", 1), ("altered", 1), ("silent", 1), ("cut", 3), ("busy", 3), ("nowhere", 0)]
)
def test_after_a_bad_mirror_comes_the_next(server: Server, tmp_path: Path, bad: str, tries: int) -> None:
    known = source(server, bad, "good")
    if bad == "nowhere":  # nobody listens there
        known = replace(known, mirrors=("http://127.0.0.1:9/", known.mirrors[1]))
    download(known, tmp_path / "here")
    assert server.asked == {"good": 4, **({bad: 4 * tries} if tries else {})}
    read_source(known, tmp_path / "here")


def test_when_all_mirrors_fail_every_reason_is_told(server: Server, tmp_path: Path) -> None:
    known = source(server, "missing", "altered", "cut", "busy")
    with pytest.raises(OSError, match=f"'{IMAGES}' of MNIST could not be downloaded from any address") as error:
        download(known, tmp_path / "here")
    text = str(error.value)
    size = (server.folder / IMAGES).stat().st_size
    assert f"{server.address('missing')}{IMAGES}: HTTP 404 Not Found" in text
    assert f"{server.address('altered')}{IMAGES}: altered: md5 {known.md5[IMAGES]} expected, " in text
    assert f"{server.address('busy')}{IMAGES}: HTTP 503 Service Unavailable (3 tries)" in text
    cut = next(line for line in text.replace(" If you", "; If you").split("; ") if "/cut/" in line)
    assert cut.endswith("(3 tries)")
    assert "IncompleteRead" in cut or f"it broke off after {size // 2:,} of {size:,} bytes" in cut
    assert "--from FOLDER" in text
    assert list((tmp_path / "here").iterdir()) == [], "nothing of it is left"


def test_a_full_disk_is_not_taken_for_a_bad_mirror(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(handle: int) -> None:
        raise OSError("No space left on device")

    known = source(server, "good", "good")
    monkeypatch.setattr("paretomtl._support.files.atomic_files.os.fsync", fail)
    with pytest.raises(OSError, match=r"^No space left on device$"):
        download(known, tmp_path / "here")
    assert server.asked["good"] == 1
    assert list((tmp_path / "here").iterdir()) == []
