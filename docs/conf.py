"""Settings of the documentation, and the tables that are made from stored results."""

from __future__ import annotations

import functools
import html
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import auto_tables  # noqa: E402
import cheaper_tables  # noqa: E402
import cluster_tables  # noqa: E402
import studies  # noqa: E402
import tables  # noqa: E402
from docutils import nodes  # noqa: E402
from latex2mathml.converter import convert  # noqa: E402
from sphinx import addnodes  # noqa: E402
from sphinx.application import Sphinx  # noqa: E402
from sphinx.transforms import SphinxTransform  # noqa: E402
from sphinx.writers.html5 import HTML5Translator  # noqa: E402

project = "paretomtl"
author = "The paretomtl authors"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
]
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
copybutton_exclude = ".linenos, .gp, .go"
copybutton_prompt_text = "$ "
html_math_renderer = "mathml"
myst_heading_anchors = 3
exclude_patterns = ["_generated"]
html_theme = "furo"
html_title = "paretomtl"
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(HERE / "search_scorer.js")
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
napoleon_use_ivar = True
napoleon_google_docstring = True
nitpick_ignore_regex = [
    (
        r"py:.*",
        r"(torch\.|numpy\.|typing\.|collections\.|pathlib\.|Path$|Tensor|nn\.|optional|GradientEdge|IntEnum|ABC|Protocol).*",
    ),
    (r"py:.*", r".*(Reading|State|Factory|TaskGradients|Kind|Row|Data|Strategy|ProgressStyle|Callback|JobFunction)$"),
    (r"py:.*", r".*(Distributed|ProcessGroup|Scale|Layout|Strictness|FrontT)$"),
]

(HERE / "_generated").mkdir(exist_ok=True)
PAGES = {
    **{name: functools.partial(studies.study_tables, name) for name in studies.STUDIES},
    "images": studies.image_tables,
    "recipes": studies.recipe_table,
    "digits-counts": studies.counts_table,
    "stack": studies.stack_table,
    **{f"paper-{name}": functools.partial(studies.paper_table, name) for name in ("faces", "localization")},
    "dual": tables.dual_table,
    "benchmarks": tables.benchmark_tables,
    "digits": studies.digits_table,
    "indicators": studies.indicator_table,
    "auto-synthetic": auto_tables.synthetic_table,
    "auto-difficulty": auto_tables.difficulty_table,
    "auto-digits": auto_tables.digits_table,
    "auto-noise": auto_tables.noise_table,
    "cheaper": cheaper_tables.cheaper_table,
    "step": tables.step_tables,
    "memory": tables.memory_table,
    "front-cuda": lambda: tables.front_tables("cuda"),
    "front-cpu": lambda: tables.front_tables("cpu"),
    "profile": tables.profile_table,
    "quality": tables.quality_tables,
    "every": tables.every_table,
    "page": tables.page_table,
    "shards": tables.shards_table,
    "faults": tables.faults_table,
    "distributed": tables.distributed_table,
    "plan-inputs": tables.plan_inputs,
    **{f"plan-{name}": functools.partial(tables.plan_table, name) for name in tables.plan.TABLES},
    **{f"plan-{name}-check": functools.partial(tables.plan_check, name) for name in tables.plan.CHECKS},
    "fuzz": tables.fuzz_table,
    "ray": cluster_tables.ray_table,
    "stress": cluster_tables.stress_tables,
    "checksums": tables.checksum_table,
    "files": tables.file_table,
    "census-files": tables.census_table,
}
for name, make in PAGES.items():
    (HERE / "_generated" / f"{name}.md").write_text(make(), encoding="utf-8")


def visit_math(translator: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    """Write a formula as MathML, which browsers draw without a script and without the network."""
    block = isinstance(node, nodes.math_block)
    if block:
        translator.body.append('<div class="math">')
    formula = convert(node.astext(), display="block" if block else "inline")
    if "\\" in re.sub("<[^>]+>", "", formula):
        raise ValueError(f"MathML has no counterpart for a command in this formula: {node.astext()}")
    translator.body.append(formula)
    if block:
        translator.body.append("</div>")
    raise nodes.SkipNode


class DarkFigures(SphinxTransform):
    """Shows NAME-dark.png in place of NAME.png on dark pages, where it exists, before images are collected."""

    default_priority = 200

    def apply(self, **options: object) -> None:
        """Add the dark figures to a document."""
        folder = Path(self.document["source"]).parent
        for image in list(self.document.findall(nodes.image)):
            dark = image["uri"].removesuffix(".png") + "-dark.png"
            if not image["uri"].endswith(".png") or not (folder / dark).exists():
                continue
            other = image.deepcopy()
            other["uri"] = dark
            image["classes"] = [*image["classes"], "only-light"]
            other["classes"] = [*other["classes"], "only-dark"]
            image.parent.insert(image.parent.index(image) + 1, other)


class Tables(SphinxTransform):
    """Prepares tables for their style sheet: the small type of wide ones, and the rows of texts on phones.

    On a phone, a table of texts is a list of its rows, so every cell carries the head of its column.
    """

    default_priority = 200
    wide = 7  # columns
    text = 30  # letters in a cell that holds a text

    def apply(self, **options: object) -> None:
        """Mark the tables of a document, and label their cells."""
        for table in self.document.findall(nodes.table):
            rows = [list(row.findall(nodes.entry)) for row in table.findall(nodes.row)]
            heads, *body = rows
            if len(heads) >= self.wide:
                table["classes"].append("wide")
            elif any(len(cell.astext()) > self.text for row in body for cell in row[1:]):
                table["classes"].append("texts")
                for row in body:
                    for head, cell in zip(heads, row, strict=True):
                        cell["label"] = head.astext()


class Translator(HTML5Translator):
    """The HTML of Sphinx, with the labels of cells."""

    def visit_entry(self, node: nodes.Element) -> None:
        """Open a cell, with its label."""
        opened = len(self.body)
        super().visit_entry(node)
        if "label" in node:
            label = html.escape(node["label"])
            self.body[opened] = self.body[opened].replace("<td", f'<td data-label="{label}"', 1)


class SearchWords(SphinxTransform):
    """Makes the keywords of a page entries of the index, by which the site's search finds it first.

    The search of Sphinx itself reads keywords as single words of the text, so that "missing labels" is never found.
    """

    default_priority = 200

    def apply(self, **options: object) -> None:
        """Add the entries to a document."""
        for meta in list(self.document.findall(nodes.meta)):
            if meta.get("name") == "keywords":
                words = [word.strip() for word in meta["content"].split(",")]
                entries = [("single", word, "", "main", None) for word in words]
                self.document.insert(0, addnodes.index(entries=entries))


def setup(app: Sphinx) -> None:
    """Register what this documentation adds to Sphinx."""
    app.add_transform(SearchWords)
    app.add_transform(DarkFigures)
    app.add_transform(Tables)
    app.set_translator("html", Translator)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
