from __future__ import annotations

import json
import logging.handlers
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from typer.testing import CliRunner

import paretomtl as pm
from paretomtl._support.files.atomic_files import read_record, write_record
from paretomtl.cli._app import app

PROBLEM = """
import torch
from torch import nn
import paretomtl as pm

torch.manual_seed(0)
x = torch.randn(60, 4)
y = torch.stack([x.sum(-1), x.prod(-1)], -1)

def losses(outputs, targets):
    return (outputs - targets).square().mean(0)

class Net(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 2))

class Stubborn(Net):
    def forward(self, x):
        rows = [super(Stubborn, self).forward(x)[i] for i in range(len(x))]
        return torch.stack(rows)

def make(model=Net, width=1.0):
    return pm.Problem(model, losses, ["sum", "product"], train=(width * x, y), name="toy")

ready = make()

def stubborn():
    return make(Stubborn)

def general():
    return pm.Problem(Net, lambda model, batch: losses(model(batch["x"]), batch["y"]), ["sum", "product"],
                      train={"x": x, "y": y}, name="toy")

class Towers(nn.Module):
    def __init__(self):
        super().__init__()
        self.users, self.rest = nn.Embedding(5, 3), nn.Linear(7, 2)
    def forward(self, x, users):
        return self.rest(torch.cat([x, self.users(users)], -1))

class OneDictionary(Towers):
    def forward(self, batch):
        return super().forward(batch["x"], batch["users"])

class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return 60
    def __getitem__(self, i):
        return {"x": x[i], "users": i % 5, "y": y[i]}

CALLS = {
    "positions": lambda model, batch: model(batch["x"], batch["users"]),
    "keywords": lambda model, batch: model(users=batch["users"], x=batch["x"]),
    "dictionary": lambda model, batch: model({name: batch[name] for name in ("x", "users")}),
}

def towers(call="positions"):
    def losses_of(model, batch):
        return losses(CALLS[call](model, batch), batch["y"])
    loader = torch.utils.data.DataLoader(Samples(), batch_size=20)
    return pm.Problem(OneDictionary if call == "dictionary" else Towers, losses_of, ["sum", "product"],
                      train=loader, name="toy")

def parts():
    return pm.Problem(Net, lambda model, batch: losses(model[3](model[2](model[0](batch["x"]))), batch["y"]),
                      ["sum", "product"], train={"x": x, "y": y}, name="toy")

class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.topic, self.tag = nn.Embedding(9, 4), nn.Linear(4, 2), nn.Linear(4, 3)
    def forward(self, input_ids, attention_mask=None, topic_labels=None, tag_labels=None):
        hidden = self.words(input_ids)
        weights = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        mean = (hidden * weights[..., None]).sum(1) / weights.sum(1, keepdim=True)
        out = {"topic_logits": self.topic(mean), "tag_logits": self.tag(hidden)}
        if topic_labels is not None:
            out["topic_loss"] = nn.functional.cross_entropy(out["topic_logits"], topic_labels)
        if tag_labels is not None:
            out["tag_loss"] = nn.functional.cross_entropy(out["tag_logits"].flatten(0, 1), tag_labels.flatten())
        return out

def tagger():
    def own_losses(model, batch):
        out = model(**batch)
        return {"topic": out["topic_loss"], "tag": out["tag_loss"]}
    ids = torch.randint(9, (60, 5), generator=torch.Generator().manual_seed(0))
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "topic_labels": ids[:, 0] % 2,
             "tag_labels": ids % 3}
    return pm.Problem(Tagger, own_losses, ["topic", "tag"], train=batch, name="tagger")
"""
SAMPLES = torch.linspace(-2, 2, 28).reshape(7, 4)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "exported.py").write_text(PROBLEM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "exported", raising=False)
    save_file({"x": SAMPLES}, tmp_path / "samples.safetensors")
    return tmp_path


def call(*arguments: str, code: int = 0) -> str:
    found = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "100", "NO_COLOR": "1"})
    assert found.exit_code == code, found.output + repr(found.exception)
    return " ".join(found.output.split())


def train(problem: str, *more: str) -> pm.Front:
    """A run of two models."""
    arguments = ("--epochs", "2", "--preferences", "2", "--progress", "quiet", "--device", "cpu", "--out", "run")
    call("run", problem, "--strategy", "sequential", *arguments, *more)
    return pm.Front.load("run", made(problem))


def made(problem: str, *settings: str) -> Any:
    from paretomtl.cli._lookup import find_problem

    return find_problem(problem, settings)


def fresh(code: str, *, ours: bool = False) -> torch.Tensor:
    """What a process of its own makes of the samples; it imports nothing of this library unless told so.

    The samples are copied: those of a file lie where the file has them, and a product of matrices rounds differently
    for memory that is not aligned.
    """
    before = "import sys, torch\nfrom safetensors.torch import load_file, save_file\n"
    before += "torch.set_num_threads(1)\nx = load_file('samples.safetensors')['x'].clone()\n"
    after = "\nwith torch.no_grad():\n    save_file({'y': model(x)}, 'outputs.safetensors')\n"
    check = "" if ours else "assert not any(name.startswith('paretomtl') for name in sys.modules)\n"
    subprocess.run([sys.executable, "-c", before + code + after + check], check=True, timeout=120)
    return load_file("outputs.safetensors")["y"]


def outputs(model: nn.Module) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = model(SAMPLES)
    return found


@pytest.mark.system
def test_an_exported_model_gives_the_same_bits_in_a_fresh_process(here: Path) -> None:
    """With torch and safetensors alone, by the card's own lines, and as TorchScript."""
    front = train("exported:make")
    text = call(
        "select", "run", "--trust", "--importance", "1,0", "--export", "chosen", "--torchscript", "chosen/model.pt"
    )
    assert "Written: chosen/model.safetensors, chosen/model.json, chosen/model.pt" in text
    card = json.loads((here / "chosen" / "model.json").read_text())
    expected = outputs(front.model(card["k"]))
    net = "nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 2)"
    load = f"from torch import nn\nmodel = nn.Sequential({net})\nmodel.eval()\n"
    load += "model.load_state_dict(load_file('chosen/model.safetensors'))"
    assert torch.equal(fresh(load), expected)
    assert torch.equal(fresh("model = torch.jit.load('chosen/model.pt')"), expected)
    assert torch.equal(fresh(card["load"], ours=True), expected), "as it is, where the command was typed"


def test_the_card_says_what_it_is(here: Path) -> None:
    front = train("exported:make", "--with", "width=2.0", "--precision", "float64", "--method", "pareto-mtl")
    call("select", "run", "--trust", "--direction", "1,1", "--export", "a/b.safetensors")
    card = json.loads((here / "a" / "b.json").read_text())
    k = card["k"]
    assert card["losses"]["train"] == pytest.approx(
        dict(zip(front.tasks, front.losses["train"][k].tolist(), strict=True))
    )
    assert card["preference"] == dict(zip(front.tasks, front.preferences[k].tolist(), strict=True))
    assert "a large entry allows a large loss" in card["reading_in_words"]
    assert card["problem_argument"] == "exported:make"
    assert card["data"] == json.loads((here / "run" / "config.json").read_text())["data"]
    assert card["method_in_words"].startswith("ParetoMTL(")
    assert card["seed"] == 0
    assert card["chosen_because"].startswith(f"Model {k}: its losses on train")
    assert "model = make(width=2.0).model()\nmodel.to(torch.float64)" in card["load"]


@pytest.mark.filterwarnings("ignore:.*torch.jit.load:DeprecationWarning")
@pytest.mark.parametrize("problem", ["exported:ready", "exported:general"])
def test_models_of_all_kinds_of_problems(problem: str, here: Path) -> None:
    front = train(problem)
    call("select", "run", "--trust", "--max-regret", "--export", "chosen", "--torchscript", "model.pt")
    card = json.loads((here / "chosen" / "model.json").read_text())
    model, traced = front.model(card["k"]), torch.jit.load("model.pt")  # type: ignore[no-untyped-call]
    assert torch.equal(model(SAMPLES), traced(SAMPLES))
    assert f"from exported import {problem[9:]}" in card["load"]


CALLS = ["positions", "keywords", "dictionary"]
USERS = torch.arange(7) % 5


def tower_inputs(how: str) -> tuple[Any, ...]:
    return ({"x": SAMPLES, "users": USERS},) if how == "dictionary" else (SAMPLES, USERS)


@pytest.mark.filterwarnings("ignore:.*torch.jit.load:DeprecationWarning")
@pytest.mark.parametrize("how", CALLS)
def test_a_model_of_several_inputs_takes_any_number_of_samples(how: str, here: Path) -> None:
    """Whatever the batch size of its loader is, which was 20."""
    problem = ("--problem", "exported:towers", "--with", f"call={how}")
    call("run", *problem[1:], "--epochs", "2", "--preferences", "2", "--progress", "quiet", "--out", "run")
    call("select", "run", *problem, "--k", "0", "--torchscript", "model.pt")
    traced = torch.jit.load("model.pt")  # type: ignore[no-untyped-call]
    model = pm.Front.load("run", made("exported:towers", f"call={how}")).model(0)
    assert torch.equal(model(*tower_inputs(how)), traced(*tower_inputs(how)))


IDS = torch.arange(35).reshape(7, 5) % 9
MASK = (torch.arange(5) <= torch.arange(7)[:, None]).long()


@pytest.mark.filterwarnings("ignore:.*torch.jit.load:DeprecationWarning")
def test_labels_that_only_serve_the_losses_are_no_inputs(here: Path) -> None:
    """The mask is one, although it changes nothing in the data, where no sentence is padded."""
    model = train("exported:tagger").model(0)
    text = call("select", "run", "--trust", "--k", "0", "--torchscript", "model.pt")
    assert text.endswith("Written: model.pt Inputs: input_ids, attention_mask")
    traced = torch.jit.load("model.pt")  # type: ignore[no-untyped-call]
    found, expected = traced(IDS, MASK), model(IDS, MASK)
    assert set(found) == set(expected) == {"topic_logits", "tag_logits"}
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert not torch.equal(expected["topic_logits"], model(IDS)["topic_logits"])


def test_files_of_another_model_in_the_same_folder_are_named(here: Path) -> None:
    train("exported:make")
    select = ("select", "run", "--trust")
    assert "another model" not in call(*select, "--k", "0", "--export", "a", "--torchscript", "a/model.pt")
    assert "another model" not in call(*select, "--k", "0", "--export", "a"), "both are model 0"
    text = call(*select, "--k", "1", "--export", "a")
    assert "Note: another model is still in a/model.pt, from an earlier export: write it again, or delete it." in text
    assert "another model" not in call(*select, "--k", "1", "--export", "a", "--torchscript", "a/model.pt")
    text = call(*select, "--k", "0", "--torchscript", "a/model.pt")
    assert "another model is still in a/model.safetensors" in text
    (here / "a" / "model.json").write_text("{")
    assert "another model" not in call(*select, "--k", "0", "--torchscript", "a/model.pt"), "no card, no claim"


def test_the_next_step_names_the_problem_that_refine_would_run(here: Path) -> None:
    train("exported.py:make", "--with", "width=2.0", "--method", "linear")
    text = call("select", "run", "--k", "0")
    step = "paretomtl refine run --around 0 --problem exported.py:make --with width=2.0"
    assert f"# train more models like it; imports exported.py:make {step}" in text
    call(*shlex.split(step)[1:], "--epochs", "1", "--progress", "quiet")
    assert len(pm.Front.load("run-around-0")) == 5
    asked = here / "run" / "asked.json"
    write_record(asked, {**read_record(asked, [1]), "problem": "a b\x1b[31m\n;rm -rf x:y"}, format=1)
    assert call("select", "run", "--k", "0").endswith("--around 0 # train more models like it"), (
        "a name of two lines is not repeated"
    )


def test_a_model_without_an_input_has_weights_alone(here: Path) -> None:
    front = train("synthetic")
    text = call("select", "run", "--max-regret", "--export", "chosen", "--torchscript", "model.pt", code=2)
    assert "'problem' must have a model with an input for an export. Its model takes none." in text
    card = json.loads((here / "chosen" / "model.json").read_text())
    assert 'model = PROBLEMS["synthetic"]().model()' in card["load"]
    weights = load_file(here / "chosen" / "model.safetensors")
    assert torch.equal(weights["x"], front.state_dict(card["k"])["x"])


def test_without_its_problem_the_weights_are_still_there(here: Path) -> None:
    front = train("exported:make")
    (here / "run" / "asked.json").unlink()
    call("select", "run/front", "--importance", "1,0", "--export", "chosen")
    card = json.loads((here / "chosen" / "model.json").read_text())
    assert "model = ...  # the module as it was made" in card["load"]
    assert card["data"] is not None, "the run of a front knows more than the front"
    weights = load_file(here / "chosen" / "model.safetensors")
    assert set(weights) == set(front.model(card["k"]).state_dict())
    text = call("select", "run", "--importance", "1,0", "--torchscript", "model.pt", code=2)
    assert "'--problem' must be given for an export of the whole model: 'run' has no asked.json" in text
    call("select", "run", "--importance", "1,0", "--torchscript", "model.pt", "--problem", "exported:make")
    assert (here / "model.pt").exists()
    text = call("select", "run", "--knee", "--with", "width=1.0", "--export", "chosen", code=2)
    assert "'--with' must go with '--problem'" in text


def test_a_problem_that_cannot_be_made_is_said_to_be(here: Path) -> None:
    train("exported:make")
    asked = here / "run" / "asked.json"
    write_record(asked, {**read_record(asked, [1]), "problem": "exported:gone"}, format=1)
    text = call("select", "run", "--trust", "--importance", "1,0", "--export", "chosen")
    assert "The problem cannot be made here ('PROBLEM' must name an attribute of 'exported'. Got 'gone'" in text
    assert (here / "chosen" / "model.safetensors").exists()


def test_a_damaged_configuration_is_said_and_stops_nothing(here: Path) -> None:
    train("exported:make")
    config = here / "run" / "config.json"
    config.write_text(config.read_text()[:50])
    text = call("select", "run", "--importance", "1,0", "--export", "chosen")
    assert "The model card omits the run's configuration: 'run/config.json' must be a JSON file. It is damaged" in text
    card = json.loads((here / "chosen" / "model.json").read_text())
    assert card["data"] is None
    assert card["problem_argument"] == "exported:make"
    assert (here / "chosen" / "model.safetensors").exists()


def test_a_folder_in_the_place_of_a_file_is_named(here: Path) -> None:
    train("exported:make")
    (here / "model.pt").mkdir()
    text = call("select", "run", "--trust", "--importance", "1,0", "--torchscript", "model.pt", code=2)
    assert text == "Error: '--torchscript' must be a file. Got 'model.pt', which is a folder."


def test_what_cannot_be_exported_has_its_reason(here: Path) -> None:
    train("exported:stubborn")
    text = call("select", "run", "--trust", "--importance", "1,0", "--torchscript", "model.pt", code=2)
    assert "cannot be exported as TorchScript: RuntimeError: the outputs of the traced model differ" in text
    assert not list(here.glob("*model.pt*")), "nothing is left behind"


def test_losses_that_call_parts_of_a_model_are_named(here: Path) -> None:
    train("exported:parts")
    text = call("select", "run", "--trust", "--importance", "1,0", "--torchscript", "model.pt", code=2)
    assert "Its losses call only parts of the model" in text


def test_onnx_is_named_where_it_is_missing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train("exported:make")
    monkeypatch.setitem(sys.modules, "onnx", None)
    text = call("select", "run", "--trust", "--importance", "1,0", "--onnx", "model.onnx", code=2)
    assert "'onnx' is needed for this and is not installed: pip install onnx onnxscript (or" in text


@pytest.mark.study
@pytest.mark.filterwarnings("ignore")
def test_onnx_gives_the_same_outputs_for_any_number_of_samples(here: Path) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxscript")
    from onnx.reference import ReferenceEvaluator

    front = train("exported:make")
    heard = logging.handlers.BufferingHandler(1000)
    logger = logging.getLogger("torch.onnx._internal.exporter._registration")
    logger.addHandler(heard)
    found = call("select", "run", "--trust", "--importance", "1,0", "--onnx", "model.onnx", "--export", "chosen")
    logger.removeHandler(heard)
    assert heard.buffer == [], "no word about packages that nobody needs"
    assert "model.onnx" in found
    k = json.loads((here / "chosen" / "model.json").read_text())["k"]
    evaluator = ReferenceEvaluator("model.onnx")
    (result,) = evaluator.run(None, {evaluator.input_names[0]: SAMPLES.numpy()})
    torch.testing.assert_close(torch.from_numpy(result), outputs(front.model(k)))


@pytest.mark.study
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", CALLS)
def test_onnx_of_several_inputs_takes_any_number_of_samples(how: str, here: Path) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxscript")
    from onnx.reference import ReferenceEvaluator

    problem = ("--problem", "exported:towers", "--with", f"call={how}")
    call("run", *problem[1:], "--epochs", "2", "--preferences", "2", "--progress", "quiet", "--out", "run")
    call("select", "run", *problem, "--k", "0", "--onnx", "model.onnx")
    model = pm.Front.load("run", made("exported:towers", f"call={how}")).model(0)
    evaluator = ReferenceEvaluator("model.onnx")
    given = {name: (USERS if "users" in name else SAMPLES).numpy() for name in evaluator.input_names}
    (result,) = evaluator.run(None, given)
    torch.testing.assert_close(torch.from_numpy(result), model(*tower_inputs(how)))


@pytest.mark.study
@pytest.mark.filterwarnings("ignore")
def test_onnx_tells_its_inputs_and_those_of_a_fixed_length(here: Path) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxscript")
    from onnx.reference import ReferenceEvaluator

    model = train("exported:tagger").model(0)
    heard = logging.handlers.BufferingHandler(1000)
    logger = logging.getLogger("torch.export.dynamic_shapes")
    logger.addHandler(heard)
    text = call("select", "run", "--trust", "--k", "0", "--torchscript", "model.pt", "--onnx", "model.onnx")
    logger.removeHandler(heard)
    assert heard.buffer == [], "no word about how torch is called"
    lines = "Written: model.pt, model.onnx Inputs: input_ids, attention_mask "
    assert text.endswith(lines + "In model.onnx, input_ids and attention_mask have a fixed length of 5.")
    evaluator = ReferenceEvaluator("model.onnx")
    results = evaluator.run(None, {"input_ids": IDS.numpy(), "attention_mask": MASK.numpy()})
    expected = model(IDS, MASK)
    torch.testing.assert_close(list(map(torch.from_numpy, results)), list(expected.values()))


@pytest.mark.study
@pytest.mark.filterwarnings("ignore")
def test_onnx_of_one_batch_size_is_refused(here: Path) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxscript")
    train("exported:stubborn")
    text = call("select", "run", "--trust", "--k", "0", "--onnx", "model.onnx", code=2)
    assert "cannot be exported as ONNX" in text
    assert "static shape of 2" in text
    assert not list(here.glob("*model.onnx*"))
