"""The version of the code: number, commit and checksum, also where it runs from a checkout that is not installed."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

from paretomtl._support.paths import PACKAGE

__version__ = "0.1.0"  # pyproject.toml takes it from here

UNKNOWN = "unknown"
_HASH = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_GIT_SECONDS = 10.0  # after which a slow disk leaves it open whether something was changed


@functools.cache
def made_by() -> dict[str, str]:
    """The origin that results carry: versions, commit, and a checksum of the source.

    Found out once: files may change while a process runs, whose modules stay as they were.
    """
    import torch

    return {
        "paretomtl": __version__,
        "commit": commit_of(PACKAGE),
        "code": code_of(PACKAGE),
        "torch": str(torch.__version__),
    }


def code_of(package: Path) -> str:
    """A checksum of a package's source, which tells copies of a checkout apart that have no commit."""
    digest = hashlib.sha256()
    for path in sorted((*package.rglob("*.py"), *package.rglob("*.cu"))):
        digest.update(str(path.relative_to(package)).encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def commit_of(package: Path) -> str:
    """The commit that a package is of, with "+dirty" where git says that its source was changed since.

    "unknown" for a package that does not lie in the ``src`` of its own checkout. A repository around it may be that of
    a user, whose environment it is installed in.
    """
    root = package.resolve().parents[1]
    try:
        if package.resolve() != root / "src" / "paretomtl" or not _is_ours(root):
            return UNKNOWN
        found = _head(root / ".git")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return UNKNOWN
    return UNKNOWN if found is None else found + ("+dirty" if _is_changed(root) else "")


def _is_ours(root: Path) -> bool:
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8")).get("project")
    return isinstance(project, dict) and project.get("name") == "paretomtl"


def _head(git: Path) -> str | None:
    """The commit that is checked out, read from git's files: a machine that trains may have no git."""
    if git.is_file():  # a worktree, or a submodule
        git = git.parent / git.read_text("utf-8").strip().removeprefix("gitdir: ")
    common = git / "commondir"
    shared = git / common.read_text("utf-8").strip() if common.exists() else git
    head = (git / "HEAD").read_text("utf-8").strip()
    name = head.removeprefix("ref: ")
    if name == head:
        return head if _HASH.fullmatch(head) else None
    for folder in (git, shared):
        if (folder / name).is_file():
            found = (folder / name).read_text("utf-8").strip()
            return found if _HASH.fullmatch(found) else None
    packed = shared / "packed-refs"
    lines = packed.read_text("utf-8").splitlines() if packed.exists() else []
    return next((line.split()[0] for line in lines if _HASH.match(line) and line.split()[1:] == [name]), None)


def _is_changed(root: Path) -> bool:
    """Whether git knows of changes to the source; False where there is no git to ask."""
    program = shutil.which("git")
    if program is None:
        return False
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        found = subprocess.run(
            [program, "-C", str(root), "status", "--porcelain", "--", "src/paretomtl"],
            env={**clean, "GIT_OPTIONAL_LOCKS": "0"},
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return found.returncode == 0 and bool(found.stdout.strip())
