"""Folders of the repository that tests look into."""

from __future__ import annotations

from pathlib import Path

HELPERS = Path(__file__).parent
TESTS = HELPERS.parent
ROOT = TESTS.parent
DOCS = ROOT / "docs"
STORED = ROOT / "experiments" / "results"
