"""The version of the code: number, commit and checksum, also for a checkout that is not installed."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

from paretomtl._support.files.paths import PACKAGE

__version__ = "0.1.0"  # pyproject.toml takes it from here

UNKNOWN = "unknown"
_HASH = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_GIT_SECONDS = 10.0  # timeout on a slow disk; the source then counts as unchanged


@functools.cache
def made_by() -> dict[str, str]:
    """The origin that results carry: versions, commit, and a checksum of the source.

    Cached: files may change while a process runs, but its modules do not.
    """
    import torch

    return {
        "paretomtl": __version__,
        "commit": commit_of(PACKAGE),
        "code": code_of(PACKAGE),
        "torch": str(torch.__version__),
    }


def code_of(package: Path) -> str:
    """A checksum of a package's source, which distinguishes copies without a commit."""
    digest = hashlib.sha256()
    for path in sorted((*package.rglob("*.py"), *package.rglob("*.cu"))):
        digest.update(str(path.relative_to(package)).encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def commit_of(package: Path) -> str:
    """The commit of a package, with "+dirty" if its source was changed since.

    "unknown" for a package outside the ``src`` of its own checkout: a repository around it may belong to a user, in
    whose environment it is installed.
    """
    root = package.resolve().parents[1]
    try:
        if package.resolve() != root / "src" / "paretomtl" or not _is_ours(root):
            return UNKNOWN
        commit = _head(root / ".git")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return UNKNOWN
    return UNKNOWN if commit is None else commit + ("+dirty" if _is_changed(root) else "")


def _is_ours(root: Path) -> bool:
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8")).get("project")
    return isinstance(project, dict) and project.get("name") == "paretomtl"


def _head(git: Path) -> str | None:
    """The commit that is checked out, read from git's files: a training machine may have no git."""
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
            commit = (folder / name).read_text("utf-8").strip()
            return commit if _HASH.fullmatch(commit) else None
    packed = shared / "packed-refs"
    lines = packed.read_text("utf-8").splitlines() if packed.exists() else []
    return next((line.split()[0] for line in lines if _HASH.match(line) and line.split()[1:] == [name]), None)


def _is_changed(root: Path) -> bool:
    """Whether git reports changes to the source; False without git."""
    program = shutil.which("git")
    if program is None:
        return False
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        status = subprocess.run(
            [program, "-C", str(root), "status", "--porcelain", "--", "src/paretomtl"],
            env={**clean, "GIT_OPTIONAL_LOCKS": "0"},
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return status.returncode == 0 and bool(status.stdout.strip())
