"""What commands print in terminals of 80 and 120 columns, with five tasks of long names, as text.

    python tools/terminal_sheet.py        # writes docs/reference/terminal.md; a minute on two cores

Each command runs in a pseudo-terminal, so it prints what a person sees, without the colours.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from cli.test_narrow_terminals import COMMANDS, PROBLEM  # noqa: E402

COLUMNS = (80, 120)
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\r")
_ANSWERS = b"1\n=\nb\n1\n1\n1\n1\n1\n1\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "reference" / "terminal.md")
    asked = parser.parse_args()
    commands = {**COMMANDS, "select, by questions": ["select", "trained"], "run --help": ["run", "--help"]}
    parts = ["# What commands print", "", "`python tools/terminal_sheet.py` makes this page."]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "feed.py").write_text(PROBLEM)
        for columns in COLUMNS:
            parts += ["", f"## {columns} columns"]
            for name, words in commands.items():
                again = [*words, "--resume"] if name == "run" and (Path(folder) / "trained").exists() else words
                text = captured(again, columns, Path(folder), _ANSWERS if name.endswith("questions") else b"")
                parts += ["", f"### {name}", "", "```text", text.rstrip(), "```"]
    asked.out.write_text("\n".join(parts) + "\n", encoding="utf-8")
    print(asked.out)


def captured(words: list[str], columns: int, folder: Path, typed: bytes = b"") -> str:
    """What a command prints in a terminal of so many columns."""
    leader, follower = pty.openpty()
    quiet = termios.tcgetattr(follower)
    quiet[3] &= ~termios.ECHO  # what is typed would be shown before the questions
    termios.tcsetattr(follower, termios.TCSANOW, quiet)
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    env = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT / "src")}
    env.pop("COLUMNS", None)
    command = [sys.executable, "-m", "paretomtl", *words]
    process = subprocess.Popen(command, cwd=folder, env=env, stdin=follower, stdout=follower, stderr=follower)
    os.close(follower)
    os.write(leader, typed)
    printed = b""
    while True:
        try:
            some = os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
        if not some:
            break
        printed += some
    process.wait()
    os.close(leader)
    return _CONTROL.sub("", printed.decode(errors="replace"))


if __name__ == "__main__":
    main()
