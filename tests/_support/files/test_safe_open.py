"""Files are opened if they are regular and of a sane size, with the flags of the system or without them."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from paretomtl._support.files import safe_open as _opening
from paretomtl._support.files.safe_open import (
    UnsafeFileError,
    append_file,
    create_file,
    names_in,
    read_file,
    remove_files,
)

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")


@pytest.fixture(params=["flags", "none"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one of each kind; without the flags, as on Windows, links are looked for by name."""
    if request.param == "none":
        monkeypatch.setattr(_opening, "_NO_FOLLOW", 0)
        monkeypatch.setattr(_opening, "_SAFE", os.O_NONBLOCK)
        monkeypatch.setattr(_opening, "_BY_HANDLE", False)
    (tmp_path / "file").write_bytes(b"0123456789")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as unix:
        here = Path.cwd()
        os.chdir(tmp_path)  # names of sockets are short
        unix.bind("socket")
        os.chdir(here)
    return tmp_path


KINDS = {"link": "a link to 'file', which is not followed", "dangling": "a link to 'nowhere', which is not followed"}
KINDS |= {"device": "a link to '/dev/zero'", "folder": "a folder", "pipe": "a pipe", "socket": "a socket"}


@pytest.mark.parametrize(("name", "kind"), KINDS.items())
def test_all_but_regular_files_are_named(name: str, kind: str, folder: Path) -> None:
    for use in (lambda path: read_file(path, limit=100), append_file):
        with pytest.raises(UnsafeFileError, match=f"{name}' must be a regular file. It is {kind}") as found:
            use(folder / name)
        assert isinstance(found.value, ValueError)
        assert isinstance(found.value, OSError)
    assert not (folder / "nowhere").exists()


def test_where_links_are_followed_they_lead_to_regular_files(folder: Path) -> None:
    assert read_file(folder / "link", limit=10, follow=True) == b"0123456789"
    with pytest.raises(UnsafeFileError, match=r"device' must be a regular file. It is a device"):
        read_file(folder / "device", limit=10, follow=True)


def test_what_is_regular_is_read_up_to_its_limit(folder: Path) -> None:
    assert read_file(folder / "file", limit=10) == b"0123456789"
    with pytest.raises(UnsafeFileError, match=r"file' must have at most 9 bytes. Got 10 instead"):
        read_file(folder / "file", limit=9)
    with pytest.raises(FileNotFoundError):
        read_file(folder / "nothing", limit=9)


def test_a_file_of_holes_is_refused(folder: Path) -> None:
    with (folder / "file").open("r+b") as file:
        file.truncate(1 << 34)
    with pytest.raises(
        UnsafeFileError, match=r"must not be a sparse file. Got 17,179,869,184 bytes, of which .* are stored"
    ):
        read_file(folder / "file", limit=1 << 40)


def test_a_new_file_takes_the_place_of_a_link(folder: Path) -> None:
    with create_file(folder / "link") as file:
        file.write(b"new")
    assert (folder / "file").read_bytes() == b"0123456789"
    assert (folder / "link").read_bytes() == b"new"
    with pytest.raises(OSError, match="folder"):
        create_file(folder / "folder")


def test_removing_takes_names_and_not_what_they_lead_to(folder: Path) -> None:
    assert remove_files(folder, lambda name, _: name != "file") == ["dangling", "device", "link", "pipe", "socket"]
    assert names_in(folder) == ["file", "folder"]
    (folder / "link").symlink_to(folder / "folder")
    (folder / "folder" / "mine").write_text("mine")
    for use in (
        lambda: names_in(folder / "link", follow=False),
        lambda: remove_files(folder / "link", _all, follow=False),
    ):
        with pytest.raises(UnsafeFileError, match=r"link' must be a folder. It is a link"):
            use()
    assert remove_files(folder / "nowhere", _all) == []
    assert remove_files(folder / "link", _all) == ["mine"], "a folder that the user names may be a link"


def _all(name: str, found: os.stat_result) -> bool:
    return True
