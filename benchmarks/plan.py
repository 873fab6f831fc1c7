"""A thousand preferences of a model with a billion parameters: the arithmetic, and how well it fits measurements.

    python benchmarks/plan.py                                     # the tables of docs/evidence/beyond.md
    python benchmarks/plan.py --price 2 --utilisation 0.5 --tasks 3

Nothing is measured here. Everything follows from the inputs below, which are assumptions, and from the stored results
of `benchmarks/front.py`, `benchmarks/memory.py` and `benchmarks/distributed.py`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from paretomtl.compare import load_rows

RESULTS = Path(__file__).parent / "results"
GIGA = 1e9


@dataclass(frozen=True)
class Plan:
    """The assumptions.

    Attributes:
        layers: the number of layers of the transformer.
        width: the width of its layers; the feed-forward part is four times as wide.
        context: tokens in a sequence.
        tokens: training tokens of each model.
        batch: tokens in a step.
        held: sequences of a step whose activations are held at once; gradients of micro-batches are accumulated.
        preferences: the number of models K.
        tasks: the number of tasks m.
        rank: the rank of the adapters.
        weigh_every: steps between two weighings, if weights are reused.
        flops: nominal operations per second of a GPU, in bfloat16 without sparsity.
        utilisation: the share of them that training reaches.
        memory: bytes of GPU memory.
        link: bytes per second that a GPU sends to others within a machine.
        wire: bytes per second that a GPU sends to another machine.
        price: dollars per GPU hour.
        gpus: the number of GPUs.
        together: the number of GPUs that share a subproblem, if they do.
    """

    layers: int = 20
    width: int = 2048
    context: int = 2048
    tokens: float = 1e9
    batch: float = 2**19
    held: int = 8
    preferences: int = 1000
    tasks: int = 2
    rank: int = 16
    weigh_every: int = 4
    flops: float = 989e12
    utilisation: float = 0.4
    memory: float = 141e9
    link: float = 450e9
    wire: float = 50e9
    price: float = 3.0
    gpus: int = 64
    together: int = 8

    @property
    def parameters(self) -> float:
        """Parameters of a model; each layer has 4 width² in attention and 8 width² in its feed-forward part."""
        return 12.0 * self.layers * self.width**2

    @property
    def adapters(self) -> float:
        """Parameters of low-rank adapters on all these matrices: r (in + out) for each."""
        return 18.0 * self.layers * self.width * self.rank

    @property
    def steps(self) -> float:
        """Training steps of a model."""
        return self.tokens / self.batch


@dataclass(frozen=True)
class Way:
    """A way to train the front.

    Attributes:
        name: the name of the way.
        trained: trained parameters of each preference.
        shared: frozen parameters that all of them share.
        gradients: how many gradients a step holds at once.
        passes: multiplications and additions for each parameter and token.
        exact: whether it is Pareto MTL for the trained parameters.
        models: the number of trained models.
    """

    name: str
    trained: float
    shared: float
    gradients: float
    passes: float
    exact: str
    models: int

    def held(self, plan: Plan) -> dict[str, float]:
        """Bytes of a subproblem on its GPU, by what takes them."""
        weights = 2.0 if self.shared else 6.0  # bfloat16, and float32 if they are trained in mixed precision
        return {
            "weights": weights * (self.shared or self.trained) + (4.0 * self.trained if self.shared else 0.0),
            "Adam": 8.0 * self.trained,
            "copies for models that break": 8.0 * self.trained,
            "task gradients": 4.0 * self.gradients * self.trained,
            "their sum": 4.0 * self.trained if self.gradients > 1 else 0.0,
            "activations": activations(plan),
        }

    def bytes(self, plan: Plan) -> float:
        """Total bytes of a subproblem on its GPU."""
        return sum(self.held(plan).values())

    def hours(self, plan: Plan) -> float:
        """GPU hours for all models."""
        arithmetic = self.models * plan.tokens * self.passes * plan.parameters
        return arithmetic / (plan.flops * plan.utilisation) / 3600

    def stored(self) -> float:
        """Bytes of the front in bfloat16."""
        return 2.0 * (self.models * self.trained + self.shared)


def activations(plan: Plan) -> float:
    """Bytes that the layers leave for the backward passes: 34 for each number of a layer, attention being fused."""
    return 34.0 * plan.held * plan.context * plan.width * plan.layers


def ways(plan: Plan) -> list[Way]:
    """Pareto MTL as it is, and what can be done to it. A forward pass is 2 for each parameter, a backward pass 4."""
    n, a, m, k = plan.parameters, plan.adapters, plan.tasks, plan.preferences
    reused = 2 + 4 * (1 + (m - 1) / plan.weigh_every)
    return [
        Way("Pareto MTL", n, 0, m, 2 + 4 * m, "yes", k),
        Way("linear scalarization", n, 0, 1, 6, "another method", k),
        Way(f"weights every {plan.weigh_every} steps", n, 0, m, reused, "old weights in between", k),
        Way("Gramian of the representation", n, 0, 1, 6, "an upper bound", k),
        Way(f"adapters of rank {plan.rank}", a, n, m, 2 + 2 * m, "for the adapters", k),
        Way("one network for all preferences", n, 0, m, 2 + 4 * m, "no regions of its own", 1),
    ]


def memory_lines(plan: Plan) -> tuple[list[str], list[list[str]]]:
    """Gigabytes of a subproblem, by what takes them."""
    shown = [way for way in ways(plan) if way.models > 1]
    names = list(shown[0].held(plan))
    lines = [[name, *[f"{way.held(plan)[name] / GIGA:,.1f}" for way in shown]] for name in names]
    lines.append(["in all", *[f"**{way.bytes(plan) / GIGA:,.1f}**" for way in shown]])
    lines.append(["share of a GPU's memory", *[f"{way.bytes(plan) / plan.memory:.0%}" for way in shown]])
    several = [way.models * (way.bytes(plan) - activations(plan) - 2 * way.shared) / 1e12 for way in shown]
    lines.append([f"{plan.preferences:,} of them, without activations, TB", *[f"{value:,.1f}" for value in several]])
    return ["GB for a subproblem", *[way.name for way in shown]], lines


def cost_lines(plan: Plan) -> tuple[list[str], list[list[str]]]:
    """Time, money and storage of each way."""
    lines = [
        [
            way.name,
            way.exact,
            f"{way.passes:g}",
            f"{way.hours(plan):,.0f}",
            f"{way.hours(plan) / plan.gpus / 24:,.1f}",
            f"{way.hours(plan) * plan.price:,.0f}",
            f"{way.stored() / GIGA:,.0f}",
        ]
        for way in ways(plan)
    ]
    header = ["way", "exact?", "operations a parameter and token", "GPU hours", f"days on {plan.gpus} GPUs"]
    return [*header, f"dollars at {plan.price:g} an hour", "GB of weights"], lines


def storage_lines(plan: Plan) -> tuple[list[str], list[list[str]]]:
    """Storage on disk for one model, and for all."""
    lines = []
    for name, numbers in (("whole models", plan.parameters), (f"adapters of rank {plan.rank}", plan.adapters)):
        for what, size in (
            ("weights, bfloat16", 2),
            ("weights, float32", 4),
            ("checkpoint: weights, copies, Adam", 20),
        ):
            each = size * numbers
            lines.append([name, what, f"{each / GIGA:,.2g}", f"{plan.preferences * each / 1e12:,.2g}"])
    return ["what is trained", "what is stored", "GB for one", f"TB for {plan.preferences:,}"], lines


def sensitivity_lines(plan: Plan) -> tuple[list[str], list[list[str]]]:
    """GPU hours for all models, by the least certain assumptions."""
    shares = [row["floor_milliseconds"] / row["milliseconds"] for row in _largest()]
    used = sorted({plan.utilisation, min(shares), max(shares)})
    lines = []
    for tokens in (plan.tokens, 20 * plan.parameters):
        hours = [ways(plan)[0].hours(replace(plan, tokens=tokens, utilisation=share)) for share in used]
        shown = [f"{h:,.0f} hours, {h * plan.price:,.0f} dollars" for h in hours]
        lines.append([f"{tokens / 1e9:,.3g} billion", *shown])
    return ["tokens for each model", *[f"utilisation {share:.0%}" for share in used]], lines


def communication_lines(plan: Plan) -> tuple[list[str], list[list[str]]]:
    """What a GPU sends in a step when several share a subproblem, in bfloat16, compared with the time of the step."""
    n, m = plan.parameters, plan.tasks
    compute = plan.batch * (2 + 4 * m) * n / (plan.flops * plan.utilisation)
    kinds = {
        "nothing: one GPU a subproblem": 0.0,
        "data parallel, one gradient (a weighted sum)": 2 * 2 * n,
        f"data parallel, {m} gradients": 2 * 2 * n * m,
        f"sharded parameters, {m} gradients": 2 * n * (1 + m) + 2 * n * m,
        f"the Gramian, {m} by {m}": 2 * 4.0 * m * m,
    }
    lines = []
    for name, sent in kinds.items():
        times = [sent / rate for rate in (plan.link, plan.wire)]
        shares = [f"{1e3 * t:,.0f} ms, {plan.together * t / compute:.1%}" if t > 1e-6 else "0" for t in times]
        lines.append([name, f"{sent / GIGA:,.1f}" if sent >= 1e6 else f"{sent / GIGA:.0e}", *shares])
    return ["between the GPUs of a subproblem", "GB sent a step", "over NVLink", "over the network"], lines


def time_lines() -> tuple[list[str], list[list[str]]]:
    """Milliseconds for K models, by a line through those of 1 and 5, compared with measurements."""
    lines = []
    for model, rows in _measured().items():
        usual = rows[0]["tasks"]
        by = {row["models"]: row["milliseconds"] for row in rows if row["tasks"] == usual}
        slope = (by[5] - by[1]) / 4
        for count in (count for count in by if count > 5):
            said = by[1] + slope * (count - 1)
            lines.append([model, f"K = {count}, m = {usual}", *_compared(said, by[count])])
        tasks = {row["tasks"]: row["milliseconds"] for row in rows if row["models"] == 5}
        for count in sorted(count for count in tasks if count != usual):
            said = tasks[usual] * (1 + 2 * count) / (1 + 2 * usual)
            lines.append([model, f"K = 5, m = {count}", *_compared(said, tasks[count])])
    return ["network", "step of", "predicted, ms", "measured, ms", "error"], lines


def share_lines() -> tuple[list[str], list[list[str]]]:
    """The share of the machine's own rate that captured steps reach, at the largest K."""
    lines = [
        [
            row["model"],
            str(row["models"]),
            *[f"{row[name]:.3g}" for name in ("floor_milliseconds", "milliseconds")],
            f"{row['floor_milliseconds'] / row['milliseconds']:.0%}",
        ]
        for row in _largest()
    ]
    return ["network", "K", "floor, ms", "measured, ms", "share"], lines


def measured_memory_lines() -> tuple[list[str], list[list[str]]]:
    """Units of one model's parameters, counted and measured."""
    lines = []
    for row in load_rows(RESULTS / "memory-cuda.json"):
        if row["scope"] != "all" or row["method"] != "pareto-mtl":
            continue
        k, m = row["models"], row["tasks"]
        said = 4 * k + (m + 1) * (k if row["strategy"] == "batched" else 1)
        lines.append([row["strategy"], str(k), str(m), *_compared(said, row["peak_over_a_model"])])
    return ["strategy", "K", "m", "counted", "measured", "error"], lines


def sent_lines() -> tuple[list[str], list[list[str]]]:
    """Gradients that a process sends in a step, in units of the model's parameters, counted and measured."""
    lines = []
    for row in load_rows(RESULTS / "distributed.json"):
        said = row["tasks"] if row["step"] == "gramian" else 1
        lines.append([row["step"], str(row["tasks"]), *_compared(said, row["bytes"] / row["parameters_bytes"])])
    return ["step", "m", "counted", "measured", "error"], lines


def _measured() -> dict[str, list[dict[str, Any]]]:
    """Captured steps in float32, by network."""
    rows = load_rows(RESULTS / "front-cuda.json")
    exact = [r for r in rows if r["contender"] == "graphed" and r["precision"] == "float32" and r["milliseconds"]]
    names = dict.fromkeys(row["model"] for row in exact)
    return {name: [row for row in exact if row["model"] == name] for name in names}


def _largest() -> list[dict[str, Any]]:
    """The step of most models, of each network."""
    found = [[row for row in rows if row["tasks"] == rows[0]["tasks"]] for rows in _measured().values()]
    return [max(rows, key=lambda row: row["models"]) for rows in found]


def _compared(said: float, found: float) -> list[str]:
    return [f"{said:,.3g}", f"{found:,.3g}", f"{said / found - 1:+.0%}"]


TABLES = {
    "memory": memory_lines,
    "cost": cost_lines,
    "sensitivity": sensitivity_lines,
    "communication": communication_lines,
    "storage": storage_lines,
}
CHECKS = {"time": time_lines, "share": share_lines, "memory": measured_memory_lines, "sent": sent_lines}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for each in fields(Plan):
        parser.add_argument(f"--{each.name.replace('_', '-')}", type=type(each.default), default=each.default)
    plan = replace(Plan(), **vars(parser.parse_args()))
    print(f"{plan}\n{plan.parameters:,.0f} parameters, {plan.adapters:,.0f} in adapters, {plan.steps:,.0f} steps")
    for title, make in TABLES.items():
        _show(title, *make(plan))
    for title, check in CHECKS.items():
        _show(f"{title}, predicted and measured", *check())


def _show(title: str, header: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    widths = [max(len(line[i]) for line in (header, *lines)) for i in range(len(header))]
    print(f"\n{title}")
    for line in (header, *lines):
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


if __name__ == "__main__":
    main()
