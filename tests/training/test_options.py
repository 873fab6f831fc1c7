"""The options of training are the same wherever they can be given."""

import inspect
from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import pytest
import torch

import paretomtl as pm
from paretomtl.engine.strategy import Strategy
from paretomtl.training.options import DEFAULTS, RULES, STORED, TrainingOptions
from paretomtl.training.settings.option_checks import check_options
from paretomtl.training.settings.settings import Settings, make_settings

ONE_RUN = {"seed", "minutes", "start", "executor", "out", "resume", "checkpoint_seconds"}
"""The options that several seeds at once do not have."""


def defaults(function: Callable[..., Any]) -> dict[str, Any]:
    return {name: each.default for name, each in inspect.signature(function).parameters.items()}


def test_fit_has_every_option_with_its_default() -> None:
    assert defaults(pm.fit) == {"problem": inspect.Parameter.empty, **DEFAULTS}


def test_fit_seeds_has_every_option_but_those_of_one_run() -> None:
    seen = defaults(pm.fit_seeds)
    assert seen.pop("problem") is seen.pop("seeds") is inspect.Parameter.empty
    assert seen == {name: value for name, value in DEFAULTS.items() if name not in ONE_RUN}


def test_both_have_the_same_types() -> None:
    one, several = (inspect.signature(function).parameters for function in (pm.fit, pm.fit_seeds))
    types = TrainingOptions.__annotations__
    assert {name: each.annotation for name, each in one.items() if name not in ("problem", "out")} == {
        name: kind for name, kind in types.items() if name != "out"
    }
    assert one["out"].annotation == "str | Path | None"  # a RunFolder is for the command line alone
    assert all(several[name].annotation == kind for name, kind in types.items() if name not in ONE_RUN)


def test_each_option_has_a_rule_and_a_description() -> None:
    assert list(RULES) == list(DEFAULTS)
    described = inspect.getdoc(pm.fit)
    for name, rule in RULES.items():
        assert f"\n    {name}: " in str(described)
        assert rule.meaning.endswith(".")
        assert len(rule.meaning) < 120


def test_each_default_follows_its_rule() -> None:
    assert check_options(TrainingOptions()) == TrainingOptions()
    for name, kind in STORED.items():
        assert isinstance(DEFAULTS[name], kind)


def test_choices_are_what_the_engine_knows() -> None:
    assert RULES["strategy"].choices == get_args(Strategy)
    for precision in RULES["precision"].choices:
        options = TrainingOptions(epochs=1, device="cpu", precision=precision)
        assert make_settings(pm.problems.synthetic(), options).precision == precision


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("accumulate", None, "'accumulate' must be a whole number of at least 1. Got None instead."),
        ("workers", True, "'workers' must be a whole number of at least 1. Got True instead."),
        ("clip_norm", 0, "'clip_norm' must be positive. Got 0 instead."),
        ("schedule", "week", r"'schedule' must be one of \['epoch', 'step'\]. Got 'week' instead."),
        ("keep", None, r"'keep' must be one of \['last', 'best'\]. Got None instead."),
    ],
)
def test_rules_name_the_option(name: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_options(TrainingOptions(**{name: value}))


def test_numbers_become_those_of_python() -> None:
    checked = check_options(TrainingOptions(patience=np.int64(3), clip_norm=2))  # type: ignore[arg-type]
    assert (type(checked.patience), type(checked.clip_norm)) == (int, float)


def test_options_are_taken_by_name() -> None:
    problem, epochs, keep = "not an option", 3, "best"
    assert TrainingOptions.of(locals()) == TrainingOptions(epochs=epochs, keep=keep)
    assert problem


def test_every_option_reaches_the_settings() -> None:
    changed = {
        "seed": 4,
        "schedule": "step",
        "scheduler": lambda optimizer: None,
        "strategy": "sequential",
        "precision": "float64",
        "clip_norm": 0.5,
        "weigh_every": 3,
        "workers": 2,
        "epochs": 7,
        "batch_size": 9,
    }
    settings = make_settings(pm.problems.synthetic(), TrainingOptions(device="cpu", **changed))  # type: ignore[arg-type]
    assert isinstance(settings, Settings)
    assert settings.seeds == [changed.pop("seed")]
    for name, value in changed.items():
        assert getattr(settings, name) == value, name


@pytest.mark.parametrize("method", ["linear", "p-norm"])
def test_decimals_of_a_list_keep_their_digits(method: str) -> None:
    rows = [[0.1, 0.9], [0.7, 0.3]]
    one = pm.fit(pm.problems.quadratic(), method, rows, epochs=1, device="cpu", progress="quiet").preferences
    exact = torch.tensor(rows, dtype=torch.float64)
    assert torch.equal(one, exact if method == "linear" else pm.preferences.validate(exact))
