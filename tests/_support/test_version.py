"""What results say of the code that made them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import paretomtl as pm
from _helpers.fronts import front_of
from _helpers.places import ROOT
from paretomtl._support import version as _version
from paretomtl._support.imports.optional_packages import version_of
from paretomtl._support.version import code_of, commit_of, made_by
from paretomtl.compare import environment

HERE = Path(pm.__file__).parent
ONE, OTHER = "1" * 40, "2" * 40
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="no git")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package in a checkout whose files of git are written by hand."""
    made = tmp_path / "src" / "paretomtl"
    made.mkdir(parents=True)
    (made / "code.py").write_text("x = 1\n")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "paretomtl"\n')
    write(tmp_path, ".git/HEAD", "ref: refs/heads/main\n")
    return made


def write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def test_a_branch_is_followed_to_its_commit(package: Path, tmp_path: Path) -> None:
    assert commit_of(package) == "unknown", "nothing was committed"
    write(
        tmp_path,
        ".git/packed-refs",
        f"# pack-refs with: peeled\n{OTHER} refs/heads/old\n{ONE} refs/heads/main\n^{OTHER}\n",
    )
    assert commit_of(package) == ONE
    write(tmp_path, ".git/refs/heads/main", f"{OTHER}\n")
    assert commit_of(package) == OTHER, "the file of a branch is newer than what is packed"
    write(tmp_path, ".git/HEAD", f"{ONE}\n")
    assert commit_of(package) == ONE, "no branch is checked out"


def test_a_worktree_is_followed_to_its_repository(package: Path, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / ".git")
    write(tmp_path, ".git", "gitdir: far/worktrees/w\n")
    write(tmp_path, "far/worktrees/w/HEAD", "ref: refs/heads/w\n")
    write(tmp_path, "far/worktrees/w/commondir", "../..\n")
    write(tmp_path, "far/refs/heads/w", f"{ONE}\n")
    assert commit_of(package) == ONE


@pytest.mark.parametrize("text", ["", "ref: refs/heads/.invalid\n", "ref: refs/heads\n", "zz\n", "\xff"])
def test_what_cannot_be_read_is_unknown(package: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / ".git" / "refs" / "heads").mkdir(parents=True)
    (tmp_path / ".git" / "HEAD").write_bytes(text.encode("latin-1"))
    assert commit_of(package) == "unknown"


def test_the_repository_of_a_user_is_not_ours(package: Path, tmp_path: Path) -> None:
    write(tmp_path, ".git/refs/heads/main", f"{ONE}\n")
    installed = tmp_path / "venv" / "site-packages" / "paretomtl"
    shutil.copytree(package, installed)
    assert commit_of(installed) == "unknown", "an environment that lies in a checkout"
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "theirs"\n')
    assert commit_of(package) == "unknown", "a copy in somebody's own source"
    (tmp_path / "pyproject.toml").unlink()
    assert commit_of(package) == "unknown"


@needs_git
def test_changes_of_the_source_are_marked(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(tmp_path / ".git")

    def git(*words: str) -> str:
        who = ["-c", "user.name=x", "-c", "user.email=x@x", "-c", "commit.gpgsign=false"]
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        done = subprocess.run(
            ["git", "-C", str(tmp_path), *who, *words], capture_output=True, text=True, check=True, env=clean
        )
        return done.stdout.strip()

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "x")
    head = git("rev-parse", "HEAD")
    assert commit_of(package) == head
    write(tmp_path, "notes.txt", "beside the source")
    assert commit_of(package) == head
    write(tmp_path, "src/paretomtl/code.py", "x = 2\n")
    assert commit_of(package) == f"{head}+dirty"
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert commit_of(package) == f"{head}+dirty", "whatever git was told about another repository"
    monkeypatch.setattr(_version.shutil, "which", lambda name: None)
    assert commit_of(package) == head, "without git it is not known"


def test_the_checksum_tells_sources_apart(package: Path) -> None:
    before = code_of(package)
    (package / "code.py").write_text("x = 2\n")
    assert code_of(package) != before
    assert code_of(HERE) == made_by()["code"]


def test_the_version_is_known_without_an_installation(tmp_path: Path) -> None:
    """As on a machine that gets a copy of the tree: neither metadata nor git."""
    shutil.copytree(HERE, tmp_path / "src" / "paretomtl", ignore=shutil.ignore_patterns("__pycache__"))
    script = (
        "import importlib.metadata as m, json\n"
        "real = m.version\n"
        "def version(name):\n"
        "    if name == 'paretomtl': raise m.PackageNotFoundError(name)\n"
        "    return real(name)\n"
        "m.version = version\n"
        "import paretomtl\n"
        "from paretomtl.compare import environment\n"
        "print(json.dumps([paretomtl.__version__, environment()['versions']]))\n"
    )
    environ = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environ)
    version, versions = json.loads(done.stdout)
    assert version == versions["paretomtl"] == pm.__version__
    assert versions["commit"] == "unknown"
    assert versions["code"] == made_by()["code"]


def test_rows_say_what_made_them() -> None:
    versions = environment()["versions"]
    assert versions["paretomtl"] == pm.__version__ == version_of("paretomtl")
    assert {name: versions[name] for name in ("commit", "code", "torch")} == {
        name: made_by()[name] for name in ("commit", "code", "torch")
    }


def test_the_version_is_written_once() -> None:
    assert f"\nversion: {pm.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert "\nversion = " not in (ROOT / "pyproject.toml").read_text().split("[project.optional-dependencies]")[0]


def test_fronts_say_what_made_them(tmp_path: Path) -> None:
    front = pm.fit(pm.problems.quadratic(), preferences=2, epochs=2, device="cpu", progress="quiet")
    assert front.made_by == made_by()
    front.save(tmp_path)
    assert pm.Front.load(tmp_path).made_by == made_by()


def test_fronts_from_before_are_loaded(tmp_path: Path) -> None:
    front_of([[1.0, 2.0], [2.0, 1.0]]).save(tmp_path)
    assert "made_by" not in (tmp_path / "front.json").read_text(), "as stored by earlier versions"
    assert pm.Front.load(tmp_path).made_by == {}
    front_of([[1.0, 2.0]], made_by={"commit": 3}).save(tmp_path)
    with pytest.raises(ValueError, match="invalid fields: made_by"):
        pm.Front.load(tmp_path)
