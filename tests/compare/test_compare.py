from __future__ import annotations

import dataclasses
import inspect
import pickle
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

import paretomtl as pm
from paretomtl.compare import FailedRun, compare, load_rows, save_rows
from paretomtl.compare._runs import train_whole
from paretomtl.training.shards.ray.worker import Failure


def test_a_run_that_was_stopped_is_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole runs before it are kept, and the comparison ends there."""
    trained: list[int] = []

    def stopped(*arguments: Any, seed: int, **options: Any) -> pm.Front:
        trained.append(seed)
        front = pm.fit(*arguments, seed=seed, **options)
        return dataclasses.replace(front, complete=seed == 0)

    monkeypatch.setattr("paretomtl.compare._runs.fit", stopped)
    of = pm.problems.quadratic()
    with pytest.raises(KeyboardInterrupt) as stop:
        compare(of, ["linear", "mgda"], 3, folder=tmp_path, epochs=2, device="cpu")
    assert stop.value.__notes__ == [
        f"1 of 6 runs is stored in '{tmp_path / 'compare.json'}'. Run the same again to train the others."
    ]
    assert trained == [0, 1]
    assert [row["seed"] for row in load_rows(tmp_path / "compare.json")] == [0]
    monkeypatch.undo()
    rows, _ = compare(of, ["linear", "mgda"], 2, folder=tmp_path, epochs=2, device="cpu")
    assert [(row["method"], row["seed"]) for row in rows] == [("linear", 0), ("linear", 1), ("mgda", 0), ("mgda", 1)]


def failing(monkeypatch: pytest.MonkeyPatch, *runs: tuple[str, int]) -> list[tuple[str, int]]:
    """Let these runs fail; the runs that were tried."""
    tried: list[tuple[str, int]] = []

    def train(problem: Any, method: pm.methods.Method, *arguments: Any, seed: int, **options: Any) -> pm.Front:
        tried.append((method.name, seed))
        if (method.name, seed) in runs:
            raise ValueError(f"{method.name} cannot be trained.")
        return pm.fit(problem, method, *arguments, seed=seed, **options)

    monkeypatch.setattr("paretomtl.compare._runs.fit", train)
    return tried


def test_runs_that_fail_do_not_cost_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A method that fails at first is given up, and a seed that fails later is left out alone."""
    tried = failing(monkeypatch, ("mgda", 0), ("linear", 1))
    of, quick = pm.problems.quadratic(), {"folder": tmp_path, "epochs": 1, "device": "cpu", "preferences": 1}
    found: list[FailedRun] = []
    rows, _ = compare(of, ["mgda", "linear"], 3, failed=found.append, **quick)
    assert tried == [("mgda", 0), ("linear", 0), ("linear", 1), ("linear", 2)]
    assert [(row["method"], row["seed"]) for row in rows] == [("linear", 0), ("linear", 2)]
    assert [(run.method, run.seed, run.left_out) for run in found] == [("mgda", 0, 2), ("linear", 1, 0)]
    assert str(found[0]).startswith("mgda, seed 0 failed: ValueError: mgda cannot be trained (test_compare.py, line ")
    assert str(found[0]).endswith("Further seeds are left out: 2.")
    with pytest.warns(UserWarning, match="linear, seed 1 failed"):
        compare(of, ["linear"], 3, **quick)
    monkeypatch.undo()
    rows, _ = compare(of, ["mgda", "linear"], 3, progress="quiet", **quick)
    assert len(rows) == 6


def test_an_error_elsewhere_is_sent_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a worker in another process: an exception may hold what cannot be sent."""
    failing(monkeypatch, ("mgda", 0))
    common = (pm.problems.quadratic(), {"mgda": pm.MGDA()}, {})
    sent, where = train_whole(common, ("mgda", None, 0, False), None)  # type: ignore[arg-type]
    assert isinstance(sent, Failure)
    run = FailedRun("mgda", 0, pickle.loads(pickle.dumps(sent)))
    assert str(run) == "mgda, seed 0 failed: ValueError: mgda cannot be trained."
    assert where == {}
    with pytest.raises(RuntimeError, match=r"(?s)shard mgda, seed 0 failed on its worker.*mgda cannot be trained"):
        run.raise_()


def test_an_error_of_every_method_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = failing(monkeypatch, ("mgda", 0), ("linear", 0))
    with pytest.raises(ValueError, match="mgda cannot be trained") as error:
        compare(pm.problems.quadratic(), ["mgda", "linear"], 2, epochs=1, device="cpu", failed=lambda run: None)
    assert tried == [("mgda", 0), ("linear", 0)]
    assert not hasattr(error.value, "__notes__"), "nothing was done that could be kept"


def test_a_full_disk_says_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of, quick = pm.problems.quadratic(), {"folder": tmp_path, "epochs": 1, "device": "cpu", "preferences": 1}
    compare(of, ["linear"], 2, **quick)

    def full(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("paretomtl.compare._compare.update_rows", full)
    with pytest.raises(OSError, match="No space left") as error:
        compare(of, ["linear", "mgda"], 2, **quick)
    assert error.value.__notes__[0].startswith(f"2 of 4 runs are stored in '{tmp_path / 'compare.json'}'.")


def test_how_progress_is_shown_is_no_option_of_the_runs(tmp_path: Path) -> None:
    """Rows that were stored when it counted as one are taken over."""
    of, quick = pm.problems.quadratic(), {"folder": tmp_path, "epochs": 1, "device": "cpu", "preferences": 1}
    rows, _ = compare(of, ["linear"], 1, progress="quiet", **quick)
    assert "progress" not in rows[0]["options"]
    old = [{**row, "options": {**row["options"], "progress": "quiet"}} for row in rows]
    save_rows(tmp_path / "compare.json", "compare", "", old)
    assert compare(of, ["linear"], 1, progress="plain", **quick)[1] == {}, "nothing is trained"
    with pytest.raises(ValueError, match="'progress' must be one of") as error:
        compare(of, ["linear"], 2, progress="loud", **quick)  # type: ignore[arg-type]
    assert not hasattr(error.value, "__notes__")


def regression(**changes: Any) -> pm.Problem:
    x = torch.linspace(-1, 1, 32)[:, None]

    def losses(outputs: Any, targets: Any) -> Any:
        return (outputs - targets).square().mean(0)

    fields = {"train": (x, torch.cat([x.sin(), x.cos()], 1)), "losses": losses, "tasks": ["sine", "cosine"], **changes}
    return pm.Problem(fields.pop("model", lambda: torch.nn.Linear(1, 1)), **fields)


def louder(outputs: Any, targets: Any) -> Any:
    return 100 * (outputs - targets).square().mean(0)


def sgd(rate: float) -> Any:
    return lambda parameters: torch.optim.SGD(parameters, lr=rate)


OTHERS: dict[str, Any] = {
    "losses": {"losses": louder},
    "labels": {"train": (torch.linspace(-1, 1, 32)[:, None], torch.full((32, 2), 5.0))},
    "tasks": {"tasks": ["sine", "tangent"]},
    "number of tasks": {
        "tasks": ["a", "b", "c"],
        "losses": lambda outputs, targets: torch.cat([outputs - targets, outputs], 1).square().mean(0),
    },
    "model": {"model": lambda: torch.nn.Linear(1, 1, bias=False)},
    "test split": {"test": (torch.zeros(4, 1), torch.zeros(4, 2))},
    "recipe": {"recipe": pm.Recipe(optimizer=sgd(0.5))},
}


@pytest.mark.parametrize("other", OTHERS)
def test_rows_of_another_problem_of_that_name_are_refused(other: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"folder": tmp_path, "epochs": 2, "device": "cpu", "progress": "quiet"}
    compare(regression(), ["linear"], 1, **options)
    compare(regression(), ["linear"], 1, **options)
    with pytest.raises(ValueError, match="'out' must hold results of the same problem and options"):
        compare(regression(**OTHERS[other]), ["linear"], 1, **options)


def test_rows_of_another_optimizer_are_refused(tmp_path: Path) -> None:
    """Functions have the same name; what they make differs."""
    options: dict[str, Any] = {"folder": tmp_path, "epochs": 2, "device": "cpu", "progress": "quiet"}
    compare(regression(), ["linear"], 1, optimizer=sgd(0.1), **options)
    compare(regression(), ["linear"], 1, optimizer=sgd(0.1), **options)
    with pytest.raises(ValueError, match="its recipe differs"):
        compare(regression(), ["linear"], 1, optimizer=sgd(0.2), **options)


def test_an_option_at_its_default_changes_no_row(tmp_path: Path) -> None:
    """Rows from before an option was added are of its default."""
    options: dict[str, Any] = {"folder": tmp_path, "epochs": 2, "device": "cpu", "progress": "quiet"}
    (stored,), _ = compare(regression(), ["linear"], 1, **options)
    assert "weigh_every" not in stored["options"]
    before = (tmp_path / "compare.json").read_text()
    for name, parameter in inspect.signature(pm.fit).parameters.items():
        if name not in ("problem", "method", "preferences", "seed", *options):
            compare(regression(), ["linear"], 1, **options, **{name: parameter.default})
    assert (tmp_path / "compare.json").read_text() == before
    with pytest.raises(ValueError, match=r"options \{.*\}, and not \{.*'weigh_every': '2'"):
        compare(regression(), ["linear"], 1, **options, weigh_every=2)
    save_rows(tmp_path / "compare.json", "compare", "", [{**stored, "options": {"weigh_every": "2"}}])
    with pytest.raises(ValueError, match="must hold results of the same problem and options"):
        compare(regression(), ["linear"], 1, **options)


def test_rows_that_do_not_say_what_they_are_of_are_taken_with_a_warning(tmp_path: Path) -> None:
    options: dict[str, Any] = {"folder": tmp_path, "epochs": 2, "device": "cpu", "progress": "quiet"}
    (row,), _ = compare(regression(), ["linear"], 1, **options)
    del row["identity"]
    save_rows(tmp_path / "compare.json", "compare", "", [row])
    with pytest.warns(UserWarning, match="did not store the identity of the problem"):
        compare(regression(), ["linear"], 1, **options)


def test_what_cannot_work_is_found_before_training(tmp_path: Path) -> None:
    of = pm.problems.quadratic()
    with pytest.raises(ValueError, match="'method' must be one of"):
        compare(of, ["linear", "typo"], 1, epochs=2)
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="'out' must be a folder that can be written"):
        compare(of, ["linear"], 1, folder=tmp_path / "file" / "x", epochs=2)


def test_a_scale_is_that_of_all_methods_and_of_their_rows(tmp_path: Path) -> None:
    problem = pm.problems.synthetic(difficulties=[50.0, 1.0])
    options: dict[str, Any] = {"preferences": 2, "folder": tmp_path, "epochs": 2, "device": "cpu", "progress": "quiet"}
    names, told = ["pareto-mtl", "linear"], list[str]()
    rows, fronts = compare(
        problem, names, 1, scale="auto", method_settings={"epsilon": 0.2}, log=told.append, **options
    )
    assert all(front.scale is not None and front.scale[0, 0] < 0.1 for front in fronts.values())
    assert [row["method_settings"] for row in rows] == [["epsilon=0.2", "scale='auto'"]] * 2
    assert "linear has no option 'epsilon', and is trained without" in told
    with pytest.raises(ValueError, match=r"holds others: method_settings .*epsilon=0.2"):
        compare(problem, names, 1, scale="first", **options)
    with pytest.raises(ValueError, match=r"'method_settings' must be options of some of the methods: .*'mu' instead"):
        compare(problem, ["linear"], 1, method_settings={"mu": 1.0}, epochs=1)


def test_different_units_are_told_once_for_all_methods_and_seeds() -> None:
    problem = pm.problems.synthetic(difficulties=[50.0, 1.0])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        names = ["single-task", "pareto-mtl", "linear"]
        compare(problem, names, 2, preferences=2, epochs=1, device="cpu", progress="quiet")
    assert len([each for each in said if "first losses differ" in str(each.message)]) == 1


def test_small_losses_are_ranked_by_all_their_digits() -> None:
    """In units in which losses are near 1e-6 the verdict is that of units in which they are near 1."""
    of = pm.problems.quadratic()
    small = dataclasses.replace(of, losses=lambda *given: 1e-6 * of.losses(*given))  # type: ignore[operator]
    quick: dict[str, Any] = {"epochs": 20, "preferences": 3, "device": "cpu", "progress": "quiet"}
    known, tiny = (
        compare(each, ["linear", "mgda"], 2, optimizer=partial(torch.optim.SGD, lr=lr), **quick)
        for each, lr in ((of, 0.1), (small, 1e5))
    )
    assert tiny.rows[0]["losses"]["train"] == tiny.fronts["linear"].losses["train"].double().tolist()
    assert tiny.verdict() == known.verdict()


def test_processes_that_share_a_folder_count_a_run_once(tmp_path: Path) -> None:
    """One process trains all while another, which has begun before, is at its first run."""
    of = pm.problems.quadratic()
    quick: dict[str, Any] = {"folder": tmp_path, "epochs": 2, "device": "cpu", "preferences": 1, "progress": "quiet"}
    others: list[Any] = [lambda: compare(of, ["linear", "mgda"], 3, **quick)]
    found = compare(of, ["linear", "mgda"], 3, log=lambda text: others and others.pop()(), **quick)
    runs = [(method, seed) for method in ("linear", "mgda") for seed in range(3)]
    assert [(row["method"], row["seed"]) for row in found.rows] == runs
    stored = load_rows(tmp_path / "compare.json")
    assert [(row["method"], row["seed"]) for row in stored] == runs
    save_rows(tmp_path / "compare.json", "compare", "", [*stored, *stored])  # as earlier versions did
    assert [each.seeds for each in compare(of, ["linear", "mgda"], 3, **quick).summaries()] == [3, 3]
    assert [each.seeds for each in pm.compare.Comparison(stored * 2, {}).summaries()] == [3, 3]
    others.append(lambda: compare(of, ["linear"], 1, **{**quick, "folder": tmp_path / "new", "epochs": 3}))
    with pytest.raises(ValueError, match="must hold results of the same problem and options"):
        compare(of, ["linear"], 1, log=lambda text: others and others.pop()(), **{**quick, "folder": tmp_path / "new"})
    assert len(load_rows(tmp_path / "new" / "compare.json")) == 1
