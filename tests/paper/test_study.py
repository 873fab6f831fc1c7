from __future__ import annotations

from typing import Any

import pytest

from paretomtl.paper.study import Study, check_figures, describe_divergence


@pytest.mark.parametrize(
    ("figures", "reason"), [({}, "Got none"), ({"a": lambda rows: None, "b": None}, "Got no function for b")]
)
def test_a_study_without_figures_is_refused(figures: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=f"The study 'bare' must have figures: .* {reason}"):
        check_figures("bare", Study(lambda size: [], figures))


def test_a_study_says_nothing_unless_it_is_told_what() -> None:
    study = Study(lambda size: [], {"a": lambda rows: None})
    assert (study.claims([]), study.facts([])) == ([], [])


def test_models_that_diverged_are_counted() -> None:
    rows = [{"status": ["ok", "non-finite"]}, {"status": ["ok"]}, {}]
    assert describe_divergence(rows) == "1 of 3 models stopped at a loss that was not finite."
    assert describe_divergence(rows[1:]) is None
