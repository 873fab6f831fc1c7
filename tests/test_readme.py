"""The README's example runs and prints what the README says, up to rounding on other machines."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_first_example_prints_what_is_written() -> None:
    code, expected = re.search(r"```python\n(import torch.*?)```\n\n```text\n(.*?)```", README, re.DOTALL).groups()  # type: ignore[union-attr]
    assert len([line for line in code.splitlines() if line.strip()]) <= 17
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, "README.md", "exec"), {"__name__": "__main__"})
    found, wanted = printed.getvalue().split(), expected.split()
    assert len(found) == len(wanted)
    for mine, theirs in zip(found, wanted, strict=True):
        try:
            assert float(mine) == pytest.approx(float(theirs), abs=0.01)
        except ValueError:
            assert mine == theirs


@pytest.mark.filterwarnings("ignore")
def test_the_page_on_data_runs() -> None:
    page = (Path(__file__).parents[1] / "docs" / "loaders.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    space: dict[str, object] = {"__name__": "__main__"}
    exec(compile(code, "loaders.md", "exec"), space)
    assert "age: DataLoader of TensorDataset, 60 samples, 3 batches" in repr(space["problem"])


def test_every_file_it_points_to_exists() -> None:
    root = Path(__file__).parents[1]
    for page in [root / "README.md", root / "CONTRIBUTING.md", *(root / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} points to {target}"
