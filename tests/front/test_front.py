from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

import paretomtl as pm
from _helpers.fronts import front_of
from _helpers.networks import MLP, Normed, accuracy, classes, fit, problem


def front(method: str = "pareto-mtl") -> pm.Front:
    return pm.fit(
        pm.problems.synthetic(), method, 3, epochs=30, optimizer=lambda p: torch.optim.SGD(p, lr=1.0), device="cpu"
    )


def test_a_front_shows_itself() -> None:
    text = repr(front())
    assert text.splitlines()[0] == "Front of 3 models: synthetic, pareto-mtl, seed 0; losses on training"
    assert "direction" in text
    assert len(text.splitlines()) == 5
    assert max(map(len, text.splitlines())) < 80


def test_long_names_of_metrics_are_printed_in_line_with_their_numbers() -> None:
    names = {"sold accuracy": torch.tensor([0.7, 0.8]), "f1": torch.tensor([0.5, 0.25]), "x" * 30: torch.ones(2)}
    made = dataclasses.replace(
        front_of([[1.0, 2.0], [2.0, 1.0]], metrics={"train": names}), status=["feasible", "infeasible"]
    )
    lines = repr(made).splitlines()
    (head,) = (i for i, line in enumerate(lines) if "sold accuracy" in line)
    ends = {"sold accuracy": 0, "f1": 1, "x…": 2}
    for row, values in ((1, ("0.7", "0.5", "1")), (2, ("0.8", "0.25", "1"))):
        for word, i in ends.items():
            end = lines[head].index(word) + len(word)
            assert lines[head + row][:end].endswith(f" {values[i]}")
    assert "infeasible: the losses on training lie outside of the region of its preference." in lines


def test_models_give_the_losses_that_the_front_reports() -> None:
    found = front()
    synthetic = pm.problems.synthetic()
    for k in range(3):
        torch.testing.assert_close(synthetic.losses(found.model(k)()).detach(), found.losses["train"][k])
    with pytest.raises(IndexError, match=r"'k' must be one of the models trained, \[0, 1, 2\]. Got 3"):
        found.model(3)


# Indicators.


def test_indicators_of_known_points() -> None:
    found = front_of([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0], [0.9, 0.9]])
    assert found.nondominated().tolist() == [True, True, True, False]
    assert found.hypervolume([2.0, 2.0]) == pytest.approx(3.25)
    assert found.spread() == pytest.approx(2**0.5)
    assert found.igd_plus(torch.tensor([[0.0, 1.0], [0.5, 0.5]])) == pytest.approx(0.0)
    assert found.igd_plus(torch.tensor([[0.0, 0.5], [0.5, 0.0]])) == pytest.approx(0.5)
    square = front_of([[3.0, 4.0], [1.0, 0.0]])
    assert square.angle().tolist() == pytest.approx([53.1301, 90.0], abs=1e-3)
    assert square.region_hits() == 0


def test_the_default_reference_is_the_untrained_models() -> None:
    found = front()
    starts = [pm.fit(pm.problems.synthetic(), preferences=3, epochs=1, device="cpu").history["losses"][0]]
    assert found.reference == pytest.approx(starts[0].amax(0).tolist())
    assert found.hypervolume() == found.hypervolume(found.reference)
    own = problem(reference=[1.5, 1.5])
    assert fit(own).reference == (1.5, 1.5)


def test_references_that_say_nothing_are_refused() -> None:
    found = front_of([[0.5, 0.5], [0.4, 0.7]])
    with pytest.raises(ValueError, match=r"'reference' must be given: this front has no default"):
        found.hypervolume()
    with pytest.raises(ValueError, match=r"above the losses of at least one .* Got \[0.5, 0.4\].* \[0.5, 0.7\]"):
        found.hypervolume([0.5, 0.4])
    with pytest.raises(ValueError, match=r"'reference' must have one finite number per task \(2\). Got \[1, 1, 1\]"):
        found.hypervolume([1, 1, 1])
    with pytest.raises(ValueError, match=r"'split' must be one of \['train'\]. Got 'test'"):
        found.hypervolume([1, 1], split="test")
    with pytest.raises(ValueError, match=r"'points' must have shape \[n, 2\]. Got \[3\]"):
        found.igd_plus(torch.ones(3))
    with pytest.raises(ValueError, match="regions need preferences that are directions; those of 'mgda' are not"):
        front("mgda").in_region()
    broken = front_of([[torch.nan, 0.5]])
    with pytest.raises(ValueError, match="'split' must have a model with finite losses"):
        broken.hypervolume([1, 1])


def test_a_table_of_everything() -> None:
    of = problem(test=classes(40, seed=2), metrics={"accuracy": pm.Metric(accuracy)})
    table = fit(of).to_frame()
    assert list(table.index) == [0, 1, 2]
    assert {"direction a", "train a", "test b", "test accuracy", "test nondominated", "status", "epoch"} <= set(table)
    assert table["epoch"].tolist() == [4, 4, 4]


# Storage.


@pytest.mark.parametrize("method", ["pareto-mtl", "linear", pm.ParetoMTL(release_steps=4, scale="first")])
def test_stored_and_loaded_it_is_the_same(method: Any, tmp_path: Path) -> None:
    of = problem(Normed, val=classes(30, seed=1), metrics={"accuracy": pm.Metric(accuracy)})
    saved = fit(of, method, only=[2, 0])
    saved.save(tmp_path / "front")
    found = pm.Front.load(tmp_path / "front", of)
    for one, other in ((saved, found), (saved.snapshot, found.snapshot)):
        if one is None or other is None:
            assert one is other
            continue
        for field in ("problem", "method", "tasks", "reading", "subproblems", "since", "seed", "seconds", "epochs"):
            assert getattr(one, field) == getattr(other, field), field
        for field in ("complete", "strategy", "reference", "better"):
            assert getattr(one, field) == getattr(other, field), field
        assert list(one.status) == list(other.status)
        assert torch.equal(one.preferences, other.preferences)
        assert (one.scale is None and other.scale is None) or torch.equal(one.scale, other.scale)  # type: ignore[arg-type]
        weights = (one.models.stacked(), other.models.stacked())
        for own, others in (weights, (one.losses, other.losses), (one.history, other.history)):
            assert set(own) == set(others)
            assert all(torch.equal(tensor, others[name]) for name, tensor in own.items())
        assert torch.equal(one.metrics["val"]["accuracy"], other.metrics["val"]["accuracy"])
    x, _ = classes(10)
    for mine, theirs in zip(saved.model(2)(x), found.model(2)(x), strict=True):
        assert torch.equal(mine, theirs)
    assert repr(saved) == repr(found)


def test_losses_that_are_not_finite_are_stored_too(tmp_path: Path) -> None:
    front_of([[torch.nan, torch.inf], [1.0, 2.0]]).save(tmp_path)
    losses = pm.Front.load(tmp_path).losses["train"]
    assert losses[0, 0].isnan()
    assert losses[0, 1].isinf()
    assert "NaN" not in (tmp_path / "front.json").read_text()


def test_without_its_problem_a_front_has_weights_but_no_models(tmp_path: Path) -> None:
    saved = fit()
    saved.save(tmp_path)
    found = pm.Front.load(tmp_path)
    assert torch.equal(found.state_dict(1)["trunk.0.weight"], saved.models.stacked()["trunk.0.weight"][1])
    with pytest.raises(ValueError, match=r"'problem' must be given to Front.load for models to be made"):
        found.model(1)
    with pytest.raises(ValueError, match=r"'problem' must make the model that was trained. Got one that differs in"):
        pm.Front.load(tmp_path, problem(Normed)).model(1)
    with pytest.raises(ValueError, match=r"'problem' must have the tasks \['a', 'b'\]. Got \['f1', 'f2'\]"):
        pm.Front.load(tmp_path, pm.problems.synthetic())


def test_saving_again_replaces_the_old_front(tmp_path: Path) -> None:
    fit(seed=0).save(tmp_path)
    second = fit(seed=1)
    second.save(tmp_path)
    assert len(list(tmp_path.iterdir())) == 3
    assert torch.equal(pm.Front.load(tmp_path).losses["train"], second.losses["train"])


@pytest.mark.parametrize("harm", ["truncate", "flip", "missing", "json", "field", "format"])
def test_a_damaged_front_is_said_to_be(harm: str, tmp_path: Path) -> None:
    fit().save(tmp_path)
    words, models = tmp_path / "front.json", next(tmp_path.glob("models-*"))
    data = bytearray(models.read_bytes())
    content = json.loads(words.read_text())
    if harm == "truncate":
        models.write_bytes(data[: len(data) // 2])
    elif harm == "flip":
        data[-3] ^= 4
        models.write_bytes(data)
    elif harm == "missing":
        models.unlink()
    elif harm == "json":
        words.write_text(words.read_text()[:100])
    elif harm == "field":
        del content["status"]
        words.write_text(json.dumps(content))
    else:
        words.write_text(json.dumps({**content, "format": 7}))
    with pytest.raises((ValueError, FileNotFoundError), match=r"damaged|checksum|models-|format"):
        [pm.Front.load(tmp_path).state_dict(k) for k in range(3)]  # a model is read when it is asked for


def test_a_folder_without_a_front_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"'path' must be the folder of a front"):
        pm.Front.load(tmp_path)


def test_models_are_ordinary_modules() -> None:
    model = fit().model(0)
    assert isinstance(model, MLP)
    assert not model.training
    assert all(p.requires_grad for p in model.parameters())


def test_preferences_around_a_solution_lie_around_its_losses() -> None:
    """Up to half way to the nearest other one; for importances around its own."""
    front = pm.fit(pm.problems.quadratic(), "p-norm", 3, epochs=2, device="cpu", progress="quiet")
    losses = torch.tensor([[2.0, 1.0], [1.0, 1.0], [1.0, 9.0]])
    front = dataclasses.replace(front, losses={"train": losses})
    degrees = torch.rad2deg(torch.atan2(losses[:, 1], losses[:, 0])).double()
    rows = front.around(1, 3)
    found = torch.rad2deg(torch.atan2(rows[:, 1], rows[:, 0]))
    half = (degrees[1] - degrees[0]) / 2
    torch.testing.assert_close(found, torch.stack([45 - half, degrees[1], 45 + half]), rtol=0, atol=1e-4)
    wide = front.around(1, 3, angle=10.0)
    torch.testing.assert_close(torch.rad2deg(torch.atan2(wide[:, 1], wide[:, 0])).amax(), torch.tensor(55.0).double())
    with pytest.raises(IndexError, match="'k' must be one of the models trained"):
        front.around(7)
    broken = dataclasses.replace(front, losses={"train": torch.full((3, 2), torch.nan)})
    with pytest.raises(ValueError, match="'k' must be a model with finite losses"):
        broken.around(1)


def test_importances_around_a_solution_sum_to_one() -> None:
    front = pm.fit(pm.problems.quadratic(), "linear", 3, epochs=2, device="cpu", progress="quiet")
    rows = front.around(1, 3, angle=10.0)
    torch.testing.assert_close(rows.sum(-1), torch.ones(3, dtype=torch.float64))
    torch.testing.assert_close(rows[1], torch.tensor([0.5, 0.5], dtype=torch.float64))
    again = pm.fit(pm.problems.quadratic(), "linear", rows, epochs=2, device="cpu", progress="quiet")
    assert len(again) == 3
    starts = pm.fit(pm.problems.quadratic(), "mgda", 2, epochs=2, device="cpu", progress="quiet")
    with pytest.raises(ValueError, match="Those of 'mgda' are starts"):
        starts.around(0)


SAVING = """
import sys, paretomtl as pm
front = pm.Front.load(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for _ in range(30):
    front.save(sys.argv[2])
"""


def test_two_processes_save_one_folder(tmp_path: Path) -> None:
    for seed in (0, 1):
        fit(epochs=1, seed=seed).save(tmp_path / str(seed))
    command = [sys.executable, "-c", SAVING]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    both = [subprocess.Popen([*command, str(tmp_path / s), str(tmp_path / "x")], **pipes, text=True) for s in "01"]
    for process in both:
        assert process.stdout.readline() == "ready\n"
    for process in both:
        process.stdin.write("\n")
        process.stdin.flush()
    assert [process.communicate()[1] for process in both] == ["", ""]
    check_saved(tmp_path / "x")


def test_two_threads_save_one_folder(tmp_path: Path) -> None:
    fronts = [fit(epochs=1, seed=seed) for seed in (0, 1)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda k: fronts[k % 2].save(tmp_path), range(60)))
    check_saved(tmp_path)


def check_saved(folder: Path) -> None:
    """It holds one whole front, and nothing else."""
    pm.Front.load(folder).models.verify()
    assert len(list(folder.iterdir())) == 3
