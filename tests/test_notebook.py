"""Objects in a notebook, run by a real kernel: each shows itself, the page opens inline, progress takes one line."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

import pytest
import torch

import paretomtl as pm
from _helpers.browser import chromium
from _helpers.fronts import front_of
from _helpers.pages import page_front
from _helpers.screen import settled, text

HOSTILE = "<script>alert(1)</script> & \"q\" 'q'"


class Cells(HTMLParser):
    """The tags and the texts of the cells of a table."""

    def __init__(self, shown: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.rows: list[list[str]] = []
        self._inside = False
        self.feed(shown)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        self._inside = tag in ("td", "th")
        if self._inside:
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.rows[-1][-1] += data


def test_a_front_shows_its_models() -> None:
    front = page_front(5, ["left", "right"])
    shown = front._repr_html_()
    head, *rows = Cells(shown).rows
    assert head[:3] == ["model", "favours", "left accuracy, val"]
    assert [row[0] for row in rows] == ["0", "1", "2", "3", "4"]
    assert [row[2] for row in rows] == [f"{value:.4g}" for value in front.metrics["val"]["left accuracy"].tolist()]
    assert head[-1] == "note"
    assert [row[-1] for row in rows].count("dominated") == 1
    assert f"Recommended: model {front.select(max_regret=True).k}" in shown


def test_names_are_text() -> None:
    front = page_front(3, [HOSTILE, "b"], problem=HOSTILE)
    choice = front.select(max_regret=True)
    problem = pm.Problem(lambda: torch.nn.Linear(1, 2), lambda o: o, [HOSTILE, "b"], name=HOSTILE)
    for shown in (front._repr_html_(), choice._repr_html_(), problem._repr_html_()):
        assert "script" not in Cells(shown).tags
        assert "&lt;script&gt;" in shown


def test_what_is_not_finite_and_what_is_long() -> None:
    assert "No model has finite losses" in front_of([[torch.nan, 1.0]])._repr_html_()
    shown = page_front(45, 2)._repr_html_()
    assert len(Cells(shown).rows) == 31
    assert "… and 15 more rows." in shown


@pytest.mark.parametrize(("tasks", "kind", "panels"), [(2, "scatter", 1), (3, "scatter", 3), (5, "parcoords", 1)])
def test_a_figure_for_a_screen(tasks: int, kind: str, panels: int) -> None:
    front = page_front(7, tasks)
    figure = front.figure()
    assert [trace.type for trace in figure.data] == [kind] * panels
    losses = front.figure(metrics=False, split="test")
    if tasks == 2:
        assert list(figure.data[0].x) == front.metrics["val"]["task 0 accuracy"].tolist()
        assert list(losses.data[0].x) == front.losses["test"][:, 0].tolist()
        assert list(figure.data[0].text) == [str(k) for k in range(7)]
    if tasks == 5:
        for dimension in losses.data[0].dimensions:
            assert dimension.range[0] > dimension.range[1], "best is up"
    with pytest.raises(ValueError, match=r"'split' must be one of \['train', 'val', 'test'\]. Got 'dev'"):
        front.figure(split="dev")
    with pytest.raises(ValueError, match="'metrics' must be False or None without a metric for each task"):
        front_of([[1.0, 2.0]]).figure(metrics=True)


def test_a_page_is_saved_and_refused(tmp_path: Any) -> None:
    page = page_front(3, 2).explore(name="mine")
    assert page.save(tmp_path / "new" / "page.html").read_text().startswith("<!doctype html>")
    with pytest.raises(ValueError, match=r"'path' must end in .html"):
        page.save(tmp_path / "page.pdf")
    with pytest.raises(ValueError, match=r"'height' must be an integer of at least 100 pixels. Got 5"):
        page_front(3, 2).explore(height=5)
    with pytest.raises(ValueError, match=r"'progress' must not be 'notebook' outside of a notebook's kernel"):
        pm.fit(pm.problems.quadratic(), preferences=2, epochs=2, progress="notebook", device="cpu")


CELLS = (
    "import paretomtl as pm\nproblem = pm.problems.quadratic()\nproblem",
    "front = pm.fit(problem, 'pareto-mtl', 3, epochs=40, device='cpu')",
    "front",
    "front.select(max_regret=True)",
    "front.figure().to_plotly_json()['data'][0]['type']",
    "front.explore(name='quadratic')",
    "pm.diagnose(problem, seeds=2, epochs=20, log=None)",
    "from paretomtl.compare import compare\n"
    "rows, fronts = compare(problem, ['linear', 'mgda'], 2, preferences=3, epochs=20)",
)


@pytest.mark.system
def test_a_notebook_with_a_real_kernel(tmp_path: Any) -> None:
    client = pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    client.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    shown = [cell.outputs for cell in notebook.cells]
    for at in (0, 2, 3, 5, 6):
        (output,) = [each for each in shown[at] if each.output_type == "execute_result"]
        assert "text/html" in output.data, CELLS[at]
    for at, line in ((1, "epoch 40/40, "), (7, "4 of 4 runs done, ")):
        (progress,) = shown[at]
        assert progress.output_type == "display_data"
        assert progress.data["text/plain"].startswith(line)
        assert "\n" not in progress.data["text/plain"]
    assert shown[4][0].data["text/plain"] == "'scatter'"
    page = shown[5][0].data["text/html"]
    (tmp_path / "cell.html").write_text(f"<!doctype html><title>cell</title>{page}", encoding="utf-8")
    with chromium() as browser:
        tab = browser.new_page()
        tab.goto((tmp_path / "cell.html").as_uri())
        frame = tab.frames[1]
        frame.wait_for_selector("#headline")
        settled(frame)
        assert text(frame, "#headline").startswith("Recommended: model ")
        assert frame.locator("#plane .scatterlayer .points path").count() == 3 + 1
    assert json.dumps(notebook, default=str)
