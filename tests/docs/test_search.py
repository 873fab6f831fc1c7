"""The search of the built site, in a real browser: what people type leads to the page that answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from _helpers.browser import chromium
from _helpers.doc_pages import PAGES, keywords, name
from _helpers.places import ROOT

SITE = ROOT / "out" / "docs"
ASKED = {
    "loss weighting": "start/why",
    "tuning loss weights": "start/why",
    "trade-off": "start/why",
    "scalarization": "concepts/methods",
    "weighted sum": "concepts/methods",
    "multi-objective optimization": "index",
    "gradient conflict": "start/do-i-need-it",
    "fairness constraint": "guides/fairness",
    "demographic parity": "guides/fairness",
    "missing labels": "guides/missing-labels",
    "NaN": "guides/missing-labels",
    "imbalanced losses": "guides/units",
    "pandas": "guides/data",
    "DataLoader": "guides/data",
    "fine-tuning": "guides/your-model",
    "freeze": "guides/your-model",
    "scheduler": "guides/training-options",
    "resume": "guides/watch",
    "GPU": "guides/several-gpus",
    "torchrun": "guides/several-gpus",
    "Ray": "guides/cluster",
    "how many models": "guides/how-many",
    "ONNX": "guides/choosing",
    "Jupyter": "guides/notebook",
    "Chebyshev scalarization": "concepts/p-norm",
    "Optuna": "reference/run-folder",
    "error message": "reference/errors",
    "hypervolume": "reference/indicators",
}
FIRST = 3  # results that people look at


@pytest.fixture(scope="module")
def search() -> Iterator[Any]:
    """A function from words to pages, best first."""
    if not (SITE / "searchindex.js").is_file():
        pytest.skip("no built documentation: run `make docs` first")
    with chromium() as browser:
        page = browser.new_page()
        page.goto(f"file://{SITE / 'search.html'}?q=front")
        page.wait_for_function("typeof Search !== 'undefined' && Search.hasIndex()")
        ask = "words => Search._performSearch(...Search._parseQuery(words)).map(row => row[0]).reverse()"

        def pages(words: str) -> list[str]:
            return list(dict.fromkeys(page.evaluate(ask, words)))

        yield pages


@pytest.mark.parametrize(("words", "wanted"), ASKED.items(), ids=list(ASKED))
def test_words_lead_to_the_page_that_answers(words: str, wanted: str, search: Any) -> None:
    found = search(words)
    assert wanted in found[:FIRST], found[:8]


def test_each_search_word_belongs_to_few_pages() -> None:
    """A word that many pages have says nothing about any of them."""
    counts = Counter(word for path in PAGES for word in keywords(path))
    assert [word for word, count in counts.items() if count > FIRST] == []


def test_every_page_has_search_words() -> None:
    bare = [name(path) for path in PAGES if not keywords(path)]
    assert bare == [each for each in bare if "decisions/" in each or each == "reference/terminal.md"]
