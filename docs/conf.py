"""Settings of the documentation, and the tables that are made from stored results."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from tables import benchmark_tables, synthetic_tables  # noqa: E402

project = "paretomtl"
author = "The paretomtl authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_generated"]
html_theme = "furo"
html_title = "paretomtl"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
napoleon_use_ivar = True
napoleon_google_docstring = True
nitpick_ignore_regex = [
    (r"py:.*", r"(torch\.|typing\.|collections\.|Tensor|nn\.|optional|GradientEdge|IntEnum|ABC).*"),
    (r"py:.*", r".*(Reading|State|OptimizerFactory|TaskGradients|Kind|Row)$"),
]

(HERE / "_generated").mkdir(exist_ok=True)
(HERE / "_generated" / "synthetic.md").write_text(synthetic_tables(), encoding="utf-8")
(HERE / "_generated" / "benchmarks.md").write_text(benchmark_tables(), encoding="utf-8")
